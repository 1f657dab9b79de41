package parse

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Resources is the cluster as pvestatd last wrote it, at most ten seconds ago.
type Resources struct {
	Guests   []ResourceGuest   // by VMID
	Nodes    []ResourceNode    // by name
	Storages []ResourceStorage // by node, then name
	Pools    []string          // sorted
}

// A ResourceGuest is one guest's row. Numbers stand only where they were
// measured: status is "running".
type ResourceGuest struct {
	VMID     int
	Type     string // lxc or qemu
	Node     string
	Name     string // "" when nothing fresh is known
	Status   string // running, stopped, …; "unknown" when nothing fresh is known
	Template bool
	Tags     []string // sorted
	Lock     string
	Pool     string
	HAState  string // "" when not under HA

	CPUs        *float64
	CPU         *float64 // share of CPUs, 0..1
	Memory      *int64   // bytes, as the guest sees them
	MemoryHost  *int64   // bytes on the host; VMs, PVE 9
	MemoryTotal *int64   // bytes, configured
	Disk        *int64   // bytes; nil for VMs, which Proxmox does not measure
	DiskTotal   *int64   // bytes
	NetIn       *int64   // bytes since the start
	NetOut      *int64
	DiskRead    *int64
	DiskWrite   *int64
	Uptime      *int64 // seconds
}

// A ResourceNode is one node's row. Numbers stand only where status is "online".
type ResourceNode struct {
	Name        string
	Status      string // online, offline, unknown
	CPUs        *float64
	CPU         *float64 // share, 0..1
	Memory      *int64
	MemoryTotal *int64
	Disk        *int64
	DiskTotal   *int64
	Uptime      *int64
}

// A ResourceStorage is one storage as one node sees it.
type ResourceStorage struct {
	Name    string
	Node    string
	Type    string // dir, nfs, zfspool, …
	Status  string // available or unknown
	Shared  bool
	Content []string // sorted
	Used    *int64   // bytes; nil unless available
	Total   *int64
}

// ClusterResources reads /cluster/resources of pvesh (PVE 7 to 9):
//
//	[{"cpu":0,"disk":2109440,"id":"lxc/101","maxcpu":2,"maxdisk":8350298112,"maxmem":536870912,"mem":425984,"name":"web-proxy","node":"pve1","status":"running","tags":"dmz;prod;web","template":0,"type":"lxc","uptime":2221,"vmid":101}]
//
// Rows of pools, SDN and networks are no guests. A row without its identity is
// left out and noted.
func ClusterResources(out []byte) (Resources, []Note, error) {
	r := Resources{Guests: []ResourceGuest{}, Nodes: []ResourceNode{}, Storages: []ResourceStorage{}, Pools: []string{}}
	rows, notes, err := jsonList("cluster resources", out)
	if err != nil {
		return r, nil, err
	}
	typed := false
	for _, o := range rows {
		typed = r.add(o) || typed
	}
	if len(rows) > 0 && !typed {
		return r, nil, fmt.Errorf("cluster resources: want %q in the rows", "type")
	}
	r.sort()
	return r, *notes, nil
}

// add reports whether the row has a type, known or not.
func (r *Resources) add(o jsonObject) bool {
	kind := o.text("type")
	switch kind {
	case "lxc", "qemu", "openvz":
		r.addGuest(o, guestKindOf(kind))
	case "node":
		r.addNode(o)
	case "storage":
		r.addStorage(o)
	case "pool":
		if name := o.text("pool"); name != "" {
			r.Pools = append(r.Pools, name)
		}
	case "":
		o.note("type", "a resource type")
		return false
	}
	return true
}

func guestKindOf(kind string) string {
	if kind == "openvz" {
		return "lxc"
	}
	return kind
}

func (r *Resources) addGuest(o jsonObject, kind string) {
	vmid := guestNumber(o.integer("vmid"))
	if _, number, ok := strings.Cut(o.text("id"), "/"); vmid == nil && ok {
		vmid = guestNumber(parseInt(number))
	}
	if vmid == nil {
		o.note("vmid", "100..999999999")
		return
	}
	g := ResourceGuest{
		VMID: *vmid, Type: kind, Node: o.text("node"), Name: o.text("name"), Status: cmp.Or(o.text("status"), "unknown"),
		Template: o.yes("template"), Tags: tagList(o.text("tags")), Lock: o.text("lock"), Pool: o.text("pool"), HAState: o.text("hastate"),
		CPUs: o.number("maxcpu"), MemoryTotal: positive(o.integer("maxmem")), DiskTotal: positive(o.integer("maxdisk")),
	}
	if g.Status == "running" {
		g.measure(o)
	}
	r.Guests = append(r.Guests, g)
}

func (g *ResourceGuest) measure(o jsonObject) {
	g.CPU, g.Memory, g.Uptime = o.number("cpu"), nonNegative(o.integer("mem")), nonNegative(o.integer("uptime"))
	g.NetIn, g.NetOut = nonNegative(o.integer("netin")), nonNegative(o.integer("netout"))
	g.DiskRead, g.DiskWrite = nonNegative(o.integer("diskread")), nonNegative(o.integer("diskwrite"))
	if g.Type == "qemu" {
		g.MemoryHost = positive(o.integer("memhost"))
	} else {
		g.Disk = positive(o.integer("disk"))
	}
}

func (r *Resources) addNode(o jsonObject) {
	n := ResourceNode{Name: o.text("node"), Status: cmp.Or(o.text("status"), "unknown")}
	if n.Name == "" {
		o.note("node", "a name")
		return
	}
	if n.Status == "online" {
		n.CPUs, n.CPU, n.Uptime = o.number("maxcpu"), o.number("cpu"), nonNegative(o.integer("uptime"))
		n.Memory, n.MemoryTotal = nonNegative(o.integer("mem")), positive(o.integer("maxmem"))
		n.Disk, n.DiskTotal = nonNegative(o.integer("disk")), positive(o.integer("maxdisk"))
	}
	r.Nodes = append(r.Nodes, n)
}

func (r *Resources) addStorage(o jsonObject) {
	s := ResourceStorage{
		Name: o.text("storage"), Node: o.text("node"), Type: o.text("plugintype"), Status: cmp.Or(o.text("status"), "unknown"),
		Shared: o.yes("shared"), Content: o.texts("content"),
	}
	if s.Name == "" || s.Node == "" {
		o.note("storage", "a storage and its node")
		return
	}
	if s.Status == "available" {
		s.Used, s.Total = nonNegative(o.integer("disk")), positive(o.integer("maxdisk"))
	}
	r.Storages = append(r.Storages, s)
}

func (r *Resources) sort() {
	slices.SortFunc(r.Guests, func(a, b ResourceGuest) int { return cmp.Compare(a.VMID, b.VMID) })
	slices.SortFunc(r.Nodes, func(a, b ResourceNode) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(r.Storages, func(a, b ResourceStorage) int {
		return cmp.Or(strings.Compare(a.Node, b.Node), strings.Compare(a.Name, b.Name))
	})
	slices.Sort(r.Pools)
	r.Pools = slices.Compact(r.Pools)
}

// tagList splits tags, which the API joins with ";" and people with commas and
// blanks, into a sorted set.
func tagList(s string) []string {
	tags := splitFields(s, ";, \t")
	slices.Sort(tags)
	return slices.Compact(tags)
}
