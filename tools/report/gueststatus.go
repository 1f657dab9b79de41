package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// A GuestLook is what is known of one guest: its row and whatever could be read
// of it. A part that was not read is nil; a list that was read is not.
type GuestLook struct {
	Row    Guest // from the cluster's files, numbers included
	RRD    *parse.RRDGuest
	Node   *parse.RRDNode
	Config *parse.GuestConfig
	HA     *parse.HAService
	// HAWanted is the resource's configuration, nil when the guest is not under HA.
	HAWanted *parse.HAResource
	Status   *parse.GuestStatus // status/current of its node
	Cgroup   *parse.Cgroup
	Agent    *parse.AgentFilesystems
	// AgentState says why Agent is nil, where it was to be asked.
	AgentState parse.AgentTrouble
	Tasks      []parse.Task // of its node; nil: not read
	// Live is set when the state comes from the node's own list, not from pvestatd.
	Live bool
	// NotAsked is why the node itself could not be asked; "" when it was, or when
	// there was no need to.
	NotAsked string
}

// The words for where a guest's memory figure comes from.
const (
	MemoryCgroup   = "cgroup"         // the kernel's count for the guest, without the cache that it can give back
	MemoryPvestatd = "pvestatd"       // a container: the same, as pvestatd last took it
	MemoryGuest    = "guest"          // a VM: total minus free as its balloon driver reports; its own cache counts as used
	MemoryHost     = "host"           // a VM: what QEMU takes on the node; the guest may use less
	MemoryEither   = "guest-or-host"  // a VM, PVE 7 and 8: guest if its balloon driver reports, else host
	agentNotAsked  = "not-asked"      // the agent was not asked
	notConfigured  = "not-configured" // the agent is off in the configuration
	answers        = "answers"
)

// Memory is a guest's memory, each number with its meaning: HostBytes is what
// the guest takes on its node, CacheBytes the part of it that the kernel can
// give back, GuestTotalBytes and GuestFreeBytes are what a VM's balloon driver
// reports (free does not count the guest's cache), BalloonBytes is what the node
// grants a VM now. LimitBytes is the cgroup's limit.
type Memory struct {
	HostBytes       *int64 `json:"host_bytes,omitempty"`
	CacheBytes      *int64 `json:"cache_bytes,omitempty"`
	LimitBytes      *int64 `json:"limit_bytes,omitempty"`
	SwapUsedBytes   *int64 `json:"swap_used_bytes,omitempty"`
	SwapTotalBytes  *int64 `json:"swap_total_bytes,omitempty"`
	GuestTotalBytes *int64 `json:"guest_total_bytes,omitempty"`
	GuestFreeBytes  *int64 `json:"guest_free_bytes,omitempty"`
	BalloonBytes    *int64 `json:"balloon_bytes,omitempty"`
	BalloonMinBytes *int64 `json:"balloon_min_bytes,omitempty"`
	OOMKills        *int64 `json:"oom_kills,omitempty"`
}

// PressureShare is the share of the last ten seconds in which some, or all,
// tasks of the guest waited, in percent.
type PressureShare struct {
	CPUSome  *float64 `json:"cpu_some_percent,omitempty"`
	CPUFull  *float64 `json:"cpu_full_percent,omitempty"`
	IOSome   *float64 `json:"io_some_percent,omitempty"`
	IOFull   *float64 `json:"io_full_percent,omitempty"`
	MemSome  *float64 `json:"memory_some_percent,omitempty"`
	MemFull  *float64 `json:"memory_full_percent,omitempty"`
	Measured string   `json:"source"`
}

// Throttling is how often the guest was held back by its own CPU limit since it
// started.
type Throttling struct {
	Periods    *int64 `json:"periods,omitempty"`
	Throttled  *int64 `json:"throttled_periods,omitempty"`
	ThrottledS *int64 `json:"throttled_s,omitempty"`
}

// GuestHA is a guest under HA: the state that HA gives it, and the one that is
// wanted.
type GuestHA struct {
	State  string `json:"state,omitempty"`
	Wanted string `json:"wanted"`
	Target string `json:"target,omitempty"`
	Group  string `json:"group,omitempty"`
}

// GuestLock is a lock in the configuration and whether a running task explains
// it; Explained is absent when the node's tasks could not be read.
type GuestLock struct {
	Name      string `json:"name"`
	Explained *bool  `json:"explained,omitempty"`
	Task      string `json:"task,omitempty"`
	Reason    string `json:"reason,omitempty"`
}

