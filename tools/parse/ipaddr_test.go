package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestLinksRecorded(t *testing.T) {
	links, notes, err := Links(captured(t, "ip-addr.json"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	got := []string{}
	for _, l := range links {
		got = append(got, fmt.Sprintf("%d %s %s %s master=%s up=%t carrier=%t %d", l.Index, l.Name, l.MAC, l.State, l.Master, l.Up, l.Carrier, len(l.Addresses)))
	}
	diff(t, []string{
		"136 eno1 96:d7:9e:f3:b2:46 UP master=vmbr0 up=true carrier=true 1", "1 lo  UNKNOWN master= up=true carrier=true 2",
		"7 tap200i0 36:74:48:f4:9b:44 UP master=vmbr0 up=true carrier=true 1", "6 veth101i0 fe:96:bf:67:af:98 UP master=vmbr0 up=true carrier=true 1",
		"8 veth102i0 fe:82:31:67:0e:6c UP master=vmbr0 up=true carrier=true 1", "9 veth102i1 fe:54:01:a1:23:16 DOWN master=vmbr1 up=true carrier=false 0",
		"2 vmbr0 36:74:48:f4:9b:44 UP master= up=true carrier=true 3", "3 vmbr1 fe:54:01:a1:23:16 DOWN master= up=true carrier=false 1",
	}, got)
}

func TestLinksDetails(t *testing.T) {
	links, notes, err := Links(captured(t, "ip-addr-details.json"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	diff(t, []Link{
		{Index: 3, Name: "bond0", Kind: "bond", MAC: "3c:ec:ef:00:00:01", MTU: new(int64(1500)), State: "UP", Up: true, Carrier: true, Master: "vmbr0", BondMode: "active-backup", Addresses: []LinkAddress{}},
		{Index: 2, Name: "eno1", MAC: "3c:ec:ef:00:00:01", MTU: new(int64(1500)), State: "UP", Up: true, Carrier: true, Master: "bond0", Addresses: []LinkAddress{}},
		{Index: 1, Name: "lo", MTU: new(int64(65536)), State: "UNKNOWN", Up: true, Carrier: true, Addresses: []LinkAddress{{Prefix: netip.MustParsePrefix("127.0.0.1/8"), Scope: "host"}}},
		{Index: 4, Name: "vmbr0", Kind: "bridge", MAC: "3c:ec:ef:00:00:01", MTU: new(int64(1500)), State: "UP", Up: true, Carrier: true, VLANFiltering: new(true), Addresses: []LinkAddress{
			{Prefix: netip.MustParsePrefix("10.20.0.11/24"), Scope: "global"}, {Prefix: netip.MustParsePrefix("2001:db8:20::11/64"), Scope: "global", Dynamic: true, Deprecated: true},
		}},
		{Index: 5, Name: "vmbr0.30", Kind: "vlan", MAC: "3c:ec:ef:00:00:01", MTU: new(int64(1500)), State: "UP", Up: true, Carrier: true, Parent: "vmbr0", VLAN: new(30), Addresses: []LinkAddress{{Prefix: netip.MustParsePrefix("10.30.0.11/24"), Scope: "global"}}},
		{Index: 6, Name: "wg0", Kind: "wireguard", MTU: new(int64(1420)), State: "UNKNOWN", Up: true, Carrier: true, Addresses: []LinkAddress{{Prefix: netip.MustParsePrefix("10.99.0.1/32"), Scope: "global"}}},
	}, links)
}

func TestLinksBadInput(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		notes    []string
		err      string
	}{
		{"nothing", "", nil, "ip addr: want a JSON array of objects, got nothing"},
		{"text", "1: lo: <LOOPBACK,UP>", nil, "got something else at byte"},
		{"half", `[{"ifname":"lo"`, nil, "got something else at byte"},
		{"no name, no address", `[{"mtu":1},{"ifname":"a","addr_info":[{"local":"x"},{}]}]`, []string{"line 1: ifname: want a name", "line 2: addr_info.local: want an address"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, notes, err := Links([]byte(tc.in))
			wantError(t, err, tc.err)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}

// Law: the order of the entries does not matter to any list that is sorted here.
func FuzzNetworkLists(f *testing.F) {
	for _, name := range []string{"ip-addr.json", "ip-addr-details.json", "ip-neigh.json", "ip-route.json"} {
		f.Add(captured(f, name))
	}
	f.Add([]byte(`[{"ifname":"eno1","vlans":[{"vlan":1,"flags":["PVID","Egress Untagged"]},{"vlan":2,"vlanEnd":4094}]}]`))
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		var raw []json.RawMessage
		if json.Unmarshal(out, &raw) != nil || len(raw) == 0 {
			return
		}
		slices.Reverse(raw)
		reversed := append(append([]byte("["), bytes.Join(rawBytes(raw), []byte(","))...), ']')
		table, _, err := Neighbours(out)
		again, _, err2 := Neighbours(reversed)
		if (err == nil) != (err2 == nil) || len(table) != len(again) {
			t.Fatal("neighbours: the order matters")
		}
		for i := range table {
			if table[i].Addr != again[i].Addr || table[i].Dev != again[i].Dev || table[i].Grade() == "" {
				t.Fatal("neighbours: the order matters")
			}
		}
		links, _, err := Links(out)
		moreLinks, _, err2 := Links(reversed)
		if (err == nil) != (err2 == nil) || len(links) != len(moreLinks) {
			t.Fatal("links: the order matters")
		}
		ports, _, err := BridgeVLANs(out)
		if err == nil {
			for _, p := range ports {
				for _, v := range p.VLANs {
					if v.First < 1 || v.Last < v.First || v.Last > 4095 {
						t.Fatalf("impossible VLANs %+v", v)
					}
				}
			}
		}
		routes, _, err := Routes(out)
		for _, r := range routes {
			if dev, ok := OnLink(routes, r.Dst.Addr()); err == nil && ok && dev == "" {
				t.Fatal("on-link through no interface")
			}
			if !cmp.Equal(r.Dst, r.Dst.Masked(), sameAddresses) {
				t.Fatal("a destination with host bits")
			}
		}
	})
}
