package report

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

// well is a container of which everything was read and nothing is wrong.
func well() HealthView {
	rrd := &parse.RRDGuest{Status: "running", CPU: Ptr(0.2), MemMax: n64(1000), Mem: n64(300), DiskMax: n64(8000), Disk: n64(2000), Uptime: n64(500)}
	row := Guest{VMID: 101, Name: "web", Type: "lxc", Node: "a", Status: Running}
	config := &parse.GuestConfig{VMID: 101, Kind: "lxc", Current: parse.GuestSettings{OnBoot: true, Disks: []parse.GuestDisk{{Key: "rootfs", Bus: "rootfs", Kind: parse.DiskVolume, Storage: "local"}}}}
	job := parse.BackupJob{ID: "nightly", Enabled: true, Schedule: "02:30", All: true, Storage: "nas"}
	newest := backupsSeenAt.Add(-10 * time.Hour)
	archive := parse.Archive{Volume: "nas:backup/x", VMID: Ptr(101), Type: "lxc", Created: &newest}
	state := &parse.State{Members: parse.Members{Node: "a"}, RRD: parse.RRD{Nodes: map[string]parse.RRDNode{"a": {}}, Guests: map[int]parse.RRDGuest{101: *rrd},
		Storages: []parse.RRDStorage{{Node: "a", Storage: "local", Total: n64(9000), Used: n64(100)}}}}
	return HealthView{
		Look: GuestLook{Row: row, RRD: rrd, Config: config, Tasks: []parse.Task{}, Status: &parse.GuestStatus{Status: Running},
			Cgroup: &parse.Cgroup{MemoryCurrent: n64(500), File: n64(200), OOMKills: n64(0), CPUPressure: &parse.PSI{Some: &parse.PSILine{}}}},
		Quorate: true, Now: backupsSeenAt, Jobs: []parse.BackupJob{job}, JobsRead: true,
		Backup:     &BackupView{Guests: []Guest{row}, Jobs: []parse.BackupJob{job}, Now: backupsSeenAt, Sources: []BackupSource{{Storage: "nas", Node: "a", Content: &parse.StorageContent{Archives: []parse.Archive{archive}}}}},
		Storage:    &StorageView{State: state, Storages: []parse.StorageConfig{{ID: "local", Type: "dir", Path: "/var/lib/vz"}, {ID: "nas", Type: "nfs", Content: []string{"backup"}, Shared: true}}},
		Containers: &RuntimeAnswer{Place: ContainerPlace{Status: PlaceNoDocker}},
	}
}

// asVM turns a healthy container into a healthy VM.
func asVM(v HealthView) HealthView {
	v.Look.Row.Type, v.Look.Config.Kind = "qemu", "qemu"
	v.Look.Config.Current.Agent = &parse.Agent{Enabled: true}
	v.Look.Agent = &parse.AgentFilesystems{Counted: 1, Total: 100, Used: 10, Filesystems: []parse.AgentFilesystem{{Mountpoint: "/", Total: n64(100), Used: n64(10)}}}
	v.Look.Status = &parse.GuestStatus{Status: Running, QMPStatus: Running}
	v.Backup.Guests[0].Type = "qemu"
	v.Backup.Sources[0].Content.Archives[0].Type = "qemu"
	v.Look.Cgroup.Periods = nil
	return v
}

