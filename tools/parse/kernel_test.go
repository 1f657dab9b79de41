package parse

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestNodeProc(t *testing.T) {
	got, notes, err := ParseNodeProc(testdata(t, "node-proc-pve9.txt"))
	if err != nil || notes != nil {
		t.Fatal(err, notes)
	}
	want := &NodeProc{
		Load: &LoadAverage{3.12, 13.29, 22.68}, Uptime: new(4085.36),
		Memory: &Meminfo{
			Total: new(int64(24683620 << 10)), Free: new(int64(19777648 << 10)), Available: new(int64(23548072 << 10)),
			Buffers: new(int64(153232 << 10)), Cached: new(int64(3207760 << 10)), Shmem: new(int64(59960 << 10)), Reclaimable: new(int64(791032 << 10)),
			SwapTotal: new(int64(0)), SwapFree: new(int64(0)), HugePagesTotal: new(int64(0)), HugeFree: new(int64(0)),
		},
		CPUPressure: &PSI{Some: &PSILine{38.47, 35.79, 70.58, 3388402435}, Full: &PSILine{0, 0, 0, 0}},
		IOPressure:  &PSI{Some: &PSILine{0.03, 6.32, 4.25, 71113848}, Full: &PSILine{0.02, 4.23, 2.67, 14028986}},
		MemPressure: &PSI{Some: &PSILine{0, 0, 0, 25840}, Full: &PSILine{0, 0, 0, 524}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNodeProcOtherFiles(t *testing.T) {
	out := "==> /proc/stat <==\ncpu  10 20 30 40 50 60 70 80 90 100 110\ncpu0 1 2 3 4\ncpu1 1 2 3 4\nintr 5\nbtime 1795966914\nprocs_running 3\nprocs_blocked 1\n" +
		"\n==> /proc/sys/kernel/osrelease <==\n6.17.4-2-pve\n\n==> /proc/pressure/cpu <==\nsome avg10=1.00 avg60=2.00 avg300=3.00 total=4\n" +
		"\n==> /proc/pressure/io <==\n\n==> /proc/spl/kstat/zfs/arcstats <==\n" + string(testdata(t, "cases/zfs-arc-is-cache.txt")) +
		"\n==> /etc/timezone <==\nEurope/Berlin\n\n==> /etc/kernel/proxmox-boot-pin <==\n6.8.12-4-pve\n"
	got, notes, err := ParseNodeProc([]byte(out))
	if err != nil || notes != nil {
		t.Fatal(err, notes)
	}
	want := &NodeProc{
		CPU: &CPUTimes{CPUs: 2, User: 10, Nice: 20, System: 30, Idle: 40, IOWait: 50, IRQ: 60, SoftIRQ: 70, Steal: 80, Guest: 90, GuestNice: 100,
			BootTime: new(int64(1795966914)), ProcsRunning: new(int64(3)), ProcsBlocked: new(int64(1))},
		Kernel: "6.17.4-2-pve", CPUPressure: &PSI{Some: &PSILine{1, 2, 3, 4}},
		ARC:      &ARC{Size: new(int64(103079215104)), Target: new(int64(103079215104)), Min: new(int64(4294967296)), Max: new(int64(103079215104))},
		TimeZone: "Europe/Berlin", PinnedKernel: "6.8.12-4-pve",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestNodeProcBrokenValues(t *testing.T) {
	tests := map[string]func(string) bool{
		"1 2":                                   func(s string) bool { return parseLoad(s) == nil },
		"MemTotal:\nMemFree: 1 kB":              func(s string) bool { return parseMeminfo(s) == nil },
		"cpu 1 2 x 4":                           func(s string) bool { return parseStat(s) == nil },
		"cpu 1 2 3":                             func(s string) bool { return parseStat(s) == nil },
		"some avg10=x avg60=1 avg300=1 total=1": func(s string) bool { return parsePSI(s) == nil },
		"some avg10=1 avg60=1 avg300=1 total=x": func(s string) bool { return parsePSI(s) == nil },
		"some avg10=1 avg60=1 avg300=1 all=1":   func(s string) bool { return parsePSI(s) == nil },
		"c 4 5":                                 func(s string) bool { return parseARC(s) == nil },
		"MemTotal: 1 kB\nHugePages_Total: 5":    func(s string) bool { return parseMeminfo(s).HugePagesTotal == nil },
		"MemTotal: 1 kB\nHugepagesize: 2048 kB\nHugePages_Total: 5": func(s string) bool { return *parseMeminfo(s).HugePagesTotal == 10<<20 },
	}
	for in, good := range tests {
		if !good(in) {
			t.Errorf("%q was read wrongly", in)
		}
	}
}

func TestNodeProcBroken(t *testing.T) {
	got, notes, err := ParseNodeProc([]byte("==> /proc/loadavg <==\na b c\n\n==> /proc/uptime <==\nx\n\n==> /proc/meminfo <==\nMemFree: 5 kB\n\n==> /proc/stat <==\nintr 1\n\n==> /proc/pressure/cpu <==\nsome avg10=1\n\n==> /etc/timezone <==\nUTC\n"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(&NodeProc{TimeZone: "UTC"}, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	want := []string{"/proc/loadavg: want the kernel's format", "/proc/uptime: want the kernel's format", "/proc/meminfo: want the kernel's format",
		"/proc/stat: want the kernel's format", "/proc/pressure/cpu: want the kernel's format"}
	if diff := cmp.Diff(want, noteTexts(notes)); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	_, _, err = ParseNodeProc(nil)
	checkError(t, err, "node-proc: want /proc/loadavg and others, got nothing")
	if _, _, err = ParseNodeProc([]byte("3.12 13.29\n")); err == nil || !strings.HasPrefix(err.Error(), "tail -v: want the header of one of /proc/loadavg") {
		t.Errorf("%v", err)
	}
}

// The layout is that of the kernel's cgroup-v2 documentation.
const cgroupText = "==> DIR/memory.current <==\n430080000\n\n==> DIR/memory.max <==\n536870912\n\n==> DIR/memory.stat <==\nanon 100\nfile 200\nkernel 5\nshmem 10\ninactive_file 150\nslab_reclaimable 7\n" +
	"\n==> DIR/memory.events <==\nlow 0\nhigh 0\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n\n==> DIR/memory.swap.current <==\n4096\n" +
	"\n==> DIR/cpu.stat <==\nusage_usec 1000\nuser_usec 700\nsystem_usec 300\nnr_periods 50\nnr_throttled 5\nthrottled_usec 99\n" +
	"\n==> DIR/cpu.pressure <==\nsome avg10=1.00 avg60=2.00 avg300=3.00 total=4\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n" +
	"\n==> DIR/io.pressure <==\nsome avg10=5.00 avg60=2.00 avg300=3.00 total=4\n\n==> DIR/memory.pressure <==\nsome avg10=6.00 avg60=2.00 avg300=3.00 total=4\n"

func TestCgroup(t *testing.T) {
	want := &Cgroup{
		MemoryCurrent: new(int64(430080000)), MemoryMax: new(int64(536870912)), Anon: new(int64(100)), File: new(int64(200)), Shmem: new(int64(10)),
		InactiveFile: new(int64(150)), SlabReclaimable: new(int64(7)), SwapCurrent: new(int64(4096)), OOM: new(int64(2)), OOMKills: new(int64(1)),
		UsageUS: new(int64(1000)), UserUS: new(int64(700)), SystemUS: new(int64(300)), Periods: new(int64(50)), Throttled: new(int64(5)), ThrottledUS: new(int64(99)),
		CPUPressure: &PSI{Some: &PSILine{1, 2, 3, 4}, Full: &PSILine{0, 0, 0, 0}}, IOPressure: &PSI{Some: &PSILine{5, 2, 3, 4}}, MemPressure: &PSI{Some: &PSILine{6, 2, 3, 4}},
	}
	for kind, dir := range map[string]string{"lxc": "/sys/fs/cgroup/lxc/101", "qemu": "/sys/fs/cgroup/qemu.slice/101.scope"} {
		got, notes, err := ParseCgroup(kind, 101, []byte(strings.ReplaceAll(cgroupText, "DIR", dir)))
		if diff := cmp.Diff(want, got); diff != "" || err != nil || notes != nil {
			t.Errorf("%s: %v, %v (-want +got)\n%s", kind, err, notes, diff)
		}
	}
}

func TestCgroupShapes(t *testing.T) {
	const dir = "/sys/fs/cgroup/lxc/101/"
	got, notes, err := ParseCgroup("lxc", 101, []byte("==> "+dir+"memory.current <==\nabc\n\n==> "+dir+"memory.max <==\nmax\n"))
	if diff := cmp.Diff(&Cgroup{Unlimited: true}, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"memory.current: want the kernel's format"}, noteTexts(notes)); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	if got, _, err := ParseCgroup("lxc", 101, nil); got != nil || err != nil {
		t.Errorf("stopped: %v, %v", got, err)
	}
	if got, _, err := ParseCgroup("lxc", 102, []byte("==> "+dir+"memory.max <==\nmax\n")); got != nil || err == nil {
		t.Errorf("another guest's files: %v, %v", got, err)
	}
}

// What the kernel's files say is read or noted, and reading twice agrees.
func FuzzNodeProc(f *testing.F) {
	f.Add(string(testdata(f, "node-proc-pve9.txt")))
	f.Add("==> /proc/spl/kstat/zfs/arcstats <==\n" + string(testdata(f, "cases/zfs-arc-is-cache.txt")))
	f.Add("==> /proc/meminfo <==\nMemTotal: 99999999999999999999 kB\nHugepagesize: 5 kB\nHugePages_Total: 5\n")
	f.Fuzz(func(t *testing.T, in string) {
		a, notes, err := ParseNodeProc([]byte(in))
		b, again, err2 := ParseNodeProc([]byte(in))
		if (err == nil) != (err2 == nil) || cmp.Diff(a, b) != "" || cmp.Diff(notes, again) != "" {
			t.Error("two readings differ")
		}
		if err == nil && strings.ContainsAny(a.Kernel+a.TimeZone+a.PinnedKernel, " \t\n") {
			t.Error("a word with blanks")
		}
		_, _, _ = ParseCgroup("lxc", 101, []byte(strings.ReplaceAll(in, "/proc/", "/sys/fs/cgroup/lxc/101/")))
	})
}
