package tools

import (
	"testing"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
)

func TestRecentTasksGolden(t *testing.T) {
	overScenarios(t, "recent_tasks", `{}`, "heimlabor", "pve8-single", "pve74-single", "fresh-single", "trouble")
}

func TestRecentTasksFilters(t *testing.T) {
	env := patient(t, replay(t, scenarios.Named("trouble"), fixtures.Options{}))
	for _, tt := range []struct {
		name, args string
		keeps      func(report.Task) bool
		want       int
	}{
		{"failed", `{"failed":true}`, func(x report.Task) bool { return x.Result == report.TaskFailed }, 7},
		{"by type", `{"type":"vzdump"}`, func(x report.Task) bool { return x.Type == "vzdump" }, 4},
		{"by guest", `{"guest":110}`, func(x report.Task) bool { return x.VMID != nil && *x.VMID == 110 }, 3},
		{"by node", `{"node":"w2"}`, func(x report.Task) bool { return x.Node == "w2" }, 1},
		{"by time", `{"hours":3}`, func(x report.Task) bool { return x.StartedAt > "2026-11-29T13:00:00Z" }, 3},
		{"of a guest, also the backup of many that failed for it", `{"guest":204,"failed":true}`, func(x report.Task) bool { return x.Type == "vzdump" && len(x.Guests) > 0 }, 1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := answer[*report.TaskList](t, env, "recent_tasks", tt.args)
			if r.Total != tt.want {
				t.Errorf("got %d tasks, want %d", r.Total, tt.want)
			}
			for _, x := range r.Items {
				if !tt.keeps(x) {
					t.Errorf("%s %s does not fit", x.Node, x.Type)
				}
			}
		})
	}
	if r := answer[*report.TaskList](t, env, "recent_tasks", `{"type":"vzdump","node":"w2","hours":1}`); r.Counts.Backups != 0 || len(r.Findings) != 0 {
		t.Errorf("no backup ran in the last hour, got %+v", r.Counts)
	}
}

// What was read of each node's tasks is told; a node that was not read is named.
func TestRecentTasksWindows(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	r := answer[*report.TaskList](t, env, "recent_tasks", `{"hours":8760,"detail":"detailed"}`)
	read := map[string]bool{}
	for _, w := range r.Windows {
		read[w.Node] = w.Read
		if !w.Read && w.Reason == "" {
			t.Errorf("%s was not read, and nobody says why", w.Node)
		}
	}
	if len(read) != 3 || !read["pve1"] || read["pve2"] || read["pve3"] || r.Complete {
		t.Errorf("got windows %v, complete %v", read, r.Complete)
	}
}