// FilesystemUse is one filesystem inside a guest.
type FilesystemUse struct {
	MountPoint     string   `json:"mount_point"`
	Type           string   `json:"type,omitempty"`
	TotalBytes     *int64   `json:"total_bytes,omitempty"`
	UsedBytes      *int64   `json:"used_bytes,omitempty"`
	AvailableBytes *int64   `json:"available_bytes,omitempty"`
	UsedRatio      *float64 `json:"used_ratio,omitempty"`
	Remote         bool     `json:"remote,omitempty"` // a share: somebody else's space, not in the guest's sums
}

// GuestStatus is the answer of get_guest_status. Status is running, stopped,
// template, hibernated (suspended to disk), one of QEMU's own words (paused,
// prelaunch, io-error, suspended, …) or unknown; StatusReason says why it is
// unknown, or what cannot be told. Numbers are absent where nothing measures
// them: a stopped guest uses nothing, and a VM's used disk is known only from
// its agent. CPURatio is the share of the guest's own cores between two of
// pvestatd's samples. Counters run since the guest's start.
type GuestStatus struct {
	Answer
	VMID             int             `json:"vmid"`
	Name             string          `json:"name,omitempty"`
	Type             string          `json:"type"`
	Node             string          `json:"node"`
	Cluster          string          `json:"cluster,omitempty"`
	Status           string          `json:"status"`
	StatusReason     string          `json:"status_reason,omitempty"`
	StatusSource     string          `json:"status_source"`
	LastStatus       string          `json:"last_status,omitempty"`
	Template         bool            `json:"template,omitempty"`
	Tags             []string        `json:"tags,omitempty"`
	Pool             string          `json:"pool,omitempty"`
	UptimeS          *int64          `json:"uptime_s,omitempty"`
	CPUCount         *float64        `json:"cpu_count,omitempty"`
	CPURatio         *float64        `json:"cpu_ratio,omitempty"`
	MeasuredAt       string          `json:"measured_at,omitempty"`
	Throttling       *Throttling     `json:"throttling,omitempty"`
	MemoryUsedBytes  *int64          `json:"memory_used_bytes,omitempty"`
	MemoryTotalBytes *int64          `json:"memory_total_bytes,omitempty"`
	MemorySource     string          `json:"memory_source,omitempty"`
	Memory           *Memory         `json:"memory,omitempty"`
	DiskUsedBytes    *int64          `json:"disk_used_bytes,omitempty"`
	DiskTotalBytes   *int64          `json:"disk_total_bytes,omitempty"`
	DiskSource       string          `json:"disk_source,omitempty"`
	Filesystems      []FilesystemUse `json:"filesystems,omitempty"`
	NetInBytes       *int64          `json:"net_in_bytes,omitempty"`
	NetOutBytes      *int64          `json:"net_out_bytes,omitempty"`
	DiskReadBytes    *int64          `json:"disk_read_bytes,omitempty"`
	DiskWriteBytes   *int64          `json:"disk_write_bytes,omitempty"`
	Pressure         *PressureShare  `json:"pressure,omitempty"`
	HA               *GuestHA        `json:"ha,omitempty"`
	HAState          string          `json:"ha_state,omitempty"`
	Lock             *GuestLock      `json:"lock,omitempty"`
	AgentState       string          `json:"agent,omitempty"`
	Machine          string          `json:"machine,omitempty"`
	QEMU             string          `json:"qemu_version,omitempty"`
}

// BuildGuestStatus says what a look at a guest means.
func BuildGuestStatus(l GuestLook) *GuestStatus {
	g := l.Row
	r := &GuestStatus{
		VMID: g.VMID, Name: g.Name, Type: g.Type, Node: g.Node, Cluster: g.Cluster, LastStatus: g.LastStatus,
		Template: g.Template, Tags: g.Tags, Pool: g.Pool, HAState: g.HAState,
	}
	r.Status, r.StatusSource, r.StatusReason = l.state()
	r.HA = l.ha()
	r.Lock = l.lock()
	if r.Status == Unknown || g.LastStatus != "" {
		return r
	}
	r.sizes(l)
	if l.alive(r.Status) {
		r.measure(l)
	}
	return r
}

