package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// TaskClass says how a task ended.
type TaskClass string

// The classes, as PVE::UPID has them.
const (
	TaskOK       TaskClass = "ok"
	TaskWarnings TaskClass = "warnings" // done, something was noted
	TaskError    TaskClass = "error"
	TaskUnknown  TaskClass = "unknown" // ended without a word, as a closed console does
	TaskRunning  TaskClass = "running"
)

// UPID is the name of a task, taken apart. Start is unix seconds. ID is a VMID
// for guests' tasks, empty for a task about many, or free text. User can have a
// token behind a !.
type UPID struct {
	Node  string
	PID   int64
	Start int64
	Type  string
	ID    string
	User  string
}

// Task is one task of a node. End is nil while it runs. Status is Proxmox's
// word or the error's text.
type Task struct {
	UPID
	Name     string // the whole UPID
	VMID     *int   // when ID is one
	End      *int64
	Status   string
	Class    TaskClass
	Warnings *int64
}

var taskPaths = []string{"/var/log/pve/tasks/active", "/var/log/pve/tasks/index.1", "/var/log/pve/tasks/index"}

// Tasks reads the form node-tasks: each task once, the latest start first. A
// task that has ended in one file and runs in another has ended. An empty
// output is a node without tasks; a line that cannot be read becomes a note
// (its number counts within its file).
//
// Program: tail -v -n 2000 of files of PVE 7.4 to 9.2. Input:
//
//	UPID:pve1:0000A604:00140000:6B0C2E1F:qmsnapshot:203:root@pam!mcp: 6B0C2E40 WARNINGS: 1
func Tasks(out []byte) ([]Task, []Note, error) {
	files, err := Files(out, taskPaths)
	if err != nil {
		return nil, nil, fmt.Errorf("tasks: %w", err)
	}
	byName := map[string]Task{}
	var notes []Note
	for i, path := range taskPaths {
		number := 0
		for line := range strings.Lines(string(files[path])) {
			number++
			line = strings.TrimSpace(line)
			if line == "" {
				continue
			}
			t, ok := readTask(line, i == 0)
			if !ok {
				notes = append(notes, Note{Line: number, Text: path + ": want UPID ENDTIME STATUS"})
				continue
			}
			if old, ok := byName[t.Name]; !ok || old.Class == TaskRunning {
				byName[t.Name] = t
			}
		}
	}
	tasks := make([]Task, 0, len(byName))
	for _, t := range byName {
		tasks = append(tasks, t)
	}
	slices.SortFunc(tasks, func(a, b Task) int {
		return cmp.Or(cmp.Compare(b.Start, a.Start), strings.Compare(a.Name, b.Name))
	})
	return tasks, notes, nil
}

// readTask reads a line; those of active have a saved flag after the UPID.
func readTask(line string, active bool) (Task, bool) {
	name, rest, _ := strings.Cut(line, " ")
	upid, ok := ParseUPID(name)
	t := Task{UPID: upid, Name: name, Class: TaskRunning}
	if !ok {
		return t, false
	}
	if vmid := parseInt(upid.ID); vmid != nil && *vmid > 0 && *vmid <= 999999999 {
		t.VMID = new(int(*vmid))
	}
	if active {
		_, rest, _ = strings.Cut(strings.TrimSpace(rest), " ")
	}
	end, status, _ := strings.Cut(strings.TrimSpace(rest), " ")
	if end == "" {
		return t, active
	}
	seconds, err := strconv.ParseInt(end, 16, 64)
	if err != nil {
		return t, false
	}
	t.End, t.Status = &seconds, strings.TrimSpace(status)
	t.Class, t.Warnings = ClassifyTask(t.Status)
	return t, true
}

// ParseUPID takes UPID:NODE:PID:PSTART:START:TYPE:ID:USER: apart; the numbers
// are hexadecimal.
func ParseUPID(s string) (UPID, bool) {
	f := strings.Split(s, ":")
	if len(f) != 9 || f[0] != "UPID" || f[1] == "" || f[5] == "" {
		return UPID{}, false
	}
	pid, err := strconv.ParseInt(f[2], 16, 64)
	start, err2 := strconv.ParseInt(f[4], 16, 64)
	if err != nil || err2 != nil {
		return UPID{}, false
	}
	return UPID{Node: f[1], PID: pid, Start: start, Type: f[5], ID: f[6], User: f[7]}, true
}

// ClassifyTask tells what the end word of a task means, and how many warnings
// it counts. An ended task without a word is unknown.
func ClassifyTask(status string) (TaskClass, *int64) {
	if status == "OK" {
		return TaskOK, nil
	}
	if count, ok := strings.CutPrefix(status, "WARNINGS: "); ok && parseInt(count) != nil {
		return TaskWarnings, parseInt(count)
	}
	if status == "" || status == "unexpected status" {
		return TaskUnknown, nil
	}
	return TaskError, nil
}
