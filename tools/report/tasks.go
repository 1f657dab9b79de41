package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// The results of a task.
const (
	TaskDone     = "ok"
	TaskWarned   = "warnings"
	TaskFailed   = "failed"
	TaskEndedBad = "unknown" // it ended without a word, or its node was rebooted under it
	TaskRuns     = "running"
)

// A Task is one row of recent_tasks. ID is what the task was about where that is
// no guest. Message is Proxmox's word for a failure. Guests are, of a backup that
// failed for several, those that failed, each with the reason; ReasonsUnknown
// says why they are not known.
type Task struct {
	Node           string      `json:"node"`
	Cluster        string      `json:"cluster,omitempty"`
	Type           string      `json:"type"`
	VMID           *int        `json:"vmid,omitempty"`
	Guest          string      `json:"guest,omitempty"`
	ID             string      `json:"id,omitempty"`
	User           string      `json:"user,omitempty"`
	StartedAt      string      `json:"started_at"`
	EndedAt        string      `json:"ended_at,omitempty"`
	DurationS      *int64      `json:"duration_s,omitempty"`
	Result         string      `json:"result"`
	Message        string      `json:"message,omitempty"`
	Warnings       *int64      `json:"warnings,omitempty"`
	Guests         []TaskGuest `json:"guests,omitempty"`
	ReasonsUnknown string      `json:"reasons_unknown,omitempty"`
	UPID           string      `json:"upid,omitempty"`

	start int64
}

// A TaskGuest is a guest that a backup task failed for.
type TaskGuest struct {
	VMID   int    `json:"vmid"`
	Guest  string `json:"guest,omitempty"`
	Reason string `json:"reason"`
}

// A TaskWindow says what was read of a node's tasks: back to OldestAt at least.
// Whole is set when the node keeps nothing older, or older than was asked for was
// read; else tasks between Since and OldestAt are not known.
type TaskWindow struct {
	Node     string `json:"node"`
	Cluster  string `json:"cluster,omitempty"`
	Read     bool   `json:"read"`
	Whole    bool   `json:"whole"`
	OldestAt string `json:"oldest_at,omitempty"`
	Tasks    int    `json:"tasks"`
	Reason   string `json:"reason,omitempty"`
}

// TaskCounts counts the tasks that the filters chose, and apart the backup tasks
// among them: none means that no backup ran, not that none failed.
type TaskCounts struct {
	OK       int `json:"ok"`
	Warnings int `json:"warnings"`
	Failed   int `json:"failed"`
	Unknown  int `json:"unknown"`
	Running  int `json:"running"`
	Backups  int `json:"backups"`
}

// TaskList is the answer of recent_tasks, the latest first. Windows has, in a
// concise answer, only the nodes of which not all was read.
type TaskList struct {
	Answer
	Since  string     `json:"since"`
	Counts TaskCounts `json:"counts"`
	Items  []Task     `json:"items"`
	Page
	Windows      []TaskWindow `json:"windows"`
	MoreWindows  int          `json:"more_windows,omitempty"`
	Findings     []Finding    `json:"findings"`
	MoreFindings int          `json:"more_findings,omitempty"`
}

// TaskFacts is what one node told of its tasks. Boot is when it started, 0 when
// that is not known. Rotated is set when there may be older tasks than those in
// Tasks. Logs are its backup logs, whose times are local ones of Zone.
type TaskFacts struct {
	Node    string
	Cluster string
	Tasks   []parse.Task
	Rotated bool
	Boot    int64
	Logs    []parse.BackupLog
	LogsWhy string // why there are no logs
	Zone    *time.Location
	Names   map[int]string
}

// Window says which part of the time since then was read.
func (v TaskFacts) Window(since time.Time) TaskWindow {
	w := TaskWindow{Node: v.Node, Cluster: v.Cluster, Read: true, Tasks: len(v.Tasks), Whole: !v.Rotated}
	var oldest int64
	for _, t := range v.Tasks {
		// A task stands in the files in the order of its end.
		if t.End != nil && (oldest == 0 || *t.End < oldest) {
			oldest = *t.End
		}
	}
	if oldest > 0 {
		w.OldestAt = At(oldest)
		w.Whole = w.Whole || oldest <= since.Unix()
	}
	return w
}

// TaskRows returns the tasks of one node that ran since then, whenever they
// began.
func TaskRows(v TaskFacts, since time.Time) []Task {
	rows := []Task{}
	for _, t := range v.Tasks {
		if t.End != nil && *t.End < since.Unix() || t.End == nil && t.Start < since.Unix() && v.dead(t) {
			continue
		}
		rows = append(rows, v.task(t))
	}
	return rows
}

// dead reports whether a task that seems to run was cut off by the node's start.
func (v TaskFacts) dead(t parse.Task) bool { return t.Start < v.Boot-60 }

