package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// A HealthCheck is one thing that was looked at. Result is ok, critical,
// warning, info (as the worst finding), unknown (a source could not be read; see
// Reason), not-applicable, or not-asked (left alone on purpose).
type HealthCheck struct {
	Check  string `json:"check"`
	Result string `json:"result"`
	Reason string `json:"reason,omitempty"`
}

// The results of a check that are no severity.
const (
	CheckOK            = "ok"
	CheckNotApplicable = "not-applicable"
	CheckNotAsked      = "not-asked" // left alone on purpose
)

// HealthSnapshots sums up a guest's snapshots.
type HealthSnapshots struct {
	Count    int    `json:"count"`
	OldestAt string `json:"oldest_at,omitempty"`
	NewestAt string `json:"newest_at,omitempty"`
	WithRAM  int    `json:"with_ram,omitempty"`
}

// HealthBackup sums up a guest's backups: what was found, which jobs take it,
// which come close and do not, and what its backups leave out.
type HealthBackup struct {
	GuestBackups
	Jobs            []HealthJob      `json:"jobs"`
	Passed          []PassedJob      `json:"passed_jobs,omitempty"`
	ExcludedVolumes []ExcludedVolume `json:"excluded_volumes"`
}

// A HealthJob is a backup job that takes the guest.
type HealthJob struct {
	Job      string `json:"job"`
	Schedule string `json:"schedule,omitempty"`
	Storage  string `json:"storage,omitempty"`
	Mode     string `json:"mode,omitempty"`
}

// HealthTask is a task of the guest that ended badly. Status is the error as the
// node words it.
type HealthTask struct {
	Type      string `json:"type"`
	StartedAt string `json:"started_at"`
	User      string `json:"user,omitempty"`
	Status    string `json:"status"`
}

// HealthStorage is a storage that holds disks of the guest.
type HealthStorage struct {
	Storage   string   `json:"storage"`
	State     string   `json:"state"`
	UsedRatio *float64 `json:"used_ratio,omitempty"`
	Reason    string   `json:"reason,omitempty"`
}

// HealthContainers sums up the containers inside the guest. Status says whether
// they could be asked; the counts are absent unless it is ok.
type HealthContainers struct {
	Status     string `json:"status"`
	Reason     string `json:"reason,omitempty"`
	Runtime    string `json:"runtime,omitempty"`
	Containers *int   `json:"containers,omitempty"`
	Running    *int   `json:"running,omitempty"`
}

// Trend is the guest's last day from the node's history; MeasuredS is how much
// of the day was measured. Ratios are of the guest's own cores and memory.
type Trend struct {
	From             string   `json:"from_at"`
	To               string   `json:"to_at"`
	MeasuredS        int64    `json:"measured_s"`
	CPUMeanRatio     *float64 `json:"cpu_mean_ratio,omitempty"`
	CPUMaxRatio      *float64 `json:"cpu_max_ratio,omitempty"`
	CPULastHourRatio *float64 `json:"cpu_last_hour_ratio,omitempty"`
	MemoryMeanBytes  *int64   `json:"memory_mean_bytes,omitempty"`
	MemoryMaxBytes   *int64   `json:"memory_max_bytes,omitempty"`
	DiskChangeBytes  *int64   `json:"disk_change_bytes,omitempty"`
	IOPressureMax    *float64 `json:"io_pressure_max_percent,omitempty"`
}

// GuestHealth is the answer of guest_health_summary. Verdict is the worst
// finding's severity; where there is none but a check is unknown it is unknown,
// never ok.
type GuestHealth struct {
	Answer
	VMID             int               `json:"vmid"`
	Name             string            `json:"name,omitempty"`
	Type             string            `json:"type"`
	Node             string            `json:"node"`
	Cluster          string            `json:"cluster,omitempty"`
	Status           string            `json:"status"`
	StatusReason     string            `json:"status_reason,omitempty"`
	LastStatus       string            `json:"last_status,omitempty"`
	Template         bool              `json:"template,omitempty"`
	OnBoot           *bool             `json:"onboot,omitempty"`
	Verdict          string            `json:"verdict"`
	UptimeS          *int64            `json:"uptime_s,omitempty"`
	CPURatio         *float64          `json:"cpu_ratio,omitempty"`
	MemoryUsedBytes  *int64            `json:"memory_used_bytes,omitempty"`
	MemoryTotalBytes *int64            `json:"memory_total_bytes,omitempty"`
	MemorySource     string            `json:"memory_source,omitempty"`
	DiskUsedBytes    *int64            `json:"disk_used_bytes,omitempty"`
	DiskTotalBytes   *int64            `json:"disk_total_bytes,omitempty"`
	HA               *GuestHA          `json:"ha,omitempty"`
	Lock             *GuestLock        `json:"lock,omitempty"`
	Checks           []HealthCheck     `json:"checks"`
	Findings         []Finding         `json:"findings"`
	MoreFindings     int               `json:"more_findings,omitempty"`
	Filesystems      []FilesystemUse   `json:"filesystems,omitempty"`
	Snapshots        *HealthSnapshots  `json:"snapshots,omitempty"`
	Backup           *HealthBackup     `json:"backup,omitempty"`
	Storages         []HealthStorage   `json:"storages,omitempty"`
	Containers       *HealthContainers `json:"containers,omitempty"`
	FailedTasks      []HealthTask      `json:"failed_tasks"`
	MoreFailedTasks  int               `json:"more_failed_tasks,omitempty"`
	Trend            *Trend            `json:"trend,omitempty"`
	Pressure         *PressureShare    `json:"pressure,omitempty"`
}

