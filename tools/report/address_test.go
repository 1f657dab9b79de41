package report

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pvelens/tools/parse"
)

var (
	lan    = Segment{Bridge: "vmbr0"}
	vlan30 = Segment{Bridge: "vmbr0", VLAN: 30}
	uplink = Uplink{Node: "pve1", Dev: "vmbr0", Prefix: netip.MustParsePrefix("10.20.0.0/24"), Segment: lan}
)

func neighbour(addr, mac string, state parse.NeighbourState) NeighbourSeen {
	return NeighbourSeen{Node: "pve1", Neighbour: parse.Neighbour{Addr: netip.MustParseAddr(addr), Dev: "vmbr0", MAC: mac, State: state}, Shared: 1}
}

func TestJudgeAddress(t *testing.T) {
	silent := &AddressProbe{Node: "pve1", Dev: "vmbr0", After: []NeighbourSeen{neighbour("10.20.0.9", "", parse.NeighbourFailed)}}
	for _, c := range []struct {
		name    string
		edit    func(*AddressView)
		verdict string
		reason  string
	}{
		{"asked, silent, nobody has it", func(v *AddressView) { v.Probes = []*AddressProbe{silent} }, Free, "nobody answered"},
		{"not asked", func(v *AddressView) { v.Unprobed = "x" }, Unknown, "it was not asked for: x"},
		{"a source is missing", func(v *AddressView) { v.Probes = []*AddressProbe{silent}; v.Blocking = []string{"node pve2 is off"} }, Unknown, "pve2"},
		{"an open question does not block", func(v *AddressView) { v.Probes = []*AddressProbe{silent}; v.Open = []string{"guest 5 dhcp"} }, Free, ""},
		{"a container whose network may be the guest's own", func(v *AddressView) {
			v.Probes, v.Holders = []*AddressProbe{silent}, []Holder{{Source: "container", Detail: "container x", Maybe: "cannot be told"}}
		}, Unknown, "cannot be told"},
		{"a guest of unknown state", func(v *AddressView) {
			v.Holders = []Holder{{Source: "config", Detail: "guest 5", State: "unknown", Segment: &lan}}
		}, InUse, "guest 5 (unknown)"},
		{"one of two networks is silent", func(v *AddressView) {
			v.Probes = []*AddressProbe{silent, {Node: "pve2", Dev: "vmbr0"}}
		}, Unknown, "no end yet"},
		{"one of two networks was asked", func(v *AddressView) { v.Probes, v.Unprobed = []*AddressProbe{silent}, "x" }, Unknown, "not asked for: x"},
		{"nobody is on-link", func(v *AddressView) { v.Uplinks = nil }, Unknown, "on-link"},
		{"INCOMPLETE after the probe", func(v *AddressView) {
			v.Probes = []*AddressProbe{{Node: "pve1", Dev: "vmbr0", After: []NeighbourSeen{neighbour("10.20.0.9", "", parse.NeighbourIncomplete)}}}
		}, Unknown, "no end yet"},
		{"no entry after the probe", func(v *AddressView) { v.Probes = []*AddressProbe{{Node: "pve1", Dev: "vmbr0"}} }, Unknown, "no end yet"},
		{"FAILED before the probe is not enough", func(v *AddressView) {
			v.Seen = []NeighbourSeen{neighbour("10.20.0.9", "", parse.NeighbourFailed)}
			v.Unprobed = "x"
		}, Unknown, "not asked"},
		{"answers the ping", func(v *AddressView) {
			v.Probes = []*AddressProbe{{Node: "pve1", Dev: "vmbr0", Answered: true}}
		}, InUse, "answered a ping"},
		{"drops the ping, answers ARP", func(v *AddressView) {
			v.Probes = []*AddressProbe{{Node: "pve1", Dev: "vmbr0", After: []NeighbourSeen{neighbour("10.20.0.9", "aa:bb:cc:00:00:01", parse.NeighbourReachable)}}}
		}, InUse, "layer 2"},
		{"REACHABLE", func(v *AddressView) {
			v.Seen = []NeighbourSeen{neighbour("10.20.0.9", "aa:bb:cc:00:00:01", parse.NeighbourReachable)}
		}, InUse, "layer 2"},
		{"STALE, not asked", func(v *AddressView) {
			v.Seen = []NeighbourSeen{neighbour("10.20.0.9", "aa:bb:cc:00:00:01", parse.NeighbourStale)}
		}, InUse, "was seen"},
		{"DELAY, not asked", func(v *AddressView) {
			v.Seen = []NeighbourSeen{neighbour("10.20.0.9", "aa:bb:cc:00:00:01", parse.NeighbourDelay)}
		}, InUse, "was seen"},
		{"STALE elsewhere, silent now", func(v *AddressView) {
			old := neighbour("10.20.0.9", "aa:bb:cc:00:00:01", parse.NeighbourStale)
			old.Node = "pve2"
			v.Uplinks = append(v.Uplinks, Uplink{Node: "pve2", Dev: "vmbr0", Prefix: uplink.Prefix, Segment: lan})
			v.Seen, v.Probes = []NeighbourSeen{old}, []*AddressProbe{silent}
		}, Unknown, "does not answer now"},
		{"PERMANENT", func(v *AddressView) {
			v.Seen = []NeighbourSeen{neighbour("10.20.0.9", "aa:bb:cc:00:00:01", parse.NeighbourPermanent)}
		}, Reserved, "permanent"},
		{"STALE in another VLAN", func(v *AddressView) {
			n := neighbour("10.20.0.9", "aa:bb:cc:00:00:01", parse.NeighbourStale)
			n.Dev = "vmbr0.30"
			v.Seen, v.Probes = []NeighbourSeen{n}, []*AddressProbe{silent}
		}, Free, ""},
		{"proxy ARP answers", func(v *AddressView) {
			n := neighbour("10.20.0.9", "aa:bb:cc:00:00:01", parse.NeighbourReachable)
			n.Shared = ManyAddresses
			v.Seen = []NeighbourSeen{n}
		}, Unknown, "proxy ARP"},
		{"a known guest with many addresses", func(v *AddressView) {
			n := neighbour("10.20.0.9", "aa:bb:cc:00:00:01", parse.NeighbourReachable)
			n.Shared = 9
			v.Owners = map[string]string{"aa:bb:cc:00:00:01": "guest 5"}
			v.Seen = []NeighbourSeen{n}
		}, InUse, "guest 5"},
		{"a virtual router's address", func(v *AddressView) {
			n := neighbour("10.20.0.9", "00:00:5e:00:01:07", parse.NeighbourReachable)
			n.Shared = 9
			v.Seen = []NeighbourSeen{n}
		}, InUse, "layer 2"},
		{"a stopped guest owns its address", func(v *AddressView) {
			v.Holders = []Holder{{Subject: "guest/5", Detail: "guest 5", Source: "config", Segment: &lan}}
		}, InUse, "guest 5 (stopped)"},
		{"a snapshot does not", func(v *AddressView) {
			v.Holders = []Holder{{Subject: "guest/5", Detail: "guest 5", Source: "config", Segment: &lan, Aside: "snapshot old"}}
			v.Probes = []*AddressProbe{silent}
		}, Free, ""},
		{"a template does not", func(v *AddressView) {
			v.Holders = []Holder{{Subject: "guest/5", Detail: "guest 5", Source: "cloudinit", Aside: "template"}}
			v.Probes = []*AddressProbe{silent}
		}, Free, ""},
		{"the same address in another VLAN", func(v *AddressView) {
			v.Holders = []Holder{{Subject: "guest/5", Detail: "guest 5", Source: "config", Segment: &vlan30}}
			v.Probes = []*AddressProbe{silent}
		}, Free, ""},
		{"the same address on another bridge", func(v *AddressView) {
			v.Holders = []Holder{{Subject: "guest/5", Detail: "guest 5", Source: "config", Segment: &Segment{Bridge: "vmbr1"}}}
			v.Probes = []*AddressProbe{silent}
		}, Free, ""},
		{"VLAN 1 is untagged", func(v *AddressView) {
			v.Holders = []Holder{{Subject: "guest/5", Detail: "guest 5", Source: "config", Segment: &Segment{Bridge: "vmbr0", VLAN: 1}}}
		}, InUse, "guest 5"},
		{"another VLAN, but no uplink to compare with", func(v *AddressView) {
			v.Uplinks = nil
			v.Holders = []Holder{{Subject: "guest/5", Detail: "guest 5", Source: "config", Segment: &vlan30}}
		}, InUse, "guest 5"},
		{"a gateway", func(v *AddressView) { v.Gateways = []netip.Addr{v.Address}; v.Probes = []*AddressProbe{silent} }, Reserved, "gateway"},
		{"SDN gave it out", func(v *AddressView) {
			v.Holders = []Holder{{Subject: "sdn", Detail: "given out by SDN", Source: "sdn"}}
			v.Probes = []*AddressProbe{silent}
		}, Reserved, "SDN"},
		{"SDN's DHCP range", func(v *AddressView) {
			v.Ranges = []parse.AddressRange{{First: netip.MustParseAddr("10.20.0.5"), Last: netip.MustParseAddr("10.20.0.20")}}
			v.Probes = []*AddressProbe{silent}
		}, Reserved, "DHCP range"},
		{"the broadcast address", func(v *AddressView) {
			v.Address = netip.MustParseAddr("10.20.0.255")
			v.Probes = []*AddressProbe{silent}
		}, Reserved, "broadcast"},
		{"the network address", func(v *AddressView) { v.Address = netip.MustParseAddr("10.20.0.0") }, Reserved, "network"},
		{"a container of its own", func(v *AddressView) {
			v.Holders = []Holder{{Subject: "container", Detail: "container web", Source: "container"}}
		}, InUse, "container web"},
	} {
		v := AddressView{Address: netip.MustParseAddr("10.20.0.9"), Uplinks: []Uplink{uplink}}
		c.edit(&v)
		got := JudgeAddress(v)
		if got.Verdict != c.verdict || !strings.Contains(got.Reason, c.reason) {
			t.Errorf("%s: %s because %s; want %s because %s", c.name, got.Verdict, got.Reason, c.verdict, c.reason)
		}
	}
}