func (v TaskFacts) task(t parse.Task) Task {
	r := Task{
		Node: v.Node, Cluster: v.Cluster, Type: Clean(t.Type), VMID: t.VMID, User: Clean(t.User), StartedAt: At(t.Start), Warnings: t.Warnings,
		Result: taskResult(t), UPID: Clean(t.Name), start: t.Start,
	}
	if t.VMID == nil {
		r.ID = Clean(t.ID)
	} else {
		r.Guest = v.Names[*t.VMID]
	}
	if t.End != nil {
		r.EndedAt, r.DurationS = At(*t.End), Ptr(max(*t.End-t.Start, 0))
	}
	switch {
	case t.Class == parse.TaskRunning && v.dead(t):
		r.Result, r.Message = TaskEndedBad, "cut off: the node was started since"
	case r.Result == TaskFailed:
		r.Message = Clean(t.Status)
		if t.Type == "vzdump" {
			r.Guests, r.ReasonsUnknown = v.failed(t)
		}
	}
	return r
}

func taskResult(t parse.Task) string {
	switch t.Class {
	case parse.TaskOK:
		return TaskDone
	case parse.TaskWarnings:
		return TaskWarned
	case parse.TaskError:
		return TaskFailed
	case parse.TaskRunning:
		return TaskRuns
	}
	return TaskEndedBad
}

// failed finds the guests that a backup task failed for, in the node's logs. A
// log holds only the last run of a guest.
func (v TaskFacts) failed(t parse.Task) ([]TaskGuest, string) {
	if v.LogsWhy != "" {
		return nil, v.LogsWhy
	}
	later := false
	for _, shift := range []int64{0, 3600, -3600} { // the zone's offset then may not be today's
		out, after := v.failedAt(t, shift)
		if len(out) > 0 {
			return out, ""
		}
		later = later || after
	}
	if later {
		return nil, "the guests' logs are of later runs"
	}
	return nil, "no log on the node names a guest"
}

func (v TaskFacts) failedAt(t parse.Task, shift int64) (out []TaskGuest, later bool) {
	for _, l := range v.Logs {
		at, ok := v.local(l.Started)
		at += shift
		switch {
		case !ok || t.VMID != nil && *t.VMID != l.VMID:
		case at > valueOr(t.End, 1<<62)+slack:
			later = true
		case at >= t.Start-slack && l.Failed:
			out = append(out, TaskGuest{VMID: l.VMID, Guest: v.Names[l.VMID], Reason: Clean(l.Failure)})
		}
	}
	return out, later
}

// A node writes its log a moment after the task began.
const slack = 120

// local reads a time of the node.
func (v TaskFacts) local(text string) (int64, bool) {
	zone := v.Zone
	if zone == nil {
		zone = time.UTC
	}
	t, err := time.ParseInLocation("2006-01-02 15:04:05", text, zone)
	return t.Unix(), err == nil
}

// SortTasks puts the latest first.
func SortTasks(rows []Task) {
	slices.SortStableFunc(rows, func(a, b Task) int {
		return cmp.Or(cmp.Compare(b.start, a.start), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node), cmp.Compare(a.UPID, b.UPID))
	})
}

// CountTasks counts rows by their result.
func CountTasks(rows []Task) TaskCounts {
	var c TaskCounts
	for _, r := range rows {
		switch r.Result {
		case TaskDone:
			c.OK++
		case TaskWarned:
			c.Warnings++
		case TaskFailed:
			c.Failed++
		case TaskRuns:
			c.Running++
		default:
			c.Unknown++
		}
		if r.Type == "vzdump" {
			c.Backups++
		}
	}
	return c
}

// consoles are tasks whose end says nothing: somebody closed a window.
var consoles = []string{"vncproxy", "vncshell", "spiceproxy", "spiceshell", "termproxy", "lxcshell"}

// TaskFindings judges tasks, the latest first. Tasks of one kind about one thing
// make one finding: critical after three failures. A backup, and a refresh of the
// lists of packages, is judged by its last run.
func (j Judge) TaskFindings(rows []Task) []*Finding {
	type group struct{ failed, warned []Task }
	groups, last := map[string]*group{}, map[string]Task{}
	var order []string
	for _, r := range rows {
		if slices.Contains(consoles, r.Type) {
			continue
		}
		key := strings.Join([]string{r.Cluster, r.Node, r.Type, r.about()}, " ")
		if groups[key] == nil {
			groups[key] = &group{}
			order = append(order, key)
		}
		if _, ok := last[key]; !ok && r.Result != TaskRuns {
			last[key] = r
		}
		switch r.Result {
		case TaskFailed:
			groups[key].failed = append(groups[key].failed, r)
		case TaskWarned:
			groups[key].warned = append(groups[key].warned, r)
		}
	}
	var out []*Finding
	for _, key := range order {
		g := groups[key]
		if len(g.failed) > 0 {
			out = append(out, j.taskFailed(g.failed, last[key]))
		}
		if len(g.warned) > 0 && last[key].Result == TaskWarned {
			w := g.warned[0]
			out = append(out, j.Find("TASK_WARNINGS", "", w.subject(), fmt.Sprintf("%s ended with warnings at %s", w.what(), w.EndedAt), Evidence{Name: "warnings", Value: fmt.Sprint(valueOr(w.Warnings, 0))}))
		}
	}
	return out
}

