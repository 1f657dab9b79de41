package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/profiles"
	"pvelens/tools/report"
	"pvelens/transport"
)

var update = flag.Bool("update", false, "rewrite the golden reports")

const replayConnectTimeout = 300 * time.Millisecond

// replays holds what stands behind each Env that replay made.
var replays sync.Map

type replayed struct {
	cluster *fixtures.Cluster
	profile *profiles.Profile
	audit   *transport.Audit
}

// replay starts a scenario behind the real transport and returns an Env that
// asks it. The clock is the scenario's; everything ends with the test.
func replay(t testing.TB, sc fixtures.Scenario, o fixtures.Options) *Env {
	t.Helper()
	cluster, err := fixtures.Start(t.Context(), sc, o)
	if err != nil {
		t.Fatal(err)
	}
	audit := transport.MemoryAudit()
	if _, err := audit.Start("test"); err != nil {
		t.Fatal(err)
	}
	pool := transport.New(transport.Options{Audit: audit, Getenv: func(string) string { return "" }})
	p := &profiles.Profile{
		Name: "test", SSHUser: "root", Resolver: "builtin", Transport: "ssh", Become: "none",
		PermittedNetworks: []netip.Prefix{netip.MustParsePrefix("192.168.0.0/16")},
		ConnectTimeout:    replayConnectTimeout, Deadline: 20 * time.Second,
	}
	targets := map[string]*profiles.Target{}
	for _, n := range cluster.Nodes {
		if n.Role == allowlist.Docker {
			p.DockerHosts = append(p.DockerHosts, n.Name)
		} else {
			p.Nodes = append(p.Nodes, n.Name)
		}
		targets[n.Name] = &profiles.Target{Name: n.Name, HostName: n.Host(), Port: n.Port(), User: "root", IdentityAgent: "none", AddressFamily: "any", Resolver: "builtin"}
	}
	backend := &Backend{
		Profile: p, Pool: pool, Now: func() time.Time { return cluster.Clock }, Source: "replay",
		Host: func(_ context.Context, destination string, role allowlist.Role) (*transport.Host, error) {
			return &transport.Host{Target: targets[destination], Role: role, Become: allowlist.Become(p.Become), ConnectTimeout: replayConnectTimeout, Signers: cluster.PrivateKeyPEM, KnownHosts: cluster.KnownHosts}, nil
		},
	}
	env := &Env{Open: func(string) (*Backend, error) { return backend, nil }, Version: "test"}
	replays.Store(env, &replayed{cluster, p, audit})
	t.Cleanup(func() {
		replays.Delete(env)
		_ = pool.Close()
		_ = cluster.Close()
	})
	return env
}

// behind returns the cluster and the profile of an Env that replay made. The
// profile may be changed before the first call.
func behind(t testing.TB, env *Env) (*fixtures.Cluster, *profiles.Profile) {
	t.Helper()
	r, ok := replays.Load(env)
	if !ok {
		t.Fatal("not an Env of replay")
	}
	return r.(*replayed).cluster, r.(*replayed).profile
}

// call asks one tool; args is a JSON object.
func call(t testing.TB, env *Env, tool, args string) (report.Tabler, error) {
	t.Helper()
	for _, x := range All() {
		if x.Name == tool {
			return x.Call(t.Context(), env, json.RawMessage(args))
		}
	}
	t.Fatalf("no tool %s", tool)
	return nil, nil
}

// answer is call for a tool that must answer, with its report's type.
func answer[R report.Tabler](t *testing.T, env *Env, tool, args string) R {
	t.Helper()
	r, err := call(t, env, tool, args)
	if err != nil {
		t.Fatalf("%s %s: %v", tool, args, err)
	}
	return r.(R)
}

// forms returns how often each form was run on the nodes of an Env.
func forms(t *testing.T, env *Env) map[string]int {
	t.Helper()
	cluster, _ := behind(t, env)
	out := map[string]int{}
	for _, n := range cluster.Nodes {
		for _, s := range n.Seen() {
			out[s.Form]++
		}
	}
	return out
}

// perl returns the commands that started Perl on the nodes of an Env.
func perl(t *testing.T, env *Env) []string {
	t.Helper()
	cluster, _ := behind(t, env)
	var out []string
	for _, n := range cluster.Nodes {
		for _, s := range n.Seen() {
			for _, w := range s.Argv {
				switch w {
				case "/usr/bin/pvesh", "/usr/sbin/pct", "/usr/sbin/qm":
					out = append(out, n.Name+": "+strings.Join(s.Argv, " "))
				}
			}
		}
	}
	return out
}

// Two things differ from run to run: ports, and how long a command took.
var (
	portText = regexp.MustCompile(`127\.0\.0\.1:[0-9]+`)
	msText   = regexp.MustCompile(`"ms": [0-9]+`)
)

// golden holds a report's JSON against testdata/golden/<scenario>/<name>.json.
// With -update it writes the file instead.
func golden(t *testing.T, scenario, name string, r report.Tabler) {
	t.Helper()
	compact, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := json.Indent(&b, compact, "", "  "); err != nil {
		t.Fatal(err)
	}
	got := portText.ReplaceAllString(b.String(), "127.0.0.1:22")
	got = msText.ReplaceAllString(got, `"ms": 1`) + "\n"
	path := filepath.Join("testdata", "golden", scenario, name+".json")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("%v; write it with go test ./tools -update", err)
	}
	if d := cmp.Diff(string(want), got); d != "" {
		t.Errorf("%s differs (-want +got):\n%s", path, d)
	}
}

// instead is a source that answers some commands by their fixtures.Key, and
// asks base for the others.
type instead struct {
	base    fixtures.Source
	answers map[string]fixtures.Answer
}

func (s instead) Answer(c allowlist.Command) (fixtures.Answer, bool) {
	if a, ok := s.answers[fixtures.Key(c)]; ok {
		return a, true
	}
	if s.base == nil {
		return fixtures.Answer{}, false
	}
	return s.base.Answer(c)
}

// printed is an answer with exit 0.
func printed(stdout string) fixtures.Answer { return fixtures.Answer{Stdout: []byte(stdout)} }

// alone is a scenario of one node that answers only what is given, by key.
func alone(node string, clock time.Time, answers map[string]fixtures.Answer) fixtures.Scenario {
	return fixtures.Scenario{Name: node, Clock: clock, Machines: []fixtures.Machine{{Name: node, Role: allowlist.PVE, Source: instead{nil, answers}}}}
}

func TestReplayAnswers(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	r := answer[*report.GuestList](t, env, "list_guests", `{}`)
	if r.Total != 17 {
		t.Errorf("got %d guests, want the recorded 17", r.Total)
	}
	if p := perl(t, env); len(p) > 0 {
		t.Errorf("started Perl: %v", p)
	}
}
