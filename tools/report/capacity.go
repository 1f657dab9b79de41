package report

import (
	"fmt"
	"math"
	"strings"

	"pvelens/tools/parse"
)

// Capacity is what one node has and what is left of it. Sizes are bytes.
//
// MemoryUsedBytes is what Proxmox shows: it counts the ZFS cache as used.
// MemoryUsedWithoutCacheBytes leaves out the part of that cache that the kernel
// gives back; it is absent where the cache's size is not known. Pressures are
// percent of the last 10 seconds, loads the kernel's averages. Configured sizes
// sum over the running guests; ratios hold them against the node.
type Capacity struct {
	Node           string `json:"node"`
	Cluster        string `json:"cluster,omitempty"`
	SSHDestination string `json:"ssh_destination,omitempty"`
	Online         *bool  `json:"online,omitempty"`
	Kernel         string `json:"kernel,omitempty"`
	TimeZone       string `json:"time_zone,omitempty"`
	UptimeS        *int64 `json:"uptime_s,omitempty"`

	CPUCount    *int64   `json:"cpu_count,omitempty"`
	CPURatio    *float64 `json:"cpu_ratio,omitempty"`
	IOWaitRatio *float64 `json:"io_wait_ratio,omitempty"`
	Load1       *float64 `json:"load_1,omitempty"`
	Load5       *float64 `json:"load_5,omitempty"`
	Load15      *float64 `json:"load_15,omitempty"`

	MemoryTotalBytes            *int64 `json:"memory_total_bytes,omitempty"`
	MemoryUsedBytes             *int64 `json:"memory_used_bytes,omitempty"`
	MemoryAvailableBytes        *int64 `json:"memory_available_bytes,omitempty"`
	MemoryUsedWithoutCacheBytes *int64 `json:"memory_used_without_cache_bytes,omitempty"`
	ZFSCacheBytes               *int64 `json:"zfs_cache_bytes,omitempty"`
	ZFSCacheMinBytes            *int64 `json:"zfs_cache_min_bytes,omitempty"`
	ZFSCacheMaxBytes            *int64 `json:"zfs_cache_max_bytes,omitempty"`
	MemoryNote                  string `json:"memory_note,omitempty"`
	SwapTotalBytes              *int64 `json:"swap_total_bytes,omitempty"`
	SwapUsedBytes               *int64 `json:"swap_used_bytes,omitempty"`

	RootfsTotalBytes     *int64 `json:"rootfs_total_bytes,omitempty"`
	RootfsUsedBytes      *int64 `json:"rootfs_used_bytes,omitempty"`
	RootfsAvailableBytes *int64 `json:"rootfs_available_bytes,omitempty"`

	PressureCPU *float64 `json:"pressure_cpu,omitempty"`
	PressureIO  *float64 `json:"pressure_io,omitempty"`
	PressureMem *float64 `json:"pressure_memory,omitempty"`

	GuestsTotal             int      `json:"guests_total"`
	GuestsRunning           *int     `json:"guests_running,omitempty"`
	ConfiguredCPUs          *float64 `json:"configured_cpus,omitempty"`
	ConfiguredMemoryBytes   *int64   `json:"configured_memory_bytes,omitempty"`
	CPUOvercommitRatio      *float64 `json:"cpu_overcommit_ratio,omitempty"`
	MemoryOvercommitRatio   *float64 `json:"memory_overcommit_ratio,omitempty"`
	MemoryForNewGuestsBytes *int64   `json:"memory_for_new_guests_bytes,omitempty"`

	Findings []Finding `json:"findings"`
}

// CapacityList is the answer of get_node_capacity.
type CapacityList struct {
	Answer
	Items []Capacity `json:"items"`
	Page
}

// NodeView is what was read of one node; what was not is nil.
type NodeView struct {
	Cluster     ClusterView
	Node        string
	Destination string
	Proc        *parse.NodeProc
	Filesystems []parse.NodeFilesystem
}