func (r Task) about() string {
	if r.VMID != nil {
		return fmt.Sprint(*r.VMID)
	}
	return r.ID
}

func (r Task) what() string { return strings.TrimSpace(r.Type + " " + r.about()) }

func (r Task) subject() string {
	s := "node/" + r.Node
	if r.VMID != nil {
		s = fmt.Sprintf("guest/%d", *r.VMID)
	}
	if r.Cluster != "" {
		return r.Cluster + "/" + s
	}
	return s
}

func (j Judge) taskFailed(failed []Task, last Task) *Finding {
	f := failed[0]
	evidence := []Evidence{{Name: "at", Value: cmp.Or(f.EndedAt, f.StartedAt)}, {Name: "node", Value: f.Node}}
	switch f.Type {
	case "vzdump":
		if last.Result != TaskFailed {
			return nil // a later run was good
		}
		for _, g := range f.Guests[:min(len(f.Guests), 8)] {
			evidence = append(evidence, Evidence{Name: fmt.Sprintf("guest %d", g.VMID), Value: g.Reason})
		}
		return j.Find("BACKUP_JOB_FAILED", "", f.subject(), "the last backup on "+f.Node+" failed: "+f.Message, evidence...)
	case "aptupdate":
		if last.Result != TaskFailed {
			return nil
		}
		return j.Find("UPDATES_REFRESH_FAILED", "", f.subject(), "the lists of packages could not be refreshed: "+f.Message, evidence...)
	}
	severity, message := Warning, fmt.Sprintf("%s failed: %s", f.what(), f.Message)
	if len(failed) >= 3 {
		severity, message = Critical, fmt.Sprintf("%s failed %d times: %s", f.what(), len(failed), f.Message)
	}
	return j.Find("TASK_FAILED", severity, f.subject(), message, append(evidence, Evidence{Name: "times", Value: fmt.Sprint(len(failed))})...)
}

// Brief takes away what a concise answer does not need.
func (l *TaskList) Brief() {
	for i := range l.Items {
		r := &l.Items[i]
		r.UPID, r.EndedAt = "", ""
		if n := len(r.Guests); n > 10 {
			r.Guests = r.Guests[:10]
			r.ReasonsUnknown = fmt.Sprintf("and %d more guests", n-10)
		}
	}
	l.Windows = slices.DeleteFunc(l.Windows, func(w TaskWindow) bool { return w.Read && w.Whole })
}

// Tables shows the tasks to people.
func (l *TaskList) Tables() []Table {
	t := Table{Columns: []string{"started", ">took", "node", "task", "guest", "by", "result", "message"}}
	for _, r := range l.Items {
		guest := r.Guest
		if r.VMID != nil && guest == "" {
			guest = fmt.Sprint(*r.VMID)
		}
		t.Rows = append(t.Rows, []string{r.StartedAt, Seconds(r.DurationS), r.Node, r.what(), guest, r.User, r.Result, r.Message})
		for _, g := range r.Guests {
			t.Rows = append(t.Rows, []string{"", "", "", fmt.Sprintf("  guest %d", g.VMID), g.Guest, "", "failed", g.Reason})
		}
		if r.ReasonsUnknown != "" {
			t.Rows = append(t.Rows, []string{"", "", "", "", "", "", "", "  " + r.ReasonsUnknown})
		}
	}
	c := l.Counts
	t.Notes = append(t.Notes, l.Page.note("tasks"), fmt.Sprintf("since %s: %d ok, %d with warnings, %d failed, %d unknown, %d running", l.Since, c.OK, c.Warnings, c.Failed, c.Unknown, c.Running))
	if c.Backups == 0 {
		t.Notes = append(t.Notes, "no backup task among them")
	}
	for _, w := range l.Windows {
		switch {
		case !w.Read:
			t.Notes = append(t.Notes, w.Node+": not read: "+w.Reason)
		case !w.Whole:
			t.Notes = append(t.Notes, w.Node+": read back to "+w.OldestAt+" only")
		}
	}
	return append([]Table{t}, findingTable(l.Findings, l.MoreFindings)...)
}