// state tells the guest's state, where it is known from, and what cannot be
// told about it.
func (l GuestLook) state() (status, source, reason string) {
	status, source = l.Row.Status, "pvestatd"
	if l.Live {
		source = "node"
	}
	hibernated := l.Row.Type == "qemu" && l.Config != nil && l.Config.Current.Lock == "suspended"
	switch s := l.Status; {
	case l.Row.LastStatus != "" || status == Unknown && s == nil && l.NotAsked != "":
		source, reason = "none", l.NotAsked
	case s != nil:
		status, source = GuestState(s.Status), "node"
		if s.QMPStatus != "" && s.Status == Running {
			status = GuestState(s.QMPStatus)
		}
		if status == Unknown {
			reason = "the node names a state that is not known: " + Clean(cmp.Or(s.QMPStatus, s.Status))
		}
	case l.RRD == nil && !l.Live:
		source, reason = "none", "its node has reported nothing for five minutes"
	case status == Unknown:
		reason = "the node names a state that is not known"
	case l.Row.Type == "qemu" && status == Running && l.NotAsked != "":
		reason = "what QEMU itself says was not asked: " + l.NotAsked
	}
	switch {
	case status == Stopped && l.Row.Template:
		status = "template"
	case status == Stopped && hibernated:
		status = "hibernated"
	}
	return status, source, reason
}

// alive reports whether there is a process to measure.
func (l GuestLook) alive(status string) bool {
	return status != Stopped && status != "template" && status != "hibernated" && status != Unknown
}

func (l GuestLook) ha() *GuestHA {
	if l.HAWanted == nil {
		return nil
	}
	ha := &GuestHA{Wanted: cmp.Or(Clean(l.HAWanted.State), "started"), Group: Clean(l.HAWanted.Group), State: l.Row.HAState}
	if l.HA != nil {
		ha.State, ha.Target = Clean(l.HA.State), Clean(l.HA.Target)
	}
	return ha
}

// lockTasks are the task types that set a lock; a mass backup has no VMID.
var lockTasks = map[string][]string{
	"backup": {"vzdump"}, "snapshot": {"qmsnapshot", "vzsnapshot"}, "snapshot-delete": {"qmdelsnapshot", "vzdelsnapshot"},
	"rollback": {"qmrollback", "vzrollback"}, "migrate": {"qmigrate", "vzmigrate", "hamigrate"}, "clone": {"qmclone", "vzclone"},
	"create": {"qmcreate", "vzcreate", "qmrestore", "vzrestore", "qmclone", "vzclone"}, "disk": {"qmmove", "move_volume", "resize", "vzclone"},
	"suspending": {"qmsuspend"}, "destroyed": {"qmdestroy", "vzdestroy"}, "fstrim": {"vzfstrim", "fstrim"}, "mounted": {"vzmount"},
}

func (l GuestLook) lock() *GuestLock {
	if l.Row.Lock == "" {
		return nil
	}
	k := &GuestLock{Name: l.Row.Lock}
	if k.Name == "suspended" {
		k.Explained, k.Reason = Ptr(true), "the VM is suspended to disk; its start takes the lock away"
		return k
	}
	if l.Tasks == nil {
		k.Reason = "the node's tasks were not read"
		return k
	}
	t := RunningTask(l.Tasks, l.Row.VMID, l.Boot(), lockTasks[k.Name])
	k.Explained = Ptr(t != nil)
	if t == nil {
		k.Reason = "no running task on " + l.Row.Node + " explains it"
		return k
	}
	k.Task = Clean(t.Name)
	return k
}

// Boot is when the node started, in unix seconds; 0 when that is not known.
func (l GuestLook) Boot() int64 {
	if l.Node == nil || l.Node.Time == nil || l.Node.Uptime == nil {
		return 0
	}
	return *l.Node.Time - *l.Node.Uptime
}

// RunningTask returns the running task that explains a lock: one of this guest,
// or one of the types given without a guest of its own, such as a mass backup. A
// task that started before its node did died with it.
func RunningTask(tasks []parse.Task, vmid int, boot int64, types []string) *parse.Task {
	for i, t := range tasks {
		if t.Class != parse.TaskRunning || t.Start < boot-60 {
			continue
		}
		typed := slices.Contains(types, t.Type)
		if t.VMID != nil && *t.VMID == vmid && (typed || !isConsole(t.Type)) || typed && (t.VMID == nil || strings.HasSuffix(t.Type, "clone")) {
			return &tasks[i]
		}
	}
	return nil
}

