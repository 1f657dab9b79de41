package tools

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type recentTasksIn struct {
	Common
	Paged
	Guest  Text   `json:"guest,omitempty" help:"VMID or exact name" pos:"true"`
	Node   string `json:"node,omitempty" help:"only this node"`
	Type   string `json:"type,omitempty" help:"only this type, such as vzdump or qmigrate" max:"40"`
	Failed bool   `json:"failed,omitempty" help:"only tasks that failed"`
	Hours  int    `json:"hours,omitempty" help:"how far back" min:"1" max:"8760" default:"48"`
}

var recentTasks = define("recent_tasks", "List recent tasks",
	"Lists tasks of every reachable node, the latest first: type, guest, user, start, duration, result and the error's words; for a failed backup which guests failed and why. Says how far back each node was read.",
	func(_ context.Context, s *Session, in recentTasksIn) (*report.TaskList, error) {
		var need need
		if in.Guest != "" {
			need = needConfigs // the name may stand nowhere else
		}
		inv, err := s.inventory(need)
		if err != nil {
			return nil, err
		}
		only, at, err := s.chosen(inv, listBackupsIn{Guest: in.Guest, Node: in.Node})
		if err != nil {
			return nil, err
		}
		since := s.judged.Add(-time.Duration(in.Hours) * time.Hour)
		out := &report.TaskList{Since: report.At(since.Unix())}
		var rows []report.Task
		for _, c := range inv.clusters {
			if at != nil && at.cluster != c || only != nil && only.cluster != nil && only.cluster != c {
				continue
			}
			more, windows := s.taskRows(inv, c, at, since)
			rows, out.Windows = append(rows, more...), append(out.Windows, windows...)
		}
		rows = slices.DeleteFunc(rows, func(r report.Task) bool {
			return in.Type != "" && !strings.EqualFold(r.Type, in.Type) || only != nil && !concerns(&r, only.vmid)
		})
		report.SortTasks(rows)
		out.Findings = report.Findings(s.judge().TaskFindings(rows)...)
		out.Counts = report.CountTasks(rows)
		if in.Failed {
			rows = slices.DeleteFunc(rows, func(r report.Task) bool { return r.Result != report.TaskFailed })
		}
		out.Items, out.Page = report.Cut(rows, in.Offset, in.Limit)
		if !s.Detailed {
			out.Brief()
		}
		s.fit(out, in.Limit,
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 6) },
			func() bool { return report.Drop(&out.Windows, &out.MoreWindows, 8) },
			func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})

// concerns reports whether a task is about a guest; of a backup of many, those
// that failed are known by name, and only this one is kept.
func concerns(r *report.Task, vmid int) bool {
	if r.VMID != nil {
		return *r.VMID == vmid
	}
	return slices.ContainsFunc(r.Guests, func(g report.TaskGuest) bool { return g.VMID == vmid })
}

// taskRows reads the tasks of a cluster's nodes, or of one, at once.
func (s *Session) taskRows(inv *inventory, c *cluster, only *site, since time.Time) ([]report.Task, []report.TaskWindow) {
	name := c.view(inv).Name
	names := map[int]string{}
	for _, g := range report.Guests(c.view(inv), false) {
		names[g.VMID] = g.Name
	}
	var mu sync.Mutex
	var rows []report.Task
	windows := []report.TaskWindow{}
	add := func(r []report.Task, w report.TaskWindow) {
		mu.Lock()
		defer mu.Unlock()
		rows, windows = append(rows, r...), append(windows, w)
	}
	nodes := slices.DeleteFunc(c.nodes(), func(n string) bool { return only != nil && n != only.node })
	parallel(nodes, func(_ int, node string) {
		e, err := c.at(node)
		if err == nil {
			v := report.TaskFacts{Node: node, Cluster: name, Names: names, Boot: c.boot(node)}
			if err = s.taskFacts(e, &v, since); err == nil {
				add(report.TaskRows(v, since), v.Window(since))
				return
			}
		}
		s.miss(node, err)
		add(nil, report.TaskWindow{Node: node, Cluster: name, Reason: AsError(err).Message})
	})
	slices.SortFunc(windows, func(a, b report.TaskWindow) int { return strings.Compare(a.Node, b.Node) })
	return rows, windows
}

// boot is when a node started, 0 when its pvestatd does not tell.
func (c *cluster) boot(node string) int64 {
	if n, ok := c.State.RRD.Nodes[node]; ok && n.Time != nil && n.Uptime != nil {
		return *n.Time - *n.Uptime
	}
	return 0
}

// Proxmox keeps the last tasks in index, and those before in index.1; tail sends
// this many lines of each.
const (
	taskLines    = 2000
	oldTaskIndex = "==> /var/log/pve/tasks/index.1 <=="
)

// taskFacts reads a node's tasks, and the logs of its backups where one failed.
func (s *Session) taskFacts(e *entry, v *report.TaskFacts, since time.Time) error {
	out, err := s.ask(s.ctx, e, "node-tasks")
	if err != nil {
		return err
	}
	tasks, notes, err := parse.Tasks(out)
	if err != nil {
		return unread("node-tasks", err)
	}
	s.notes(v.Node, "node-tasks", notes)
	v.Tasks = tasks
	v.Rotated = bytes.Contains(out, []byte(oldTaskIndex)) || bytes.Count(out, []byte("\n")) >= taskLines
	if !slices.ContainsFunc(tasks, func(t parse.Task) bool {
		return t.Type == "vzdump" && t.Class == parse.TaskError && t.End != nil && *t.End >= since.Unix()
	}) {
		return nil
	}
	logs := tell(s, e, "backup-logs", parse.BackupLogs)
	v.Logs, v.LogsWhy = logs.value, logs.why
	if t := tell(s, e, "clock", noNotes(parse.Clock)); t.ok {
		v.Zone = t.value.Location()
	}
	return nil
}
