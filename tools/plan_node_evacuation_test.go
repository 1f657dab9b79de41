package tools

import (
	"strings"
	"testing"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
)

func TestEvacuationGoldens(t *testing.T) {
	for scenario, nodes := range map[string][]string{
		"heimlabor": {"pve1", "pve2"}, "trouble": {"w1", "w2", "w3"}, "pve8-single": {"homelab"}, "noquorum": {"pve1"}, "mixed-upgrade": {"alpha", "beta"},
		"pve74-single": {"pve7"}, "pvestatd-dead": {"pve1"}, "pvestatd-stale": {"pve1"}, "fresh-single": {"neu"},
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

func TestPlanNeedsANode(t *testing.T) {
	env := replay(t, scenarios.Named("heimlabor"), fixtures.Options{})
	for args, want := range map[string]string{
		`{}`:              "INVALID_ARGUMENT: node is required",
		`{"node":"pve9"}`: "NOT_FOUND: no node named pve9",
		`{"node":""}`:     "INVALID_ARGUMENT: node must be",
	} {
		if _, err := call(t, env, "plan_node_evacuation", args); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
	r := answer[*report.EvacuationPlan](t, env, "plan_node_evacuation", `{"node":"PVE1.home.arpa"}`)
	if r.Node != "pve1" || r.Summary.Guests != 13 {
		t.Errorf("got node %s with %d guests, want pve1 with 13", r.Node, r.Summary.Guests)
	}
	fits(t, r)
}