func TestHealth(t *testing.T) {
	for _, c := range []struct {
		name    string
		change  func(v *HealthView)
		verdict string
		checks  string // what is not ok, as check=result
		codes   string
	}{
		{"all is well", func(*HealthView) {}, "ok", "agent=not-applicable containers=not-applicable", ""},
		{"a VM, all is well", func(v *HealthView) { *v = asVM(*v) }, "ok", "containers=not-applicable", ""},
		{"on a storage that is not in storage.cfg", func(v *HealthView) { v.Look.Config.Current.Disks[0].Storage = "gone" }, "warning", "agent=not-applicable storage=warning containers=not-applicable", "STORAGE_INACTIVE"},
		{"on a disabled storage", func(v *HealthView) { v.Storage.Storages[0].Disabled = true }, "warning", "agent=not-applicable storage=warning containers=not-applicable", "STORAGE_INACTIVE"},
		{"on a storage of other nodes", func(v *HealthView) { v.Storage.Storages[0].Nodes = []string{"b"} }, "warning", "agent=not-applicable storage=warning containers=not-applicable", "STORAGE_INACTIVE"},
		{"docker could not be asked", func(v *HealthView) {
			v.Containers = &RuntimeAnswer{Nesting: Ptr(false), Place: ContainerPlace{Status: PlaceUnknown, Runtime: "docker", Reason: "it just moved"}}
		}, "unknown", "agent=not-applicable containers=unknown", ""},
		{"docker without nesting", func(v *HealthView) {
			v.Containers = &RuntimeAnswer{Nesting: Ptr(false), Place: ContainerPlace{Status: PlaceOK, Runtime: "docker"}}
		}, "warning", "agent=not-applicable containers=warning", "CT_DOCKER_NO_NESTING"},
		{"paused", func(v *HealthView) { *v = asVM(*v); v.Look.Status.QMPStatus = "paused" }, "warning", "state=warning agent=not-applicable containers=not-applicable", "GUEST_PAUSED"},
		{"disk trouble", func(v *HealthView) { *v = asVM(*v); v.Look.Status.QMPStatus = "io-error" }, "critical", "state=critical agent=not-applicable containers=not-applicable", "GUEST_IO_ERROR"},
		{"stopped against onboot", func(v *HealthView) { stop(v) }, "warning", "state=warning memory=not-applicable cpu=not-applicable disk=not-applicable pressure=not-applicable agent=not-applicable containers=not-applicable", "GUEST_STOPPED_ONBOOT"},
		{"stopped for a backup", func(v *HealthView) {
			stop(v)
			v.Look.Row.Lock = "backup"
			v.Look.Tasks = []parse.Task{{UPID: parse.UPID{Type: "vzdump", Start: 5}, Class: parse.TaskRunning}}
		}, "info", "state=info lock=info memory=not-applicable cpu=not-applicable disk=not-applicable pressure=not-applicable agent=not-applicable containers=not-applicable", "GUEST_LOCKED GUEST_STOPPED_ONBOOT"},
		{"stopped template", func(v *HealthView) { stop(v); v.Look.Row.Template = true }, "ok", "memory=not-applicable cpu=not-applicable disk=not-applicable pressure=not-applicable agent=not-applicable containers=not-applicable", ""},
		{"HA wants it stopped", func(v *HealthView) { stop(v); v.Look.HAWanted = &parse.HAResource{State: "stopped"} }, "ok", "memory=not-applicable cpu=not-applicable disk=not-applicable pressure=not-applicable agent=not-applicable containers=not-applicable", ""},
		{"HA gave up", func(v *HealthView) {
			v.Look.HAWanted, v.Look.HA = &parse.HAResource{}, &parse.HAService{State: "error"}
		}, "critical", "state=critical agent=not-applicable containers=not-applicable", "HA_RESOURCE_ERROR"},
		{"does not start with its node", func(v *HealthView) { v.Look.Config.Current.OnBoot = false }, "info", "state=info agent=not-applicable containers=not-applicable", "GUEST_NO_ONBOOT"},
		{"locked for nothing", func(v *HealthView) { v.Look.Row.Lock = "snapshot" }, "warning", "lock=warning agent=not-applicable containers=not-applicable", "GUEST_LOCKED"},
		{"memory full", func(v *HealthView) { v.Look.Cgroup.MemoryCurrent = n64(1150) }, "critical", "memory=critical agent=not-applicable containers=not-applicable", "GUEST_MEM_HIGH"},
		{"killed for memory", func(v *HealthView) { v.Look.Cgroup.OOMKills = n64(3) }, "warning", "memory=warning agent=not-applicable containers=not-applicable", "GUEST_OOM"},
		{"CPU busy now", func(v *HealthView) { v.Look.RRD.CPU = Ptr(0.97) }, "warning", "cpu=warning agent=not-applicable containers=not-applicable", "GUEST_CPU_HIGH"},
		{"CPU busy now, idle over the hour", func(v *HealthView) {
			v.Look.RRD.CPU, v.WantTrend = Ptr(0.97), true
			v.History = []parse.HistoryPoint{{Time: backupsSeenAt.Add(-time.Minute), CPU: Ptr(0.1)}, {Time: backupsSeenAt, CPU: Ptr(0.3)}}
		}, "ok", "agent=not-applicable containers=not-applicable", ""},
		{"held back by its limit", func(v *HealthView) { v.Look.Cgroup.Periods, v.Look.Cgroup.Throttled = n64(100), n64(60) }, "info", "cpu=info agent=not-applicable containers=not-applicable", "GUEST_CPU_THROTTLED"},
		{"root full", func(v *HealthView) { v.Look.RRD.Disk = n64(7700) }, "critical", "disk=critical agent=not-applicable containers=not-applicable", "GUEST_FS_FULL"},
		{"mount point full", func(v *HealthView) {
			v.Look.Config.Current.Disks = append(v.Look.Config.Current.Disks, parse.GuestDisk{Key: "mp0", Bus: "mp", Kind: parse.DiskVolume, MountPoint: "/data", Backup: Ptr(true)}, parse.GuestDisk{Key: "mp1", Bus: "mp", Kind: parse.DiskBind, MountPoint: "/host", Backup: Ptr(true)})
			v.Filesystems = []parse.GuestFilesystem{{Mountpoint: "/", Total: 100, Used: 10, Available: 90}, {Mountpoint: "/data", Total: 100, Used: 90, Available: 10}, {Mountpoint: "/host", Total: 100, Used: 99, Available: 1}, {Mountpoint: "/dev", Total: 1, Used: 1, Virtual: true}}
		}, "warning", "disk=warning agent=not-applicable coverage=info containers=not-applicable", "GUEST_FS_FULL BACKUP_DISK_EXCLUDED"},
		{"waits for disks", func(v *HealthView) { v.Look.Cgroup.IOPressure = &parse.PSI{Some: &parse.PSILine{Avg10: 41}} }, "critical", "pressure=critical agent=not-applicable containers=not-applicable", "PRESSURE_IO"},
		{"agent silent", func(v *HealthView) { *v = asVM(*v); v.Look.Agent, v.Look.AgentState = nil, parse.AgentSilent }, "unknown", "disk=unknown agent=info containers=not-applicable", "GUEST_AGENT_SILENT"},
		{"agent off", func(v *HealthView) { *v = asVM(*v); v.Look.Agent, v.Look.Config.Current.Agent = nil, nil }, "unknown", "disk=unknown agent=info containers=not-applicable", "GUEST_AGENT_OFF"},
		{"storage gone", func(v *HealthView) { v.Storage.State.RRD.Storages = nil }, "warning", "agent=not-applicable storage=warning containers=not-applicable", "STORAGE_INACTIVE"},
		{"no backup", func(v *HealthView) { v.Backup.Sources[0].Content.Archives = nil }, "critical", "agent=not-applicable backup=critical containers=not-applicable", "BACKUP_NONE"},
		{"backup storage not read", func(v *HealthView) { v.Backup.Sources[0].Content = nil }, "unknown", "agent=not-applicable backup=unknown containers=not-applicable", ""},
		{"another storage not read, its job's was", func(v *HealthView) { v.Backup.Sources = append(v.Backup.Sources, BackupSource{Storage: "usb"}) }, "ok", "agent=not-applicable containers=not-applicable", ""},
		{"no job", func(v *HealthView) { v.Jobs = nil }, "warning", "agent=not-applicable coverage=warning containers=not-applicable", "BACKUP_UNCOVERED"},
		{"a job whose storage is disabled", func(v *HealthView) { v.Storage.Storages[1].Disabled = true }, "warning", "agent=not-applicable coverage=warning containers=not-applicable", "BACKUP_UNCOVERED"},
		{"a job whose storage is not on the node", func(v *HealthView) { v.Storage.Storages[1].Nodes = []string{"b"} }, "warning", "agent=not-applicable coverage=warning containers=not-applicable", "BACKUP_UNCOVERED"},
		{"a job whose schedule is over", func(v *HealthView) { v.Jobs[0].Schedule = "2020-1-1 02:00" }, "warning", "agent=not-applicable coverage=warning containers=not-applicable", "BACKUP_UNCOVERED"},
		{"another cluster's guest may own the archives", func(v *HealthView) {
			v.Backup.Namesakes = map[string]map[int]Namesake{"nas": {101: {Cluster: "east", Type: "lxc"}}}
		}, "unknown", "agent=not-applicable backup=unknown containers=not-applicable", ""},
		{"task failed", func(v *HealthView) { v.Look.Tasks = failedTasks(1) }, "warning", "agent=not-applicable containers=not-applicable tasks=warning", "TASK_FAILED"},
		{"task failed three times", func(v *HealthView) { v.Look.Tasks = failedTasks(3) }, "critical", "agent=not-applicable containers=not-applicable tasks=critical", "TASK_FAILED"},
		{"containers cannot be told", func(v *HealthView) {
			v.Containers = &RuntimeAnswer{Place: ContainerPlace{Status: PlaceTimeout, Reason: "no answer"}}
		}, "unknown", "agent=not-applicable containers=unknown", ""},
		{"containers not asked", func(v *HealthView) { v.Containers, v.ContainersNotAsked = nil, "no hint" }, "ok", "agent=not-applicable containers=not-asked", ""},
		{"history not read", func(v *HealthView) { v.WantTrend = true }, "unknown", "agent=not-applicable containers=not-applicable trend=unknown", ""},
		{"node offline", func(v *HealthView) {
			v.Look = GuestLook{Row: Guest{VMID: 101, Type: "lxc", Node: "a", Status: Unknown, LastStatus: Running}, Config: v.Look.Config, NotAsked: "node a is offline"}
			v.Offline, v.Containers = true, nil
		}, "critical", "state=critical memory=unknown cpu=unknown disk=unknown pressure=unknown agent=not-applicable containers=unknown tasks=unknown", "NODE_OFFLINE"},
		{"no quorum", func(v *HealthView) { v.Quorate = false }, "critical", "state=critical agent=not-applicable containers=not-applicable", "CLUSTER_NO_QUORUM"},
		{"nothing could be read", func(v *HealthView) {
			*v = HealthView{Quorate: true, Look: GuestLook{Row: Guest{VMID: 101, Type: "lxc", Node: "a", Status: Unknown}, NotAsked: "no way there"}}
		}, "unknown", "state=unknown lock=unknown memory=unknown cpu=unknown disk=unknown pressure=unknown agent=not-applicable storage=unknown snapshots=unknown backup=unknown coverage=unknown containers=unknown tasks=unknown", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := well()
			c.change(&v)
			r := BuildHealth(v, Judge{})
			var checks, codes []string
			for _, x := range r.Checks {
				if x.Result != CheckOK {
					checks = append(checks, x.Check+"="+x.Result)
				}
				if x.Result == Unknown && x.Reason == "" {
					t.Errorf("%s is unknown without a reason", x.Check)
				}
			}
			for _, f := range r.Findings {
				codes = append(codes, f.Code)
			}
			if r.Verdict != c.verdict {
				t.Errorf("verdict %s, want %s", r.Verdict, c.verdict)
			}
			if d := cmp.Diff(c.checks, strings.Join(checks, " ")) + cmp.Diff(c.codes, strings.Join(codes, " ")); d != "" {
				t.Error(d)
			}
		})
	}
}

