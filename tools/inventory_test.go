package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/tools/report"
	"pvelens/transport"
)

// stateOf is what `tail -v` prints of the three state files.
func stateOf(members, vmlist, rrd string) string {
	return "==> /etc/pve/.members <==\n" + members + "\n\n==> /etc/pve/.vmlist <==\n" + vmlist + "\n\n==> /etc/pve/.rrd <==\n" + rrd + "\n"
}

// member answers as one node: its state, and empty files for everything else.
func member(name, state string, configs ...string) fixtures.Machine {
	return fixtures.Machine{Name: name, Role: allowlist.PVE, Source: instead{answers: map[string]fixtures.Answer{
		"state": {Stdout: []byte(state)}, "guest-configs": {Stdout: []byte(strings.Join(configs, "\n") + "\n")},
		"pools": {Exit: 1}, "ha-state": {Exit: 1}, "cluster-configs": {Exit: 2}, "lxc-list": {}, "qemu-list": {},
		"lxc-config+solo+101": {Stdout: []byte("hostname: dns\n")}, "qemu-config+pve-b+102": {Stdout: []byte("name: web\n")},
	}}}
}

func scenario(machines ...fixtures.Machine) fixtures.Scenario {
	return fixtures.Scenario{Name: "test", Clock: fixtures.DemoClock, Machines: machines}
}

const (
	twoMembers = `{"nodename":%q,"version":5,"cluster":{"name":"lab","version":2,"nodes":2,"quorate":1},"nodelist":{"pve-a":{"id":1,"online":1,"ip":"10.0.0.1"},"pve-b":{"id":2,"online":1,"ip":"10.0.0.2"}}}`
	twoGuests  = `{"version":1,"ids":{"101":{"node":"pve-a","type":"lxc","version":1},"102":{"node":"pve-b","type":"qemu","version":1}}}`
	twoNumbers = "pve-vm-9.0/101:10:web:running:0:1795971290:1:0.1:1024:512:4096:100:0:0:0:0:0:0:0:0:0:0:0\npve-vm-9.0/102:10:web:running:0:1795971290:1:0.1:1024:512:4096:0:0:0:0:0:0:0:0:0:0:0:0"
	soloState  = `{"nodename":"solo","version":3}`
	soloGuests = `{"version":1,"ids":{"101":{"node":"solo","type":"lxc","version":1}}}`
	soloNumber = "pve2.3-vm/101:10:dns:running:0:1795971290:1:0.1:1024:512:4096:100:0:0:0:0"
)

func lab() fixtures.Scenario {
	return scenario(
		member("pve-a", stateOf(fmt.Sprintf(twoMembers, "pve-a"), twoGuests, twoNumbers)),
		member("pve-b", stateOf(fmt.Sprintf(twoMembers, "pve-b"), twoGuests, twoNumbers)),
		member("solo", stateOf(soloState, soloGuests, soloNumber)),
	)
}

func TestMembersOfOneClusterAreMerged(t *testing.T) {
	env := replay(t, lab(), fixtures.Options{})
	l := answer[*report.GuestList](t, env, "list_guests", `{}`)
	var got []string
	for _, g := range l.Items {
		got = append(got, fmt.Sprintf("%s/%d %s on %s", g.Cluster, g.VMID, g.Name, g.Node))
	}
	want := []string{"lab/101 web on pve-a", "lab/102 web on pve-b", "solo/101 dns on solo"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("guests (-want +got):\n%s", diff)
	}
	if n := answer[*report.NodeList](t, env, "list_nodes", `{}`); n.Total != 3 || n.Quorate != nil {
		t.Errorf("list_nodes: %d nodes, quorate %v", n.Total, n.Quorate)
	}
}

func TestAnAmbiguousGuestIsNeverChosen(t *testing.T) {
	env := replay(t, lab(), fixtures.Options{})
	for _, guest := range []string{`101`, `"101"`, `"web"`, `"WEB"`} {
		_, err := call(t, env, "get_guest_config", `{"guest":`+guest+`}`)
		if err == nil || AsError(err).Code != report.Ambiguous || !strings.Contains(err.Error(), "lab/101 on pve-a (web)") {
			t.Errorf("guest %s: %v", guest, err)
		}
	}
	for guest, name := range map[string]string{"solo/101": "dns", "LAB/102": "web", "dns": "dns", "DNS": "dns"} {
		c := answer[*report.GuestConfig](t, env, "get_guest_config", fmt.Sprintf(`{"guest":%q}`, guest))
		if c.Name != name {
			t.Errorf("guest %s: %s", guest, c.Name)
		}
	}
}

