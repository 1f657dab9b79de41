package tools

import (
	"strings"
	"testing"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
)

// wholeReports are the calls whose reports are kept whole, by scenario: tool, then
// arguments. The name of a file is the tool's with the guest.
var wholeReports = map[string][]struct{ name, tool, args string }{
	"heimlabor": {
		{"get_guest_status-101", "get_guest_status", `{"guest":"web-proxy"}`},
		{"get_guest_status-102", "get_guest_status", `{"guest":102}`},
		{"get_guest_status-104", "get_guest_status", `{"guest":104}`},
		{"get_guest_status-105", "get_guest_status", `{"guest":105}`},
		{"get_guest_status-110", "get_guest_status", `{"guest":110}`},
		{"get_guest_status-120", "get_guest_status", `{"guest":120}`},
		{"get_guest_status-200", "get_guest_status", `{"guest":200}`},
		{"list_storage", "list_storage", `{}`},
		{"list_storage-tank", "list_storage", `{"storage":"tank","detail":"detailed"}`},
		{"list_snapshots", "list_snapshots", `{}`},
		{"list_snapshots-102", "list_snapshots", `{"guest":102,"detail":"detailed"}`},
		{"list_backups", "list_backups", `{}`},
		{"list_backups-101", "list_backups", `{"guest":101,"detail":"detailed"}`},
		{"guest_health_summary-101", "guest_health_summary", `{"guest":101}`},
		{"guest_health_summary-102", "guest_health_summary", `{"guest":102}`},
		{"guest_health_summary-200", "guest_health_summary", `{"guest":200}`},
		{"guest_health_summary-210", "guest_health_summary", `{"guest":210}`},
		{"guest_health_summary-101-detailed", "guest_health_summary", `{"guest":101,"detail":"detailed"}`},
	},
	"noquorum": {
		{"get_guest_status-101", "get_guest_status", `{"guest":101}`},
		{"get_guest_status-120", "get_guest_status", `{"guest":120}`},
		{"list_storage", "list_storage", `{}`},
		{"list_snapshots", "list_snapshots", `{}`},
		{"list_backups", "list_backups", `{}`},
		{"guest_health_summary-101", "guest_health_summary", `{"guest":101}`},
	},
	"noquorum-6min": {
		{"get_guest_status-120", "get_guest_status", `{"guest":120}`},
		{"list_storage", "list_storage", `{}`},
	},
	"vm-paused": {
		{"get_guest_status-200", "get_guest_status", `{"guest":200}`},
		{"guest_health_summary-200", "guest_health_summary", `{"guest":200}`},
	},
	"agent-trouble": {
		{"get_guest_status-200", "get_guest_status", `{"guest":200}`},
		{"guest_health_summary-200", "guest_health_summary", `{"guest":200}`},
	},
	"pve8-single": {
		{"get_guest_status-101", "get_guest_status", `{"guest":101}`},
		{"get_guest_status-200", "get_guest_status", `{"guest":200}`},
		{"get_guest_status-202", "get_guest_status", `{"guest":202}`},
		{"list_storage", "list_storage", `{}`},
		{"list_snapshots", "list_snapshots", `{}`},
		{"list_backups", "list_backups", `{}`},
		{"guest_health_summary-101", "guest_health_summary", `{"guest":101}`},
		{"guest_health_summary-200", "guest_health_summary", `{"guest":200}`},
		{"guest_health_summary-103", "guest_health_summary", `{"guest":103}`},
	},
	"pve74-single": {
		{"get_guest_status-100", "get_guest_status", `{"guest":100}`},
		{"get_guest_status-110", "get_guest_status", `{"guest":110}`},
		{"list_storage", "list_storage", `{}`},
		{"list_snapshots", "list_snapshots", `{}`},
		{"list_backups", "list_backups", `{}`},
		{"guest_health_summary-100", "guest_health_summary", `{"guest":100}`},
	},
	"fresh-single": {
		{"list_storage", "list_storage", `{}`},
		{"list_snapshots", "list_snapshots", `{}`},
		{"list_backups", "list_backups", `{}`},
	},
	"mixed-upgrade": {
		{"get_guest_status-101", "get_guest_status", `{"guest":101}`},
		{"get_guest_status-203", "get_guest_status", `{"guest":203}`},
		{"list_storage", "list_storage", `{}`},
	},
	"pvestatd-stale": {
		{"list_guests-pve1", "list_guests", `{"node":"pve1"}`},
		{"get_guest_status-200", "get_guest_status", `{"guest":200}`},
		{"list_storage-pve1", "list_storage", `{"node":"pve1"}`},
	},
	"trouble": {
		{"get_guest_status-216", "get_guest_status", `{"guest":216}`},
		{"get_guest_status-217", "get_guest_status", `{"guest":217}`},
		{"list_storage", "list_storage", `{}`},
		{"list_snapshots", "list_snapshots", `{}`},
		{"list_backups", "list_backups", `{}`},
		{"guest_health_summary-102", "guest_health_summary", `{"guest":102}`},
		{"guest_health_summary-104", "guest_health_summary", `{"guest":104}`},
		{"guest_health_summary-201", "guest_health_summary", `{"guest":201}`},
		{"guest_health_summary-216", "guest_health_summary", `{"guest":216}`},
		{"guest_health_summary-217", "guest_health_summary", `{"guest":217}`},
		{"guest_health_summary-304", "guest_health_summary", `{"guest":304}`},
	},
	"pvestatd-dead": {
		{"list_guests", "list_guests", `{}`},
		{"get_guest_status-101", "get_guest_status", `{"guest":101}`},
		{"list_storage", "list_storage", `{}`},
		{"list_backups", "list_backups", `{}`},
		{"guest_health_summary-101", "guest_health_summary", `{"guest":101}`},
	},
}

