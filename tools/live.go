package tools

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// live fills in what .rrd does not tell: numbers in a form that is not known,
// and the guests' states of a node whose pvestatd says nothing. Where .rrd tells
// everything it runs no command.
func (s *Session) live(c *cluster) {
	s.otherNumbers(c)
	s.strays(c)
	nodes := c.nodes()
	states := make([]map[int]string, len(nodes))
	parallel(nodes, func(i int, node string) {
		if !report.Offline(c.State, node) {
			states[i] = s.silent(c, node)
		}
	})
	for _, m := range states {
		for vmid, state := range m {
			if c.live == nil {
				c.live = map[int]string{}
			}
			c.live[vmid] = state
		}
	}
}

// strays says that guests are filed under a node that left the cluster: nobody
// knows what they do.
func (s *Session) strays(c *cluster) {
	nodes := c.nodes()
	for _, g := range c.State.Guests {
		if !slices.Contains(nodes, g.Node) {
			s.miss(g.Node, errorf(report.NotFound, "node %s is no member of its cluster: the states of its guests are unknown", g.Node).hint("left over from a node that was removed? Its folder under /etc/pve/nodes is still there"))
		}
	}
}

// liveOf is live for the node of one guest alone, and renews the guest's row.
func (s *Session) liveOf(inv *inventory, p *place) {
	c := p.cluster
	s.otherNumbers(c)
	if !slices.Contains(c.nodes(), p.Node) {
		s.strays(c)
	} else if !report.Offline(c.State, p.Node) {
		if c.live = s.silent(c, p.Node); c.live != nil {
			s.incomplete() // its numbers are pvestatd's
		}
	}
	for _, g := range report.Guests(c.view(inv), true) {
		if g.VMID == p.VMID {
			p.Guest = g
		}
	}
}

// otherNumbers asks pvesh for the resources when .rrd has key families that are
// not known and something is missing because of them.
func (s *Session) otherNumbers(c *cluster) {
	rrd := &c.State.RRD
	if c.filled || len(rrd.UnknownFamilies) == 0 || !c.lacks() {
		return
	}
	c.filled = true
	err := errorf(report.Unsupported, "/etc/pve/.rrd has key families that pvelens does not know: %s", strings.Join(cleanAll(rrd.UnknownFamilies), ", "))
	out, failed := s.ask(s.ctx, c.server, "resources")
	if failed == nil {
		r, notes, bad := parse.ClusterResources(out)
		if failed = bad; bad == nil {
			s.notes(c.server.name(), "resources", notes)
			fillRRD(rrd, r)
		}
	}
	if failed != nil {
		s.miss(c.server.name(), err.hint("resources, which would tell the same, failed: %s", AsError(failed).Message))
		return
	}
	s.note(c.server.name(), err.hint("names, states and numbers come from pvesh get /cluster/resources instead; a newer pvelens may know the families"))
}

// lacks reports whether a guest or a node that should be in .rrd is not, or
// whether storages are in a family of their own.
func (c *cluster) lacks() bool {
	rrd := c.State.RRD
	return slices.ContainsFunc(rrd.UnknownFamilies, func(f string) bool { return strings.Contains(f, "storage") }) ||
		slices.ContainsFunc(c.State.Guests, func(g parse.GuestRef) bool {
			_, ok := rrd.Guests[g.VMID]
			return !ok && !report.Offline(c.State, g.Node)
		}) ||
		slices.ContainsFunc(c.nodes(), func(n string) bool {
			_, ok := rrd.Nodes[n]
			return !ok && !report.Offline(c.State, n)
		})
}

// fillRRD adds what the resources tell and .rrd does not.
func fillRRD(rrd *parse.RRD, r parse.Resources) {
	for _, g := range r.Guests {
		if _, ok := rrd.Guests[g.VMID]; ok || g.Status == "" || g.Status == report.Unknown {
			continue
		}
		rrd.Guests[g.VMID] = parse.RRDGuest{
			VMID: g.VMID, Name: g.Name, Status: g.Status, Template: report.Ptr(g.Template), Uptime: g.Uptime, CPUs: g.CPUs, CPU: g.CPU,
			MemMax: g.MemoryTotal, Mem: g.Memory, MemHost: g.MemoryHost, DiskMax: g.DiskTotal, Disk: g.Disk,
			NetIn: g.NetIn, NetOut: g.NetOut, DiskRead: g.DiskRead, DiskWrite: g.DiskWrite,
		}
	}
	for _, n := range r.Nodes {
		if _, ok := rrd.Nodes[n.Name]; ok || n.Status != "online" || n.MemoryTotal == nil {
			continue // without numbers it is known to the cluster, and not reported
		}
		node := parse.RRDNode{Node: n.Name, CPU: n.CPU, MemTotal: n.MemoryTotal, MemUsed: n.Memory, RootTotal: n.DiskTotal, RootUsed: n.Disk, Uptime: n.Uptime}
		if n.CPUs != nil {
			node.CPUs = report.Ptr(int64(*n.CPUs))
		}
		rrd.Nodes[n.Name] = node
	}
	for _, st := range r.Storages {
		same := func(x parse.RRDStorage) bool { return x.Node == st.Node && x.Storage == st.Name }
		if st.Status == "available" && !slices.ContainsFunc(rrd.Storages, same) {
			rrd.Storages = append(rrd.Storages, parse.RRDStorage{Node: st.Node, Storage: st.Name, Total: st.Total, Used: st.Used})
		}
	}
	slices.SortFunc(rrd.Storages, func(a, b parse.RRDStorage) int {
		return cmp.Or(cmp.Compare(a.Node, b.Node), cmp.Compare(a.Storage, b.Storage))
	})
}

