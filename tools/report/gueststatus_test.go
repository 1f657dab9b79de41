package report

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

func TestGuestStates(t *testing.T) {
	vm := func(status string) Guest { return Guest{VMID: 200, Type: "qemu", Node: "a", Status: status} }
	ct := func(status string) Guest { return Guest{VMID: 101, Type: "lxc", Node: "a", Status: status} }
	rrd := func(status string) *parse.RRDGuest { return &parse.RRDGuest{Status: status} }
	live := func(status, qmp string) *parse.GuestStatus { return &parse.GuestStatus{Status: status, QMPStatus: qmp} }
	locked := &parse.GuestConfig{Current: parse.GuestSettings{Lock: "suspended"}}
	template := ct(Stopped)
	template.Template = true
	away := ct(Unknown)
	away.LastStatus = Running
	for _, c := range []struct {
		name                   string
		look                   GuestLook
		status, source, reason string
	}{
		{"running container", GuestLook{Row: ct(Running), RRD: rrd("running"), Status: live("running", "")}, "running", "node", ""},
		{"stopped container", GuestLook{Row: ct(Stopped), RRD: rrd("stopped"), Status: live("stopped", "")}, "stopped", "node", ""},
		{"it stopped since pvestatd looked", GuestLook{Row: ct(Running), RRD: rrd("running"), Status: live("stopped", "")}, "stopped", "node", ""},
		{"paused VM", GuestLook{Row: vm(Running), RRD: rrd("running"), Status: live("running", "paused")}, "paused", "node", ""},
		{"paused for pvestatd too", GuestLook{Row: vm("paused"), RRD: rrd("paused")}, "paused", "pvestatd", ""},
		{"disk trouble", GuestLook{Row: vm(Running), RRD: rrd("running"), Status: live("running", "io-error")}, "io-error", "node", ""},
		{"before the start", GuestLook{Row: vm(Running), Status: live("running", "prelaunch")}, "prelaunch", "node", ""},
		{"asleep in memory", GuestLook{Row: vm(Running), Status: live("running", "suspended")}, "suspended", "node", ""},
		{"on disk", GuestLook{Row: vm(Stopped), Config: locked, Status: live("stopped", "stopped")}, "hibernated", "node", ""},
		{"on disk, files only", GuestLook{Row: vm(Stopped), Config: locked, RRD: rrd("stopped")}, "hibernated", "pvestatd", ""},
		{"resumed, the lock is still there", GuestLook{Row: vm(Running), Config: locked, Status: live("running", "running")}, "running", "node", ""},
		{"template", GuestLook{Row: template, RRD: rrd("stopped")}, "template", "pvestatd", ""},
		{"a word of a later QEMU", GuestLook{Row: vm(Running), Status: live("running", "levitating")}, "unknown", "node", "the node names a state that is not known: levitating"},
		{"the node is offline", GuestLook{Row: away, RRD: rrd("running"), NotAsked: "node a is offline"}, "unknown", "none", "node a is offline"},
		{"nothing is reported", GuestLook{Row: ct(Unknown)}, "unknown", "none", "its node has reported nothing for five minutes"},
		{"from the node's list", GuestLook{Row: ct(Running), Live: true}, "running", "node", ""},
		{"a VM whose node cannot be asked", GuestLook{Row: vm(Running), RRD: rrd("running"), NotAsked: "no root"}, "running", "pvestatd", "what QEMU itself says was not asked: no root"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := BuildGuestStatus(c.look)
			if r.Status != c.status || r.StatusSource != c.source || r.StatusReason != c.reason {
				t.Errorf("got %q from %s, %q; want %q from %s, %q", r.Status, r.StatusSource, r.StatusReason, c.status, c.source, c.reason)
			}
			if c.status == "unknown" && (r.CPURatio != nil || r.MemoryUsedBytes != nil || r.UptimeS != nil) {
				t.Error("numbers of an unknown state")
			}
		})
	}
}

func n64(n int64) *int64 { return &n }