// A HealthView is everything that was read for one guest. A part that was not
// read is nil, with the reason beside it.
type HealthView struct {
	Look    GuestLook
	Cluster string // "" for the only one
	Quorate bool
	Offline bool // the cluster says so of the guest's node
	Now     time.Time

	Filesystems []parse.GuestFilesystem // of a container with mount points
	FSNotRead   string

	Snapshots    []Snapshot
	SnapshotBusy bool

	Backup     *BackupView // with this guest alone
	Jobs       []parse.BackupJob
	JobsRead   bool
	Storage    *StorageView
	Containers *RuntimeAnswer
	// ContainersNotAsked is why the runtime was left alone on purpose.
	ContainersNotAsked string

	WantTrend bool
	History   []parse.HistoryPoint
}

// health collects checks and findings.
type health struct {
	HealthView
	j      Judge
	r      *GuestHealth
	status *GuestStatus
	all    []*Finding
}

// BuildHealth judges everything that is known of one guest.
func BuildHealth(v HealthView, j Judge) *GuestHealth {
	st := BuildGuestStatus(v.Look)
	r := &GuestHealth{
		VMID: st.VMID, Name: st.Name, Type: st.Type, Node: st.Node, Cluster: st.Cluster, Status: st.Status, StatusReason: st.StatusReason,
		LastStatus: st.LastStatus, Template: st.Template, UptimeS: st.UptimeS, CPURatio: st.CPURatio, MemoryUsedBytes: st.MemoryUsedBytes,
		MemoryTotalBytes: st.MemoryTotalBytes, MemorySource: st.MemorySource, DiskUsedBytes: st.DiskUsedBytes, DiskTotalBytes: st.DiskTotalBytes,
		HA: st.HA, Lock: st.Lock, Filesystems: st.Filesystems, Pressure: st.Pressure, FailedTasks: []HealthTask{},
	}
	if v.Look.Config != nil {
		r.OnBoot = Ptr(v.Look.Config.Current.OnBoot)
	}
	h := &health{HealthView: v, j: j, r: r, status: st}
	h.state()
	h.lock()
	h.memory()
	h.cpu()
	h.disk()
	h.pressure()
	h.agent()
	h.storages()
	h.snapshots()
	h.backup()
	h.coverage()
	h.containers()
	h.tasks()
	h.trend()
	r.Findings = Findings(h.all...)
	r.Verdict = verdict(r.Checks)
	return r
}

// verdict is the worst result; unknown is worse than info, and better than
// warning.
func verdict(checks []HealthCheck) string {
	for _, worst := range []string{string(Critical), string(Warning), Unknown, string(Info)} {
		if slices.ContainsFunc(checks, func(c HealthCheck) bool { return c.Result == worst }) {
			return worst
		}
	}
	return CheckOK
}

// check adds a check. unknown is why a source is missing, "" when none is: a
// finding that is certain all the same still counts.
func (h *health) check(name, unknown string, findings ...*Finding) {
	c := HealthCheck{Check: name, Result: CheckOK}
	rank := len(name) + 3
	for _, f := range findings {
		if f != nil && f.Severity.Rank() < rank {
			rank, c.Result = f.Severity.Rank(), string(f.Severity)
		}
	}
	if unknown != "" {
		c.Reason = unknown
		if c.Result == CheckOK || c.Result == string(Info) {
			c.Result = Unknown
		}
	}
	h.all = append(h.all, findings...)
	h.r.Checks = append(h.r.Checks, c)
}

func (h *health) skip(name, reason string) {
	h.r.Checks = append(h.r.Checks, HealthCheck{name, CheckNotApplicable, reason})
}

func (h *health) subject() string { return h.at("guest", fmt.Sprint(h.r.VMID)) }

func (h *health) at(parts ...string) string {
	if h.HealthView.Cluster != "" {
		parts = append([]string{h.HealthView.Cluster}, parts...)
	}
	return strings.Join(parts, "/")
}

