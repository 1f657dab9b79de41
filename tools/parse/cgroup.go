package parse

import (
	"strconv"
	"strings"
)

// Cgroup is what the kernel counts for one running guest (cgroup v2): memory
// in bytes, CPU in microseconds since the guest's start. For a VM it is QEMU's
// process on the node, so guest memory and QEMU's own.
type Cgroup struct {
	MemoryCurrent                 *int64
	MemoryMax                     *int64 // nil with Unlimited: no limit
	Unlimited                     bool
	Anon, File, Shmem             *int64
	InactiveFile, SlabReclaimable *int64
	SwapCurrent                   *int64
	OOM, OOMKills                 *int64 // since the guest's start
	UsageUS, UserUS, SystemUS     *int64
	Periods, Throttled            *int64
	ThrottledUS                   *int64
	CPUPressure, IOPressure       *PSI
	MemPressure                   *PSI
}

var cgroupFiles = []string{
	"memory.current", "memory.max", "memory.stat", "memory.events", "memory.swap.current",
	"cpu.stat", "cpu.pressure", "io.pressure", "memory.pressure",
}

// ParseCgroup reads the forms lxc-cgroup and qemu-cgroup; kind is lxc or qemu.
// It returns nil without an error when none of the files is there: the guest is
// stopped, or the node has cgroup v1. Notes name the files whose text could not
// be read.
//
// Program: tail -v of cgroup v2 files, Linux 5.15 to 6.17. Input:
//
//	==> /sys/fs/cgroup/lxc/101/memory.max <==
//	536870912
func ParseCgroup(kind string, vmid int, out []byte) (*Cgroup, []Note, error) {
	dir := "/sys/fs/cgroup/lxc/" + strconv.Itoa(vmid) + "/"
	if kind == "qemu" {
		dir = "/sys/fs/cgroup/qemu.slice/" + strconv.Itoa(vmid) + ".scope/"
	}
	paths := make([]string, len(cgroupFiles))
	for i, name := range cgroupFiles {
		paths[i] = dir + name
	}
	files, err := Files(out, paths)
	if err != nil || len(files) == 0 {
		return nil, nil, err
	}
	var c Cgroup
	var notes []Note
	for i, name := range cgroupFiles {
		text := strings.TrimSpace(string(files[paths[i]]))
		if text != "" && !c.read(name, text) {
			notes = append(notes, Note{Text: name + ": want the kernel's format"})
		}
	}
	return &c, notes, nil
}

func (c *Cgroup) read(name, text string) bool {
	switch name {
	case "memory.current":
		return setInt(&c.MemoryCurrent, text)
	case "memory.max":
		c.Unlimited = text == "max"
		return c.Unlimited || setInt(&c.MemoryMax, text)
	case "memory.swap.current":
		return setInt(&c.SwapCurrent, text)
	case "memory.stat":
		return flatKeyed(text, map[string]**int64{"anon": &c.Anon, "file": &c.File, "shmem": &c.Shmem,
			"inactive_file": &c.InactiveFile, "slab_reclaimable": &c.SlabReclaimable})
	case "memory.events":
		return flatKeyed(text, map[string]**int64{"oom": &c.OOM, "oom_kill": &c.OOMKills})
	case "cpu.stat":
		return flatKeyed(text, map[string]**int64{"usage_usec": &c.UsageUS, "user_usec": &c.UserUS, "system_usec": &c.SystemUS,
			"nr_periods": &c.Periods, "nr_throttled": &c.Throttled, "throttled_usec": &c.ThrottledUS})
	case "cpu.pressure":
		return set(&c.CPUPressure, parsePSI(text))
	case "io.pressure":
		return set(&c.IOPressure, parsePSI(text))
	default:
		return set(&c.MemPressure, parsePSI(text))
	}
}

// flatKeyed reads lines "KEY VALUE"; it fails when none of the keys is there.
func flatKeyed(text string, fields map[string]**int64) bool {
	found := false
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) == 2 && fields[f[0]] != nil {
			found = set(fields[f[0]], parseInt(f[1])) || found
		}
	}
	return found
}
