package tools

import (
	"context"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
	"pvelens/transport"
)

// patient makes an Env wait long for nodes that all answer, for a busy machine
// may be slow.
func patient(t testing.TB, env *Env) *Env {
	t.Helper()
	b, err := env.Open("")
	if err != nil {
		t.Fatal(err)
	}
	host := b.Host
	b.Host = func(ctx context.Context, destination string, role allowlist.Role) (*transport.Host, error) {
		h, err := host(ctx, destination, role)
		if err == nil {
			h.ConnectTimeout = time.Minute
		}
		return h, err
	}
	b.Profile.ConnectTimeout, b.Profile.Deadline = time.Minute, time.Minute
	return env
}

// overScenarios runs one tool over scenarios and holds its reports.
func overScenarios(t *testing.T, tool, args string, names ...string) {
	t.Helper()
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			sc := scenarios.Named(name)
			env := replay(t, sc, fixtures.Options{})
			if !slices.ContainsFunc(sc.Machines, func(m fixtures.Machine) bool { return m.Behaviour != fixtures.Answers }) {
				patient(t, env)
			}
			r, err := call(t, env, tool, args)
			if err != nil {
				t.Fatal(err)
			}
			golden(t, name, tool, r)
			if os.Getenv("SHOW") != "" {
				var b strings.Builder
				for _, table := range r.Tables() {
					_ = table.Write(&b)
				}
				t.Log("\n" + b.String())
			}
		})
	}
}

func TestClusterHealthGolden(t *testing.T) {
	overScenarios(t, "cluster_health", `{"detail":"concise"}`, "heimlabor", "noquorum", "pve8-single", "pve74-single", "fresh-single", "mixed-upgrade", "trouble")
}

// Without root there is no corosync-quorumtool: the votes come from the files.
func TestClusterHealthWithoutRoot(t *testing.T) {
	env := replay(t, scenarios.Named("heimlabor"), fixtures.Options{Logins: map[string]fixtures.Login{"pve1": {Rights: allowlist.WWWData}}})
	c := answer[*report.ClusterHealthList](t, env, "cluster_health", `{}`).Clusters[0]
	if c.OneMoreNodeMayFail != "no" || c.Votes == nil || *c.Votes != (report.Votes{Expected: 3, Present: 2, Needed: 2, Margin: 0, Source: "configuration"}) {
		t.Errorf("got %s and votes %+v, want no and 2 of 3 from the configuration", c.OneMoreNodeMayFail, c.Votes)
	}
}
