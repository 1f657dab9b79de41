package tools

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// need says what an inventory must hold beside the state.
type need uint

const (
	needConfigs need = 1 << iota // every guest's configuration
	needPools                    // user.cfg's pools
	needCluster                  // storages, jobs, replication, HA, mappings
	needHA                       // HA services and node modes
	needLive                     // states from the nodes where pvestatd reports none
)

// parts are the outputs that a need asks for, of one member.
type parts struct {
	configs  []parse.GuestConfig
	pools    []parse.Pool
	cluster  *parse.ClusterConfigs
	ha       *parse.HAState
	problems map[need]error
}

// A cluster is one cluster, or one lone node, as one of its members sees it.
type cluster struct {
	Name  string // the cluster's name; of a lone node its SSH destination
	State *parse.State
	Lone  bool
	parts

	live    map[int]string    // states read from the nodes themselves
	filled  bool              // what .rrd lacks was asked for
	clocks  sync.Map          // *clockRead by node
	server  *entry            // who answered
	members map[string]*entry // by PVE node name; only nodes that are in the profile
	lost    map[string]error  // why a member of the profile could not be asked itself
}

// An inventory is every cluster of a profile, in the order of their names.
type inventory struct {
	clusters []*cluster
	unplaced []*entry // that did not answer, and of which nobody knows what they are a part of
}

// arrival is one entry's answer.
type arrival struct {
	entry *entry
	state *parse.State
	parts *parts // nil: not asked yet
	err   error
}

// inventory asks all entries at once. The first quorate member serves its
// cluster; waiting ends when every entry has answered, failed, or is known to be
// a member of an answered cluster.
func (s *Session) inventory(n need) (*inventory, error) {
	if len(s.nodes) == 0 {
		return nil, errorf(report.Config, "profile %s has no nodes", s.Profile.Name).hint("add nodes = [\"HOST\"] to the profile")
	}
	ch := make(chan arrival, len(s.nodes))
	for _, e := range s.nodes {
		go func() {
			// Nobody may wait for it any more, so a panic becomes its answer.
			defer func() {
				if p := recover(); p != nil {
					ch <- arrival{entry: e, err: errorf(report.Internal, "reading the node's state failed")}
				}
			}()
			ch <- s.arrive(e, n)
		}()
	}
	waiting := map[*entry]bool{}
	for _, e := range s.nodes {
		waiting[e] = true
	}
	var got []arrival
	for len(waiting) > 0 {
		select {
		case a := <-ch:
			delete(waiting, a.entry)
			got = append(got, a)
			if a.err == nil && quorate(a.state) {
				maps.DeleteFunc(waiting, func(e *entry, _ bool) bool { return s.isMember(e, a) })
			}
			s.progress(len(s.nodes)-len(waiting), len(s.nodes), "%s", a.entry.name())
		case <-s.ctx.Done():
			for e := range waiting {
				got = append(got, arrival{entry: e, err: context.Cause(s.ctx)})
			}
			waiting = nil
		}
	}
	inv := s.group(got)
	if len(inv.clusters) == 0 {
		return nil, noAnswer(got)
	}
	parallel(inv.clusters, func(_ int, c *cluster) { s.complete1(c, n) })
	s.remember(inv)
	return inv, nil
}

// arrive asks one entry for its state. An entry that served its cluster last
// time is asked for everything at once, which saves a round trip. The work goes
// on when nobody waits any more, so that the next call knows the entry.
func (s *Session) arrive(e *entry, n need) arrival {
	limit := s.Profile.ConnectTimeout + 12*time.Second
	ctx, cancel := s.detach(limit)
	defer cancel()
	a := arrival{entry: e}
	_, _, serves := e.learned()
	reads := []func(){func() { a.state, a.err = s.state(ctx, e) }}
	if serves && n != 0 {
		reads = append(reads, func() { a.parts = s.parts(ctx, e, n) })
	}
	parallel(reads, func(_ int, read func()) { read() })
	if a.err == nil {
		node, clusterName, _ := e.learned()
		if node != a.state.Members.Node || clusterName == "" {
			e.learn(a.state.Members.Node, identity(a.state, e), serves)
		}
	}
	return a
}

