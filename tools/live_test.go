package tools

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/parse"
	"pvelens/tools/report"
)

func TestDeadPvestatdIsAskedByList(t *testing.T) {
	env := replay(t, scenarios.Named("pvestatd-dead"), fixtures.Options{})
	r := answer[*report.GuestList](t, env, "list_guests", `{"node":"pve1"}`)
	got := map[int]string{}
	for _, g := range r.Items {
		got[g.VMID] = g.Status
	}
	want := map[int]string{101: "running", 102: "running", 103: "stopped", 104: "stopped", 105: "stopped", 106: "stopped", 107: "stopped",
		200: "running", 201: "stopped", 202: "stopped", 203: "stopped", 204: "stopped", 205: "stopped"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	ran := forms(t, env)
	if ran["lxc-list"] != 1 || ran["qemu-list"] != 1 || len(perl(t, env)) != 2 {
		t.Errorf("ran %v, want each list once", ran)
	}
	if !said(r, "pvestatd on pve1 reports nothing") {
		t.Errorf("the fallback is not told: %v", r.Problems)
	}
}

func said(r report.Tabler, text string) bool {
	return slices.ContainsFunc(r.Head().Problems, func(p report.Problem) bool { return strings.Contains(p.Message, text) })
}

// A node that is in no profile cannot be asked; its guests stay unknown.
func TestDeadPvestatdOfAnotherNode(t *testing.T) {
	env := replay(t, scenarios.Named("pvestatd-dead"), fixtures.Options{})
	r := answer[*report.GuestList](t, env, "list_guests", `{"node":"pve3"}`)
	for _, g := range r.Items {
		if g.Status != report.Unknown {
			t.Errorf("guest %d: got %s", g.VMID, g.Status)
		}
	}
	if r.Complete || !said(r, "pvestatd on pve3 reports nothing") {
		t.Errorf("complete %v, problems %v", r.Complete, r.Problems)
	}
}

// rewritten is heimlabor with another .rrd.
func rewritten(t *testing.T, change func(state string) string, more map[string]fixtures.Answer) fixtures.Scenario {
	t.Helper()
	sc := fixtures.Heimlabor()
	state := string(fixtures.Ask(fixtures.HeimlaborPVE1(), "state").Stdout)
	answers := map[string]fixtures.Answer{"state": printed(change(state))}
	maps.Copy(answers, more)
	sc.Machines[0].Source = instead{fixtures.HeimlaborPVE1(), answers}
	return sc
}

func TestUnknownFamilyFallsBackToResources(t *testing.T) {
	sc := rewritten(t, func(s string) string { return strings.ReplaceAll(s, "pve-vm-9.0/", "pve-vm-10.0/") }, nil)
	env := replay(t, sc, fixtures.Options{})
	got := answer[*report.GuestList](t, env, "list_guests", `{"detail":"detailed"}`)
	want := answer[*report.GuestList](t, replay(t, fixtures.Heimlabor(), fixtures.Options{}), "list_guests", `{"detail":"detailed"}`)
	if d := cmp.Diff(want.Items, got.Items); d != "" {
		t.Errorf("resources tell something else (-.rrd +resources):\n%s", d)
	}
	if ran := forms(t, env); ran["resources"] != 1 || len(perl(t, env)) != 1 {
		t.Errorf("ran %v, want resources once", ran)
	}
	if !said(got, "pve-vm-10.0") {
		t.Errorf("the family is not named: %v", got.Problems)
	}
}

func TestUnknownFamilyThatHidesNothingCostsNothing(t *testing.T) {
	sc := rewritten(t, func(s string) string { return s + "pve-gpu-9.3/pve1/0:1795971290:1:2\n" }, nil)
	env := replay(t, sc, fixtures.Options{})
	answer[*report.GuestList](t, env, "list_guests", `{}`)
	if p := perl(t, env); len(p) > 0 {
		t.Errorf("started Perl: %v", p)
	}
}

func TestUnknownFamilyWithoutResources(t *testing.T) {
	sc := rewritten(t, func(s string) string { return strings.ReplaceAll(s, "pve-storage-9.0/", "pve-storage-10.0/") },
		map[string]fixtures.Answer{"resources": {Exit: 255, Stderr: []byte("500 no\n")}})
	env := replay(t, sc, fixtures.Options{})
	r := answer[*report.StorageList](t, env, "list_storage", `{"node":"pve1"}`)
	for _, s := range r.Items {
		if s.State == report.StorageInactive || s.State == report.StorageActive {
			t.Errorf("%s: got %s, want unknown or disabled", s.Storage, s.State)
		}
	}
	if r.Complete || r.Totals != nil {
		t.Errorf("complete %v, totals %v", r.Complete, r.Totals)
	}
	b := answer[*report.BackupList](t, env, "list_backups", `{"guest":101}`)
	if b.Guests[0].Verdict != report.Unknown || forms(t, env)["backups"] != 0 {
		t.Errorf("got %+v, ran %v", b.Guests[0], forms(t, env))
	}
}

// The age of a report is judged by the node's own clock when this host's seems
// to differ: a wrong clock here must not hide a storage, and a pvestatd that
// hangs must not let one be activated.
func TestClocksThatDiffer(t *testing.T) {
	clock := func(unix string) map[string]fixtures.Answer {
		return map[string]fixtures.Answer{"clock": printed(unix + ".000000000+0100\n")}
	}
	const reported = "1795971281" // when pve1's storages were reported
	for _, c := range []struct {
		name    string
		here    time.Duration
		clock   map[string]fixtures.Answer
		touched bool
	}{
		{"clocks agree", 0, nil, true},
		{"this host is an hour ahead", time.Hour, clock("1795971300"), true},
		{"this host is an hour behind", -time.Hour, clock("1795971300"), true},
		{"pvestatd hangs for two minutes", 2 * time.Minute, clock("1795971420"), false},
		{"the node's clock cannot be read", time.Hour, map[string]fixtures.Answer{"clock": {Exit: 1}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			sc := rewritten(t, func(s string) string {
				if !strings.Contains(s, reported) {
					t.Fatal("the recording has changed")
				}
				return s
			}, c.clock)
			sc.Clock = sc.Clock.Add(c.here)
			env := replay(t, sc, fixtures.Options{})
			answer[*report.BackupList](t, env, "list_backups", `{}`)
			if n := forms(t, env)["clock"]; n > 2 {
				t.Errorf("clocks were read %d times, want once a node", n)
			}
			if got := forms(t, env)["backups"] > 0; got != c.touched {
				t.Errorf("storages were read: %v, want %v", got, c.touched)
			}
		})
	}
}

// What a silent or dead storage costs: no command names it.
func TestDeadStorageIsNotTouched(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	answer[*report.BackupList](t, env, "list_backups", `{}`)
	cluster, _ := behind(t, env)
	for _, n := range cluster.Nodes {
		for _, s := range n.Seen() {
			for _, dead := range []string{"nas-nfs", "nas-smb", "pbs-main", "old-nas"} {
				if strings.Contains(s.Line, dead) {
					t.Errorf("%s was asked: %s", dead, s.Line)
				}
			}
		}
	}
	if n := forms(t, env)["backups"]; n != 2 {
		t.Errorf("%d storages were read, want local and usb-backup", n)
	}
}

// A storage that all nodes share is read once, on the first node that answers.
func TestSharedStorageIsReadOnce(t *testing.T) {
	sc := fixtures.Generate(fixtures.Size{Nodes: 4, Guests: 8, Seed: 3})
	env := replay(t, sc, fixtures.Options{})
	r := answer[*report.BackupList](t, env, "list_backups", `{"limit":500}`)
	cluster, _ := behind(t, env)
	asked := map[string]int{}
	storage := regexp.MustCompile(`storage/([^/]+)/content`)
	for _, n := range cluster.Nodes {
		for _, s := range n.Seen() {
			if m := storage.FindStringSubmatch(s.Line); m != nil {
				asked[m[1]]++
			}
		}
	}
	shared := map[string]bool{}
	configs, err := parse.ParseClusterConfigs(fixtures.Ask(sc.Machines[0].Source, "cluster-configs").Stdout)
	if err != nil {
		t.Fatal(err)
	}
	for _, st := range configs.Storages {
		shared[st.ID] = st.Shared
	}
	for id, n := range asked {
		if shared[id] && n != 1 {
			t.Errorf("%s is shared and was read %d times", id, n)
		}
	}
	if len(asked) == 0 || len(r.Items) == 0 {
		t.Fatal("nothing was read")
	}
}

// Resources of a cluster with templates, a pool and an SDN zone among the rows:
// templates are no stopped guests, and 0 is no measurement.
func TestResourcesWithTemplatesAndPools(t *testing.T) {
	resources, err := os.ReadFile("testdata/resources/templates.json")
	if err != nil {
		t.Fatal(err)
	}
	const state = `==> /etc/pve/.members <==
{"nodename": "pve-a", "version": 4, "cluster": {"name": "lab", "version": 2, "nodes": 2, "quorate": 1}, "nodelist": {"pve-a": {"id": 1, "online": 1, "ip": "10.0.0.1"}, "pve-b": {"id": 2, "online": 1, "ip": "10.0.0.2"}}}

==> /etc/pve/.vmlist <==
{"version": 9, "ids": {"100": {"node": "pve-a", "type": "qemu", "version": 1}, "9000": {"node": "pve-a", "type": "qemu", "version": 1}, "101": {"node": "pve-b", "type": "lxc", "version": 1}, "102": {"node": "pve-b", "type": "lxc", "version": 1}, "9001": {"node": "pve-b", "type": "lxc", "version": 1}}}

==> /etc/pve/.rrd <==
pve-everything-11.0/pve-a:1:2:3
`
	env := replay(t, alone("pve-a", fixtures.DemoClock, map[string]fixtures.Answer{
		"state": printed(state), "resources": printed(string(resources)), "guest-configs": {Exit: 1}, "pools": {Exit: 1}, "ha-state": {Exit: 1},
	}), fixtures.Options{})
	r := answer[*report.GuestList](t, env, "list_guests", `{"detail":"detailed"}`)
	got := map[int]string{}
	for _, g := range r.Items {
		got[g.VMID] = fmt.Sprint(g.Type, " ", g.Name, " ", g.Status, " ", g.Template)
	}
	want := map[int]string{100: "qemu router running false", 101: "lxc dns-1 running false", 102: "lxc old stopped false", 9000: "qemu debian-13-tpl stopped true", 9001: "lxc alpine-tpl stopped true"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	router, dns, old := r.Items[0], r.Items[1], r.Items[2]
	if router.DiskUsedBytes != nil || *router.DiskTotalBytes != 17179869184 {
		t.Errorf("a VM's disk: %v of %v", router.DiskUsedBytes, router.DiskTotalBytes)
	}
	if *dns.MemoryUsedBytes != 120586240 || *dns.MemoryTotalBytes != 536870912 || *dns.DiskUsedBytes != 912345088 || *dns.DiskTotalBytes != 8350298112 {
		t.Errorf("the running container: %+v", dns)
	}
	if old.DiskUsedBytes != nil || old.MemoryUsedBytes != nil || old.UptimeS != nil || *old.DiskTotalBytes != 8<<30 {
		t.Errorf("the stopped container: %+v", old)
	}
}