func TestMemoryMeansWhatItSays(t *testing.T) {
	balloon := &parse.Balloon{Target: n64(2048), GuestTotal: n64(2000), GuestFree: n64(300)}
	for _, c := range []struct {
		name   string
		kind   string
		look   GuestLook
		used   int64 // -1 is absent
		source string
		memory *Memory
	}{
		{"container: cgroup without cache", "lxc", GuestLook{RRD: &parse.RRDGuest{Mem: n64(1), MemMax: n64(9000)}, Cgroup: &parse.Cgroup{MemoryCurrent: n64(5000), File: n64(3000), Shmem: n64(500), MemoryMax: n64(9000), OOMKills: n64(2)}},
			2500, MemoryCgroup, &Memory{HostBytes: n64(5000), CacheBytes: n64(2500), LimitBytes: n64(9000), OOMKills: n64(2)}},
		{"container: tmpfs is no cache", "lxc", GuestLook{Cgroup: &parse.Cgroup{MemoryCurrent: n64(5000), File: n64(4000), Shmem: n64(4000)}}, 5000, MemoryCgroup, &Memory{HostBytes: n64(5000), CacheBytes: n64(0)}},
		{"container: cgroup v1", "lxc", GuestLook{RRD: &parse.RRDGuest{Mem: n64(700)}}, 700, MemoryPvestatd, nil},
		{"container: nothing", "lxc", GuestLook{RRD: &parse.RRDGuest{}}, -1, "", nil},
		{"container: memhost 0 means nothing", "lxc", GuestLook{RRD: &parse.RRDGuest{Mem: n64(700), MemHost: n64(0)}}, 700, MemoryPvestatd, nil},
		{"VM: balloon driver reports", "qemu", GuestLook{RRD: &parse.RRDGuest{Mem: n64(1700), MemHost: n64(900)}, Status: &parse.GuestStatus{Status: Running, Memory: n64(1700), Balloon: balloon}},
			1700, MemoryGuest, &Memory{HostBytes: n64(900), GuestTotalBytes: n64(2000), GuestFreeBytes: n64(300), BalloonBytes: n64(2048)}},
		{"VM: no driver, PVE 9", "qemu", GuestLook{RRD: &parse.RRDGuest{Mem: n64(900), MemHost: n64(900)}}, 900, MemoryHost, &Memory{HostBytes: n64(900)}},
		{"VM: driver, files only, PVE 9", "qemu", GuestLook{RRD: &parse.RRDGuest{Mem: n64(1700), MemHost: n64(900)}}, 1700, MemoryGuest, &Memory{HostBytes: n64(900)}},
		{"VM: files only, PVE 8", "qemu", GuestLook{RRD: &parse.RRDGuest{Mem: n64(1700)}}, 1700, MemoryEither, nil},
		{"VM: PVE 8, no driver", "qemu", GuestLook{RRD: &parse.RRDGuest{Mem: n64(1700)}, Status: &parse.GuestStatus{Status: Running, Memory: n64(1710)}}, 1710, MemoryHost, nil},
		{"VM: only the cgroup", "qemu", GuestLook{Live: true, Cgroup: &parse.Cgroup{MemoryCurrent: n64(900), File: n64(100)}}, 900, MemoryHost, &Memory{HostBytes: n64(900)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			c.look.Row = Guest{VMID: 101, Type: c.kind, Node: "a", Status: Running}
			r := BuildGuestStatus(c.look)
			used := int64(-1)
			if r.MemoryUsedBytes != nil {
				used = *r.MemoryUsedBytes
			}
			if used != c.used || r.MemorySource != c.source {
				t.Errorf("got %d (%s), want %d (%s)", used, r.MemorySource, c.used, c.source)
			}
			if d := cmp.Diff(c.memory, r.Memory); d != "" {
				t.Error(d)
			}
		})
	}
}

// A stopped guest uses nothing, and its 0 is no measurement.
func TestStoppedGuestHasNoNumbers(t *testing.T) {
	r := BuildGuestStatus(GuestLook{Row: Guest{VMID: 101, Type: "lxc", Status: Stopped}, RRD: &parse.RRDGuest{Status: "stopped", Uptime: n64(0), CPU: Ptr(0.0), MemMax: n64(512), Mem: n64(0), DiskMax: n64(8000), Disk: n64(0)}})
	if r.UptimeS != nil || r.CPURatio != nil || r.MemoryUsedBytes != nil || r.DiskUsedBytes != nil || *r.MemoryTotalBytes != 512 || *r.DiskTotalBytes != 8000 {
		t.Errorf("got %+v", r)
	}
}

// A VM's disk is known only from its agent; the 0 of the API is not it.
func TestDiskOfAVM(t *testing.T) {
	look := GuestLook{Row: Guest{VMID: 200, Type: "qemu", Status: Running}, RRD: &parse.RRDGuest{Status: "running", DiskMax: n64(34000), Disk: n64(0)}, Status: &parse.GuestStatus{Status: Running, QMPStatus: Running}}
	if r := BuildGuestStatus(look); r.DiskUsedBytes != nil || *r.DiskTotalBytes != 34000 || r.DiskSource != "" {
		t.Errorf("without an agent: %+v", r)
	}
	look.Agent = &parse.AgentFilesystems{Total: 30000, Used: 9000, Counted: 1, Filesystems: []parse.AgentFilesystem{{Mountpoint: "/", Total: n64(30000), Used: n64(9000)}, {Mountpoint: "/snap", Skip: parse.SkipReadOnly}}}
	if r := BuildGuestStatus(look); *r.DiskUsedBytes != 9000 || *r.DiskTotalBytes != 30000 || r.DiskSource != "agent" || len(r.Filesystems) != 1 {
		t.Errorf("with an agent: %+v", r)
	}
	look.Agent.Filesystems[1] = parse.AgentFilesystem{Mountpoint: "/nas", Total: n64(900), Used: n64(890), Skip: parse.SkipRemote}
	if r := BuildGuestStatus(look); *r.DiskUsedBytes != 9000 || len(r.Filesystems) != 2 || !r.Filesystems[1].Remote {
		t.Errorf("with a share: %+v", r)
	}
	look.Agent = &parse.AgentFilesystems{}
	if r := BuildGuestStatus(look); r.DiskUsedBytes != nil {
		t.Error("an agent that counted nothing measured nothing")
	}
}

