package tools

import (
	"testing"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
)

func TestSnapshotAuditGolden(t *testing.T) {
	overScenarios(t, "snapshot_audit", `{"impossible":true}`, "heimlabor", "noquorum", "pve8-single", "trouble")
}

func TestSnapshotAuditStartsNoPerl(t *testing.T) {
	env := patient(t, replay(t, scenarios.Named("trouble"), fixtures.Options{}))
	if _, err := call(t, env, "snapshot_audit", `{}`); err != nil {
		t.Fatal(err)
	}
	if p := perl(t, env); len(p) > 0 {
		t.Errorf("started Perl: %v", p)
	}
}