// running reports whether there is a process to measure; why says why not.
func (h *health) running() (yes bool, why string) {
	switch {
	case h.r.Status == Unknown:
		return false, cmp.Or(h.r.StatusReason, "the state is unknown")
	case !h.Look.alive(h.r.Status):
		return false, ""
	}
	return true, ""
}

func (h *health) state() {
	subject, s := h.subject(), h.r.Status
	wanted := h.wanted()
	var f []*Finding
	unknown := ""
	switch {
	case s == Unknown:
		unknown = cmp.Or(h.r.StatusReason, "the state is unknown")
	case s == "io-error":
		f = append(f, h.j.Find("GUEST_IO_ERROR", "", subject, "QEMU stopped the VM: a disk failed or its storage is full", Evidence{Name: "status", Value: s}))
	case slices.Contains(vmStates, s) && s != "shutdown" && s != "inmigrate" && s != "finish-migrate" && s != "save-vm" && s != "restore-vm" && s != "prelaunch":
		f = append(f, h.j.Find("GUEST_PAUSED", "", subject, "the VM does not run: QEMU says "+s, Evidence{Name: "status", Value: s}))
	case s == Stopped && wanted != "":
		severity, message := Warning, "the guest is stopped although "+wanted
		if k := h.r.Lock; k != nil && k.Explained != nil && *k.Explained {
			severity, message = Info, message+"; a task is at it ("+k.Name+")"
		}
		f = append(f, h.j.Find("GUEST_STOPPED_ONBOOT", severity, subject, message, Evidence{Name: "status", Value: s}, Evidence{Name: "wanted", Value: wanted}))
	case s == Running && h.r.OnBoot != nil && !*h.r.OnBoot && h.r.HA == nil:
		f = append(f, h.j.Find("GUEST_NO_ONBOOT", "", subject, "the guest runs but does not start with its node", Evidence{Name: "onboot", Value: "0"}))
	}
	if h.Offline && h.Quorate {
		f = append(f, h.j.Find("NODE_OFFLINE", "", h.at("node", h.r.Node), "the guest's node is offline", Evidence{Name: "last status", Value: cmp.Or(h.r.LastStatus, Unknown)}))
	}
	if !h.Quorate {
		f = append(f, h.j.Find("CLUSTER_NO_QUORUM", "", h.at("cluster"), "the guest's cluster has no quorum"))
	}
	h.check("state", unknown, append(f, h.ha()...)...)
}

// wanted says why a guest should run, or "".
func (h *health) wanted() string {
	switch {
	case h.r.Template:
		return ""
	case h.r.HA != nil && (h.r.HA.Wanted == "started" || h.r.HA.Wanted == "enabled"):
		return "HA wants it started"
	case h.r.HA != nil && h.r.HA.Wanted != "ignored":
		return ""
	case h.r.OnBoot != nil && *h.r.OnBoot:
		return "it starts with its node"
	}
	return ""
}

func (h *health) ha() []*Finding {
	if h.r.HA == nil {
		return nil
	}
	switch h.r.HA.State {
	case "error":
		return []*Finding{h.j.Find("HA_RESOURCE_ERROR", "", h.subject(), "HA gave up on the guest: its state is error", Evidence{Name: "ha_state", Value: "error"})}
	case "fence", "recovery":
		return []*Finding{h.j.Find("HA_FENCE", "", h.subject(), "HA is fencing the guest's node or recovering the guest", Evidence{Name: "ha_state", Value: h.r.HA.State})}
	}
	return nil
}

func (h *health) lock() {
	k := h.r.Lock
	switch {
	case h.Look.Config == nil:
		h.check("lock", "the configuration was not read")
	case k == nil:
		h.check("lock", "")
	case k.Explained == nil:
		h.check("lock", k.Reason, h.j.Find("GUEST_LOCKED", Info, h.subject(), "the guest is locked ("+k.Name+")", Evidence{Name: "lock", Value: k.Name}))
	case *k.Explained:
		h.check("lock", "", h.j.Find("GUEST_LOCKED", Info, h.subject(), "the guest is locked ("+k.Name+"): "+cmp.Or(k.Reason, "a task runs"), Evidence{Name: "lock", Value: k.Name}, Evidence{Name: "task", Value: cmp.Or(k.Task, "none")}))
	default:
		h.check("lock", "", h.j.Find("GUEST_LOCKED", Warning, h.subject(), "the guest is locked ("+k.Name+") and no running task explains it", Evidence{Name: "lock", Value: k.Name}))
	}
}

// measured is for checks that need a running guest: it ends the check and is
// false when there is none.
func (h *health) measured(name string) bool {
	running, why := h.running()
	switch {
	case running:
		return true
	case why != "":
		h.check(name, why)
	default:
		h.skip(name, "the guest is "+h.r.Status)
	}
	return false
}