// state asks one entry for the state of its cluster.
func (s *Session) state(ctx context.Context, e *entry) (*parse.State, error) {
	out, err := s.ask(ctx, e, "state")
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(out)) == 0 {
		return nil, errorf(report.NotFound, "no /etc/pve/.members: the cluster filesystem (pmxcfs) is not running, or this is no Proxmox VE node").hint("on the node: systemctl status pve-cluster")
	}
	st, err := parse.ParseState(out)
	if err != nil {
		return nil, errorf(report.Internal, "%s", report.Clean(err.Error()))
	}
	return st, nil
}

// parts runs what the need asks for, at once.
func (s *Session) parts(ctx context.Context, e *entry, n need) *parts {
	p := &parts{problems: map[need]error{}}
	type job struct {
		need need
		form string
		read func([]byte) error
	}
	jobs := []job{
		{needConfigs, "guest-configs", func(b []byte) (err error) {
			p.configs, err = parse.GuestConfigs(bytes.NewReader(b))
			if lines := (*parse.LineError)(nil); errors.As(err, &lines) && len(p.configs) > 0 {
				s.miss(e.name(), unread("guest-configs", err)) // the other guests are good
				err = nil
			}
			return
		}},
		{needPools, "pools", func(b []byte) (err error) {
			var notes []parse.Note
			p.pools, notes, err = parse.Pools(b)
			s.notes(e.name(), "pools", notes)
			return
		}},
		{needHA, "ha-state", func(b []byte) (err error) {
			var notes []parse.Note
			p.ha, notes, err = parse.ParseHAState(b)
			s.notes(e.name(), "ha-state", notes)
			return
		}},
		{needCluster, "cluster-configs", func(b []byte) (err error) {
			if p.cluster, err = parse.ParseClusterConfigs(b); err == nil {
				p.cluster.Storages = report.AllStorages(p.cluster.Storages)
			}
			return
		}},
	}
	jobs = slices.DeleteFunc(jobs, func(j job) bool { return n&j.need == 0 })
	errs := make([]error, len(jobs))
	parallel(jobs, func(i int, j job) {
		out, err := s.ask(ctx, e, j.form)
		if err == nil {
			if err = j.read(out); err != nil {
				err = unread(j.form, err)
			}
		}
		errs[i] = err
	})
	for i, j := range jobs {
		if errs[i] != nil {
			p.problems[j.need] = errs[i]
		}
	}
	return p
}

// complete1 fetches what is still missing of a cluster from the member that
// serves it, or from another one when that fails.
func (s *Session) complete1(c *cluster, n need) {
	if c.problems == nil {
		c.parts = *s.parts(s.ctx, c.server, n)
	}
	for _, bad := range slices.Sorted(maps.Keys(c.problems)) {
		err := c.problems[bad]
		for _, name := range slices.Sorted(maps.Keys(c.members)) {
			e := c.members[name]
			if e == c.server || c.lost[name] != nil || s.ctx.Err() != nil {
				continue
			}
			if p := s.parts(s.ctx, e, bad); p.problems[bad] == nil {
				c.take(bad, p)
				err = nil
				break
			}
		}
		if err != nil {
			s.miss(c.server.name(), err)
		}
	}
	if n&needConfigs != 0 && c.has(needConfigs) {
		s.unconfigured(c)
	}
	if n&needCluster != 0 && c.has(needCluster) && len(c.cluster.BadLines) > 0 {
		s.miss(c.server.name(), errorf(report.Internal, "cluster-configs: line %d cannot be read (%d in all), so a job or a storage may be seen wrongly", c.cluster.BadLines[0], len(c.cluster.BadLines)))
	}
	if n&needLive != 0 {
		s.live(c)
	}
}

// unconfigured says that guests have no configuration although they exist: then
// grep could not read their files.
func (s *Session) unconfigured(c *cluster) {
	have := map[int]bool{}
	for _, cfg := range c.configs {
		have[cfg.VMID] = true
	}
	missing := slices.DeleteFunc(slices.Clone(c.State.Guests), func(g parse.GuestRef) bool { return have[g.VMID] || g.Type == "openvz" })
	if len(missing) > 0 {
		s.miss(c.server.name(), errorf(report.Internal, "guest-configs: no setting of guest %d came (%d in all)", missing[0].VMID, len(missing)))
	}
}

func (c *cluster) take(n need, p *parts) {
	switch n {
	case needConfigs:
		c.configs = p.configs
	case needPools:
		c.pools = p.pools
	case needCluster:
		c.cluster = p.cluster
	case needHA:
		c.ha = p.ha
	}
	delete(c.problems, n)
}

