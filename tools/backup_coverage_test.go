package tools

import (
	"strings"
	"testing"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
)

func TestCoverageGoldens(t *testing.T) {
	for _, scenario := range []string{"heimlabor", "trouble", "pve8-single", "noquorum", "fresh-single"} {
		for name, args := range map[string]string{"backup_coverage": `{"limit":500}`, "backup_coverage-files": `{"archives":false,"limit":500}`} {
			t.Run(scenario+"/"+name, func(t *testing.T) {
				t.Parallel()
				env := replay(t, scenarios.Named(scenario), fixtures.Options{})
				r := answer[*report.CoverageList](t, env, "backup_coverage", args)
				golden(t, scenario, name, r)
				readable(t, r)
				if p := perl(t, env); name == "backup_coverage-files" && len(p) > 0 {
					t.Errorf("started Perl: %v", p)
				}
			})
		}
	}
}

// readable fails when a report has nothing for people.
func readable(t *testing.T, r report.Tabler) {
	t.Helper()
	var b strings.Builder
	for _, table := range r.Tables() {
		if err := table.Write(&b); err != nil {
			t.Fatal(err)
		}
	}
	if b.Len() == 0 {
		t.Error("nothing for people to read")
	}
	t.Log("\n" + b.String())
}
