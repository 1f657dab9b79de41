package parse

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// testdata reads one recorded or written input of this package.
func testdata(t testing.TB, name string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func TestParseState(t *testing.T) {
	s, err := ParseState(testdata(t, "state-pve9.txt"))
	if err != nil {
		t.Fatal(err)
	}
	wantMembers := Members{
		Node:    "pve1",
		Cluster: &ClusterInfo{Name: "heimlabor", Version: new(int64(3)), Nodes: new(int64(3)), Quorate: new(true)},
		Nodes: []Member{
			{Name: "pve1", ID: new(int64(1)), Online: new(true), IP: "192.168.20.11"},
			{Name: "pve2", ID: new(int64(2)), Online: new(false)},
			{Name: "pve3", ID: new(int64(3)), Online: new(true), IP: "192.168.20.13"},
		},
	}
	if diff := cmp.Diff(wantMembers, s.Members); diff != "" {
		t.Errorf("members (-want +got)\n%s", diff)
	}
	if len(s.Guests) != 17 || s.Guests[0] != (GuestRef{101, "pve1", "lxc"}) || s.Guests[16] != (GuestRef{220, "pve3", "qemu"}) {
		t.Errorf("guests: %v", s.Guests)
	}
	wantNode := RRDNode{
		Node: "pve1", Time: new(int64(1795970999)), Uptime: new(int64(3969)), Load1: new(8.46), CPUs: new(int64(2)),
		CPU: new(0.903846153846154), IOWait: new(0.00106837606837607),
		MemTotal: new(int64(25276026880)), MemUsed: new(int64(1507713024)), SwapTotal: new(int64(0)), SwapUsed: new(int64(0)),
		RootTotal: new(int64(270553174016)), RootUsed: new(int64(25349349376)), NetIn: new(int64(0)), NetOut: new(int64(0)),
		MemAvailable: new(int64(23768313856)), ARCSize: new(int64(0)), PressureCPUSome: new(45.37),
		PressureIOSome: new(0.55), PressureIOFull: new(0.0), PressureMemSome: new(0.0), PressureMemFull: new(0.0),
	}
	if diff := cmp.Diff(wantNode, s.RRD.Nodes["pve1"]); diff != "" {
		t.Errorf("node (-want +got)\n%s", diff)
	}
	wantGuest := RRDGuest{
		VMID: 205, Time: new(int64(1795970999)), Uptime: new(int64(0)), Name: "VM 205", Status: "stopped",
		Template: new(false), CPUs: new(1.0), MemMax: new(int64(536870912)), DiskMax: new(int64(0)), Disk: new(int64(0)),
	}
	if diff := cmp.Diff(wantGuest, s.RRD.Guests[205]); diff != "" {
		t.Errorf("guest without a name (-want +got)\n%s", diff)
	}
	wantRunning := RRDGuest{
		VMID: 101, Time: new(int64(1795970999)), Uptime: new(int64(2221)), Name: "web-proxy", Status: "running",
		Template: new(false), CPUs: new(2.0), CPU: new(0.0), MemMax: new(int64(536870912)), Mem: new(int64(425984)),
		DiskMax: new(int64(8350298112)), Disk: new(int64(2109440)), NetIn: new(int64(188204)), NetOut: new(int64(1312)),
		DiskRead: new(int64(0)), DiskWrite: new(int64(0)), PressureCPUSome: new(0.52), PressureCPUFull: new(0.10),
		PressureIOSome: new(0.52), PressureIOFull: new(0.10), PressureMemSome: new(0.52), PressureMemFull: new(0.10),
	}
	if diff := cmp.Diff(wantRunning, s.RRD.Guests[101]); diff != "" {
		t.Errorf("running guest (-want +got)\n%s", diff)
	}
	if len(s.RRD.Storages) != 7 || s.RRD.Storages[0].Storage != "local" || *s.RRD.Storages[0].Used != 25349242880 {
		t.Errorf("storages: %v", s.RRD.Storages)
	}
	if len(s.RRD.UnknownFamilies) != 0 {
		t.Errorf("unknown families: %q", s.RRD.UnknownFamilies)
	}
}

func TestParseStateOfALoneNode(t *testing.T) {
	s, err := ParseState(testdata(t, "state-pve8-lone.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Members{Node: "homelab", Nodes: []Member{}}, s.Members); diff != "" {
		t.Errorf("members (-want +got)\n%s", diff)
	}
	want := RRDNode{
		Node: "homelab", Time: new(int64(1764432000)), Uptime: new(int64(86400)), Level: "c", Load1: new(0.52), CPUs: new(int64(8)),
		CPU: new(0.0312), IOWait: new(0.0011), MemTotal: new(int64(33554432000)), MemUsed: new(int64(9000000000)),
		SwapTotal: new(int64(8589934592)), SwapUsed: new(int64(0)), RootTotal: new(int64(98000000000)), RootUsed: new(int64(21000000000)),
		NetIn: new(int64(123456)), NetOut: new(int64(654321)),
	}
	if diff := cmp.Diff(want, s.RRD.Nodes["homelab"]); diff != "" {
		t.Errorf("node of PVE 8 (-want +got)\n%s", diff)
	}
	if g := s.RRD.Guests[101]; g.Name != "dns-1" || g.Mem == nil || *g.Mem != 120586240 || *g.DiskWrite != 4000 || g.MemHost != nil {
		t.Errorf("guest of PVE 8: %+v", g)
	}
}

func TestParseStateWithoutQuorum(t *testing.T) {
	s, err := ParseState(testdata(t, "state-pve9-no-quorum.txt"))
	if err != nil {
		t.Fatal(err)
	}
	if q := s.Members.Cluster.Quorate; q == nil || *q {
		t.Errorf("quorate: %v", q)
	}
	if _, ok := s.RRD.Nodes["pve3"]; ok {
		t.Error("the numbers of pve3 are older than 300 s and must be gone")
	}
	if len(s.Guests) != 17 {
		t.Errorf("%d guests, want all 17 although nodes are offline", len(s.Guests))
	}
}

// stateText puts the three files together as tail -v does.
func stateText(members, vmlist, rrd string) string {
	return "==> /etc/pve/.members <==\n" + members + "\n\n==> /etc/pve/.vmlist <==\n" + vmlist + "\n\n==> /etc/pve/.rrd <==\n" + rrd
}

func TestParseStateErrors(t *testing.T) {
	const members, vmlist = `{"nodename":"a","version":1}`, `{"version":1}`
	whole := string(testdata(t, "state-pve9.txt"))
	tests := []struct{ name, in, err string }{
		{"empty", "", "state: want /etc/pve/.members, got an output without it"},
		{"garbage", "cat: /etc/pve/.members: Permission denied\n", "state: tail -v: want the header of one of /etc/pve/.members /etc/pve/.vmlist /etc/pve/.rrd"},
		{"no members", whole[strings.Index(whole, "==> /etc/pve/.vmlist"):], "state: want /etc/pve/.members, got an output without it"},
		{"no rrd", whole[:strings.Index(whole, "\n==> /etc/pve/.rrd")], "state: want /etc/pve/.rrd, got an output without it"},
		{"half members", stateText("{\n\"nodename\": \"a", vmlist, ""), "/etc/pve/.members: line 2: want whole JSON"},
		{"empty members", stateText("", vmlist, ""), "/etc/pve/.members: want JSON, got nothing"},
		{"members of another shape", stateText(`["a"]`, vmlist, ""), "/etc/pve/.members: line 1: want a JSON object"},
		{"members without a name", stateText(`{"version":1}`, vmlist, ""), "/etc/pve/.members: want a nodename that is a host name"},
		{"a path as name", stateText(`{"nodename":"../x"}`, vmlist, ""), "/etc/pve/.members: want a nodename that is a host name"},
		{"an option as member", stateText(`{"nodename":"a","nodelist":{"-x":{}}}`, vmlist, ""), "/etc/pve/.members: want host names in the nodelist"},
		{"a blank in a guest's node", stateText(members, `{"ids":{"100":{"node":"a b","type":"lxc"}}}`, ""), "/etc/pve/.vmlist: want host names as nodes and words as types"},
		{"a guest's type that hides", stateText(members, `{"ids":{"100":{"node":"a","type":"lxc\u202e"}}}`, ""), "/etc/pve/.vmlist: want host names as nodes and words as types"},
		{"half vmlist", stateText(members, `{"version":1,"ids":{`, ""), "/etc/pve/.vmlist: line 1: want whole JSON"},
		{"vmlist of another shape", stateText(members, `{}`, ""), "/etc/pve/.vmlist: want a version or ids"},
		{"ids that are no numbers", stateText(members, `{"ids":{"x":{}}}`, ""), "/etc/pve/.vmlist: want numbers as ids"},
		{"cut in the middle of the last line", whole[:len(whole)-40], "/etc/pve/.rrd: want a newline at the end, the output is cut"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := ParseState([]byte(tt.in))
			checkError(t, err, tt.err)
			if s != nil {
				t.Errorf("a state came with the error")
			}
		})
	}
}

func TestParseRRDFamilies(t *testing.T) {
	const old = "pve2.3-vm/7:1:old:running:0:100:1:0.5:10:5:20:0:1:2:3:4\n"
	const new9 = "pve-vm-9.0/7:1:new:running:0:200:1:0.5:10:5:20:0:1:2:3:4:6:U:U:U:U:U:U\n"
	const late9 = "pve-vm-9.3/7:1:later:running:0:300:1:0.5:10:5:20:0:1:2:3:4:6:U:U:U:U:U:U:99\n"
	tests := []struct {
		name, in, guest string
		unknown         []string
	}{
		{"old then new", old + new9, "new", []string{}},
		{"new then old: the newest wins", new9 + old, "new", []string{}},
		{"a later minor version with one more field", new9 + late9 + old, "later", []string{}},
		{"same time: the richer wins", strings.Replace(new9, ":200:", ":100:", 1) + old, "new", []string{}},
		{"a line without a time never replaces one", old + strings.Replace(new9, ":200:", ":U:", 1), "old", []string{}},
		{"a line with a time replaces one without", strings.Replace(new9, ":200:", ":U:", 1) + old, "old", []string{}},
		{"unknown family", "pve-vm-10.0/7:a:b\npve3-vm/8:1\n", "", []string{"pve-vm-10.0", "pve3-vm"}},
		{"too few fields", "pve-vm-9.0/7:1:x:running\n", "", []string{"pve-vm-9.0"}},
		{"object that is no number", strings.Replace(old, "/7", "/x", 1), "", []string{"pve2.3-vm"}},
		{"no object", "hello\n", "", []string{"hello"}},
		{"a family that is no name", "\x1b[31mPWN: x\n" + strings.Repeat("a", 50) + "\n", "", []string{"unreadable"}},
		{"trailing NUL", old + "\x00", "old", []string{}},
		{"blank lines", "\n" + old + " \n", "old", []string{}},
		{"computed numbers", strings.Replace(old, ":10:5:", ":1e1:4.6:", 1), "old", []string{}},
		{"a guest named U", strings.Replace(old, ":old:", ":U:", 1), "U", []string{}},
		{"a name with colons", strings.Replace(old, ":old:", ":a:b::c:", 1), "a:b::c", []string{}},
		{"a name with colons, nine", strings.Replace(new9, ":new:", ":a:1:", 1), "a:1", []string{}},
		{"a status that is no word", strings.Replace(old, ":running:", ":RUNNING 1:", 1), "", []string{"pve2.3-vm"}},
		{"nothing", "", "", []string{}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, err := parseRRD([]byte(tt.in))
			if err != nil {
				t.Fatal(err)
			}
			if m := r.Guests[7].Mem; tt.guest != "" && (m == nil || *m != 5) {
				t.Errorf("memory %v, want 5", m)
			}
			if got := r.Guests[7].Name; got != tt.guest {
				t.Errorf("guest %q, want %q", got, tt.guest)
			}
			if diff := cmp.Diff(tt.unknown, r.UnknownFamilies); diff != "" {
				t.Errorf("unknown families (-want +got)\n%s", diff)
			}
		})
	}
}