func isConsole(kind string) bool {
	return strings.HasSuffix(kind, "proxy") || strings.HasSuffix(kind, "shell") || kind == "download"
}

// sizes fills in what is configured; it holds for a stopped guest too.
func (r *GuestStatus) sizes(l GuestLook) {
	if g := l.RRD; g != nil {
		r.CPUCount, r.MemoryTotalBytes, r.DiskTotalBytes = g.CPUs, positive(g.MemMax), positive(g.DiskMax)
	}
	if s := l.Status; s != nil {
		r.CPUCount, r.MemoryTotalBytes = cmp.Or(s.CPUs, r.CPUCount), cmp.Or(s.MemoryTotal, r.MemoryTotalBytes)
		r.DiskTotalBytes = cmp.Or(s.DiskTotal, r.DiskTotalBytes)
	}
}

// measure fills in what a running guest uses.
func (r *GuestStatus) measure(l GuestLook) {
	if g := l.RRD; g != nil {
		r.UptimeS, r.CPURatio = positive(g.Uptime), g.CPU
		if g.Time != nil {
			r.MeasuredAt = At(*g.Time)
		}
		r.NetInBytes, r.NetOutBytes, r.DiskReadBytes, r.DiskWriteBytes = g.NetIn, g.NetOut, g.DiskRead, g.DiskWrite
	}
	if s := l.Status; s != nil {
		r.UptimeS = cmp.Or(positive(s.Uptime), r.UptimeS)
		r.NetInBytes, r.NetOutBytes = cmp.Or(s.NetIn, r.NetInBytes), cmp.Or(s.NetOut, r.NetOutBytes)
		r.DiskReadBytes, r.DiskWriteBytes = cmp.Or(s.DiskRead, r.DiskReadBytes), cmp.Or(s.DiskWrite, r.DiskWriteBytes)
		r.Machine, r.QEMU = Clean(s.Machine), Clean(s.QEMU)
	}
	r.memory(l)
	r.disk(l)
	r.Pressure = l.pressure()
	if c := l.Cgroup; c != nil && c.Periods != nil && *c.Periods > 0 {
		r.Throttling = &Throttling{Periods: c.Periods, Throttled: c.Throttled}
		if c.ThrottledUS != nil {
			r.Throttling.ThrottledS = Ptr(*c.ThrottledUS / 1e6)
		}
	}
}

func (r *GuestStatus) memory(l GuestLook) {
	m := &Memory{}
	if c := l.Cgroup; c != nil {
		m.HostBytes, m.SwapUsedBytes, m.OOMKills = c.MemoryCurrent, c.SwapCurrent, c.OOMKills
		if l.Row.Type == "lxc" {
			m.CacheBytes, m.LimitBytes = cacheOf(c), c.MemoryMax
		}
	}
	if s := l.Status; s != nil {
		m.SwapUsedBytes, m.SwapTotalBytes = cmp.Or(m.SwapUsedBytes, s.Swap), s.SwapTotal
		if b := s.Balloon; b != nil {
			m.BalloonBytes, m.BalloonMinBytes = b.Target, b.Minimum
			m.GuestTotalBytes, m.GuestFreeBytes = b.GuestTotal, b.GuestFree
		}
	}
	if l.Row.Type == "lxc" {
		r.containerMemory(l, m)
	} else {
		r.machineMemory(l, m)
	}
	if *m != (Memory{}) {
		r.Memory = m
	}
}

// cacheOf is the page cache that the kernel can give back: files, without shared
// memory and tmpfs, which it cannot.
func cacheOf(c *parse.Cgroup) *int64 {
	if c.File == nil || c.MemoryCurrent == nil {
		return nil
	}
	cache := *c.File
	if c.Shmem != nil {
		cache -= *c.Shmem
	}
	return Ptr(min(max(cache, 0), *c.MemoryCurrent))
}

func (r *GuestStatus) containerMemory(l GuestLook, m *Memory) {
	switch {
	case m.HostBytes != nil && m.CacheBytes != nil:
		r.MemoryUsedBytes, r.MemorySource = Ptr(*m.HostBytes-*m.CacheBytes), MemoryCgroup
	case l.Status != nil && positive(l.Status.Memory) != nil:
		r.MemoryUsedBytes, r.MemorySource = l.Status.Memory, MemoryPvestatd
	case l.RRD != nil && positive(l.RRD.Mem) != nil:
		r.MemoryUsedBytes, r.MemorySource = l.RRD.Mem, MemoryPvestatd
	}
	r.MemoryTotalBytes = cmp.Or(r.MemoryTotalBytes, m.LimitBytes)
}

