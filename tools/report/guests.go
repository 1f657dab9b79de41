package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pvelens/tools/parse"
)

// The words for a guest's state in lists.
const (
	Running = "running"
	Stopped = "stopped"
	Unknown = "unknown"
)

// A Guest is one row of list_guests. In a concise row only what identifies the
// guest and what is set stands. Numbers are as pvestatd measured them at most
// five minutes ago; a VM's used disk is never measured there. LastStatus is the
// state last reported by a node that the cluster now calls offline.
type Guest struct {
	VMID       int      `json:"vmid"`
	Name       string   `json:"name,omitempty"`
	Type       string   `json:"type"`
	Node       string   `json:"node"`
	Cluster    string   `json:"cluster,omitempty"`
	Status     string   `json:"status"`
	LastStatus string   `json:"last_status,omitempty"`
	Template   bool     `json:"template,omitempty"`
	Tags       []string `json:"tags,omitempty"`
	Pool       string   `json:"pool,omitempty"`
	Lock       string   `json:"lock,omitempty"`
	HAState    string   `json:"ha_state,omitempty"`

	CPUCount         *float64 `json:"cpu_count,omitempty"`
	CPURatio         *float64 `json:"cpu_ratio,omitempty"`
	MemoryUsedBytes  *int64   `json:"memory_used_bytes,omitempty"`
	MemoryTotalBytes *int64   `json:"memory_total_bytes,omitempty"`
	DiskUsedBytes    *int64   `json:"disk_used_bytes,omitempty"`
	DiskTotalBytes   *int64   `json:"disk_total_bytes,omitempty"`
	UptimeS          *int64   `json:"uptime_s,omitempty"`
}

// GuestList is the answer of list_guests.
type GuestList struct {
	Answer
	Items []Guest `json:"items"`
	Page
}

// A ClusterView is what the guests' rows of one cluster are made from: the
// state, and what else was read; a part that was not read is nil.
type ClusterView struct {
	Name    string // "" leaves the cluster out of the rows
	State   *parse.State
	Configs []parse.GuestConfig
	Pools   map[int]string    // pool by VMID
	HA      map[string]string // HA state by service, such as ct:101
	// Live holds states that were read from the nodes themselves, where
	// pvestatd reports none.
	Live map[int]string
}

// Guests returns a row for every guest of a cluster, by VMID, with numbers if
// detailed. A guest of a node that the cluster calls offline is unknown, and so
// is one that nothing is reported of.
func Guests(v ClusterView, detailed bool) []Guest {
	configs := map[int]*parse.GuestConfig{}
	for i := range v.Configs {
		configs[v.Configs[i].VMID] = &v.Configs[i]
	}
	rows := make([]Guest, 0, len(v.State.Guests))
	for _, ref := range v.State.Guests {
		rows = append(rows, guest(v, ref, configs[ref.VMID], detailed))
	}
	slices.SortFunc(rows, func(a, b Guest) int { return cmp.Compare(a.VMID, b.VMID) })
	return rows
}

func guest(v ClusterView, ref parse.GuestRef, cfg *parse.GuestConfig, detailed bool) Guest {
	g := Guest{VMID: ref.VMID, Type: ref.Type, Node: ref.Node, Cluster: v.Name, Status: Unknown, Pool: Clean(v.Pools[ref.VMID])}
	rrd, reported := v.State.RRD.Guests[ref.VMID]
	if reported {
		g.Name = Clean(rrd.Name)
		g.Template = rrd.Template != nil && *rrd.Template
		g.Status = GuestState(rrd.Status)
	}
	if live := v.Live[ref.VMID]; live != "" {
		g.Status = live
	}
	if cfg != nil {
		if cfg.Current.Name != "" {
			g.Name = Clean(cfg.Current.Name)
		} else if g.Name == "" {
			g.Name = unnamed(ref)
		}
		g.Template = cfg.Current.Template
		g.Lock = Clean(cfg.Current.Lock)
		for _, t := range cfg.Current.Tags {
			g.Tags = append(g.Tags, Clean(t))
		}
	}
	g.HAState = Clean(v.HA[haID(ref)])
	offline := Offline(v.State, ref.Node)
	if offline {
		if g.Status != Unknown {
			g.LastStatus = g.Status
		}
		g.Status = Unknown
	}
	if detailed && reported && !offline {
		g.numbers(rrd)
	}
	return g
}