func stop(v *HealthView) {
	v.Look.Row.Status, v.Look.Status, v.Look.RRD.Status = Stopped, &parse.GuestStatus{Status: Stopped}, "stopped"
	v.Containers.Place.Status = PlaceGuestStopped
}

func failedTasks(n int) []parse.Task {
	var out []parse.Task
	for i := range n {
		start := backupsSeenAt.Add(-time.Duration(i+1) * time.Hour).Unix()
		out = append(out, parse.Task{UPID: parse.UPID{Type: "vzstart", ID: "101", Start: start}, VMID: Ptr(101), Class: parse.TaskError, Status: "startup failed"})
	}
	old := out[0]
	old.Start -= 3 * 86400
	return append(out, old, parse.Task{UPID: parse.UPID{Type: "vzstart", Start: old.Start + 3*86400}, VMID: Ptr(102), Class: parse.TaskError})
}

// Many containers with the same trouble are one finding, so that the others stay
// in sight.
func TestContainersAreMerged(t *testing.T) {
	var all []*Finding
	for _, name := range []string{"e", "d", "c", "b", "a"} {
		all = append(all, &Finding{Code: "DOCKER_UNHEALTHY", Severity: Warning, Subject: "guest/101", Message: name + " is unhealthy"})
	}
	all = append(all, nil, &Finding{Code: "DOCKER_OOM", Severity: Warning, Subject: "guest/101", Message: "x ran out of memory"})
	got := Findings(merged(all)...)
	if len(got) != 2 || got[1].Message != "a is unhealthy; b is unhealthy; c is unhealthy; and 2 more" || got[0].Message != "x ran out of memory" {
		t.Errorf("got %+v", got)
	}
	if all[0].Message != "e is unhealthy" {
		t.Error("a finding was changed in its place")
	}
}