func TestLockAndItsTask(t *testing.T) {
	const boot = 1000000
	task := func(kind, id string, start int64, class parse.TaskClass) parse.Task {
		tk := parse.Task{UPID: parse.UPID{Type: kind, ID: id, Start: start}, Name: "UPID:" + kind, Class: class}
		if id == "104" || id == "105" {
			var vmid int
			fmt.Sscan(id, &vmid)
			tk.VMID = &vmid
		}
		return tk
	}
	for _, c := range []struct {
		name, lock string
		tasks      []parse.Task
		explained  *bool
	}{
		{"a backup of this guest", "backup", []parse.Task{task("vzdump", "104", boot+5, parse.TaskRunning)}, Ptr(true)},
		{"a mass backup", "backup", []parse.Task{task("vzdump", "", boot+5, parse.TaskRunning)}, Ptr(true)},
		{"a backup of another guest", "backup", []parse.Task{task("vzdump", "105", boot+5, parse.TaskRunning)}, Ptr(false)},
		{"a backup that has ended", "backup", []parse.Task{task("vzdump", "", boot+5, parse.TaskOK)}, Ptr(false)},
		{"a task that died with its node", "backup", []parse.Task{task("vzdump", "", boot-5000, parse.TaskRunning)}, Ptr(false)},
		{"an open console explains nothing", "snapshot", []parse.Task{task("vncproxy", "104", boot+5, parse.TaskRunning)}, Ptr(false)},
		{"another task of this guest", "rollback", []parse.Task{task("qmsomething", "104", boot+5, parse.TaskRunning)}, Ptr(true)},
		{"the clone's source has the task", "clone", []parse.Task{task("qmclone", "105", boot+5, parse.TaskRunning)}, Ptr(true)},
		{"no task", "migrate", []parse.Task{}, Ptr(false)},
		{"tasks not read", "migrate", nil, nil},
		{"hibernated", "suspended", nil, Ptr(true)},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := BuildGuestStatus(GuestLook{Row: Guest{VMID: 104, Type: "lxc", Node: "a", Status: Stopped, Lock: c.lock}, RRD: &parse.RRDGuest{Status: "stopped"},
				Node: &parse.RRDNode{Time: n64(boot + 100), Uptime: n64(100)}, Tasks: c.tasks})
			if d := cmp.Diff(c.explained, r.Lock.Explained); d != "" {
				t.Error(d)
			}
			if r.Lock.Name != c.lock || r.Lock.Explained == nil && r.Lock.Reason == "" {
				t.Errorf("got %+v", r.Lock)
			}
		})
	}
}

func TestPressureAndThrottling(t *testing.T) {
	r := BuildGuestStatus(GuestLook{Row: Guest{VMID: 101, Type: "lxc", Status: Running}, RRD: &parse.RRDGuest{Status: "running", PressureCPUSome: Ptr(9.0)},
		Cgroup: &parse.Cgroup{CPUPressure: &parse.PSI{Some: &parse.PSILine{Avg10: 1.5}}, Periods: n64(100), Throttled: n64(30), ThrottledUS: n64(2500000)}})
	if r.Pressure.Measured != "cgroup" || *r.Pressure.CPUSome != 1.5 || r.Pressure.CPUFull != nil || r.Pressure.IOSome != nil {
		t.Errorf("got %+v", r.Pressure)
	}
	if d := cmp.Diff(&Throttling{n64(100), n64(30), n64(2)}, r.Throttling); d != "" {
		t.Error(d)
	}
	r = BuildGuestStatus(GuestLook{Row: Guest{VMID: 101, Type: "lxc", Status: Running}, RRD: &parse.RRDGuest{Status: "running", PressureCPUSome: Ptr(9.0)}})
	if r.Pressure.Measured != "pvestatd" || *r.Pressure.CPUSome != 9 || r.Throttling != nil {
		t.Errorf("got %+v", r.Pressure)
	}
	r = BuildGuestStatus(GuestLook{Row: Guest{VMID: 101, Type: "lxc", Status: Running}, Status: &parse.GuestStatus{Status: Running, Pressure: &parse.Pressure{CPUSome: Ptr(0.0), IOFull: Ptr(0.13)}}})
	if r.Pressure.Measured != "node" || *r.Pressure.CPUSome != 0 || *r.Pressure.IOFull != 0.13 || r.Pressure.MemSome != nil {
		t.Errorf("got %+v", r.Pressure)
	}
}