func TestNodesAreFoundByAnyName(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	for _, name := range []string{"pve1", "PVE1", "pve1.home.arpa", "Pve1.HOME.arpa"} {
		l := answer[*report.CapacityList](t, env, "get_node_capacity", fmt.Sprintf(`{"node":%q}`, name))
		if l.Total != 1 || l.Items[0].Node != "pve1" {
			t.Errorf("node %s: %+v", name, l.Items)
		}
	}
}

// TestAWarmInventoryAsksForAllAtOnce: a member that served before is asked for
// its state and for the files beside it at once, which is what makes two round
// trips enough.
func TestAWarmInventoryAsksForAllAtOnce(t *testing.T) {
	sc := fixtures.Heimlabor()
	sc.Machines = sc.Machines[:1]
	env := replay(t, sc, fixtures.Options{Cost: map[string]time.Duration{"": 300 * time.Millisecond}})
	cluster, _ := behind(t, env)
	atOnce := func() int { return cluster.Nodes[0].Counts().MaxConcurrent }
	answer[*report.GuestList](t, env, "list_guests", `{}`)
	if n := atOnce(); n != 3 {
		t.Errorf("cold: %d commands at once, want the 3 that follow the state", n)
	}
	answer[*report.GuestList](t, env, "list_guests", `{}`)
	if n := atOnce(); n != 4 {
		t.Errorf("warm: %d commands at once, want 4", n)
	}
}

// withTimeout lets hosts answer as late as the test wants.
func withTimeout(open func(string) (*Backend, error), d time.Duration) func(string) (*Backend, error) {
	return func(name string) (*Backend, error) {
		b, err := open(name)
		if err != nil {
			return nil, err
		}
		slow := *b
		slow.Host = lateHost(b.Host, d)
		return &slow, nil
	}
}