// has reports whether a part was read.
func (c *cluster) has(n need) bool { return c.problems[n] == nil }

func quorate(st *parse.State) bool {
	c := st.Members.Cluster
	return c == nil || c.Quorate == nil || *c.Quorate
}

// identity is what makes two members one cluster: the name and its members. A
// lone node is its SSH destination.
func identity(st *parse.State, e *entry) string {
	if st.Members.Cluster == nil {
		return e.dest
	}
	var names []string
	for _, m := range st.Members.Nodes {
		names = append(names, m.Name)
	}
	slices.Sort(names)
	return st.Members.Cluster.Name + "|" + strings.Join(names, ",")
}

// isMember reports whether an entry that has not answered is known to be a
// member of the cluster that a answered for: by what it said before, or by its
// address.
func (s *Session) isMember(e *entry, a arrival) bool {
	if a.state.Members.Cluster == nil {
		return false
	}
	if _, id, _ := e.learned(); id != "" {
		return id == identity(a.state, a.entry)
	}
	addr, way := e.address()
	if _, same := a.entry.address(); addr == "" || way != same {
		return false
	}
	return slices.ContainsFunc(a.state.Members.Nodes, func(m parse.Member) bool { return m.IP == addr })
}

// address is where an entry is, and the way there: behind two jump hosts one
// address is two machines. "" while it is not known.
func (e *entry) address() (addr, way string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.host == nil || e.host.Target == nil {
		return "", ""
	}
	t := e.host.Target
	way = t.ProxyCommand
	for _, hop := range t.ProxyJump {
		way += fmt.Sprintf(" %s:%d", hop.HostName, hop.Port)
	}
	return t.HostName, way
}

// group merges the answers of one cluster's members, and tells what became of
// the entries that did not answer.
func (s *Session) group(got []arrival) *inventory {
	inv := &inventory{}
	for _, a := range got {
		if a.err != nil {
			continue
		}
		c := inv.of(a)
		if c == nil {
			c = &cluster{Name: displayName(a), Lone: a.state.Members.Cluster == nil, State: a.state, server: a.entry, members: map[string]*entry{}, lost: map[string]error{}}
			inv.clusters = append(inv.clusters, c)
			if a.parts != nil {
				c.parts = *a.parts
			}
		} else if better(a, c) {
			c.State, c.server, c.parts = a.state, a.entry, parts{}
			if a.parts != nil {
				c.parts = *a.parts
			}
		}
		c.members[a.state.Members.Node] = a.entry
	}
	for _, c := range inv.clusters {
		for node, e := range c.members {
			e.learn(node, identity(c.State, e), e == c.server)
		}
	}
	s.others(inv, got)
	inv.name()
	return inv
}

// of returns the cluster that an answer belongs to. Two clusters that share
// name and members, but not the addresses of these, are two.
func (inv *inventory) of(a arrival) *cluster {
	for _, c := range inv.clusters {
		if c.Lone || a.state.Members.Cluster == nil || identity(c.State, c.server) != identity(a.state, a.entry) {
			continue
		}
		conflict := slices.ContainsFunc(a.state.Members.Nodes, func(m parse.Member) bool {
			have := c.member(m.Name)
			return have != nil && have.IP != "" && m.IP != "" && have.IP != m.IP
		})
		if !conflict {
			return c
		}
	}
	return nil
}

func (c *cluster) member(name string) *parse.Member {
	for i, m := range c.State.Members.Nodes {
		if m.Name == name {
			return &c.State.Members.Nodes[i]
		}
	}
	return nil
}

// better reports whether an answer is more to be trusted than the cluster's
// present one: a quorate member knows more than one that is cut off.
func better(a arrival, c *cluster) bool {
	return quorate(a.state) && !quorate(c.State)
}

func displayName(a arrival) string {
	if a.state.Members.Cluster == nil {
		return a.entry.dest
	}
	return report.Clean(a.state.Members.Cluster.Name)
}

// name makes the clusters' names differ.
func (inv *inventory) name() {
	seen := map[string]int{}
	for _, c := range inv.clusters {
		seen[c.Name]++
	}
	for _, c := range inv.clusters {
		if seen[c.Name] > 1 {
			c.Name += "@" + c.server.dest
		}
	}
	slices.SortFunc(inv.clusters, func(a, b *cluster) int { return cmp.Compare(a.Name, b.Name) })
}