// machineMemory: pvestatd's figure is the guest's own when its balloon driver
// reports, and QEMU's on the node otherwise; PVE 9 tells both.
func (r *GuestStatus) machineMemory(l GuestLook, m *Memory) {
	var mem, host *int64
	if l.RRD != nil {
		mem, host = positive(l.RRD.Mem), positive(l.RRD.MemHost)
	}
	if s := l.Status; s != nil {
		mem, host = cmp.Or(positive(s.Memory), mem), cmp.Or(s.MemoryHost, host)
	}
	m.HostBytes = cmp.Or(host, m.HostBytes)
	switch {
	case m.GuestTotalBytes != nil && m.GuestFreeBytes != nil:
		r.MemoryUsedBytes, r.MemorySource = Ptr(max(*m.GuestTotalBytes-*m.GuestFreeBytes, 0)), MemoryGuest
	case mem == nil && m.HostBytes != nil:
		r.MemoryUsedBytes, r.MemorySource = m.HostBytes, MemoryHost
	case mem == nil:
	case host != nil && *host == *mem || l.Status != nil:
		r.MemoryUsedBytes, r.MemorySource = mem, MemoryHost
	case host != nil:
		r.MemoryUsedBytes, r.MemorySource = mem, MemoryGuest
	default:
		r.MemoryUsedBytes, r.MemorySource = mem, MemoryEither
	}
}

func (r *GuestStatus) disk(l GuestLook) {
	if l.Row.Type == "lxc" {
		if l.RRD != nil {
			r.DiskUsedBytes = positive(l.RRD.Disk)
		}
		if l.Status != nil {
			r.DiskUsedBytes = cmp.Or(l.Status.Disk, r.DiskUsedBytes)
		}
		if r.DiskUsedBytes != nil {
			r.DiskSource = "root filesystem"
		}
		return
	}
	r.AgentState = l.agentWord()
	if a := l.Agent; a != nil {
		if a.Counted > 0 {
			r.DiskUsedBytes, r.DiskTotalBytes, r.DiskSource = Ptr(a.Used), Ptr(a.Total), "agent"
		}
		r.Filesystems = agentFilesystems(a)
	}
}

func (l GuestLook) agentWord() string {
	switch {
	case l.Agent != nil:
		return answers
	case l.AgentState != parse.AgentOK:
		return string(l.AgentState)
	case l.Config != nil && (l.Config.Current.Agent == nil || !l.Config.Current.Agent.Enabled):
		return notConfigured
	}
	return agentNotAsked
}

func agentFilesystems(a *parse.AgentFilesystems) []FilesystemUse {
	var out []FilesystemUse
	for _, f := range a.Filesystems {
		if f.Skip != parse.SkipNot && f.Skip != parse.SkipRemote {
			continue
		}
		out = append(out, FilesystemUse{MountPoint: Clean(f.Mountpoint), Type: Clean(f.Type), TotalBytes: f.Total, UsedBytes: f.Used, UsedRatio: Ratio(f.Used, f.Total), Remote: f.Skip == parse.SkipRemote})
	}
	return out
}

// Ratio is used over total, 0..1 with four decimals; nil unless both are known
// and total is not 0.
func Ratio(used, total *int64) *float64 {
	if used == nil || total == nil || *total <= 0 || *used < 0 {
		return nil
	}
	return Ptr(math.Round(float64(*used)/float64(*total)*1e4) / 1e4)
}

func (l GuestLook) pressure() *PressureShare {
	if c := l.Cgroup; c != nil && (c.CPUPressure != nil || c.IOPressure != nil || c.MemPressure != nil) {
		p := &PressureShare{Measured: "cgroup"}
		p.CPUSome, p.CPUFull = avg10(c.CPUPressure)
		p.IOSome, p.IOFull = avg10(c.IOPressure)
		p.MemSome, p.MemFull = avg10(c.MemPressure)
		return p
	}
	if g := l.RRD; g != nil && (g.PressureCPUSome != nil || g.PressureIOSome != nil || g.PressureMemSome != nil) {
		return &PressureShare{g.PressureCPUSome, g.PressureCPUFull, g.PressureIOSome, g.PressureIOFull, g.PressureMemSome, g.PressureMemFull, "pvestatd"}
	}
	if st := l.Status; st != nil && st.Pressure != nil {
		p := st.Pressure
		return &PressureShare{p.CPUSome, p.CPUFull, p.IOSome, p.IOFull, p.MemorySome, p.MemoryFull, "node"}
	}
	return nil
}

