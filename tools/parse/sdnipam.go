package parse

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// IPAMEntry is one address that SDN has given out. VMID is nil for a gateway
// and for an address of no guest. Hostname is a guest's word.
type IPAMEntry struct {
	Zone     string
	Subnet   netip.Prefix
	Address  netip.Addr
	VMID     *int64
	MAC      string // upper-case
	Hostname string
	Gateway  bool
}

const ipamPath = "/etc/pve/sdn/pve-ipam-state.json"

// IPAM reads the form sdn-ipam, by zone and address. nil without an error means
// that there is no such file: Proxmox's own IPAM is not used. An entry that
// cannot be read becomes a note.
//
// Program: tail -v of a file of PVE 8.1 to 9.2. Input:
//
//	{"zones":{"iot":{"subnets":{"10.20.0.0/24":{"ips":{"10.20.0.5":{"vmid":"101","mac":"BC:24:11:00:00:01","hostname":"mqtt"}}}}}}}
func IPAM(out []byte) ([]IPAMEntry, []Note, error) {
	files, err := Files(out, []string{ipamPath})
	if err != nil {
		return nil, nil, fmt.Errorf("sdn ipam: %w", err)
	}
	raw := bytes.TrimSpace(files[ipamPath])
	if len(raw) == 0 {
		return nil, nil, nil
	}
	var in struct {
		Zones map[string]struct {
			Subnets map[string]struct {
				IPs map[string]json.RawMessage
			}
		}
	}
	if err := readJSON(ipamPath, raw, &in); err != nil {
		return nil, nil, err
	}
	entries, notes := []IPAMEntry{}, []Note(nil)
	for zone, z := range in.Zones {
		for subnet, s := range z.Subnets {
			for address, entry := range s.IPs {
				e, ok := ipamEntry(zone, subnet, address, entry)
				if !ok {
					notes = append(notes, Note{Text: ipamPath + ": want a subnet, an address and an object"})
					continue
				}
				entries = append(entries, e)
			}
		}
	}
	slices.SortFunc(entries, func(a, b IPAMEntry) int {
		return cmp.Or(strings.Compare(a.Zone, b.Zone), a.Address.Compare(b.Address))
	})
	return entries, notes, nil
}

func ipamEntry(zone, subnet, address string, raw json.RawMessage) (IPAMEntry, bool) {
	var in struct {
		VMID          jsonInt
		MAC, Hostname jsonText
		Gateway       jsonBool
	}
	network, err := netip.ParsePrefix(subnet)
	ip, err2 := netip.ParseAddr(address)
	if err != nil || err2 != nil || json.Unmarshal(raw, &in) != nil {
		return IPAMEntry{}, false
	}
	return IPAMEntry{
		Zone: zone, Subnet: network, Address: ip, VMID: in.VMID.Value, MAC: strings.ToUpper(in.MAC.String()),
		Hostname: in.Hostname.String(), Gateway: in.Gateway.True(),
	}, true
}