func (h *health) memory() {
	if !h.measured("memory") {
		return
	}
	var f []*Finding
	unknown := ""
	used := Ratio(h.r.MemoryUsedBytes, h.r.MemoryTotalBytes)
	evidence := []Evidence{{Name: "source", Value: h.r.MemorySource}}
	m := h.status.Memory
	switch {
	case used == nil:
		unknown = "nothing measures it"
	case h.r.Type == "lxc":
		f = append(f, h.j.Measure("GUEST_MEM_HIGH", h.subject(), "memory is "+Percent(used)+" used, cache not counted", "used", *used*100, evidence...))
	case h.r.MemorySource == MemoryGuest:
		if in := Ratio(h.r.MemoryUsedBytes, guestTotal(m)); in != nil {
			high := h.j.Measure("GUEST_MEM_HIGH", h.subject(), "the VM's memory is "+Percent(in)+" used, its own cache counted, so it may be well", "used", *in*100, evidence...)
			if high != nil {
				high.Severity = Info
			}
			f = append(f, high, h.balloon(m, *in))
		}
	}
	if m != nil && m.OOMKills != nil && *m.OOMKills > 0 {
		f = append(f, h.j.Find("GUEST_OOM", "", h.subject(), "the kernel killed processes "+many(int(*m.OOMKills), "time")+" for want of memory since the guest started", Evidence{Name: "oom_kill", Value: fmt.Sprint(*m.OOMKills)}))
	}
	h.check("memory", unknown, f...)
}

func guestTotal(m *Memory) *int64 {
	if m == nil {
		return nil
	}
	return m.GuestTotalBytes
}

// balloon finds a VM whose memory the node takes back while it has little left.
func (h *health) balloon(m *Memory, used float64) *Finding {
	granted := Ratio(m.BalloonBytes, h.r.MemoryTotalBytes)
	if granted == nil || *granted > 0.95 || used < 0.9 {
		return nil
	}
	return h.j.Find("GUEST_BALLOON_PRESSURE", "", h.subject(), "the node grants the VM "+Percent(granted)+" of its memory, of which "+Percent(&used)+" are used",
		Evidence{"balloon_bytes", fmt.Sprint(*m.BalloonBytes), "bytes"}, Evidence{"guest_free_bytes", fmt.Sprint(*m.GuestFreeBytes), "bytes"})
}

func (h *health) cpu() {
	if !h.measured("cpu") {
		return
	}
	var f []*Finding
	unknown := ""
	hour := lastHour(h.History)
	switch {
	case hour != nil:
		f = append(f, h.j.Measure("GUEST_CPU_HIGH", h.subject(), "CPU "+Percent(hour)+" of its cores over the last hour", "cpu", *hour*100))
	case h.r.CPURatio != nil:
		f = append(f, h.j.Measure("GUEST_CPU_HIGH", h.subject(), "CPU "+Percent(h.r.CPURatio)+" of its cores in pvestatd's last two samples", "cpu", *h.r.CPURatio*100))
	case h.r.Status != Running:
		h.skip("cpu", "the guest is "+h.r.Status)
		return
	default:
		unknown = "nothing measures it"
	}
	if t := h.status.Throttling; t != nil && t.Throttled != nil {
		share := float64(*t.Throttled) / float64(*t.Periods)
		f = append(f, h.j.Measure("GUEST_CPU_THROTTLED", h.subject(), "the CPU limit held the guest back in "+Percent(&share)+" of the periods since it started", "throttled", share*100))
	}
	h.check("cpu", unknown, f...)
}

func (h *health) disk() {
	if !h.measured("disk") {
		return
	}
	if h.r.Type == "lxc" {
		h.check("disk", h.containerDisks(), h.full()...)
		return
	}
	switch {
	case h.Look.Agent != nil && len(h.r.Filesystems) > 0:
		h.check("disk", "", h.full()...)
	case h.status.AgentState == notConfigured:
		h.check("disk", "only the guest agent can tell, and it is off")
	case h.r.Status != Running:
		h.check("disk", "the guest agent is not asked while the VM is "+h.r.Status)
	case h.r.Lock != nil && h.status.AgentState == agentNotAsked:
		h.check("disk", "the guest agent is not asked while the VM is locked")
	default:
		h.check("disk", "the guest agent gave no filesystems ("+h.status.AgentState+")")
	}
}