func avg10(p *parse.PSI) (some, full *float64) {
	if p == nil {
		return nil, nil
	}
	if p.Some != nil {
		some = Ptr(p.Some.Avg10)
	}
	if p.Full != nil {
		full = Ptr(p.Full.Avg10)
	}
	return some, full
}

// Tables shows the status to people.
func (r *GuestStatus) Tables() []Table {
	t := Table{Title: fmt.Sprintf("%s %d %s on %s: %s", r.Type, r.VMID, r.Name, r.Node, r.Status), Columns: []string{"what", "value"}}
	add := func(name, value string) {
		if value != "" {
			t.Rows = append(t.Rows, []string{name, value})
		}
	}
	add("why", r.StatusReason)
	add("last seen", r.LastStatus)
	add("up", Seconds(r.UptimeS))
	add("cpu", share(Percent(r.CPURatio), counted(r.CPUCount, "core"), ""))
	if th := r.Throttling; th != nil && th.Throttled != nil {
		add("throttled", fmt.Sprintf("%d of %d periods", *th.Throttled, *th.Periods))
	}
	add("memory", share(Bytes(r.MemoryUsedBytes), Bytes(r.MemoryTotalBytes), memoryWords[r.MemorySource]))
	if m := r.Memory; m != nil {
		add("  on the node", Bytes(m.HostBytes))
		add("  cache of it", Bytes(m.CacheBytes))
		add("  swap", share(Bytes(m.SwapUsedBytes), Bytes(m.SwapTotalBytes), ""))
		add("  balloon", Bytes(m.BalloonBytes))
		if m.OOMKills != nil {
			add("  OOM kills", fmt.Sprint(*m.OOMKills))
		}
	}
	add("disk", share(Bytes(r.DiskUsedBytes), Bytes(r.DiskTotalBytes), r.DiskSource))
	for _, f := range r.Filesystems {
		add("  "+f.MountPoint, share(Bytes(f.UsedBytes), Bytes(f.TotalBytes), Percent(f.UsedRatio)))
	}
	add("network", inOut("in ", r.NetInBytes, ", out ", r.NetOutBytes))
	add("disk i/o", inOut("read ", r.DiskReadBytes, ", written ", r.DiskWriteBytes))
	if p := r.Pressure; p != nil {
		add("pressure", fmt.Sprintf("cpu %s, io %s, memory %s (some, percent of 10 s)", Float(p.CPUSome), Float(p.IOSome), Float(p.MemSome)))
	}
	if r.HA != nil {
		add("HA", strings.TrimSpace(r.HA.State+", wanted "+r.HA.Wanted))
	}
	if k := r.Lock; k != nil {
		add("lock", strings.TrimSpace(k.Name+" "+cmp.Or(k.Reason, "explained by "+k.Task)))
	}
	add("agent", r.AgentState)
	return []Table{t}
}

var memoryWords = map[string]string{
	MemoryCgroup: "without cache", MemoryPvestatd: "without cache", MemoryGuest: "as the guest sees it, its cache included",
	MemoryHost: "what QEMU takes on the node", MemoryEither: "as the guest sees it, or what QEMU takes",
}

// share renders "used of total (words)" for people.
func share(used, total, words string) string {
	s := cmp.Or(used, total)
	if used != "" && total != "" {
		s = used + " of " + total
	}
	if used != "" && words != "" {
		s += " (" + words + ")"
	}
	return s
}

func inOut(a string, in *int64, b string, out *int64) string {
	if in == nil || out == nil {
		return ""
	}
	return a + Bytes(in) + b + Bytes(out)
}

// counted renders "4 cores" for people; "" when the number is absent.
func counted(n *float64, what string) string {
	switch {
	case n == nil:
		return ""
	case *n == 1:
		return "1 " + what
	}
	return Number(*n) + " " + what + "s"
}

// many renders "1 archive" and "2 archives".
func many(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// Float renders a number for people; "" when it is absent.
func Float(f *float64) string {
	if f == nil {
		return ""
	}
	return Number(*f)
}

// age is the time from a moment until now, never negative.
func age(now time.Time, unix int64) time.Duration { return max(now.Sub(time.Unix(unix, 0)), 0) }