// FuzzJudgeAddress: free is never said while anything speaks against it.
func FuzzJudgeAddress(f *testing.F) {
	f.Add(uint32(0), byte(9))
	for i := range 20 {
		f.Add(uint32(1)<<i, byte(i))
	}
	states := []parse.NeighbourState{parse.NeighbourReachable, parse.NeighbourStale, parse.NeighbourDelay, parse.NeighbourFailed, parse.NeighbourIncomplete, parse.NeighbourPermanent}
	f.Fuzz(func(t *testing.T, bits uint32, host byte) {
		on := func(i int) bool { return bits>>i&1 == 1 }
		v := AddressView{Address: netip.AddrFrom4([4]byte{10, 20, 0, host})}
		if on(0) {
			v.Uplinks = []Uplink{uplink}
		}
		for i, st := range states {
			n := neighbour(v.Address.String(), "aa:bb:cc:00:00:01", st)
			if st == parse.NeighbourFailed || st == parse.NeighbourIncomplete {
				n.MAC = ""
			}
			if on(1 + i) {
				v.Seen = append(v.Seen, n)
			}
			if on(8) && on(9+i) {
				if len(v.Probes) == 0 {
					v.Probes = []*AddressProbe{{Node: "pve1", Dev: "vmbr0"}}
				}
				v.Probes[0].After = append(v.Probes[0].After, n)
			}
		}
		if on(15) {
			v.Blocking = []string{"x"}
		}
		if on(16) {
			v.Holders = []Holder{{Source: "config", Detail: "g", Segment: &lan}}
		}
		c := JudgeAddress(v)
		if !slices.Contains([]string{InUse, Reserved, Unknown, Free}, c.Verdict) || c.Reason == "" || c.Evidence == nil || c.Missing == nil {
			t.Fatalf("%+v", c)
		}
		if c.Verdict == Free && (!on(0) || !on(8) || !on(12) || on(15) || on(16) || on(1) || on(2) || on(3) || on(6) || on(9) || on(10) || on(11) || on(13) || on(14) || host == 0 || host == 255) {
			t.Fatalf("free although bits %b of host %d speak against it: %+v", bits, host, c)
		}
	})
}