// containerDisks lists the filesystems of a container: by df inside it where it
// has mount points, else pvestatd's figure of its root. It returns why something
// is missing.
func (h *health) containerDisks() string {
	for _, fs := range h.HealthView.Filesystems {
		if fs.Virtual || fs.Remote || !h.owns(fs.Mountpoint) {
			continue
		}
		use := FilesystemUse{MountPoint: Clean(fs.Mountpoint), TotalBytes: Ptr(fs.Total), UsedBytes: Ptr(fs.Used), AvailableBytes: Ptr(fs.Available)}
		if free := fs.Used + fs.Available; free > 0 {
			use.UsedRatio = Ratio(&fs.Used, &free)
		}
		h.r.Filesystems = append(h.r.Filesystems, use)
	}
	if len(h.r.Filesystems) > 0 {
		return ""
	}
	if h.r.DiskUsedBytes == nil {
		return cmp.Or(h.FSNotRead, "nothing measures it")
	}
	h.r.Filesystems = []FilesystemUse{{MountPoint: "/", TotalBytes: h.r.DiskTotalBytes, UsedBytes: h.r.DiskUsedBytes, UsedRatio: Ratio(h.r.DiskUsedBytes, h.r.DiskTotalBytes)}}
	return h.FSNotRead
}

// owns reports whether a mount inside a container is a volume of its own: its
// root or a mount point that is no folder of the node.
func (h *health) owns(mount string) bool {
	if mount == "/" || h.Look.Config == nil {
		return mount == "/"
	}
	return slices.ContainsFunc(h.Look.Config.Current.Disks, func(d parse.GuestDisk) bool {
		return d.Kind != parse.DiskBind && d.MountPoint != "" && "/"+strings.Trim(d.MountPoint, "/") == mount
	})
}

func (h *health) full() []*Finding {
	var f []*Finding
	for _, fs := range h.r.Filesystems {
		if fs.UsedRatio != nil && !fs.Remote {
			f = append(f, h.j.Measure("GUEST_FS_FULL", h.subject(), fs.MountPoint+" is "+Percent(fs.UsedRatio)+" full", "used", *fs.UsedRatio*100,
				Evidence{"used_bytes", fmt.Sprint(*fs.UsedBytes), "bytes"}, Evidence{Name: "mount_point", Value: fs.MountPoint}))
		}
	}
	return f
}

func (h *health) pressure() {
	if !h.measured("pressure") {
		return
	}
	p := h.r.Pressure
	if p == nil {
		h.check("pressure", "nothing measures it: the node has no pressure figures of its guests")
		return
	}
	var f []*Finding
	for _, x := range []struct {
		code, what string
		some       *float64
	}{{"PRESSURE_CPU", "the CPU", p.CPUSome}, {"PRESSURE_IO", "disks", p.IOSome}, {"PRESSURE_MEM", "memory", p.MemSome}} {
		if x.some != nil {
			f = append(f, h.j.Measure(x.code, h.subject(), "tasks of the guest waited for "+x.what+" in "+Number(*x.some)+" % of the last ten seconds", "some", *x.some, Evidence{Name: "source", Value: p.Measured}))
		}
	}
	h.check("pressure", "", f...)
}

func (h *health) agent() {
	if h.r.Type != "qemu" || h.r.Template {
		h.skip("agent", "not a VM that could have one")
		return
	}
	if h.Look.Config != nil && (h.Look.Config.Current.Agent == nil || !h.Look.Config.Current.Agent.Enabled) {
		h.check("agent", "", h.j.Find("GUEST_AGENT_OFF", "", h.subject(), "the guest agent is not enabled", Evidence{Name: "agent", Value: "0"}))
		return
	}
	if h.r.Status != Running {
		if h.measured("agent") {
			h.skip("agent", "the guest is "+h.r.Status)
		}
		return
	}
	switch t := h.Look.AgentState; t {
	case parse.AgentOK:
		unknown := ""
		if h.Look.Agent == nil {
			unknown = "the agent was not asked"
			if h.r.Lock != nil {
				unknown = "the agent is not asked while the VM is locked"
			}
		}
		h.check("agent", unknown)
	case parse.AgentSilent, parse.AgentTimedOut:
		h.check("agent", "", h.j.Find("GUEST_AGENT_SILENT", "", h.subject(), "the guest agent does not answer", Evidence{Name: "agent", Value: string(t)}))
	case parse.AgentBlocked, parse.AgentUnsupported:
		h.check("agent", "")
	default:
		h.check("agent", "the agent gave no answer: "+string(t))
	}
}

func (h *health) storages() {
	if h.Storage == nil || h.Look.Config == nil {
		h.check("storage", "the storages' configuration was not read")
		return
	}
	var names []string
	for _, d := range h.Look.Config.Current.Disks {
		if d.Storage != "" && d.Kind != parse.DiskUnused && d.Kind != parse.DiskCDROM && !slices.Contains(names, d.Storage) {
			names = append(names, d.Storage)
		}
	}
	rows := slices.DeleteFunc(StorageRows(*h.Storage, true, false), func(r Storage) bool {
		return r.Node != h.r.Node && r.Node != "" || !slices.Contains(names, r.Storage)
	})
	unknown := ""
	for _, r := range rows {
		h.r.Storages = append(h.r.Storages, HealthStorage{r.Storage, r.State, r.UsedRatio, r.Reason})
		if r.State == Unknown {
			unknown = r.Storage + ": " + r.Reason
		}
	}
	h.check("storage", unknown, append(h.j.StorageFindings(*h.Storage, rows), h.unusable(names, rows)...)...)
}