// A node whose row is older than this has a pvestatd that is dead or hangs; a
// round takes 10 s, with dead storages a minute.
const silentAfter = 3 * time.Minute

// unreported says that a node's pvestatd is silent: there is no row of the node
// in .rrd, or an old one; nil when it reports.
func (s *Session) unreported(c *cluster, node string) *Error {
	row, ok := c.State.RRD.Nodes[node]
	if empty := row.Time == nil && row.MemTotal == nil; ok && !empty && (row.Time == nil || !s.older(c, node, *row.Time, silentAfter)) {
		return nil
	}
	return errorf(report.Internal, "pvestatd on %s reports nothing", node)
}

// unmeasured says so of every node that is online, for answers that pvestatd's
// numbers are a part of; wanted chooses the nodes.
func (s *Session) unmeasured(c *cluster, what string, wanted func(node string) bool) {
	nodes := slices.DeleteFunc(c.nodes(), func(n string) bool { return !wanted(n) || report.Offline(c.State, n) })
	parallel(nodes, func(_ int, node string) {
		if err := s.unreported(c, node); err != nil {
			s.miss(node, err.hint("%s; on the node: systemctl restart pvestatd", what))
		}
	})
}

// silent returns the states of a node's guests that pvestatd does not report,
// from the node's own lists: of all when it says nothing, else of those that it
// leaves out. nil when none is missing.
func (s *Session) silent(c *cluster, node string) map[int]string {
	why := s.unreported(c, node)
	missing := c.stateless(node, why != nil)
	if len(missing) == 0 {
		return nil
	}
	if why == nil {
		why = errorf(report.Internal, "pvestatd on %s does not report guest %d (%d in all)", node, missing[0].VMID, len(missing))
	}
	e, err := c.at(node)
	if err != nil {
		s.miss(node, why.hint("the states of its guests are unknown: %s", AsError(err).Message))
		return nil
	}
	kinds := slices.DeleteFunc([]string{"lxc", "qemu"}, func(k string) bool {
		return !slices.ContainsFunc(missing, func(g parse.GuestRef) bool { return g.Type == k })
	})
	rows := make([]map[int]string, len(kinds))
	parallel(kinds, func(i int, kind string) {
		listed, err := s.listed(e, kind)
		if err != nil {
			s.miss(node, err)
		}
		rows[i] = listed
	})
	out := map[int]string{}
	for _, g := range missing {
		for _, m := range rows {
			if state := m[g.VMID]; state != "" && state != report.Unknown {
				out[g.VMID] = state
			}
		}
	}
	if s.Detailed || len(out) < len(missing) {
		s.incomplete()
	}
	told := "states come from pct list and qm list, numbers are unknown"
	if len(out) == 0 {
		told = "pct list and qm list tell no more, so states are unknown"
	}
	s.note(node, why.hint("%s; on the node: systemctl restart pvestatd", told))
	return out
}

// stateless are a node's guests whose state .rrd does not tell, or all of them.
func (c *cluster) stateless(node string, all bool) []parse.GuestRef {
	var out []parse.GuestRef
	for _, g := range c.State.Guests {
		if g.Node == node && (all || report.GuestState(c.State.RRD.Guests[g.VMID].Status) == report.Unknown) {
			out = append(out, g)
		}
	}
	return out
}

// listed returns the states that pct list or qm list shows.
func (s *Session) listed(e *entry, kind string) (map[int]string, error) {
	text, err := s.ask(s.ctx, e, kind+"-list")
	if err != nil {
		return nil, err
	}
	out := map[int]string{}
	if kind == "lxc" {
		rows, notes, err := parse.PctList(text)
		if err != nil {
			return nil, unread("lxc-list", err)
		}
		s.notes(e.name(), "lxc-list", notes)
		for _, r := range rows {
			out[r.VMID] = report.GuestState(r.Status)
		}
		return out, nil
	}
	rows, notes, err := parse.QmList(text)
	if err != nil {
		return nil, unread("qemu-list", err)
	}
	s.notes(e.name(), "qemu-list", notes)
	for _, r := range rows {
		out[r.VMID] = report.GuestState(r.Status)
	}
	return out, nil
}

// older reports whether a time that a node wrote is further back than limit. If
// this host's clock says so, the two clocks may differ: then the node's own
// clock decides, and where that cannot be read the time counts as old.
func (s *Session) older(c *cluster, node string, unix int64, limit time.Duration) bool {
	if d := s.now.Sub(time.Unix(unix, 0)).Abs(); d <= limit {
		return false
	}
	now, err := s.clockOf(c, node)
	return err != nil || now.Sub(time.Unix(unix, 0)).Abs() > limit
}

// A clockRead is a node's clock, read once a call.
type clockRead struct {
	once sync.Once
	now  time.Time
	err  error
}

// clockOf reads a node's clock. Nodes that cannot be asked are measured by
// another one of their cluster.
func (s *Session) clockOf(c *cluster, node string) (time.Time, error) {
	v, _ := c.clocks.LoadOrStore(node, &clockRead{})
	clock := v.(*clockRead)
	clock.once.Do(func() { clock.now, clock.err = s.readClock(c, node) })
	return clock.now, clock.err
}

func (s *Session) readClock(c *cluster, node string) (time.Time, error) {
	e, err := c.at(node)
	if err != nil {
		e = c.server
	}
	out, err := s.ask(s.ctx, e, "clock")
	if err != nil {
		return time.Time{}, err
	}
	t, err := parse.Clock(out)
	if err != nil {
		return time.Time{}, unread("clock", err)
	}
	return t, nil
}

func cleanAll(in []string) []string {
	out := make([]string, len(in))
	for i, s := range in {
		out[i] = report.Clean(s)
	}
	return out
}
