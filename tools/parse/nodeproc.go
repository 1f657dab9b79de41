package parse

import (
	"errors"
	"strings"
)

var nodeProcPaths = []string{
	"/proc/loadavg", "/proc/uptime", "/proc/meminfo", "/proc/stat", "/proc/sys/kernel/osrelease",
	"/proc/pressure/cpu", "/proc/pressure/io", "/proc/pressure/memory", "/proc/spl/kstat/zfs/arcstats",
	"/etc/timezone", "/etc/kernel/proxmox-boot-pin",
}

// NodeProc is what the kernel of a node tells. A file that is missing there
// leaves its fields nil or empty.
type NodeProc struct {
	Load         *LoadAverage
	Uptime       *float64 // seconds
	Memory       *Meminfo
	CPU          *CPUTimes
	Kernel       string // running kernel, as 6.17.4-2-pve
	CPUPressure  *PSI
	IOPressure   *PSI
	MemPressure  *PSI
	ARC          *ARC // nil without ZFS
	TimeZone     string
	PinnedKernel string // a kernel that is booted whatever is installed
}

// LoadAverage is the load of the last 1, 5 and 15 minutes.
type LoadAverage struct{ One, Five, Fifteen float64 }

// Meminfo is memory in bytes. Available does not count the ZFS cache, which the
// kernel would give back.
type Meminfo struct {
	Total, Free, Available   *int64
	Buffers, Cached, Shmem   *int64
	Reclaimable              *int64
	SwapTotal, SwapFree      *int64
	HugePagesTotal, HugeFree *int64 // bytes
}

// CPUTimes are ticks since boot, summed over all CPUs; two readings give a load.
type CPUTimes struct {
	CPUs                                  int
	User, Nice, System, Idle, IOWait      int64
	IRQ, SoftIRQ, Steal, Guest, GuestNice int64
	BootTime, ProcsRunning, ProcsBlocked  *int64 // unix seconds; counts
}

// PSI is pressure stall information: the share of time in which some, or all,
// tasks waited. Full is nil where the kernel does not tell it.
type PSI struct{ Some, Full *PSILine }

// PSILine has percent of the last 10, 60 and 300 seconds, and microseconds
// since boot.
type PSILine struct {
	Avg10, Avg60, Avg300 float64
	Total                int64
}

// ARC is the ZFS cache in bytes: its size now, the target, and the bounds
// between which it can shrink and grow.
type ARC struct{ Size, Target, Min, Max *int64 }

// ParseNodeProc reads the form node-proc. Notes name the files whose text could
// not be read.
//
// Program: tail -v of the kernel's files, Linux 5.10 to 6.18. Input:
//
//	==> /proc/loadavg <==
//	3.12 13.29 22.68 4/173 6304
func ParseNodeProc(out []byte) (*NodeProc, []Note, error) {
	files, err := Files(out, nodeProcPaths)
	if err != nil {
		return nil, nil, err
	}
	if len(files) == 0 {
		return nil, nil, errors.New("node-proc: want /proc/loadavg and others, got nothing")
	}
	var p NodeProc
	read := map[string]func(string) bool{
		"/proc/loadavg":                func(s string) bool { return set(&p.Load, parseLoad(s)) },
		"/proc/uptime":                 func(s string) bool { return setFloat(&p.Uptime, firstField(s)) },
		"/proc/meminfo":                func(s string) bool { return set(&p.Memory, parseMeminfo(s)) },
		"/proc/stat":                   func(s string) bool { return set(&p.CPU, parseStat(s)) },
		"/proc/sys/kernel/osrelease":   func(s string) bool { return setText(&p.Kernel, firstField(s)) },
		"/proc/pressure/cpu":           func(s string) bool { return set(&p.CPUPressure, parsePSI(s)) },
		"/proc/pressure/io":            func(s string) bool { return set(&p.IOPressure, parsePSI(s)) },
		"/proc/pressure/memory":        func(s string) bool { return set(&p.MemPressure, parsePSI(s)) },
		"/proc/spl/kstat/zfs/arcstats": func(s string) bool { return set(&p.ARC, parseARC(s)) },
		"/etc/timezone":                func(s string) bool { return setText(&p.TimeZone, firstField(s)) },
		"/etc/kernel/proxmox-boot-pin": func(s string) bool { return setText(&p.PinnedKernel, firstField(s)) },
	}
	var notes []Note
	for _, path := range nodeProcPaths {
		// An empty file was there but could not be read: PSI can be switched off.
		text := strings.TrimSpace(string(files[path]))
		if text != "" && !read[path](text) {
			notes = append(notes, Note{Text: path + ": want the kernel's format"})
		}
	}
	return &p, notes, nil
}