// unusable finds the storages that hold disks of the guest although its node may
// not use them, or that storage.cfg does not have: without them it cannot start.
func (h *health) unusable(names []string, rows []Storage) []*Finding {
	var f []*Finding
	for _, name := range names {
		reason := "it is not in storage.cfg"
		if i := slices.IndexFunc(rows, func(r Storage) bool { return r.Storage == name }); i >= 0 {
			if rows[i].State != StorageDisabled && rows[i].State != StorageElsewhere {
				continue
			}
			reason = "it is " + rows[i].Reason
		}
		f = append(f, h.j.Find("STORAGE_INACTIVE", Warning, h.at("storage", h.r.Node, Clean(name)), Clean(name)+" holds disks of the guest, but its node may not use it", Evidence{Name: "reason", Value: reason}, Evidence{Name: "guest", Value: fmt.Sprint(h.r.VMID)}))
	}
	return f
}

func (h *health) snapshots() {
	if h.Look.Config == nil {
		h.check("snapshots", "the configuration was not read")
		return
	}
	sum := &HealthSnapshots{Count: len(h.HealthView.Snapshots)}
	for _, s := range h.HealthView.Snapshots {
		if s.WithRAM {
			sum.WithRAM++
		}
		if s.CreatedAt != "" && (sum.OldestAt == "" || s.CreatedAt < sum.OldestAt) {
			sum.OldestAt = s.CreatedAt
		}
		sum.NewestAt = max(sum.NewestAt, s.CreatedAt)
	}
	h.r.Snapshots = sum
	h.check("snapshots", "", h.j.SnapshotFindings(h.subject(), h.HealthView.Snapshots, h.SnapshotBusy)...)
}

func (h *health) backup() {
	if h.Backup == nil {
		h.check("backup", "the backup storages' configuration was not read")
		return
	}
	v := *h.Backup
	archives := slices.DeleteFunc(v.Archives(), func(a Archive) bool { return a.VMID == nil || *a.VMID != h.r.VMID })
	v.KeepUnfinished(h.r.VMID)
	summaries := v.Summaries(archives)
	if len(summaries) != 1 {
		h.check("backup", "the guest is not listed")
		return
	}
	h.r.Backup = &HealthBackup{GuestBackups: summaries[0], Jobs: []HealthJob{}, ExcludedVolumes: []ExcludedVolume{}}
	unknown := ""
	cover := CoverOf(v.Jobs, JobGuest{h.r.VMID, h.r.Node, h.Look.Row.Pool})
	if summaries[0].Verdict == Unknown || summaries[0].NewestUnsure && !v.certain(cover, h.r.Node) {
		unknown = cmp.Or(mistakable(archives), "not every backup storage could be read: "+strings.Join(v.unreadNames(), ", "))
	}
	h.check("backup", unknown, h.j.BackupFindings(v, archives, summaries)...)
}

