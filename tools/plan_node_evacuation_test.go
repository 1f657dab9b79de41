package tools

import (
	"testing"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
)

func TestEvacuationGoldens(t *testing.T) {
	for scenario, nodes := range map[string][]string{
		"heimlabor": {"pve1", "pve2"}, "trouble": {"w1", "w2", "w3"}, "pve8-single": {"homelab"}, "noquorum": {"pve1"}, "mixed-upgrade": {"alpha"},
	} {
		for _, node := range nodes {
			t.Run(scenario+"/"+node, func(t *testing.T) {
				t.Parallel()
				env := replay(t, scenarios.Named(scenario), fixtures.Options{})
				r := answer[*report.EvacuationPlan](t, env, "plan_node_evacuation", `{"node":"`+node+`","limit":500}`)
				golden(t, scenario, "plan_node_evacuation-"+node, r)
				readable(t, r)
				if p := perl(t, env); len(p) > 0 {
					t.Errorf("started Perl: %v", p)
				}
			})
		}
	}
}