// NodeCapacity builds one node's capacity from what its pvestatd reported and
// what was read on it.
func NodeCapacity(v NodeView, j Judge) Capacity {
	c := Capacity{Node: v.Node, Cluster: v.Cluster.Name, SSHDestination: v.Destination}
	c.Online, _ = membership(v.Cluster.State, v.Node)
	if c.Online == nil || *c.Online {
		if r, ok := v.Cluster.State.RRD.Nodes[v.Node]; ok {
			c.reported(r)
		}
		c.measured(v)
		c.guests(v.Cluster, v.Node)
	}
	for _, g := range v.Cluster.State.Guests {
		if g.Node == v.Node {
			c.GuestsTotal++
		}
	}
	c.Findings = Findings(c.judge(j)...)
	return c
}

// reported fills in what pvestatd sent to the whole cluster.
func (c *Capacity) reported(r parse.RRDNode) {
	c.UptimeS, c.CPUCount, c.CPURatio, c.IOWaitRatio, c.Load1 = r.Uptime, r.CPUs, r.CPU, r.IOWait, r.Load1
	c.MemoryTotalBytes, c.MemoryUsedBytes, c.MemoryAvailableBytes = r.MemTotal, r.MemUsed, r.MemAvailable
	c.SwapTotalBytes, c.SwapUsedBytes = r.SwapTotal, r.SwapUsed
	c.RootfsTotalBytes, c.RootfsUsedBytes = r.RootTotal, r.RootUsed
	c.ZFSCacheBytes = positive(r.ARCSize)
	c.PressureCPU, c.PressureIO, c.PressureMem = r.PressureCPUSome, r.PressureIOSome, r.PressureMemSome
}

// measured fills in what was read on the node itself.
func (c *Capacity) measured(v NodeView) {
	for _, f := range v.Filesystems {
		if f.Target == "/" {
			c.RootfsTotalBytes, c.RootfsUsedBytes, c.RootfsAvailableBytes = f.Size, f.Used, f.Available
		}
	}
	p := v.Proc
	if p == nil {
		switch {
		case c.MemoryUsedBytes == nil:
		case c.ZFSCacheBytes != nil:
			c.MemoryNote = cacheNotApart
		default:
			c.MemoryNote = "used memory may include ZFS cache, amount unknown"
		}
		return
	}
	c.Kernel, c.TimeZone = Clean(p.Kernel), Clean(p.TimeZone)
	if p.Uptime != nil {
		c.UptimeS = Ptr(int64(*p.Uptime))
	}
	if l := p.Load; l != nil {
		c.Load1, c.Load5, c.Load15 = &l.One, &l.Five, &l.Fifteen
	}
	if p.CPU != nil && p.CPU.CPUs > 0 {
		c.CPUCount = Ptr(int64(p.CPU.CPUs))
	}
	if m := p.Memory; m != nil && m.Total != nil {
		c.MemoryTotalBytes, c.MemoryAvailableBytes = m.Total, m.Available
		if m.Available != nil {
			c.MemoryUsedBytes = Ptr(*m.Total - *m.Available)
		}
		if m.SwapTotal != nil && m.SwapFree != nil {
			c.SwapTotalBytes, c.SwapUsedBytes = m.SwapTotal, Ptr(*m.SwapTotal-*m.SwapFree)
		}
	}
	c.cache(p.ARC)
	for _, x := range []struct {
		to  **float64
		psi *parse.PSI
	}{{&c.PressureCPU, p.CPUPressure}, {&c.PressureIO, p.IOPressure}, {&c.PressureMem, p.MemPressure}} {
		if x.psi != nil && x.psi.Some != nil {
			*x.to = Ptr(x.psi.Some.Avg10)
		}
	}
}

const cacheNotApart = "used memory includes the ZFS cache; how much of that the kernel gives back is unknown"