func (v BackupView) unreadNames() []string {
	var out []string
	for _, src := range v.Sources {
		if name := Clean(src.Storage); src.Content == nil && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}

func (h *health) coverage() {
	if !h.JobsRead || h.Look.Config == nil {
		h.check("coverage", "the backup jobs or the configuration were not read")
		return
	}
	cover := h.cover()
	excluded := Excluded(h.r.Type, h.Look.Config.Current)
	if h.r.Backup == nil {
		h.r.Backup = &HealthBackup{GuestBackups: GuestBackups{VMID: h.r.VMID, Name: h.r.Name, Verdict: Unknown}}
	}
	h.r.Backup.Passed, h.r.Backup.ExcludedVolumes = cover.Passed, excluded
	for _, job := range cover.Jobs {
		h.r.Backup.Jobs = append(h.r.Backup.Jobs, HealthJob{Clean(job.ID), Clean(cmp.Or(job.Schedule, strings.TrimSpace(job.DOW+" "+job.StartTime))), Clean(job.Storage), Clean(job.Mode)})
	}
	f := h.j.ExcludedFindings(h.subject(), excluded)
	if len(cover.Jobs) == 0 {
		severity := Info
		if h.r.Status == Running {
			severity = Warning
		}
		var evidence []Evidence
		for _, p := range cover.Passed {
			evidence = append(evidence, Evidence{Name: p.Job, Value: p.Reason})
		}
		f = append(f, h.j.Find("BACKUP_UNCOVERED", severity, h.subject(), "no enabled backup job takes the guest", evidence...))
	}
	h.check("coverage", "", f...)
}

// cover is what backup_coverage says of the jobs: one that cannot write is none.
func (h *health) cover() Cover {
	v := CoverageView{BackupView: BackupView{Jobs: h.Jobs}}
	if h.Storage != nil {
		v.Storages = h.Storage.Storages
	} else {
		return CoverOf(h.Jobs, JobGuest{h.r.VMID, h.r.Node, h.Look.Row.Pool})
	}
	if h.Backup != nil {
		v.Now = h.Backup.Now
		v.prepare()
	}
	return v.cover(Guest{VMID: h.r.VMID, Node: h.r.Node, Pool: h.Look.Row.Pool})
}

func (h *health) containers() {
	a := h.HealthView.Containers
	switch {
	case h.ContainersNotAsked != "":
		h.r.Containers = &HealthContainers{Status: agentNotAsked, Reason: h.ContainersNotAsked}
		h.r.Checks = append(h.r.Checks, HealthCheck{"containers", CheckNotAsked, h.ContainersNotAsked})
		return
	case a == nil:
		h.measured("containers")
		return
	}
	p := a.Place
	h.r.Containers = &HealthContainers{Status: p.Status, Reason: Clean(p.Reason), Runtime: p.Runtime, Containers: p.Containers, Running: p.Running}
	unknown := ""
	switch p.Status {
	case PlaceOK, PlaceDaemonStopped:
	case PlaceGuestStopped, PlaceNoDocker:
		h.skip("containers", Clean(cmp.Or(p.Reason, p.Status)))
		return
	default:
		unknown = Clean(cmp.Or(p.Reason, p.Status))
	}
	h.check("containers", unknown, merged(h.j.ContainerFindings([]RuntimeAnswer{*a}))...)
}

// merged makes one finding of several with the same code and severity, so that a
// guest with many containers does not hide its other findings.
func merged(all []*Finding) []*Finding {
	const named = 3
	var out []*Finding
	at := map[string]int{}
	count := map[string]int{}
	for _, f := range Findings(all...) {
		key := f.Code + string(f.Severity)
		count[key]++
		i, seen := at[key]
		switch {
		case !seen:
			at[key] = len(out)
			out = append(out, Ptr(f))
		case count[key] <= named:
			out[i].Message += "; " + f.Message
		}
	}
	for key, n := range count {
		f := out[at[key]]
		if n > 1 {
			f.Evidence = []Evidence{{Name: "times", Value: fmt.Sprint(n)}}
		}
		if n > named {
			f.Message += fmt.Sprintf("; and %d more", n-named)
		}
	}
	return out
}

const recentTasks = 48 * time.Hour

func (h *health) tasks() {
	if h.Look.Tasks == nil {
		h.check("tasks", "the node's tasks were not read")
		return
	}
	same := map[string]int{}
	first := map[string]parse.Task{}
	var types []string
	for _, t := range h.Look.Tasks {
		if t.VMID == nil || *t.VMID != h.r.VMID || t.Class != parse.TaskError || age(h.Now, t.Start) > recentTasks || isConsole(t.Type) {
			continue
		}
		if same[t.Type]++; same[t.Type] == 1 {
			first[t.Type] = t
			types = append(types, t.Type)
		}
		h.r.FailedTasks = append(h.r.FailedTasks, HealthTask{Clean(t.Type), At(t.Start), Clean(t.User), Clean(t.Status)})
	}
	var f []*Finding
	for _, kind := range types {
		severity := Warning
		if same[kind] >= 3 {
			severity = Critical
		}
		t := first[kind]
		f = append(f, h.j.Find("TASK_FAILED", severity, h.subject(), fmt.Sprintf("%s failed: %s", Clean(kind), Clean(t.Status)), Evidence{Name: "times in 48 h", Value: fmt.Sprint(same[kind])}, Evidence{Name: "last started", Value: At(t.Start)}))
	}
	h.check("tasks", "", f...)
}

func (h *health) trend() {
	switch {
	case !h.WantTrend:
	case h.History == nil:
		if h.measured("trend") {
			h.check("trend", "the node's history was not read")
		}
	default:
		if h.r.Trend = TrendOf(h.History); h.r.Trend == nil {
			h.check("trend", "nothing was measured in the last day")
			return
		}
		h.check("trend", "")
	}
}

// TrendOf sums up a history; nil when nothing in it was measured.
func TrendOf(points []parse.HistoryPoint) *Trend {
	points = slices.DeleteFunc(slices.Clone(points), func(p parse.HistoryPoint) bool { return !p.Measured() })
	if len(points) == 0 {
		return nil
	}
	first, last := points[0], points[len(points)-1]
	t := &Trend{From: At(first.Time.Unix()), To: At(last.Time.Unix())}
	step := stepOf(points)
	t.MeasuredS = int64(step/time.Second) * int64(len(points))
	t.CPUMeanRatio, t.CPUMaxRatio = meanMax(points, func(p parse.HistoryPoint) *float64 { return p.CPU })
	t.CPULastHourRatio = lastHour(points)
	mean, most := meanMax(points, func(p parse.HistoryPoint) *float64 { return p.Memory })
	t.MemoryMeanBytes, t.MemoryMaxBytes = rounded(mean), rounded(most)
	if first.Disk != nil && last.Disk != nil && *first.Disk > 0 {
		t.DiskChangeBytes = Ptr(int64(*last.Disk - *first.Disk))
	}
	_, t.IOPressureMax = meanMax(points, func(p parse.HistoryPoint) *float64 {
		if p.Pressure == nil {
			return nil
		}
		return p.Pressure.IOSome
	})
	return t
}

// stepOf is the time between points: the shortest that occurs.
func stepOf(points []parse.HistoryPoint) time.Duration {
	step := time.Duration(0)
	for i := 1; i < len(points); i++ {
		if d := points[i].Time.Sub(points[i-1].Time); d > 0 && (step == 0 || d < step) {
			step = d
		}
	}
	return step
}

func meanMax(points []parse.HistoryPoint, value func(parse.HistoryPoint) *float64) (mean, most *float64) {
	sum, n := 0.0, 0
	for _, p := range points {
		v := value(p)
		if v == nil {
			continue
		}
		sum, n = sum+*v, n+1
		if most == nil || *v > *most {
			most = v
		}
	}
	if n == 0 {
		return nil, nil
	}
	return Ptr(sum / float64(n)), most
}

// lastHour is the mean CPU share of the hour before the last measured point; nil
// when nothing was measured.
func lastHour(points []parse.HistoryPoint) *float64 {
	var end time.Time
	for _, p := range points {
		if p.Measured() && p.Time.After(end) {
			end = p.Time
		}
	}
	hour := slices.DeleteFunc(slices.Clone(points), func(p parse.HistoryPoint) bool { return end.Sub(p.Time) >= time.Hour })
	mean, _ := meanMax(hour, func(p parse.HistoryPoint) *float64 { return p.CPU })
	return mean
}

func rounded(f *float64) *int64 {
	if f == nil {
		return nil
	}
	return Ptr(int64(*f))
}

// Tables shows the health to people.
func (r *GuestHealth) Tables() []Table {
	checks := Table{Title: fmt.Sprintf("%s %d %s on %s: %s, verdict %s", r.Type, r.VMID, r.Name, r.Node, r.Status, r.Verdict), Columns: []string{"check", "result", "why"}}
	for _, c := range r.Checks {
		checks.Rows = append(checks.Rows, []string{c.Check, c.Result, c.Reason})
	}
	facts := Table{Columns: []string{"what", "value"}}
	add := func(name, value string) {
		if value != "" {
			facts.Rows = append(facts.Rows, []string{name, value})
		}
	}
	add("up", Seconds(r.UptimeS))
	add("cpu", Percent(r.CPURatio))
	if r.MemoryUsedBytes != nil {
		add("memory", share(Bytes(r.MemoryUsedBytes), Bytes(r.MemoryTotalBytes), memoryWords[r.MemorySource]))
	}
	for _, f := range r.Filesystems {
		add("disk "+f.MountPoint, share(Bytes(f.UsedBytes), Bytes(f.TotalBytes), Percent(f.UsedRatio)))
	}
	if s := r.Snapshots; s != nil {
		add("snapshots", strings.TrimSpace(fmt.Sprintf("%d %s", s.Count, oldest(s.OldestAt))))
	}
	if b := r.Backup; b != nil {
		add("newest backup", share(cmp.Or(b.NewestAt, b.Verdict), b.NewestStorage, Seconds(b.NewestAgeS)))
		for _, j := range b.Jobs {
			add("backup job", strings.TrimSpace(j.Job+" "+j.Schedule+" to "+j.Storage))
		}
		for _, p := range b.Passed {
			add("not by job", p.Job+": "+p.Reason)
		}
	}
	if c := r.Containers; c != nil && c.Containers != nil && c.Running != nil {
		add("containers", fmt.Sprintf("%d, %d running", *c.Containers, *c.Running))
	}
	for _, s := range r.Storages {
		add("storage "+s.Storage, share(s.State, "", Percent(s.UsedRatio)))
	}
	for _, t := range r.FailedTasks {
		add("failed task", t.StartedAt+" "+t.Type+": "+t.Status)
	}
	if t := r.Trend; t != nil {
		add("last day", fmt.Sprintf("cpu mean %s, most %s, last hour %s; memory most %s; measured %s", Percent(t.CPUMeanRatio), Percent(t.CPUMaxRatio), Percent(t.CPULastHourRatio), Bytes(t.MemoryMaxBytes), Seconds(&t.MeasuredS)))
	}
	return append(append([]Table{checks}, findingTable(r.Findings, r.MoreFindings)...), facts)
}

func oldest(at string) string {
	if at == "" {
		return ""
	}
	return "(oldest " + at + ")"
}