// others places the entries that failed or were not waited for: members of a
// cluster that answered take nothing from the answer; any other one may be a
// cluster of its own, so the answer is incomplete.
func (s *Session) others(inv *inventory, got []arrival) {
	arrived := map[*entry]error{}
	for _, a := range got {
		arrived[a.entry] = a.err
	}
	for _, e := range s.nodes {
		err, here := arrived[e]
		if here && err == nil {
			continue
		}
		c, node := inv.owner(e)
		if c != nil {
			c.members[node] = e
			if here {
				c.lost[node] = err
				s.note(node, err)
			}
			continue
		}
		if here && len(inv.clusters) > 0 {
			s.miss(e.dest, err)
			if !inv.knows(e) {
				inv.unplaced = append(inv.unplaced, e)
			}
		}
	}
}

// owner finds the cluster that a silent entry belongs to: by what it said
// before, by its address, or by a name that no other entry answers to.
func (inv *inventory) owner(e *entry) (*cluster, string) {
	node, id, _ := e.learned()
	for _, c := range inv.clusters {
		if node != "" && id == identity(c.State, c.server) {
			return c, node
		}
	}
	addr, way := e.address()
	var found *cluster
	for _, c := range inv.clusters {
		_, same := c.server.address()
		for _, m := range c.State.Members.Nodes {
			if c.members[m.Name] != nil {
				continue
			}
			if m.IP != "" && m.IP == addr && way == same {
				return c, m.Name
			}
			if found == nil && strings.EqualFold(m.Name, shortName(e.dest)) {
				found, node = c, m.Name
			}
		}
	}
	if found == nil {
		return nil, ""
	}
	return found, node
}

// knows reports whether a silent entry is another name of a node that has one.
func (inv *inventory) knows(e *entry) bool {
	addr, way := e.address()
	return addr != "" && slices.ContainsFunc(inv.clusters, func(c *cluster) bool {
		_, same := c.server.address()
		return way == same && slices.ContainsFunc(c.State.Members.Nodes, func(m parse.Member) bool { return m.IP == addr })
	})
}

// shortName is the first label of a destination, without user and port.
func shortName(dest string) string {
	dest = dest[strings.LastIndexByte(dest, '@')+1:]
	dest, _, _ = strings.Cut(dest, ".")
	dest, _, _ = strings.Cut(dest, ":")
	return dest
}

// noAnswer is the error when no entry answered: the first one's code, and what
// each one said.
func noAnswer(got []arrival) error {
	if len(got) == 1 {
		e := AsError(got[0].err)
		if e.Node == "" {
			e.Node = got[0].entry.dest
		}
		if !strings.HasPrefix(e.Message, e.Node+":") {
			return &Error{Code: e.Code, Node: e.Node, Message: e.Node + ": " + e.Message, Hint: e.Hint}
		}
		return e
	}
	slices.SortFunc(got, func(a, b arrival) int { return cmp.Compare(a.entry.dest, b.entry.dest) })
	var said []string
	code, hint := report.Code(""), ""
	for _, a := range got {
		e := AsError(a.err)
		if code == "" || code == report.Cancelled {
			code, hint = e.Code, e.Hint
		}
		said = append(said, fmt.Sprintf("%s: %s", a.entry.dest, e.Message))
	}
	const most = 5
	if len(said) > most {
		said = append(said[:most], fmt.Sprintf("and %d more", len(said)-most))
	}
	return &Error{Code: code, Message: "none of the profile's nodes answered: " + strings.Join(said, "; "), Hint: cmp.Or(hint, "`pvelens doctor` looks at each node")}
}

// at returns the entry of a node, or why its node forms cannot be asked.
func (c *cluster) at(node string) (*entry, error) {
	if report.Offline(c.State, node) {
		return nil, &Error{Code: report.HostUnreachable, Node: node, Message: "the cluster says that node " + node + " is offline"}
	}
	if err := c.lost[node]; err != nil {
		return nil, err
	}
	if e := c.members[node]; e != nil {
		return e, nil
	}
	return nil, &Error{Code: report.Unsupported, Node: node, Message: "node " + node + " is in no profile, so it cannot be asked itself", Hint: "add " + node + " to nodes of the profile"}
}

// nodes are the names of the cluster's nodes, sorted.
func (c *cluster) nodes() []string {
	if c.Lone {
		return []string{c.State.Members.Node}
	}
	var out []string
	for _, m := range c.State.Members.Nodes {
		out = append(out, m.Name)
	}
	slices.Sort(out)
	return out
}
