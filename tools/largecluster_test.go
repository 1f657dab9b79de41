package tools

import (
	"bytes"
	"fmt"
	"testing"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// Both tools over a cluster of sixteen nodes, two of them off: files only where
// that is promised, one archive list a storage, and no guest forgotten.
func TestLargeClusterCoverageAndPlan(t *testing.T) {
	size := fixtures.Size{Nodes: 16, Guests: 800, Offline: 2, Seed: 3}
	env := replay(t, fixtures.Generate(size), fixtures.Options{})
	files := answer[*report.CoverageList](t, env, "backup_coverage", `{"archives":false}`)
	if s := files.Summary; s.Guests != size.Guests || s.Uncovered+s.Unknown != size.Guests {
		t.Errorf("from files: %+v", s)
	}
	for _, node := range []string{"node-01", "node-16"} {
		p := answer[*report.EvacuationPlan](t, env, "plan_node_evacuation", `{"node":"`+node+`","limit":500}`)
		if p.Summary.Guests != size.Guests/size.Nodes || len(p.NMinus1) != size.Nodes {
			t.Errorf("%s: %d guests, %d losses", node, p.Summary.Guests, len(p.NMinus1))
		}
		short := answer[*report.EvacuationPlan](t, env, "plan_node_evacuation", `{"node":"`+node+`"}`)
		fits(t, short)
		if short.Summary != p.Summary || len(short.Steps)+short.MoreSteps != len(p.Steps) || len(short.Findings)+short.MoreFindings != len(p.Findings) {
			t.Errorf("%s: what was cut is not counted", node)
		}
	}
	if p := perl(t, env); len(p) > 0 {
		t.Errorf("started Perl: %v", p)
	}
	before := forms(t, env)["backups"]
	all := answer[*report.CoverageList](t, env, "backup_coverage", `{}`)
	fits(t, all)
	s := all.Summary
	if s.Guests != size.Guests || s.Fresh == 0 || s.Fresh+s.Stale+s.Never+s.Uncovered+s.Unknown != size.Guests {
		t.Errorf("with archives: %+v", s)
	}
	if n := forms(t, env)["backups"] - before; n != 15 {
		t.Errorf("asked for archives %d times, want the shared storage once and local on 14 nodes", n)
	}
	never := answer[*report.CoverageList](t, env, "backup_coverage", `{"verdict":"uncovered","limit":500}`)
	if never.Total != s.Uncovered || never.Summary != s {
		t.Errorf("%d uncovered, the summary says %d", never.Total, s.Uncovered)
	}
}

// fits fails when a concise answer is too long.
func fits(t *testing.T, r report.Tabler) {
	t.Helper()
	b, err := Encode(r)
	if err != nil {
		t.Fatal(err)
	}
	if len(b) > maxConcise {
		t.Errorf("%T: %d bytes, want at most %d", r, len(b), maxConcise)
	}
}

// large is what the reports of a generated cluster are built from.
func large(b *testing.B, guests int) (report.CoverageView, report.EvacView) {
	b.Helper()
	sc := fixtures.Generate(fixtures.Size{Nodes: 64, Guests: guests, Seed: 1})
	ask := func(form string, values ...string) []byte {
		return fixtures.Ask(sc.Machines[0].Source, form, values...).Stdout
	}
	st, err := parse.ParseState(ask("state"))
	if err != nil {
		b.Fatal(err)
	}
	configs, err := parse.GuestConfigs(bytes.NewReader(ask("guest-configs")))
	if err != nil {
		b.Fatal(err)
	}
	cluster, err := parse.ParseClusterConfigs(ask("cluster-configs"))
	if err != nil {
		b.Fatal(err)
	}
	ha, _, err := parse.ParseHAState(ask("ha-state"))
	if err != nil {
		b.Fatal(err)
	}
	content, _, err := parse.Content(ask("backups", sc.Machines[0].Name, "nas"))
	if err != nil {
		b.Fatal(err)
	}
	view := report.ClusterView{State: st, Configs: configs}
	v := report.CoverageView{
		BackupView: report.BackupView{Guests: report.Guests(view, false), Configs: configs, Jobs: cluster.BackupJobs, Now: sc.Clock, Zone: sc.Clock.Location(), Sources: []report.BackupSource{{Storage: "nas", Shared: true, Content: &content}}},
		State:      st, Storages: cluster.Storages, JobsRead: true, PoolsRead: true, Asked: true,
	}
	sites := map[string]report.EvacSite{}
	for _, m := range sc.Machines {
		sites[m.Name] = report.EvacSite{Links: map[string]bool{"vmbr0": true}}
	}
	return v, report.EvacView{Cluster: view, Node: sc.Machines[0].Name, Configs: cluster, HA: ha, Sites: sites, Now: sc.Clock}
}

var sizes = []int{1250, 2500, 5000, 10000}

// The time for one guest stays the same.
func BenchmarkBackupCoverage(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("guests=%d", n), func(b *testing.B) {
			v, _ := large(b, n)
			for b.Loop() {
				report.Judge{}.Coverages(v)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/guest")
		})
	}
}

func BenchmarkPlanNodeEvacuation(b *testing.B) {
	for _, n := range sizes {
		b.Run(fmt.Sprintf("guests=%d", n), func(b *testing.B) {
			_, v := large(b, n)
			for b.Loop() {
				report.Judge{}.PlanEvacuation(v)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/guest")
		})
	}
}

// A file that cannot be read proves nothing: coverage is unknown, and nothing
// is movable.
func TestUnreadFilesProveNothing(t *testing.T) {
	hangs := fixtures.Answer{Exit: 124} // timeout ended it
	for _, form := range []string{"cluster-configs", "guest-configs", "ha-state", "pools", "backup-logs", "addresses", "corosync"} {
		t.Run(form, func(t *testing.T) {
			sc := scenarios.Named("trouble")
			for i, m := range sc.Machines {
				sc.Machines[i].Source = instead{m.Source, map[string]fixtures.Answer{form: hangs}}
			}
			env := replay(t, sc, fixtures.Options{})
			cover := answer[*report.CoverageList](t, env, "backup_coverage", `{"archives":false,"limit":500}`)
			plan := answer[*report.EvacuationPlan](t, env, "plan_node_evacuation", `{"node":"w1","limit":500}`)
			s := cover.Summary
			switch form {
			case "cluster-configs":
				if cover.Complete || s.Unknown != s.Guests {
					t.Errorf("coverage: complete %v, %+v", cover.Complete, s)
				}
			case "pools":
				if cover.Complete || s.Uncovered > 0 {
					t.Errorf("coverage: complete %v, %+v: a pool job may take each", cover.Complete, s)
				}
			case "backup-logs":
				if cover.Complete || s.LastRunFailed > 0 {
					t.Errorf("coverage: complete %v, %d failed", cover.Complete, s.LastRunFailed)
				}
			}
			moved := plan.Summary.Live + plan.Summary.Restart + plan.Summary.Offline + plan.Summary.HA
			switch form {
			case "cluster-configs", "guest-configs", "ha-state":
				if plan.Complete || moved > 0 {
					t.Errorf("plan: complete %v, %d guests would move", plan.Complete, moved)
				}
			case "addresses":
				for _, g := range plan.Guests {
					if g.Target != "" && g.VMID != 110 { // which has no bridge
						t.Errorf("guest %d goes to %s without a proven bridge", g.VMID, g.Target)
					}
				}
			case "corosync":
				if plan.Complete || plan.NMinus1[0].KeepsQuorum != nil {
					t.Errorf("plan: complete %v, quorum known", plan.Complete)
				}
			}
		})
	}
}
