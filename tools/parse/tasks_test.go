package parse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTasks(t *testing.T) {
	got, notes, err := Tasks(testdata(t, "node-tasks-pve9.txt"))
	if err != nil || notes != nil {
		t.Fatal(err, notes)
	}
	if len(got) != 39 {
		t.Errorf("%d tasks, want 39: those in both files once", len(got))
	}
	running := Task{
		UPID: UPID{Node: "pve1", PID: 0x8D3, Start: 0x6B0C54B7, Type: "vzdump", User: "root@pam"},
		Name: "UPID:pve1:000008D3:00023B65:6B0C54B7:vzdump::root@pam:", Class: TaskRunning,
	}
	if diff := cmp.Diff(running, got[0]); diff != "" {
		t.Errorf("latest (-want +got)\n%s", diff)
	}
	snapshot := Task{
		UPID: UPID{Node: "pve1", PID: 0xA604, Start: 0x6B0C2E1F, Type: "qmsnapshot", ID: "203", User: "root@pam!mcp"},
		Name: "UPID:pve1:0000A604:00140000:6B0C2E1F:qmsnapshot:203:root@pam!mcp:", VMID: new(203), End: new(int64(0x6B0C2E40)),
		Status: "WARNINGS: 1", Class: TaskWarnings, Warnings: new(int64(1)),
	}
	if diff := cmp.Diff(snapshot, got[2]); diff != "" {
		t.Errorf("with a warning (-want +got)\n%s", diff)
	}
	classes := map[TaskClass]int{}
	for _, task := range got {
		classes[task.Class]++
	}
	if diff := cmp.Diff(map[TaskClass]int{TaskRunning: 1, TaskWarnings: 1, TaskUnknown: 1, TaskError: 2, TaskOK: 34}, classes); diff != "" {
		t.Errorf("classes (-want +got)\n%s", diff)
	}
}

func TestClassifyTask(t *testing.T) {
	tests := []struct {
		status string
		want   TaskClass
		count  *int64
	}{
		{"OK", TaskOK, nil},
		{"WARNINGS: 2", TaskWarnings, new(int64(2))},
		{"WARNINGS: many", TaskError, nil},
		{"job errors", TaskError, nil},
		{"start failed: QEMU exited with code 1", TaskError, nil},
		{"command 'apt-get update' failed: exit code 100", TaskError, nil},
		{"unexpected status", TaskUnknown, nil},
		{"", TaskUnknown, nil},
		{"ok", TaskError, nil},
	}
	for _, tt := range tests {
		class, count := ClassifyTask(tt.status)
		if class != tt.want || cmp.Diff(tt.count, count) != "" {
			t.Errorf("%q: %s %v, want %s %v", tt.status, class, count, tt.want, tt.count)
		}
	}
}

func TestTasksOfOddFiles(t *testing.T) {
	const upid = "UPID:a:00000001:00000002:6B0C54B7:vzdump:101:root@pam:"
	const other = "UPID:a:00000001:00000002:6B0C54B6:imgcopy:local@x:root@pam:"
	out := "==> /var/log/pve/tasks/active <==\n" + upid + " 0\nnonsense\n" + other + " 1 zz OK\n" +
		"\n==> /var/log/pve/tasks/index.1 <==\n" + other + " 6B0C54B8 \n\n==> /var/log/pve/tasks/index <==\n" + upid + " 6B0C54C0 OK\n" + upid + "\n"
	got, notes, err := Tasks([]byte(out))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].Class != TaskOK || *got[0].VMID != 101 || got[1].Class != TaskUnknown || got[1].VMID != nil {
		t.Errorf("%+v", got)
	}
	want := []string{"line 2: /var/log/pve/tasks/active: want UPID ENDTIME STATUS", "line 3: /var/log/pve/tasks/active: want UPID ENDTIME STATUS", "line 2: /var/log/pve/tasks/index: want UPID ENDTIME STATUS"}
	if diff := cmp.Diff(want, noteTexts(notes)); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	if got, _, err := Tasks(nil); err != nil || got == nil || len(got) != 0 {
		t.Errorf("none: %v, %v", got, err)
	}
	for _, name := range []string{"UPID:a:x:0:0:t:i:u:", "UPID:a:0:0:x:t:i:u:", "UPID:a:0:0:0::i:u:", "UPID::0:0:0:t:i:u:", "UPID:a:0:0:0:t:i:u", "XPID:a:0:0:0:t:i:u:"} {
		if u, ok := ParseUPID(name); ok {
			t.Errorf("%q was read as %+v", name, u)
		}
	}
	_, _, err = Tasks([]byte("UPID\n"))
	checkError(t, err, "tasks: tail -v: want the header of one of /var/log/pve/tasks/active /var/log/pve/tasks/index.1 /var/log/pve/tasks/index")
}

