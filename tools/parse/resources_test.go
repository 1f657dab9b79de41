package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func resourcesOf(t testing.TB, file string) Resources {
	t.Helper()
	r, notes, err := ClusterResources(captured(t, file))
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	return r
}

func TestClusterResourcesRecorded(t *testing.T) {
	r := resourcesOf(t, "resources-pve9.json")
	diff(t, []int{17, 3, 18, 3}, []int{len(r.Guests), len(r.Nodes), len(r.Storages), len(r.Pools)})
	diff(t, ResourceGuest{
		VMID: 101, Type: "lxc", Node: "pve1", Name: "web-proxy", Status: "running", Tags: []string{"dmz", "prod", "web"}, Pool: "dmz", HAState: "started",
		CPUs: new(2.0), CPU: new(0.0), Memory: new(int64(425984)), MemoryTotal: new(int64(536870912)), Disk: new(int64(2109440)), DiskTotal: new(int64(8350298112)),
		NetIn: new(int64(188204)), NetOut: new(int64(1312)), DiskRead: new(int64(0)), DiskWrite: new(int64(0)), Uptime: new(int64(2221)),
	}, r.Guests[0])
	diff(t, ResourceGuest{VMID: 110, Type: "lxc", Node: "pve2", Status: "unknown", Tags: []string{"iot"}}, r.Guests[7])
	diff(t, ResourceNode{Name: "pve2", Status: "offline"}, r.Nodes[1])
	diff(t, ResourceStorage{Name: "nas-nfs", Node: "pve1", Type: "nfs", Status: "unknown", Shared: true, Content: []string{"backup", "iso"}}, r.Storages[2])
	diff(t, []string{"dmz", "prod", "prod/db"}, r.Pools)
}

// Seconds after a node dies its guests still show their last state.
func TestClusterResourcesWithoutQuorum(t *testing.T) {
	r := resourcesOf(t, "resources-noquorum.json")
	for _, n := range r.Nodes {
		if n.Name != "pve1" && n.Status != "offline" {
			t.Errorf("%s is %s", n.Name, n.Status)
		}
	}
	for _, g := range r.Guests {
		if g.Node == "pve3" && (g.Status != "unknown" || g.Memory != nil || g.Name != "") {
			t.Errorf("guest %d of a dead node: %+v", g.VMID, g)
		}
	}
}

func TestClusterResourcesTemplates(t *testing.T) {
	r := resourcesOf(t, "resources-templates.json")
	got := []string{}
	for _, g := range r.Guests {
		got = append(got, fmt.Sprintf("%d %s %s template=%t disk=%t memory=%t uptime=%t total=%d", g.VMID, g.Type, g.Status, g.Template, g.Disk != nil, g.Memory != nil, g.Uptime != nil, *g.DiskTotal))
	}
	diff(t, []string{
		"100 qemu running template=false disk=false memory=true uptime=true total=17179869184",
		"101 lxc running template=false disk=true memory=true uptime=true total=8350298112",
		"102 lxc stopped template=false disk=false memory=false uptime=false total=8589934592",
		"9000 qemu stopped template=true disk=false memory=false uptime=false total=3221225472",
		"9001 lxc stopped template=true disk=false memory=false uptime=false total=1073741824",
	}, got)
	diff(t, []any{int64(120586240), int64(912345088), true, int64(1400000000)}, []any{*r.Guests[1].Memory, *r.Guests[1].Disk, r.Guests[1].MemoryHost == nil, *r.Guests[0].MemoryHost})
}

func TestClusterResourcesOfflineNodeAndSharedStorage(t *testing.T) {
	r := resourcesOf(t, "resources-offline-node.json")
	diff(t, []ResourceGuest{
		{VMID: 101, Type: "lxc", Node: "pve-b", Status: "unknown", Tags: []string{"prod"}},
		{VMID: 120, Type: "qemu", Node: "pve-b", Status: "unknown", Tags: []string{}, HAState: "fence"},
	}, r.Guests[1:])
	var rows []string
	for _, s := range resourcesOf(t, "resources-shared-storage.json").Storages {
		total := "?"
		if s.Total != nil {
			total = fmt.Sprint(*s.Total / 1e9)
		}
		rows = append(rows, fmt.Sprintf("%s %s %t %s", s.Node, s.Name, s.Shared, total))
	}
	diff(t, []string{
		"pve-a local false 94", "pve-a nas true 8000", "pve-a vmpool false 300",
		"pve-b local false 470", "pve-b nas true 8000", "pve-b vmpool false 1900",
		"pve-c local false 94", "pve-c nas true ?",
	}, rows)
}

func TestClusterResourcesRows(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		guests   int
		notes    []string
		err      string
	}{
		{"an empty cluster", "[]", 0, []string{}, ""},
		{"the number from the id", `[{"type":"qemu","id":"qemu/100"}]`, 1, []string{}, ""},
		{"numbers as text", `[{"type":"qemu","vmid":"100","status":"running","mem":"12","template":"0"}]`, 1, []string{}, ""},
		{"a guest without number", `[{"type":"qemu","name":"x"},{"type":"lxc","vmid":101}]`, 1, []string{"line 1: vmid: want 100..999999999"}, ""},
		{"one bad field", `[{"type":"lxc","vmid":101,"status":"running","mem":"lots"}]`, 1, []string{"line 1: mem: want a whole number"}, ""},
		{"a new kind of row", `[{"type":"quantum","id":"q/1"}]`, 0, []string{}, ""},
		{"no types at all", `[{"vmid":100}]`, 0, nil, `cluster resources: want "type" in the rows`},
		{"nothing", "", 0, nil, "got nothing"},
		{"half", `[{"type":"lxc","vmid":1`, 0, nil, "got something else at byte"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r, notes, err := ClusterResources([]byte(tc.in))
			wantError(t, err, tc.err)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
				diff(t, tc.guests, len(r.Guests))
			}
		})
	}
}

// Law: Perl's order is random and must not matter, and nobody but a running
// guest has numbers.
func FuzzClusterResources(f *testing.F) {
	for _, name := range []string{"resources-pve9.json", "resources-templates.json", "resources-offline-node.json"} {
		f.Add(captured(f, name))
	}
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		r, _, err := ClusterResources(out)
		if err != nil {
			return
		}
		var raw []json.RawMessage
		if json.Unmarshal(out, &raw) != nil {
			t.Fatal("no list")
		}
		seen := map[int]bool{}
		for _, g := range r.Guests {
			if g.Status != "running" && (g.Memory != nil || g.CPU != nil || g.Disk != nil || g.Uptime != nil) {
				t.Fatalf("numbers of a guest that is %q", g.Status)
			}
			if seen[g.VMID] {
				return // two rows of one guest: their order is theirs
			}
			seen[g.VMID] = true
		}
		slices.Reverse(raw)
		again, _, err := ClusterResources(append(append([]byte("["), bytes.Join(rawBytes(raw), []byte(","))...), ']'))
		if err != nil || !cmp.Equal(r.Guests, again.Guests) || !cmp.Equal(r.Pools, again.Pools) {
			t.Fatalf("the order of the rows matters: %v", err)
		}
	})
}
