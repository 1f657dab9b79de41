package report

import (
	"cmp"
	"fmt"
	"slices"

	"pvelens/tools/parse"
)

// A Node is one row of list_nodes. Online is absent where the cluster cannot
// tell. Numbers are as the node's pvestatd measured them at most five minutes
// ago; used memory counts the ZFS cache, which get_node_capacity takes apart.
type Node struct {
	Node             string   `json:"node"`
	Cluster          string   `json:"cluster,omitempty"`
	SSHDestination   string   `json:"ssh_destination,omitempty"`
	Online           *bool    `json:"online,omitempty"`
	Address          string   `json:"address,omitempty"`
	PVEVersion       string   `json:"pve_version,omitempty"`
	CPUCount         *int64   `json:"cpu_count,omitempty"`
	CPURatio         *float64 `json:"cpu_ratio,omitempty"`
	MemoryUsedBytes  *int64   `json:"memory_used_bytes,omitempty"`
	MemoryTotalBytes *int64   `json:"memory_total_bytes,omitempty"`
	RootfsUsedBytes  *int64   `json:"rootfs_used_bytes,omitempty"`
	RootfsTotalBytes *int64   `json:"rootfs_total_bytes,omitempty"`
	UptimeS          *int64   `json:"uptime_s,omitempty"`
	Guests           int      `json:"guests"`
}

// NodeList is the answer of list_nodes. Quorate is absent without a cluster, or
// with several.
type NodeList struct {
	Answer
	Quorate *bool  `json:"quorate,omitempty"`
	Items   []Node `json:"items"`
	Page
}

// Nodes returns a row for every node of a cluster, by name. destinations are
// the SSH destinations by node; versions those that were read.
func Nodes(v ClusterView, destinations, versions map[string]string) []Node {
	names := NodeNames(v.State)
	guests := map[string]int{}
	for _, g := range v.State.Guests {
		guests[g.Node]++
	}
	rows := make([]Node, 0, len(names))
	for _, name := range names {
		n := Node{Node: name, Cluster: v.Name, SSHDestination: destinations[name], PVEVersion: Clean(versions[name]), Guests: guests[name]}
		n.Online, n.Address = membership(v.State, name)
		if r, ok := v.State.RRD.Nodes[name]; ok && (n.Online == nil || *n.Online) {
			n.CPUCount, n.CPURatio, n.UptimeS = r.CPUs, r.CPU, r.Uptime
			n.MemoryUsedBytes, n.MemoryTotalBytes = r.MemUsed, r.MemTotal
			n.RootfsUsedBytes, n.RootfsTotalBytes = r.RootUsed, r.RootTotal
		}
		rows = append(rows, n)
	}
	return rows
}

// NodeNames are the nodes of a cluster, sorted; of a lone node its own name.
func NodeNames(st *parse.State) []string {
	names := []string{}
	for _, m := range st.Members.Nodes {
		names = append(names, m.Name)
	}
	if len(names) == 0 {
		names = append(names, st.Members.Node)
	}
	slices.SortFunc(names, cmp.Compare[string])
	return names
}

// membership says whether a node is online. A member without quorum sees
// nothing beyond its partition, so of others it cannot tell.
func membership(st *parse.State, node string) (online *bool, address string) {
	if st.Members.Cluster == nil || node == st.Members.Node {
		online = Ptr(true)
	}
	for _, m := range st.Members.Nodes {
		if m.Name != node {
			continue
		}
		address = Clean(m.IP)
		if online == nil && (Quorate(st) || m.Online != nil && *m.Online) {
			online = m.Online
		}
	}
	return online, address
}

// Quorate reports whether the member that answered is part of the majority; a
// lone node is.
func Quorate(st *parse.State) bool {
	c := st.Members.Cluster
	return c == nil || c.Quorate == nil || *c.Quorate
}

// Tables shows the nodes to people.
func (l *NodeList) Tables() []Table {
	t := Table{Columns: []string{"node", "ssh", "online", "pve", ">cpus", ">cpu", ">memory", ">of", ">rootfs", ">of", ">up", ">guests"}}
	several := slices.ContainsFunc(l.Items, func(n Node) bool { return n.Cluster != "" })
	if several {
		t.Columns = append(t.Columns, "cluster")
	}
	for _, n := range l.Items {
		cpus := ""
		if n.CPUCount != nil {
			cpus = fmt.Sprint(*n.CPUCount)
		}
		row := []string{n.Node, n.SSHDestination, YesNo(n.Online), n.PVEVersion, cpus, Percent(n.CPURatio), Bytes(n.MemoryUsedBytes), Bytes(n.MemoryTotalBytes),
			Bytes(n.RootfsUsedBytes), Bytes(n.RootfsTotalBytes), Seconds(n.UptimeS), fmt.Sprint(n.Guests)}
		if several {
			row = append(row, n.Cluster)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, l.Page.note("nodes"))
	if l.Quorate != nil && !*l.Quorate {
		t.Notes = append(t.Notes, "The cluster has no quorum: nothing can be started or changed, and what other nodes do is not known.")
	}
	return []Table{t}
}

// YesNo renders a flag that may be unknown.
func YesNo(b *bool) string {
	switch {
	case b == nil:
		return "unknown"
	case *b:
		return "yes"
	}
	return "no"
}
