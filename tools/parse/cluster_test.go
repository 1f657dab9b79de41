package parse

import (
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestQuorum(t *testing.T) {
	tests := []struct {
		name, file string
		want       Quorum
	}{
		{"one of three nodes off", "quorum-pve9.txt", Quorum{
			Quorate: true, Nodes: new(int64(2)), ExpectedVotes: new(int64(3)), HighestExpected: new(int64(3)), TotalVotes: new(int64(2)),
			Needed: new(int64(2)), Flags: []string{"Quorate"},
			Members: []QuorumMember{{ID: 1, Votes: new(int64(1)), Name: "pve1", Local: true}, {ID: 3, Votes: new(int64(1)), Name: "pve3"}},
		}},
		{"with a QDevice", "cases/pvecm-status-qdevice.txt", Quorum{
			Quorate: true, Nodes: new(int64(2)), ExpectedVotes: new(int64(4)), HighestExpected: new(int64(4)), TotalVotes: new(int64(3)),
			Needed: new(int64(3)), Flags: []string{"Quorate", "Qdevice"},
			Members: []QuorumMember{
				{ID: 1, Votes: new(int64(1)), Name: "10.20.0.11", Device: "A,V,NMW"},
				{ID: 2, Votes: new(int64(1)), Name: "10.20.0.12", Local: true, Device: "A,V,NMW"},
			},
			QDevice: &QuorumDevice{Votes: new(int64(1)), Alive: true, Voting: true},
		}},
		{"lost", "cases/quorum-lost-single-survivor.txt", Quorum{
			Blocked: true, Nodes: new(int64(1)), ExpectedVotes: new(int64(2)), HighestExpected: new(int64(2)), TotalVotes: new(int64(1)),
			Needed: new(int64(2)), Flags: []string{},
			Members: []QuorumMember{{ID: 1, Votes: new(int64(1)), Name: "10.20.0.11", Local: true}},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, notes, err := ParseQuorum(testdata(t, tt.file))
			if err != nil || notes != nil {
				t.Fatal(err, notes)
			}
			if diff := cmp.Diff(&tt.want, got); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestQuorumDeviceWords(t *testing.T) {
	const head = "Quorate: Yes\nMembership information\n------\n    Nodeid      Votes    Qdevice Name\n"
	tests := []struct {
		name, rows    string
		alive, voting bool
	}{
		{"alive, not voting", "1 1 A,NV,NMW pve1 (local)\n0 1 Qdevice\n", true, false},
		{"not alive", "1 1 NA,V,NMW pve1 (local)\n0 0 Qdevice\n", false, true},
		{"not registered", "1 1 NR pve1 (local)\n0 0 Qdevice (votes 1)\n", false, false},
		{"the asked node's word counts", "1 1 A,V,NMW pve1\n2 1 NA,NV,NMW pve2 (local)\n0 1 Qdevice\n", false, false},
		{"no local row", "1 1 A,V,NMW pve1\n0 1 Qdevice\n", true, true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			q, notes, err := ParseQuorum([]byte(head + tt.rows))
			if err != nil || notes != nil {
				t.Fatal(err, notes)
			}
			if q.QDevice == nil || q.QDevice.Alive != tt.alive || q.QDevice.Voting != tt.voting {
				t.Errorf("%+v, want alive %v, voting %v", q.QDevice, tt.alive, tt.voting)
			}
		})
	}
	for _, in := range []string{"", "Cannot initialize CMAP service\n", "Quorate: perhaps\n"} {
		_, _, err := ParseQuorum([]byte(in))
		checkError(t, err, "quorum: want a line Quorate: Yes or No")
	}
	q, notes, err := ParseQuorum([]byte(head + "x y z\n1 1\n1 1 a b c\n1 1 pve1\n"))
	if err != nil || len(q.Members) != 1 || len(notes) != 3 || notes[0].Line != 5 {
		t.Errorf("broken row: %+v, %v, %v", q, notes, err)
	}
}

func TestCorosync(t *testing.T) {
	got, notes, err := ParseCorosync(testdata(t, "corosync-pve9.txt"))
	if err != nil || notes != nil {
		t.Fatal(err, notes)
	}
	node := func(name string, id int64, addr string) CorosyncNode {
		return CorosyncNode{Name: name, ID: &id, Votes: new(int64(1)), Addresses: []string{addr}}
	}
	want := &Corosync{
		ClusterName: "heimlabor", ConfigVersion: new(int64(3)), Provider: "corosync_votequorum",
		Nodes: []CorosyncNode{node("pve1", 1, "192.168.20.11"), node("pve2", 2, "192.168.20.12"), node("pve3", 3, "192.168.20.13")},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestCorosyncQDevice(t *testing.T) {
	got, notes, err := ParseCorosync([]byte("}\nnodelist {\n  node {\n    name: a\n    nodeid: 1\n    ring0_addr: 10.0.0.1\n    ring1_addr: 10.1.0.1\n  }\n}\n" +
		"quorum {\n  device {\n    }\n    model: net\n    net {\n      algorithm: ffsplit\n      host: 10.0.0.9\n    }\n    votes: 1\n  }\n  provider: corosync_votequorum\n  two_node: 1\n  wait_for_all: 0\n  last_man_standing: 1\n  auto_tie_breaker: 1\n  expected_votes: x\n}\n" +
		"totem {\n  cluster_name: lab\n}\n}\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := &Corosync{
		ClusterName: "lab", Provider: "corosync_votequorum", TwoNode: new(true), WaitForAll: new(false), LastManStanding: new(true), AutoTieBreaker: new(true),
		Nodes:   []CorosyncNode{{Name: "a", ID: new(int64(1)), Addresses: []string{"10.0.0.1", "10.1.0.1"}}},
		QDevice: &CorosyncQDevice{Model: "net", Host: "10.0.0.9", Algorithm: "ffsplit", Votes: new(int64(1))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(notes) != 1 || notes[0].Line != 25 {
		t.Errorf("notes %v", notes)
	}
	if got, _, err := ParseCorosync(nil); got != nil || err != nil {
		t.Errorf("no cluster: %v, %v", got, err)
	}
	_, _, err = ParseCorosync([]byte("provider: x\n"))
	checkError(t, err, "corosync: want a nodelist or a cluster_name")
	_, _, err = ParseCorosync([]byte("Permission denied\n"))
	checkError(t, err, "corosync: line 1: want BLOCK {, } or KEY: VALUE")
}

func TestHAState(t *testing.T) {
	got, notes, err := ParseHAState(testdata(t, "ha-state-pve9.txt"))
	if err != nil || notes != nil {
		t.Fatal(err, notes)
	}
	want := &HAState{
		Manager: &HAManager{
			Master: "pve1", Timestamp: new(int64(1795970465)),
			Nodes: []HANodeState{{"pve1", "online"}, {"pve2", "unknown"}, {"pve3", "online"}},
			Services: []HAService{
				{SID: "ct:101", Node: "pve1", State: "started", Running: new(true)}, {SID: "ct:120", Node: "pve3", State: "ignored"},
				{SID: "vm:200", Node: "pve1", State: "started", Running: new(true)}, {SID: "vm:210", Node: "pve2", State: "fence"},
			},
		},
		LRMs: []LRM{{"pve1", "active", "active", new(int64(1795970465))}, {"pve2", "active", "active", new(int64(1795884065))}, {"pve3", "active", "active", new(int64(1795970465))}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestHAStateBroken(t *testing.T) {
	got, notes, err := ParseHAState([]byte("/etc/pve/nodes/a/lrm_status:{\"mode\": \"maintenance\",\n/etc/pve/nodes/a/lrm_status:\"state\": \"active\", \"timestamp\": \"5\"}\n" +
		"/etc/pve/nodes/b/lrm_status:{\"mode\"\n/etc/pve/ha/manager_status:{\"node_status\":{\"\":\"gone\",\"a\":\"maintenance\"}}\n/etc/pve/ha/other:x\n/etc/pve/nodes/a/b/lrm_status:{}\n/etc/pve/nodes//lrm_status:{}\n/etc/pve/nodes/a/lrm:{}\n"))
	want := &HAState{
		Manager: &HAManager{Nodes: []HANodeState{{"a", "maintenance"}}, Services: []HAService{}},
		LRMs:    []LRM{{"a", "maintenance", "active", new(int64(5))}},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"line 5: want /etc/pve/FILE:JSON", "line 6: want /etc/pve/FILE:JSON", "line 7: want /etc/pve/FILE:JSON", "line 8: want /etc/pve/FILE:JSON", "lrm_status: line 1: want whole JSON"}, noteTexts(notes)); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	if got, _, err := ParseHAState(nil); err != nil || got.Manager != nil || got.LRMs == nil {
		t.Errorf("no HA: %v, %v", got, err)
	}
	_, _, err = ParseHAState([]byte("/etc/pve/ha/manager_status:x\n"))
	checkError(t, err, "ha state: want the JSON of manager_status or lrm_status")
	_, _, err = ParseHAState([]byte("nonsense\n"))
	checkError(t, err, "ha state: line 1: want /etc/pve/FILE:JSON")
}

func TestSDN(t *testing.T) {
	got, err := ParseSDN(testdata(t, "sdn-pve9.txt"))
	want := &SDN{
		Subnets: []SDNSubnet{{ID: "iot-10.20.0.0-24", Zone: "iot", Network: netip.MustParsePrefix("10.20.0.0/24"), VNet: "iot20", Gateway: netip.MustParseAddr("10.20.0.1")}},
		VNets:   []SDNVNet{{ID: "iot20", Zone: "iot", Alias: "IoT Geraete", Tag: new(int64(20))}},
		Zones:   []SDNZone{{ID: "lokal", Type: "simple"}, {ID: "iot", Type: "vlan", Bridge: "vmbr1"}},
	}
	if diff := cmp.Diff(want, got, addresses); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	got, err = ParseSDN([]byte(in(subnetsPath, "subnet: z-2001:db8::-64\n\tdhcp-range start-address=2001:db8::10,end-address=2001:db8::20\n\tdhcp-range start-address=x\nsubnet: 10.1.0.0-16\nsubnet: odd\n") +
		in(zonesPath, "qinq: q\n\ttag 5\n\tnodes a,b\n\tdhcp dnsmasq\n")))
	want = &SDN{
		Subnets: []SDNSubnet{
			{ID: "z-2001:db8::-64", Zone: "z", Network: netip.MustParsePrefix("2001:db8::/64"), Ranges: []AddressRange{{netip.MustParseAddr("2001:db8::10"), netip.MustParseAddr("2001:db8::20")}}},
			{ID: "10.1.0.0-16", Network: netip.MustParsePrefix("10.1.0.0/16")}, {ID: "odd"},
		},
		VNets: []SDNVNet{}, Zones: []SDNZone{{ID: "q", Type: "qinq", Tag: new(int64(5)), Nodes: []string{"a", "b"}, DHCP: "dnsmasq"}},
		BadLines: []int{3},
	}
	if diff := cmp.Diff(want, got, addresses); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	_, err = ParseSDN([]byte("x\n"))
	checkError(t, err, "sdn: line 1: want /etc/pve/sdn/FILE.cfg:LINE")
	if got, err := ParseSDN(nil); err != nil || got.Subnets == nil {
		t.Errorf("no SDN: %v, %v", got, err)
	}
}

func TestIPAM(t *testing.T) {
	file := func(s string) []byte { return []byte("==> /etc/pve/sdn/pve-ipam-state.json <==\n" + s) }
	got, notes, err := IPAM(file(`{"zones":{"iot":{"subnets":{"10.20.0.0/24":{"ips":{"10.20.0.10":{"vmid":"101","mac":"bc:24:11:00:00:01","hostname":"mqtt"},"10.20.0.1":{"gateway":1},"10.20.0.9":{"vmid":102},"nonsense":{}}},"x":{"ips":{"10.0.0.1":{}}}}},"empty":{"subnets":{}}}}`))
	subnet := netip.MustParsePrefix("10.20.0.0/24")
	want := []IPAMEntry{
		{Zone: "iot", Subnet: subnet, Address: netip.MustParseAddr("10.20.0.1"), Gateway: true},
		{Zone: "iot", Subnet: subnet, Address: netip.MustParseAddr("10.20.0.9"), VMID: new(int64(102))},
		{Zone: "iot", Subnet: subnet, Address: netip.MustParseAddr("10.20.0.10"), VMID: new(int64(101)), MAC: "BC:24:11:00:00:01", Hostname: "mqtt"},
	}
	if diff := cmp.Diff(want, got, addresses); diff != "" || err != nil || len(notes) != 2 {
		t.Errorf("%v, notes %v (-want +got)\n%s", err, notes, diff)
	}
	for _, in := range [][]byte{nil, file("")} {
		if got, _, err := IPAM(in); got != nil || err != nil {
			t.Errorf("no file: %v, %v", got, err)
		}
	}
	if got, _, err := IPAM(file("{}")); got == nil || err != nil {
		t.Errorf("nothing given out: %v, %v", got, err)
	}
	_, _, err = IPAM(file(`{"zones":[`))
	checkError(t, err, "/etc/pve/sdn/pve-ipam-state.json: line 1: want whole JSON")
}

func TestReplicationStates(t *testing.T) {
	file := func(s string) []byte {
		return []byte("==> /var/lib/pve-manager/pve-replication-state.json <==\n" + s)
	}
	got, notes, err := ReplicationStates(file(`{"102":{"local/pve3":{"last_sync":1795968000,"last_try":"1795968600","fail_count":41,"duration":4.31,"error":"command 'zfs' failed: exit code 255","last_node":"pve1","storeid_list":["tank"]},
		"local/pve2":{"last_sync":0,"last_try":0,"fail_count":0}},"x":{"local/a":{}},"103":{"odd":{},"local/b":7}}`))
	want := []ReplicationState{
		{VMID: 102, Type: "local", Target: "pve2", FailCount: new(int64(0))},
		{VMID: 102, Type: "local", Target: "pve3", LastSync: new(int64(1795968000)), LastTry: new(int64(1795968600)), Duration: new(4.31), FailCount: new(int64(41)), Error: "command 'zfs' failed: exit code 255"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(notes) != 3 {
		t.Errorf("%v, notes %v (-want +got)\n%s", err, notes, diff)
	}
	for _, in := range [][]byte{nil, file("\n")} {
		if got, _, err := ReplicationStates(in); got != nil || err != nil {
			t.Errorf("never ran: %v, %v", got, err)
		}
	}
	_, _, err = ReplicationStates(file("{"))
	checkError(t, err, "/var/lib/pve-manager/pve-replication-state.json: line 1: want whole JSON")
}

// Corosync's words never panic, and a member is never invented.
func FuzzQuorum(f *testing.F) {
	f.Add(string(testdata(f, "quorum-pve9.txt")))
	f.Add(string(testdata(f, "cases/pvecm-status-qdevice.txt")))
	f.Add(string(testdata(f, "corosync-pve9.txt")))
	f.Add(string(testdata(f, "ha-state-pve9.txt")))
	f.Fuzz(func(t *testing.T, in string) {
		if q, _, err := ParseQuorum([]byte(in)); err == nil {
			for _, m := range q.Members {
				if m.ID == 0 || m.Name == "" || m.Votes == nil {
					t.Errorf("a member without a name: %+v", m)
				}
			}
			if q.Quorate && q.QDevice == nil && len(q.Members) == 0 && len(in) < 7 {
				t.Error("quorate out of nothing")
			}
		}
		if c, _, err := ParseCorosync([]byte(in)); err == nil && c != nil && len(c.Nodes) == 0 && c.ClusterName == "" {
			t.Error("a cluster without nodes and name")
		}
		if s, _, err := ParseHAState([]byte(in)); err == nil {
			for _, l := range s.LRMs {
				if l.Node == "" {
					t.Error("a node without a name")
				}
			}
		}
	})
}