func TestBadInputOpensNoConnection(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	for tool, args := range map[string]string{"list_guests": `{"limit":0}`, "get_guest_config": `{}`, "get_node_capacity": `{"node":""  ,"x":1}`} {
		if _, err := call(t, env, tool, args); err == nil {
			t.Errorf("%s %s: no error", tool, args)
		}
	}
	s, err := env.open(t.Context(), Common{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	for _, values := range [][]string{{"pve1", "99"}, {"-x", "101"}, {"pve1", "101;id"}, {"..", "101"}} {
		if _, err := s.ask(s.ctx, s.nodes[0], "lxc-config", values...); err == nil || AsError(err).Code != report.Refused {
			t.Errorf("lxc-config %v: %v", values, err)
		}
	}
	cluster, _ := behind(t, env)
	if n := cluster.Counts().Connections; n != 0 {
		t.Errorf("%d connections for refused commands", n)
	}
}

func TestAFormIsNeverSentToAnotherNode(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	s, err := env.open(t.Context(), Common{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	if _, err := s.inventory(0); err != nil {
		t.Fatal(err)
	}
	if _, err := s.ask(s.ctx, s.nodes[0], "lxc-status", "pve3", "120"); err == nil || !strings.Contains(err.Error(), "is for node pve3") {
		t.Errorf("pvesh for another node: %v", err)
	}
}

func TestGarbageIsAnErrorNotAnAnswer(t *testing.T) {
	for name, out := range map[string]string{
		"nothing": "", "noise": "\x00\xff\xfe garbage", "html": "<html>login</html>",
		"half": stateOf(fmt.Sprintf(twoMembers, "pve-a"), twoGuests, twoNumbers)[:120],
	} {
		env := replay(t, scenario(member("pve-a", out)), fixtures.Options{})
		r, err := call(t, env, "list_guests", `{}`)
		if err == nil {
			b, _ := json.Marshal(r)
			t.Errorf("%s: %s", name, b)
			continue
		}
		if e := AsError(err); e.Code != report.Internal && e.Code != report.NotFound || strings.Contains(e.Message, "garbage") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAHugeOutputIsCutAndNotUsed(t *testing.T) {
	m := member("pve-a", stateOf(fmt.Sprintf(twoMembers, "pve-a"), twoGuests, twoNumbers))
	m.Source.(instead).answers["pools"] = fixtures.Answer{Stdout: []byte(strings.Repeat("pool:p:"+strings.Repeat("x", 1000)+":101::\n", 3000))}
	env := replay(t, scenario(m), fixtures.Options{})
	l := answer[*report.GuestList](t, env, "list_guests", `{}`)
	cut := slices.ContainsFunc(l.Problems, func(p report.Problem) bool { return strings.Contains(p.Message, "pools printed more than") })
	if l.Complete || l.Total != 2 || l.Items[0].Pool != "" || !cut {
		t.Errorf("complete %v, %d guests, problems %v", l.Complete, l.Total, l.Problems)
	}
}

// An output of which a part is missing is not complete, however well it parses.
func TestWhatIsMissingInAWholeOutput(t *testing.T) {
	for _, tt := range []struct{ name, form, out, tool, args, want string }{
		{"an output that lost all", "pools", "", "list_guests", `{}`, "pools: no output came"},
		{"an output that lost its end", "pools", "pool:prod:x:101::\npool:te", "list_guests", `{}`, "pools: the output is cut"},
		{"a file that tail should have headed", "lxc-cgroup+101", "==> /sys/fs/cgroup/lxc/101/memory.current <==\n5\n", "get_guest_status", `{"guest":101}`, "lxc-cgroup: the output is cut: /sys/fs/cgroup/lxc/{vmid}/memory.max is neither"},
		{"no configuration at all", "guest-configs", "", "list_guests", `{}`, "no setting of guest 101 came (2 in all)"},
		{"no configuration of one guest", "guest-configs", "/etc/pve/nodes/pve-a/lxc/101.conf:hostname: a\n", "list_snapshots", `{}`, "no setting of guest 102 came (1 in all)"},
		{"an empty configuration", "lxc-config+pve-a+101", "", "get_guest_config", `{"guest":101}`, "no setting of guest 101 came"},
		{"a line of storage.cfg", "cluster-configs", "/etc/pve/storage.cfg:dir: a\ngarbage\n", "list_storage", `{}`, "cluster-configs: line 2 cannot be read (1 in all)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			m := member("pve-a", stateOf(fmt.Sprintf(twoMembers, "pve-a"), twoGuests, twoNumbers))
			a := printed(tt.out)
			if tt.out == "" && tt.form != "pools" {
				a.Exit = 1 // as grep without a line
			}
			m.Source.(instead).answers[tt.form] = a
			env := replay(t, scenario(m), fixtures.Options{})
			b, err := Encode(answer[report.Tabler](t, env, tt.tool, tt.args))
			if err != nil {
				t.Fatal(err)
			}
			if text := string(b); !strings.Contains(text, `"complete":false`) || !strings.Contains(text, tt.want) {
				t.Errorf("want %q: %s", tt.want, text)
			}
		})
	}
}

// .members of a node that just started, whose corosync died, or that lost a
// member whose folder is still there.
func TestMembersThatDoNotFit(t *testing.T) {
	const cluster = `{"nodename":"pve-a","version":5,"cluster":{"name":"lab","version":2,"nodes":2,"quorate":%d},"nodelist":{%s}}`
	moved := strings.Replace(twoGuests, `"pve-b"`, `"gone"`, 1)
	for _, tt := range []struct {
		name, members, vmlist string
		nodes                 []string
		states                []string // of guests 101 and 102
		problem               string
	}{
		{"no list of nodes", fmt.Sprintf(cluster, 1, ""), twoGuests, []string{"pve-a"}, []string{"running", "running"}, "node pve-b is no member of its cluster"},
		{"the asked node is not listed", fmt.Sprintf(cluster, 1, `"pve-b":{"id":2,"online":1}`), twoGuests, []string{"pve-a", "pve-b"}, []string{"running", "running"}, ""},
		{"the asked node calls itself offline", fmt.Sprintf(cluster, 0, `"pve-a":{"id":1,"online":0},"pve-b":{"id":2,"online":0}`), twoGuests, []string{"pve-a", "pve-b"}, []string{"running", "unknown"}, "no quorum"},
		{"a guest of a node that was removed", fmt.Sprintf(cluster, 1, `"pve-a":{"id":1,"online":1}`), moved, []string{"pve-a"}, []string{"running", "unknown"}, "node gone is no member of its cluster"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			numbers := strings.Replace(twoNumbers, "pve-vm-9.0/102:", "pve-node-9.0/pve-a:9::1795971290:1:2:0.5:0.1:100:50:0:0:100:50:1:1:50:0:0:0:0:0:0\npve-vm-9.0/102:", 1)
			if tt.vmlist == moved {
				numbers, _, _ = strings.Cut(numbers, "\npve-vm-9.0/102:")
			}
			env := replay(t, scenario(member("pve-a", stateOf(tt.members, tt.vmlist, numbers),
				"/etc/pve/nodes/pve-a/lxc/101.conf:hostname: a", "/etc/pve/nodes/pve-b/qemu-server/102.conf:name: b")), fixtures.Options{})
			var nodes, states []string
			for _, n := range answer[*report.NodeList](t, env, "list_nodes", `{}`).Items {
				nodes = append(nodes, n.Node)
			}
			l := answer[*report.GuestList](t, env, "list_guests", `{}`)
			for _, g := range l.Items {
				states = append(states, g.Status)
			}
			if !slices.Equal(nodes, tt.nodes) || !slices.Equal(states, tt.states) {
				t.Errorf("nodes %v, states %v", nodes, states)
			}
			told := slices.ContainsFunc(l.Problems, func(p report.Problem) bool { return strings.Contains(p.Message, tt.problem) })
			if tt.problem != "" && (!told || l.Complete) {
				t.Errorf("complete %v, problems %v", l.Complete, l.Problems)
			}
		})
	}
}

func TestNoQuorumIsSaidAndGuessesNothing(t *testing.T) {
	cut := strings.Replace(fmt.Sprintf(twoMembers, "pve-a"), `"quorate":1`, `"quorate":0`, 1)
	cut = strings.Replace(cut, `"pve-b":{"id":2,"online":1`, `"pve-b":{"id":2,"online":0`, 1)
	env := replay(t, scenario(member("pve-a", stateOf(cut, twoGuests, twoNumbers))), fixtures.Options{})
	l := answer[*report.GuestList](t, env, "list_guests", `{}`)
	if l.Complete || l.Items[0].Status != "running" || l.Items[1].Status != "unknown" || l.Items[1].LastStatus != "running" {
		t.Errorf("complete %v, guests %+v", l.Complete, l.Items)
	}
	n := answer[*report.NodeList](t, env, "list_nodes", `{}`)
	if n.Quorate == nil || *n.Quorate || n.Items[1].Online != nil {
		t.Errorf("quorate %v, pve-b online %v", n.Quorate, n.Items[1].Online)
	}
}

func TestAQuorateMemberServesRatherThanOneThatIsCutOff(t *testing.T) {
	cut := strings.Replace(fmt.Sprintf(twoMembers, "pve-a"), `"quorate":1`, `"quorate":0`, 1)
	cut = strings.Replace(cut, `"pve-b":{"id":2,"online":1`, `"pve-b":{"id":2,"online":0`, 1)
	env := replay(t, scenario(
		member("pve-a", stateOf(cut, twoGuests, "")),
		member("pve-b", stateOf(fmt.Sprintf(twoMembers, "pve-b"), twoGuests, twoNumbers)),
	), fixtures.Options{})
	l := answer[*report.GuestList](t, env, "list_guests", `{}`)
	if l.Items[0].Status != "running" || l.Items[1].Status != "running" {
		t.Errorf("guests %+v", l.Items)
	}
}
func lateHost(host func(context.Context, string, allowlist.Role) (*transport.Host, error), d time.Duration) func(context.Context, string, allowlist.Role) (*transport.Host, error) {
	return func(ctx context.Context, destination string, role allowlist.Role) (*transport.Host, error) {
		h, err := host(ctx, destination, role)
		if err == nil {
			h.ConnectTimeout = d
		}
		return h, err
	}
}

func TestDetachedWorkEndsWithACancelledCall(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	s, err := env.open(ctx, Common{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	work, stop := s.detach(time.Hour)
	defer stop()
	cancel()
	<-work.Done() // hangs where a cancelled call leaves work behind
}

func TestOneProfileIsOneFleetUnderAllItsNames(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	a, err := env.fleet("")
	if err != nil {
		t.Fatal(err)
	}
	b, err := env.fleet("test")
	if err != nil || a != b {
		t.Errorf("the default profile by its name is another fleet: %v", err)
	}
}

func TestFiftyGuestsAreCheap(t *testing.T) {
	env := replay(t, fixtures.Generate(fixtures.Size{Nodes: 3, Guests: 50, Seed: 1}), fixtures.Options{})
	l := answer[*report.GuestList](t, env, "list_guests", `{}`)
	out, err := Encode(l)
	if err != nil {
		t.Fatal(err)
	}
	if l.Total != 50 || len(out) > 6<<10 {
		t.Errorf("%d guests in %d bytes, at most 6 KiB", l.Total, len(out))
	}
}