func TestParseRRDUndefined(t *testing.T) {
	const u = ":U:U:U:U:U:U:U:U:U:U:U:U:U:U:U"
	r, err := parseRRD([]byte("pve2.3-vm/7" + u + "\npve2-node/a" + u + "\npve2-storage/a/s:U:U:U\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := RRD{
		Nodes: map[string]RRDNode{"a": {Node: "a"}}, Guests: map[int]RRDGuest{7: {VMID: 7}},
		Storages: []RRDStorage{{Node: "a", Storage: "s"}}, UnknownFamilies: []string{},
	}
	if diff := cmp.Diff(want, r); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestParseMembersOnlineWords(t *testing.T) {
	m, err := parseMembers([]byte(`{"nodename":"Pve1","cluster":{"name":"Home-Lab","nodes":"3","quorate":"1"},
		"nodelist":{"Pve1":{"id":1,"online":true},"pve-2":{"id":"2","online":"1"},"SW-HCA-03":{"id":3}}}`))
	if err != nil {
		t.Fatal(err)
	}
	want := []Member{
		{Name: "Pve1", ID: new(int64(1)), Online: new(true)},
		{Name: "SW-HCA-03", ID: new(int64(3))},
		{Name: "pve-2", ID: new(int64(2)), Online: new(true)},
	}
	if diff := cmp.Diff(want, m.Nodes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// An unreadable line costs no neighbour: what is read with it is read without.
func FuzzRRD(f *testing.F) {
	state := string(testdata(f, "state-pve9.txt"))
	for line := range strings.Lines(state[strings.Index(state, "pve-vm-9.0/107"):]) {
		f.Add(strings.TrimSpace(line))
	}
	f.Add("pve2-node/a:U:U")
	f.Add("pve-node-9.0/a")
	const good = "pve2.3-vm/7:1:good:running:0:100:1:0.5:10:5:20:0:1:2:3:4\n"
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.NewReplacer("\n", "", "\x00", "").Replace(line)
		if key, _, _ := strings.Cut(line, ":"); strings.HasSuffix(key, "/7") || strings.HasSuffix(key, "/007") {
			t.Skip("the same object")
		}
		r, err := parseRRD([]byte(line + "\n" + good))
		if err != nil {
			t.Fatal(err)
		}
		if g := r.Guests[7]; g.Name != "good" && !strings.Contains(line, "7:") {
			t.Errorf("guest 7 was lost: %+v", g)
		}
		for name := range r.Nodes {
			if !strings.Contains(line, name) {
				t.Errorf("a node that is not in the input")
			}
		}
		if !slices.IsSorted(r.UnknownFamilies) {
			t.Error("families are not sorted")
		}
	})
}

func BenchmarkParseState(b *testing.B) {
	var vmlist, rrd strings.Builder
	for id := 100; id < 1100; id++ {
		vmid := strconv.Itoa(id)
		vmlist.WriteString(`,"` + vmid + `":{"node":"pve1","type":"lxc","version":1}`)
		rrd.WriteString("pve-vm-9.0/" + vmid + ":2221:web-proxy:running:0:1795970999:2:0:536870912:425984:8350298112:2109440:188204:1312:0:0:U:0.52:0.10:0.52:0.10:0.52:0.10\n")
	}
	out := []byte(stateText(`{"nodename":"pve1","version":1}`, `{"version":1,"ids":{`+vmlist.String()[1:]+`}}`, rrd.String()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := ParseState(out); err != nil {
			b.Fatal(err)
		}
	}
}

// While a cluster is upgraded, nodes and storages have lines of two families
// as well.
func TestParseRRDNewestNodeAndStorage(t *testing.T) {
	oldNode := "pve2-node/a:1:c:100:0.5:8:0.1:0.1:1:2:3:4:5:6:7:8\n"
	newNode := "pve-node-9.0/a:1:c:200:0.6:8:0.1:0.1:1:2:3:4:5:6:7:8:9:10:1:2:3:4:5\n"
	oldStorage, newStorage := "pve2-storage/a/s:100:10:1\n", "pve-storage-9.0/a/s:200:10:2:7\n"
	for _, in := range []string{oldNode + newNode + oldStorage + newStorage, newNode + oldNode + newStorage + oldStorage} {
		r, err := parseRRD([]byte(in))
		if err != nil || len(r.UnknownFamilies) != 0 {
			t.Fatal(err, r.UnknownFamilies)
		}
		if n := r.Nodes["a"]; *n.Load1 != 0.6 || *n.ARCSize != 10 || *n.PressureMemFull != 5 {
			t.Errorf("node %+v", n)
		}
		if len(r.Storages) != 1 || *r.Storages[0].Used != 2 {
			t.Errorf("storages %+v", r.Storages)
		}
	}
	r, err := parseRRD([]byte("pve2-storage/a:1:2:3\npve2-storage/a/:1:2:3\npve2-storage//s:1:2:3\npve2-storage/a/s:1:2\n"))
	if err != nil || len(r.Storages) != 0 || !slices.Equal(r.UnknownFamilies, []string{"pve2-storage"}) {
		t.Errorf("storages without a name or a field: %+v, %v", r, err)
	}
}