func TestDuplicatesAreFound(t *testing.T) {
	a := netip.MustParseAddr("10.20.0.9")
	holders := []Holder{
		{Subject: "guest/1", Detail: "guest 1", Source: "config", Address: a, Segment: &lan, Running: true},
		{Subject: "guest/2", Detail: "guest 2", Source: "config", Address: a, Segment: &lan, Running: true},
		{Subject: "guest/3", Detail: "guest 3", Source: "config", Address: a, Segment: &vlan30, Running: true},
		{Subject: "guest/2", Detail: "guest 2", Source: "lxc", Address: a, Segment: &lan, Running: true},
	}
	got := Findings(AddressFindings(holders, nil, Judge{})...)
	if len(got) != 1 || got[0].Severity != Critical || got[0].Message != "10.20.0.9 on vmbr0 belongs to guest 1 and guest 2" {
		t.Errorf("%+v", got)
	}
	holders[0].Running = false
	if got := Findings(AddressFindings(holders, nil, Judge{})...); len(got) != 1 || got[0].Severity != Warning {
		t.Errorf("latent: %+v", got)
	}
	nics := []GuestNIC{{"guest/1", "guest 1 net0", "AA:BB:CC:00:00:01", lan, "a"}, {"guest/2", "guest 2 net0", "aa:bb:cc:00:00:01", vlan30, "a"}, {"guest/3", "guest 3 net0", "aa:bb:cc:00:00:01", lan, "a"}}
	if got := Findings(MACFindings(nics, Judge{})...); len(got) != 1 || got[0].Severity != Critical || got[0].Subject != "guest/1" {
		t.Errorf("MAC: %+v", got)
	}
	// A guest restored in another cluster keeps its MAC and its address.
	nics[2].Cluster = "b"
	if got := Findings(MACFindings(nics, Judge{})...); len(got) != 1 || got[0].Severity != Warning {
		t.Errorf("MAC in two clusters: %+v", got)
	}
	two := []Holder{{Subject: "guest/1", Cluster: "a", Source: "config", Address: a, Segment: &lan, Running: true}, {Subject: "guest/1", Cluster: "b", Source: "config", Address: a, Segment: &lan, Running: true}}
	if got := Findings(AddressFindings(two, nil, Judge{})...); len(got) != 1 || got[0].Severity != Warning {
		t.Errorf("address in two clusters: %+v", got)
	}
}