func TestBackupLogs(t *testing.T) {
	got, notes, err := BackupLogs([]byte(
		in("/var/log/vzdump/lxc-101.log", "2026-11-29 02:30:01 INFO: Starting Backup of VM 101 (lxc)\n2026-11-29 02:30:02 INFO: backup mode: snapshot\n2026-11-29 02:31:39 INFO: archive file size: 1.50GB\n2026-11-29 02:31:40 INFO: Finished Backup of VM 101 (00:01:39)\n") +
			in("/var/log/vzdump/qemu-100.log", "2026-11-29 02:32:01 INFO: Starting Backup of VM 100 (qemu)\n2026-11-29 02:32:02 INFO: backup mode: stop\n2026-11-29 02:32:03 WARN: guest agent is not running\n2026-11-29 02:32:04 ERROR: VM 100 qmp command 'backup' failed - got timeout\n2026-11-29 02:32:05 ERROR: Backup of VM 100 failed - VM 100 qmp command 'backup' failed - got timeout\n") +
			in("/var/log/vzdump/lxc-102.log", "2026-11-28 02:30:01 INFO: Starting Backup of VM 102 (lxc)\n2026-11-28 02:30:02 ERROR: old\n2026-11-29 02:33:01 INFO: Starting Backup of VM 102 (lxc)\n2026-11-29 02:33:02 INFO: archive file size: 532KB\n") +
			"/var/log/vzdump/other.log:2026-11-29 02:33:01 INFO: backup mode: stop\n/var/log/vzdump/lxc-101.log:short\n/var/log/vzdump/lxc-101.log:2026-11-29T02:33:01 INFO: backup mode: stop\n/var/log/vzdump/lxc-101.log:2026-11-29 02:33:01_INFO: backup mode: stop\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []BackupLog{
		{Kind: "qemu", VMID: 100, Started: "2026-11-29 02:32:01", Ended: "2026-11-29 02:32:05", Mode: "stop", Failed: true, Failure: "VM 100 qmp command 'backup' failed - got timeout",
			Errors:   []string{"VM 100 qmp command 'backup' failed - got timeout", "Backup of VM 100 failed - VM 100 qmp command 'backup' failed - got timeout"},
			Warnings: []string{"guest agent is not running"}},
		{Kind: "lxc", VMID: 101, Started: "2026-11-29 02:30:01", Ended: "2026-11-29 02:31:40", Mode: "snapshot", Seconds: new(int64(99)), Size: new(int64(3 << 29)), Finished: true},
		{Kind: "lxc", VMID: 102, Started: "2026-11-29 02:33:01", Size: new(int64(532 << 10))},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(notes) != 4 || notes[0].Line != 14 || notes[1].Line != 15 {
		t.Errorf("notes %v", notes)
	}
	_, _, err = BackupLogs([]byte("/var/log/vzdump/lxc-101.log:2026-11-29 02:30:01 DEBUG: x\n"))
	checkError(t, err, "backup logs: line 1: want /var/log/vzdump/KIND-VMID.log:TIME LEVEL: TEXT")
	for in, want := range map[string]*int64{"100:00:01": new(int64(360001)), "00:01": nil, "a:b:c": nil, "-1:0:0": nil} {
		if diff := cmp.Diff(want, parseClockTime(in)); diff != "" {
			t.Errorf("%q (-want +got)\n%s", in, diff)
		}
	}
	if got, _, err := BackupLogs(nil); got == nil || len(got) != 0 || err != nil {
		t.Errorf("none: %v, %v", got, err)
	}
}

func TestPctList(t *testing.T) {
	tests := []struct {
		name, file string
		want       []ContainerRow
	}{
		{"recorded", "pct-list-pve9.txt", []ContainerRow{
			{101, "running", "", "web-proxy"}, {102, "running", "", "immich"}, {103, "stopped", "", "pihole"}, {104, "stopped", "backup", "postgres"},
			{105, "stopped", "", "debian-13-vorlage"}, {106, "stopped", "", "jellyfin-mit-einem-wirklich-sehr-langen-namen.home.arpa"}, {107, "stopped", "", "oci-app"},
		}},
		{"lock column", "cases/pct-list-empty-lock-column.txt", []ContainerRow{
			{101, "running", "", "dns-1"}, {102, "stopped", "", "media"}, {105, "running", "backup", "web"},
			{107, "stopped", "mounted", ""}, {1234567, "running", "snapshot-delete", "a-very-long-container-hostname.lab.example"},
		}},
		{"one row", "cases/locale-warnings.txt", []ContainerRow{{104, "running", "", "app"}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, notes, err := PctList(testdata(t, tt.file))
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil || notes != nil {
				t.Errorf("%v, %v (-want +got)\n%s", err, notes, diff)
			}
		})
	}
}

func TestListsShapes(t *testing.T) {
	if got, _, err := PctList(nil); got == nil || len(got) != 0 || err != nil {
		t.Errorf("no containers: %v, %v", got, err)
	}
	if got, _, err := QmList([]byte("\n")); got == nil || len(got) != 0 || err != nil {
		t.Errorf("no VMs: %v, %v", got, err)
	}
	got, notes, err := PctList([]byte("perl: warning: Setting locale failed.\nVMID Status Lock Name\n100 running a\nx running a\n"))
	if err != nil || len(got) != 1 || len(notes) != 1 || notes[0].Line != 4 {
		t.Errorf("noise: %v, %v, %v", got, notes, err)
	}
	_, _, err = PctList([]byte("100 running a\n"))
	checkError(t, err, "pct list: want a header that begins with VMID")
	_, _, err = QmList([]byte("Unknown option: output-format\n"))
	checkError(t, err, "qm list: want a header that begins with VMID")
}

func TestQmList(t *testing.T) {
	got, notes, err := QmList(testdata(t, "cases/qm-list-name-with-space.txt"))
	want := []VMRow{
		{VMID: 100, Name: "router", Status: "running", MemoryBytes: new(int64(2 << 30)), BootDiskBytes: new(int64(16 << 30)), PID: new(int64(1201))},
		{VMID: 110, Status: "stopped", MemoryBytes: new(int64(4 << 30))},
		{VMID: 111, Name: "windows-server-2025-accounting", Status: "running", MemoryBytes: new(int64(16 << 30)), BootDiskBytes: new(int64(241 << 29)), PID: new(int64(48211))},
		{VMID: 112, Name: "ha1", Status: "paused", MemoryBytes: new(int64(8 << 30)), BootDiskBytes: new(int64(32 << 30)), PID: new(int64(50112))},
		{VMID: 113, Name: "win11", Status: "io-error", MemoryBytes: new(int64(8 << 30)), BootDiskBytes: new(int64(64 << 30)), PID: new(int64(50990))},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || notes != nil {
		t.Errorf("%v, %v (-want +got)\n%s", err, notes, diff)
	}
	got, notes, err = QmList(testdata(t, "qm-list-pve9.txt"))
	if err != nil || notes != nil || len(got) != 6 || got[1].Name != "windows-11-arbeitsplatz-buero" || got[5].Name != "" || got[5].Status != "stopped" {
		t.Errorf("recorded: %+v, %v, %v", got, notes, err)
	}
	got, _, err = QmList([]byte("VMID NAME STATUS MEM(MB) BOOTDISK(GB) PID\n 5 two  words here running 512 1.00 7\n"))
	if err != nil || got[0].Name != "two  words here" {
		t.Errorf("%+v, %v", got, err)
	}
}

// A task that is read has a UPID that stands in the input, and a task without
// an end runs.
func FuzzTasks(f *testing.F) {
	for line := range strings.Lines(string(testdata(f, "node-tasks-pve9.txt"))) {
		f.Add(strings.TrimSpace(line))
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, path := range taskPaths {
			tasks, _, err := Tasks([]byte("==> " + path + " <==\n" + line + "\n"))
			if err != nil {
				t.Fatal(err)
			}
			for _, task := range tasks {
				if !strings.Contains(line, task.Name) || (task.End == nil) != (task.Class == TaskRunning) {
					t.Errorf("%+v", task)
				}
			}
		}
	})
}