func TestTrend(t *testing.T) {
	at := func(min int) time.Time { return backupsSeenAt.Add(time.Duration(min) * time.Minute) }
	points := []parse.HistoryPoint{
		{Time: at(-180)}, {Time: at(-120), CPU: Ptr(0.9), Memory: Ptr(100.0), Disk: Ptr(1000.0)}, {Time: at(-30), CPU: Ptr(0.1), Memory: Ptr(300.0)},
		{Time: at(0), CPU: Ptr(0.2), Memory: Ptr(200.0), Disk: Ptr(1500.0), Pressure: &parse.Pressure{IOSome: Ptr(7.0)}},
	}
	got := TrendOf(points)
	want := &Trend{From: "2026-11-29T14:00:00Z", To: "2026-11-29T16:00:00Z", MeasuredS: 3 * 1800, CPUMeanRatio: Ptr(0.4), CPUMaxRatio: Ptr(0.9), CPULastHourRatio: Ptr(0.15),
		MemoryMeanBytes: n64(200), MemoryMaxBytes: n64(300), DiskChangeBytes: n64(500), IOPressureMax: Ptr(7.0)}
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b float64) bool { return a-b < 1e-9 && b-a < 1e-9 })); d != "" {
		t.Error(d)
	}
	if TrendOf(points[:1]) != nil {
		t.Error("nothing measured is no trend")
	}
}
