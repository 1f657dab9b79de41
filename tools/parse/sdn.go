package parse

import (
	"net/netip"
	"slices"
	"strings"
)

// SDN are the subnets, virtual networks and zones, each in the order of its
// file.
type SDN struct {
	Subnets  []SDNSubnet
	VNets    []SDNVNet
	Zones    []SDNZone
	BadLines []int // numbers of lines that could not be read
}

// SDNSubnet is one subnet. Network is invalid when the identifier holds none.
type SDNSubnet struct {
	ID      string
	Zone    string
	Network netip.Prefix
	VNet    string
	Gateway netip.Addr
	Ranges  []AddressRange // handed out by DHCP
}

// AddressRange is inclusive.
type AddressRange struct{ First, Last netip.Addr }

// SDNVNet is a virtual network; guests use its ID as their bridge. Alias is
// text by people.
type SDNVNet struct {
	ID, Zone, Alias string
	Tag             *int64
}

// SDNZone is a zone. Nodes empty means every node.
type SDNZone struct {
	ID, Type, Bridge string
	Tag              *int64
	Nodes            []string
	DHCP             string
}

const (
	subnetsPath = "/etc/pve/sdn/subnets.cfg"
	vnetsPath   = "/etc/pve/sdn/vnets.cfg"
	zonesPath   = "/etc/pve/sdn/zones.cfg"
)

// ParseSDN reads the form sdn. An empty output is a cluster without SDN.
//
// Program: grep -asHE on files of PVE 7.4 to 9.2. Input:
//
//	/etc/pve/sdn/subnets.cfg:subnet: iot-10.20.0.0-24
//	/etc/pve/sdn/subnets.cfg:	gateway 10.20.0.1
func ParseSDN(out []byte) (*SDN, error) {
	sections, bad := readSections(out, subnetsPath, vnetsPath, zonesPath)
	if len(sections) == 0 && len(bad) > 0 {
		return nil, &LineError{Subject: "sdn", Lines: bad, Want: "/etc/pve/sdn/FILE.cfg:LINE"}
	}
	s := &SDN{Subnets: []SDNSubnet{}, VNets: []SDNVNet{}, Zones: []SDNZone{}, BadLines: bad}
	for _, section := range sections {
		switch section.file {
		case subnetsPath:
			s.Subnets = append(s.Subnets, sdnSubnet(section, &s.BadLines))
		case vnetsPath:
			s.VNets = append(s.VNets, sdnVNet(section, &s.BadLines))
		default:
			s.Zones = append(s.Zones, sdnZone(section, &s.BadLines))
		}
	}
	slices.Sort(s.BadLines)
	return s, nil
}

func sdnSubnet(s configSection, bad *[]int) SDNSubnet {
	n := SDNSubnet{ID: s.id}
	n.Zone, n.Network = subnetID(s.id)
	s.read(bad, func(key, value string) bool {
		switch key {
		case "vnet":
			return setText(&n.VNet, value)
		case "gateway":
			gateway, err := netip.ParseAddr(value)
			n.Gateway = gateway
			return err == nil
		case "dhcp-range":
			first, err := netip.ParseAddr(optionValue(value, "start-address"))
			last, err2 := netip.ParseAddr(optionValue(value, "end-address"))
			if err != nil || err2 != nil {
				return false
			}
			n.Ranges = append(n.Ranges, AddressRange{first, last})
		}
		return true
	})
	return n
}

// subnetID takes ZONE-NETWORK-BITS apart; the first versions had no zone there.
func subnetID(id string) (zone string, network netip.Prefix) {
	i := strings.LastIndexByte(id, '-')
	if i < 0 {
		return "", netip.Prefix{}
	}
	head, bits := id[:i], id[i+1:]
	if j := strings.IndexByte(head, '-'); j >= 0 {
		zone, head = head[:j], head[j+1:]
	}
	network, err := netip.ParsePrefix(head + "/" + bits)
	if err != nil {
		return zone, netip.Prefix{}
	}
	return zone, network
}

func sdnVNet(s configSection, bad *[]int) SDNVNet {
	v := SDNVNet{ID: s.id}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "zone":
			return setText(&v.Zone, value)
		case "alias":
			return setText(&v.Alias, value)
		case "tag":
			return setInt(&v.Tag, value)
		}
		return true
	})
	return v
}

func sdnZone(s configSection, bad *[]int) SDNZone {
	z := SDNZone{ID: s.id, Type: s.kind}
	s.read(bad, func(key, value string) bool {
		switch key {
		case "bridge":
			return setText(&z.Bridge, value)
		case "tag":
			return setInt(&z.Tag, value)
		case "nodes":
			z.Nodes = splitSet(value)
		case "dhcp":
			return setText(&z.DHCP, value)
		}
		return true
	})
	return z
}
