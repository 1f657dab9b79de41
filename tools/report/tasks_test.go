package report

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

func aTask(kind, id string, start int64, status string) parse.Task {
	t := parse.Task{UPID: parse.UPID{Node: "n", Type: kind, ID: id, Start: start, User: "root@pam"}, Name: fmt.Sprint(kind, id, start), Status: status, Class: parse.TaskRunning}
	var vmid int
	if n, _ := fmt.Sscan(id, &vmid); n == 1 {
		t.VMID = &vmid
	}
	if status != "" {
		t.End = Ptr(start + 60)
		t.Class, t.Warnings = parse.ClassifyTask(status)
	}
	return t
}

func TestTaskWordsAndFindings(t *testing.T) {
	at := healthNow.Unix() - 3600
	for _, tt := range []struct {
		name   string
		in     []parse.Task
		result string
		want   []string
	}{
		{"ok", []parse.Task{aTask("qmstart", "100", at, "OK")}, "ok", []string{}},
		{"warnings are no failure", []parse.Task{aTask("vzdump", "", at, "WARNINGS: 2")}, "warnings", []string{"info TASK_WARNINGS node/n"}},
		{"a failed start", []parse.Task{aTask("qmstart", "100", at, "start failed: QEMU exited with code 1")}, "failed", []string{"warning TASK_FAILED guest/100"}},
		{"three times the same", []parse.Task{aTask("qmstart", "100", at, "x"), aTask("qmstart", "100", at-100, "y"), aTask("qmstart", "100", at-200, "z")}, "failed", []string{"critical TASK_FAILED guest/100"}},
		{"twice, and of another guest", []parse.Task{aTask("qmstart", "100", at, "x"), aTask("qmstart", "100", at-100, "x"), aTask("qmstart", "101", at-200, "x")}, "failed", []string{"warning TASK_FAILED guest/100", "warning TASK_FAILED guest/101"}},
		{"a console that was closed", []parse.Task{aTask("vncproxy", "100", at, "connection timed out")}, "failed", []string{}},
		{"a task without a last word", []parse.Task{aTask("imgcopy", "", at, "unexpected status")}, "unknown", []string{}},
		{"a failed backup", []parse.Task{aTask("vzdump", "", at, "job errors")}, "failed", []string{"critical BACKUP_JOB_FAILED node/n"}},
		{"a failed backup that went well since", []parse.Task{aTask("vzdump", "", at, "OK"), aTask("vzdump", "", at-86400, "job errors")}, "ok", []string{}},
		{"a failed backup while the next one runs", []parse.Task{aTask("vzdump", "", at, ""), aTask("vzdump", "", at-86400, "job errors")}, "running", []string{"critical BACKUP_JOB_FAILED node/n"}},
		{"the lists were not refreshed", []parse.Task{aTask("aptupdate", "", at, "command 'apt-get update' failed: exit code 100")}, "failed", []string{"warning UPDATES_REFRESH_FAILED node/n"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			rows := TaskRows(TaskFacts{Node: "n", Tasks: tt.in}, healthNow.Add(-48*time.Hour))
			SortTasks(rows)
			if rows[0].Result != tt.result {
				t.Errorf("got %s, want %s", rows[0].Result, tt.result)
			}
			if d := cmp.Diff(tt.want, told(Judge{}.TaskFindings(rows))); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestTaskOfBeforeTheBootIsDead(t *testing.T) {
	at := healthNow.Unix() - 3600
	v := TaskFacts{Node: "n", Boot: at + 600, Tasks: []parse.Task{aTask("qmclone", "100", at, "")}}
	if r := TaskRows(v, healthNow.Add(-48*time.Hour)); len(r) != 1 || r[0].Result != TaskEndedBad {
		t.Errorf("got %+v, want one task that was cut off", r)
	}
	if r := TaskRows(v, healthNow.Add(-time.Minute)); len(r) != 0 {
		t.Errorf("got %+v, want none: it ran before the window", r)
	}
}

func TestTaskWindow(t *testing.T) {
	since := healthNow.Add(-48 * time.Hour)
	young, old := aTask("a", "", healthNow.Unix()-3600, "OK"), aTask("b", "", since.Unix()-100, "OK")
	long := aTask("c", "", since.Unix()-90000, "") // it still runs, so it says nothing of the files
	for _, tt := range []struct {
		name  string
		in    TaskFacts
		whole bool
	}{
		{"nothing was rotated away", TaskFacts{Tasks: []parse.Task{young}}, true},
		{"older ones were rotated away", TaskFacts{Tasks: []parse.Task{young, long}, Rotated: true}, false},
		{"rotated, but old enough", TaskFacts{Tasks: []parse.Task{young, old}, Rotated: true}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if w := tt.in.Window(since); w.Whole != tt.whole {
				t.Errorf("got %+v, want whole %v", w, tt.whole)
			}
		})
	}
}

func TestBackupReasons(t *testing.T) {
	zone := time.FixedZone("", 3600)
	start := time.Date(2026, 11, 28, 20, 0, 0, 0, time.UTC)
	task := aTask("vzdump", "", start.Unix(), "job errors")
	task.End = Ptr(start.Add(time.Hour).Unix())
	failed := func(vmid int, local string) parse.BackupLog {
		return parse.BackupLog{VMID: vmid, Started: local, Failed: true, Failure: "disk full"}
	}
	for _, tt := range []struct {
		name string
		logs []parse.BackupLog
		want []TaskGuest
		why  string
	}{
		{"within the run, in the node's time", []parse.BackupLog{failed(100, "2026-11-28 21:00:05"), {VMID: 101, Started: "2026-11-28 21:10:00", Finished: true}}, []TaskGuest{{VMID: 100, Reason: "disk full"}}, ""},
		{"only a later run is kept", []parse.BackupLog{failed(100, "2026-11-29 21:00:05")}, nil, "the guests' logs are of later runs"},
		{"no log", nil, nil, "no log on the node names a guest"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := TaskRows(TaskFacts{Node: "n", Tasks: []parse.Task{task}, Logs: tt.logs, Zone: zone}, start)[0]
			if d := cmp.Diff(tt.want, r.Guests); d != "" || r.ReasonsUnknown != tt.why {
				t.Errorf("guests (-want +got):\n%s\nwhy: %q, want %q", d, r.ReasonsUnknown, tt.why)
			}
		})
	}
}