func parseLoad(s string) *LoadAverage {
	f := strings.Fields(s)
	if len(f) < 3 {
		return nil
	}
	one, five, fifteen := parseFloat(f[0]), parseFloat(f[1]), parseFloat(f[2])
	if one == nil || five == nil || fifteen == nil {
		return nil
	}
	return &LoadAverage{*one, *five, *fifteen}
}

// parseMeminfo reads lines such as "MemTotal:       24683620 kB".
func parseMeminfo(s string) *Meminfo {
	var m Meminfo
	fields := map[string]**int64{
		"MemTotal": &m.Total, "MemFree": &m.Free, "MemAvailable": &m.Available, "Buffers": &m.Buffers, "Cached": &m.Cached,
		"Shmem": &m.Shmem, "SReclaimable": &m.Reclaimable, "SwapTotal": &m.SwapTotal, "SwapFree": &m.SwapFree,
		"HugePages_Total": &m.HugePagesTotal, "HugePages_Free": &m.HugeFree,
	}
	var pageSize *int64
	for line := range strings.Lines(s) {
		key, value, _ := strings.Cut(line, ":")
		f := strings.Fields(value)
		if len(f) == 0 {
			continue
		}
		n := parseInt(f[0])
		if n != nil && len(f) > 1 && f[1] == "kB" && *n < 1<<50 {
			*n <<= 10
		}
		if key == "Hugepagesize" {
			pageSize = n
		}
		if to := fields[key]; to != nil {
			*to = n
		}
	}
	m.HugePagesTotal, m.HugeFree = times(m.HugePagesTotal, pageSize), times(m.HugeFree, pageSize)
	if m.Total == nil {
		return nil
	}
	return &m
}

func times(a, b *int64) *int64 {
	if a == nil || b == nil {
		return nil
	}
	return new(*a * *b)
}

// parseStat reads /proc/stat: "cpu  1 2 3 …", one line a CPU, btime and others.
func parseStat(s string) *CPUTimes {
	var c CPUTimes
	total := false
	for line := range strings.Lines(s) {
		f := strings.Fields(line)
		switch {
		case len(f) < 2:
		case f[0] == "cpu":
			total = c.times(f[1:])
		case strings.HasPrefix(f[0], "cpu"):
			c.CPUs++
		case f[0] == "btime":
			c.BootTime = parseInt(f[1])
		case f[0] == "procs_running":
			c.ProcsRunning = parseInt(f[1])
		case f[0] == "procs_blocked":
			c.ProcsBlocked = parseInt(f[1])
		}
	}
	if !total {
		return nil
	}
	return &c
}

func (c *CPUTimes) times(f []string) bool {
	to := []*int64{&c.User, &c.Nice, &c.System, &c.Idle, &c.IOWait, &c.IRQ, &c.SoftIRQ, &c.Steal, &c.Guest, &c.GuestNice}
	for i, s := range f[:min(len(f), len(to))] {
		n := parseInt(s)
		if n == nil {
			return false
		}
		*to[i] = *n
	}
	return len(f) >= 4
}

// parsePSI reads "some avg10=38.47 avg60=35.79 avg300=70.58 total=3388402435".
func parsePSI(s string) *PSI {
	var p PSI
	for line := range strings.Lines(s) {
		f := strings.Fields(line)
		if len(f) != 5 {
			continue
		}
		switch f[0] {
		case "some":
			p.Some = parsePSILine(f[1:])
		case "full":
			p.Full = parsePSILine(f[1:])
		}
	}
	if p.Some == nil {
		return nil
	}
	return &p
}

func parsePSILine(f []string) *PSILine {
	var avg [3]*float64
	for i, key := range []string{"avg10=", "avg60=", "avg300="} {
		value, ok := strings.CutPrefix(f[i], key)
		if avg[i] = parseFloat(value); !ok || avg[i] == nil {
			return nil
		}
	}
	value, ok := strings.CutPrefix(f[3], "total=")
	total := parseInt(value)
	if !ok || total == nil {
		return nil
	}
	return &PSILine{*avg[0], *avg[1], *avg[2], *total}
}

// parseARC reads arcstats lines "size 4 103079215104".
func parseARC(s string) *ARC {
	var a ARC
	fields := map[string]**int64{"size": &a.Size, "c": &a.Target, "c_min": &a.Min, "c_max": &a.Max}
	for line := range strings.Lines(s) {
		f := strings.Fields(line)
		if len(f) == 3 && fields[f[0]] != nil {
			*fields[f[0]] = parseInt(f[2])
		}
	}
	if a.Size == nil {
		return nil
	}
	return &a
}