func TestGoldenReports(t *testing.T) {
	for scenario, calls := range wholeReports {
		for _, c := range calls {
			t.Run(scenario+"/"+c.name, func(t *testing.T) {
				t.Parallel()
				env := replay(t, scenarios.Named(scenario), fixtures.Options{})
				r, err := call(t, env, c.tool, c.args)
				if err != nil {
					t.Fatal(err)
				}
				golden(t, scenario, c.name, r)
				var b strings.Builder
				for _, table := range r.Tables() {
					if err := table.Write(&b); err != nil {
						t.Fatal(err)
					}
				}
				if b.Len() == 0 {
					t.Error("nothing for people to read")
				}
			})
		}
	}
}

func TestWithoutPmxcfsEveryToolSaysSo(t *testing.T) {
	env := replay(t, scenarios.Named("pmxcfs-down"), fixtures.Options{})
	for tool, args := range map[string]string{
		"get_guest_status": `{"guest":101}`, "list_storage": `{}`, "list_snapshots": `{}`, "list_backups": `{}`, "guest_health_summary": `{"guest":101}`,
	} {
		_, err := call(t, env, tool, args)
		if err == nil || !strings.Contains(err.Error(), "pmxcfs") || !strings.HasPrefix(err.Error(), "NOT_FOUND: ") {
			t.Errorf("%s: got %v, want the cluster filesystem named", tool, err)
		}
	}
}

// Files and plain programs are enough for these; Perl would cost a node seconds.
func TestNoPerlForLists(t *testing.T) {
	for _, scenario := range []string{"heimlabor", "pve8-single", "pve74-single", "fresh-single", "mixed-upgrade", "noquorum", "pvestatd-dead"} {
		env := replay(t, scenarios.Named(scenario), fixtures.Options{})
		for _, c := range []struct{ tool, args string }{{"list_storage", `{}`}, {"list_storage", `{"detail":"detailed"}`}, {"list_snapshots", `{}`}, {"list_snapshots", `{"detail":"detailed"}`}} {
			if _, err := call(t, env, c.tool, c.args); err != nil {
				t.Fatal(err)
			}
		}
		if p := perl(t, env); len(p) > 0 {
			t.Errorf("%s: started Perl: %v", scenario, p)
		}
	}
}

// A model's context must not be filled by one call, and an answer that was cut
// says so.
func TestConciseAnswersFit(t *testing.T) {
	env := replay(t, fixtures.Generate(fixtures.Size{Nodes: 3, Guests: 50, Seed: 7}), fixtures.Options{})
	for _, c := range []struct{ tool, args string }{
		{"list_guests", `{}`}, {"list_storage", `{}`}, {"list_snapshots", `{}`}, {"list_backups", `{}`},
		{"get_guest_status", `{"guest":100}`}, {"guest_health_summary", `{"guest":100}`}, {"guest_health_summary", `{"guest":101}`},
	} {
		r, err := call(t, env, c.tool, c.args)
		if err != nil {
			t.Errorf("%s: %v", c.tool, err)
			continue
		}
		b, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if len(b) > maxConcise {
			t.Errorf("%s %s: %d bytes, want at most %d", c.tool, c.args, len(b), maxConcise)
		}
		t.Logf("%s %s: %d bytes", c.tool, c.args, len(b))
	}
	whole := answer[*report.BackupList](t, env, "list_backups", `{"limit":500}`)
	short := answer[*report.BackupList](t, env, "list_backups", `{}`)
	if whole.Truncated || whole.MoreGuests != 0 || len(whole.Guests) != 50 {
		t.Errorf("with limit 500: truncated %v, %d guests and %d more, want all", whole.Truncated, len(whole.Guests), whole.MoreGuests)
	}
	if !short.Truncated || short.Next == nil || *short.Next != len(short.Items) || short.Total != whole.Total {
		t.Errorf("cut to %d of %d, next %v", len(short.Items), short.Total, short.Next)
	}
	if len(short.Guests)+short.MoreGuests != 50 || len(short.Findings)+short.MoreFindings != len(whole.Findings) {
		t.Error("what was cut is not counted")
	}
}
