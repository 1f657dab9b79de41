package tools

import (
	"strings"
	"testing"
	"time"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
)

func TestConfigAuditGolden(t *testing.T) {
	overScenarios(t, "config_audit", `{"limit":500}`, "heimlabor", "noquorum", "pve8-single", "pve74-single", "fresh-single", "mixed-upgrade", "trouble")
}

// subjects are those of an audit's groups, with the codes found.
func subjects(a *report.Audit) map[string][]string {
	out := map[string][]string{}
	for _, g := range a.Everything() {
		for _, f := range g.Findings {
			out[g.Subject] = append(out[g.Subject], f.Code)
		}
	}
	return out
}

// A node that hangs costs the deadline and its own part, not the others'.
func TestConfigAuditWithAHangingNode(t *testing.T) {
	env := patient(t, replay(t, scenarios.Named("trouble"), fixtures.Options{Faults: map[string]fixtures.Fault{"w2": {Kind: fixtures.Hang, Form: "disks"}}}))
	_, p := behind(t, env)
	p.Deadline = 3 * time.Second
	a := answer[*report.Audit](t, env, "config_audit", `{}`)
	if a.Complete {
		t.Error("complete, although w2's disks were not told")
	}
	timedOut := false
	for _, x := range a.Problems {
		timedOut = timedOut || x.Code == report.Timeout && x.Node == "w2"
	}
	if !timedOut {
		t.Errorf("problems %v, want a TIMEOUT of w2", a.Problems)
	}
	if s := subjects(a); s["node/w1/sda"] == nil || s["guest/302"] == nil {
		t.Errorf("the other findings are missing: %v", s)
	}
}

// In an audit of two clusters every subject begins with its cluster's name.
func TestConfigAuditOfTwoClusters(t *testing.T) {
	both := scenarios.Named("trouble")
	both.Machines = append(both.Machines, scenarios.Named("pve74-single").Machines...)
	env := patient(t, replay(t, both, fixtures.Options{}))
	a := answer[*report.Audit](t, env, "config_audit", `{"limit":500}`)
	for subject := range subjects(a) {
		if !strings.HasPrefix(subject, "werk/") && !strings.HasPrefix(subject, "pve7/") {
			t.Errorf("subject %s names no cluster", subject)
		}
	}
	if a.Summary.Clusters != 2 || a.Summary.Nodes != 4 {
		t.Errorf("got %+v", a.Summary)
	}
	for _, args := range []string{`{"subject":"guest/102"}`, `{"subject":"werk/guest/102"}`, `{"subject":"102"}`} {
		if one := answer[*report.Audit](t, env, "config_audit", args); one.Total != 1 {
			t.Errorf("%s: %d subjects, want 1", args, one.Total)
		}
	}
}

// Without root what only root could tell is unknown, never well.
func TestConfigAuditWithoutRoot(t *testing.T) {
	env := patient(t, replay(t, scenarios.Named("trouble"), fixtures.Options{Logins: map[string]fixtures.Login{"": {Rights: allowlist.WWWData}}}))
	a := answer[*report.Audit](t, env, "config_audit", `{"limit":500}`)
	if a.Complete || len(a.Problems) == 0 {
		t.Errorf("complete %v with %d problems", a.Complete, len(a.Problems))
	}
	for subject, codes := range subjects(a) {
		for _, c := range codes {
			if strings.HasPrefix(c, "SMART_") || c == "BACKUP_NONE" || c == "DISK_ORPHAN" || c == "CERT_EXPIRING" {
				t.Errorf("%s %s: nobody read what it rests on", c, subject)
			}
		}
	}
	if s := subjects(a); s["storage/w1/tank"] == nil || s["cluster"] == nil {
		t.Errorf("what files tell is missing: %v", s)
	}
}

func TestConfigAuditFilters(t *testing.T) {
	env := patient(t, replay(t, scenarios.Named("trouble"), fixtures.Options{}))
	a := answer[*report.Audit](t, env, "config_audit", `{"min_severity":"critical"}`)
	if a.Summary.Warning != 0 || a.Summary.Info != 0 || a.Summary.Critical == 0 {
		t.Errorf("got %+v, want only critical findings", a.Summary)
	}
	if a := answer[*report.Audit](t, env, "config_audit", `{"code":"mac_duplicate"}`); a.Total != 1 || a.Items[0].Subject != "guest/302" {
		t.Errorf("got %+v", a.Items)
	}
	if _, err := call(t, env, "config_audit", `{"code":"NO_SUCH"}`); err == nil || AsError(err).Code != report.InvalidArgument {
		t.Errorf("an unknown code: got %v", err)
	}
}