// numbers fills in what pvestatd measured; nothing is measured of a guest that
// does not run but its configured size.
func (g *Guest) numbers(r parse.RRDGuest) {
	g.CPUCount, g.MemoryTotalBytes, g.DiskTotalBytes = r.CPUs, r.MemMax, positive(r.DiskMax)
	if g.Status != Running {
		return
	}
	g.CPURatio, g.MemoryUsedBytes, g.UptimeS = r.CPU, positive(r.Mem), r.Uptime
	if g.Type == "lxc" {
		g.DiskUsedBytes = r.Disk
	}
}

func positive(n *int64) *int64 {
	if n == nil || *n <= 0 {
		return nil
	}
	return n
}

// unnamed is how Proxmox shows a guest without a name.
func unnamed(ref parse.GuestRef) string {
	if ref.Type == "qemu" {
		return fmt.Sprintf("VM %d", ref.VMID)
	}
	return fmt.Sprintf("CT%d", ref.VMID)
}

func haID(ref parse.GuestRef) string {
	if ref.Type == "qemu" {
		return fmt.Sprintf("vm:%d", ref.VMID)
	}
	return fmt.Sprintf("ct:%d", ref.VMID)
}

// Offline reports whether the cluster says that a node is offline. What a member
// without quorum says of others counts too: it cannot see them. What it says of
// itself does not: it answered.
func Offline(st *parse.State, node string) bool {
	if node == st.Members.Node {
		return false
	}
	for _, m := range st.Members.Nodes {
		if m.Name == node {
			return m.Online != nil && !*m.Online
		}
	}
	return false
}

// A GuestFilter chooses rows; an empty field chooses all. Tag and Name compare
// without regard to case, Name as a part of the name.
type GuestFilter struct {
	Node, Type, Status, Tag, Pool, Name string
	Template                            *bool
}

// Keep returns the rows that the filter chooses.
func (f GuestFilter) Keep(rows []Guest) []Guest {
	return slices.DeleteFunc(rows, func(g Guest) bool {
		return f.Node != "" && g.Node != f.Node ||
			f.Type != "" && g.Type != f.Type ||
			f.Status != "" && g.Status != f.Status ||
			f.Pool != "" && g.Pool != f.Pool ||
			f.Template != nil && g.Template != *f.Template ||
			f.Tag != "" && !slices.ContainsFunc(g.Tags, func(t string) bool { return strings.EqualFold(t, f.Tag) }) ||
			f.Name != "" && !strings.Contains(strings.ToLower(g.Name), strings.ToLower(f.Name))
	})
}

// Tables shows the guests to people.
func (l *GuestList) Tables() []Table {
	several := slices.ContainsFunc(l.Items, func(g Guest) bool { return g.Cluster != "" })
	detailed := slices.ContainsFunc(l.Items, func(g Guest) bool { return g.CPUCount != nil || g.MemoryTotalBytes != nil })
	t := Table{Columns: []string{">vmid", "name", "type", "node", "status", "tags", "pool", "lock", "notes"}}
	if several {
		t.Columns = append(t.Columns, "cluster")
	}
	if detailed {
		t.Columns = append(t.Columns, ">cpu", ">memory", ">of", ">disk", ">of", ">up")
	}
	for _, g := range l.Items {
		var notes []string
		if g.Template {
			notes = append(notes, "template")
		}
		if g.LastStatus != "" {
			notes = append(notes, "last seen "+g.LastStatus)
		}
		if g.HAState != "" {
			notes = append(notes, "HA "+g.HAState)
		}
		row := []string{fmt.Sprint(g.VMID), g.Name, g.Type, g.Node, g.Status, strings.Join(g.Tags, ","), g.Pool, g.Lock, strings.Join(notes, ", ")}
		if several {
			row = append(row, g.Cluster)
		}
		if detailed {
			row = append(row, Percent(g.CPURatio), Bytes(g.MemoryUsedBytes), Bytes(g.MemoryTotalBytes), Bytes(g.DiskUsedBytes), Bytes(g.DiskTotalBytes), Seconds(g.UptimeS))
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, l.Page.note("guests"))
	return []Table{t}
}

// note says which part of a list is shown.
func (p Page) note(what string) string {
	switch {
	case p.Next != nil:
		return fmt.Sprintf("%d of %d %s; more with --offset %d", p.Returned, p.Total, what, *p.Next)
	case p.Truncated:
		return fmt.Sprintf("%d of %d %s", p.Returned, p.Total, what)
	}
	return fmt.Sprintf("%d %s", p.Total, what)
}