// cache takes the ZFS cache apart: what is above its minimum, the kernel gives
// back, though not at once.
func (c *Capacity) cache(a *parse.ARC) {
	if (a == nil || a.Size == nil) && c.ZFSCacheBytes != nil {
		c.MemoryNote = cacheNotApart
		return
	}
	if a == nil || a.Size == nil { // no ZFS here
		c.MemoryUsedWithoutCacheBytes = c.MemoryUsedBytes
		return
	}
	c.ZFSCacheBytes, c.ZFSCacheMinBytes, c.ZFSCacheMaxBytes = a.Size, a.Min, a.Max
	if c.MemoryUsedBytes == nil {
		return
	}
	least := int64(0)
	if a.Min != nil {
		least = *a.Min
	}
	c.MemoryUsedWithoutCacheBytes = Ptr(*c.MemoryUsedBytes - max(0, *a.Size-least))
}

// guests sums what the running guests are configured for. It is unknown when the
// state of one of them is.
func (c *Capacity) guests(v ClusterView, node string) {
	running, known := 0, true
	cpus, memory := 0.0, int64(0)
	for _, g := range Guests(v, true) {
		if g.Node != node {
			continue
		}
		known = known && g.Status != Unknown
		if g.Status != Running {
			continue
		}
		running++
		if g.CPUCount == nil || g.MemoryTotalBytes == nil {
			known = false
			continue
		}
		cpus += *g.CPUCount
		memory += *g.MemoryTotalBytes
	}
	if !known {
		return
	}
	c.GuestsRunning, c.ConfiguredCPUs, c.ConfiguredMemoryBytes = &running, &cpus, &memory
	if c.CPUCount != nil && *c.CPUCount > 0 {
		c.CPUOvercommitRatio = Ptr(round(cpus / float64(*c.CPUCount)))
	}
	if c.MemoryTotalBytes != nil && *c.MemoryTotalBytes > 0 {
		c.MemoryOvercommitRatio = Ptr(round(float64(memory) / float64(*c.MemoryTotalBytes)))
	}
	if c.MemoryTotalBytes != nil && c.MemoryUsedWithoutCacheBytes != nil {
		c.MemoryForNewGuestsBytes = Ptr(*c.MemoryTotalBytes - *c.MemoryUsedWithoutCacheBytes)
	}
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

func (c *Capacity) judge(j Judge) []*Finding {
	subject := "node/" + c.Node
	var out []*Finding
	measure := func(code, what, name string, value *float64) {
		if value != nil {
			out = append(out, j.Measure(code, subject, what, name, *value))
		}
	}
	if c.Online != nil && !*c.Online {
		return append(out, j.Find("NODE_OFFLINE", "", subject, "the cluster says that the node is offline"))
	}
	measure("NODE_MEM_HIGH", "memory is nearly full", "memory", percent(c.MemoryUsedWithoutCacheBytes, c.MemoryTotalBytes))
	measure("NODE_ARC_LARGE", "the ZFS cache may take much of the memory", "cache max", percent(c.ZFSCacheMaxBytes, c.MemoryTotalBytes))
	measure("NODE_SWAP_USED", "swap is used", "swap", percent(c.SwapUsedBytes, c.SwapTotalBytes))
	measure("NODE_ROOTFS_FULL", "the root filesystem is nearly full", "rootfs", c.rootfsPercent())
	measure("NODE_MEM_OVERCOMMIT", "running guests are configured for more memory than there is", "configured / memory", c.MemoryOvercommitRatio)
	measure("NODE_CPU_OVERCOMMIT", "running guests have many more cores than there are", "configured / cores", c.CPUOvercommitRatio)
	if c.IOWaitRatio != nil {
		measure("NODE_IO_WAIT", "the CPUs wait for disks", "I/O wait", Ptr(*c.IOWaitRatio*100))
	}
	measure("PRESSURE_CPU", "processes wait for the CPU", "avg10", c.PressureCPU)
	measure("PRESSURE_IO", "processes wait for disks", "avg10", c.PressureIO)
	measure("PRESSURE_MEM", "processes wait for memory", "avg10", c.PressureMem)
	return out
}

// rootfsPercent counts what only root may still write as used, as df does.
func (c *Capacity) rootfsPercent() *float64 {
	if c.RootfsUsedBytes != nil && c.RootfsAvailableBytes != nil {
		return percent(c.RootfsUsedBytes, Ptr(*c.RootfsUsedBytes+*c.RootfsAvailableBytes))
	}
	return percent(c.RootfsUsedBytes, c.RootfsTotalBytes)
}

func percent(part, whole *int64) *float64 {
	if part == nil || whole == nil || *whole <= 0 {
		return nil
	}
	return Ptr(100 * float64(*part) / float64(*whole))
}

// Tables shows the capacities to people, a table a node.
func (l *CapacityList) Tables() []Table {
	out := []Table{}
	for _, c := range l.Items {
		t := Table{Title: c.Node, Columns: []string{"what", ">used", ">of", "notes"}}
		if c.Online != nil && !*c.Online {
			t.Title += " (offline)"
		}
		row := func(cells ...string) {
			if strings.Join(cells[1:], "") != "" {
				t.Rows = append(t.Rows, cells)
			}
		}
		row("cpu", Percent(c.CPURatio), num(c.CPUCount, "cores"), join("load", float(c.Load1), float(c.Load5), float(c.Load15)))
		row("memory", Bytes(c.MemoryUsedBytes), Bytes(c.MemoryTotalBytes), c.MemoryNote)
		if c.ZFSCacheBytes != nil {
			row("  without ZFS cache", Bytes(c.MemoryUsedWithoutCacheBytes), Bytes(c.MemoryTotalBytes), "cache "+Bytes(c.ZFSCacheBytes)+", at least "+Bytes(c.ZFSCacheMinBytes))
		}
		row("swap", Bytes(c.SwapUsedBytes), Bytes(c.SwapTotalBytes), "")
		row("rootfs", Bytes(c.RootfsUsedBytes), Bytes(c.RootfsTotalBytes), "")
		running := ""
		if c.GuestsRunning != nil {
			running = fmt.Sprint(*c.GuestsRunning)
		}
		row("guests running", running, fmt.Sprint(c.GuestsTotal), "")
		row("configured cores", float(c.ConfiguredCPUs), num(c.CPUCount, "cores"), ratio(c.CPUOvercommitRatio))
		row("configured memory", Bytes(c.ConfiguredMemoryBytes), Bytes(c.MemoryTotalBytes), ratio(c.MemoryOvercommitRatio))
		row("pressure", "", "", join("cpu", float(c.PressureCPU))+join(" io", float(c.PressureIO))+join(" memory", float(c.PressureMem)))
		t.Notes = append(t.Notes, findingLines(c.Findings)...)
		out = append(out, t)
	}
	if l.Truncated {
		out = append(out, Table{Notes: []string{l.Page.note("nodes")}})
	}
	return out
}

func num(n *int64, unit string) string {
	if n == nil {
		return ""
	}
	return fmt.Sprintf("%d %s", *n, unit)
}

func float(f *float64) string {
	if f == nil {
		return ""
	}
	return Number(*f)
}

func ratio(f *float64) string {
	if f == nil {
		return ""
	}
	return Number(*f) + " times"
}

func join(name string, values ...string) string {
	var have []string
	for _, v := range values {
		if v != "" {
			have = append(have, v)
		}
	}
	if have == nil {
		return ""
	}
	return name + " " + strings.Join(have, " ")
}

// findingLines shows findings to people, a line each.
func findingLines(fs []Finding) []string {
	var out []string
	for _, f := range fs {
		line := fmt.Sprintf("%-8s %s  %s: %s", f.Severity, f.Code, f.Subject, f.Message)
		if len(f.Evidence) > 0 {
			line += fmt.Sprintf(" (%s %s%s", f.Evidence[0].Name, f.Evidence[0].Value, unit(f.Evidence[0].Unit))
			if f.Threshold != "" {
				line += ", limit " + f.Threshold
			}
			line += ")"
		}
		out = append(out, line)
	}
	return out
}

func unit(u string) string {
	if u == "" {
		return ""
	}
	return " " + u
}
