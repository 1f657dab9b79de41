package tools

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// known is a name for completions: a guest, a node or a project.
type known struct{ kind, value string }

// remember keeps the names of an inventory for completions.
func (s *Session) remember(inv *inventory) {
	var all []known
	for _, c := range inv.clusters {
		for _, n := range c.nodes() {
			all = append(all, known{"node", n})
		}
		for _, g := range report.Guests(c.view(inv), false) {
			all = append(all, known{"guest", strconv.Itoa(g.VMID)})
			if g.Name != "" {
				all = append(all, known{"guest", g.Name})
			}
		}
	}
	s.learn("guest", all)
}

// learn replaces what is known of the kinds in all, keeping other kinds.
func (f *fleet) learn(kind string, all []known) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, k := range f.known {
		if k.kind != kind && !slices.ContainsFunc(all, func(n known) bool { return n.kind == k.kind }) {
			all = append(all, k)
		}
	}
	f.known = all
}

// Completions offers the values of an argument that begin with prefix, from
// what this process has seen; it dials nothing. The slice is never nil.
func (env *Env) Completions(argument, prefix string) []string {
	env.mu.Lock()
	defer env.mu.Unlock()
	out := []string{}
	for name, f := range env.fleets {
		if argument == "profile" {
			out = append(out, cmp.Or(name, f.Profile.Name))
			continue
		}
		f.mu.Lock()
		for _, k := range f.known {
			if k.kind == argument {
				out = append(out, k.value)
			}
		}
		f.mu.Unlock()
	}
	if argument == "code" {
		for _, r := range report.Catalogue {
			out = append(out, r.Code)
		}
	}
	out = slices.DeleteFunc(out, func(v string) bool {
		return len(v) < len(prefix) || !strings.EqualFold(v[:len(prefix)], prefix)
	})
	slices.Sort(out)
	return slices.Compact(out)
}

// view is what rows of a cluster's guests and nodes are made from.
func (c *cluster) view(inv *inventory) report.ClusterView {
	v := report.ClusterView{State: c.State, Configs: c.configs, Live: c.live, Pools: map[int]string{}, HA: map[string]string{}}
	if len(inv.clusters) > 1 {
		v.Name = c.Name
	}
	for _, p := range c.pools {
		for _, id := range p.VMIDs {
			v.Pools[id] = p.Name
		}
	}
	if c.ha != nil && c.ha.Manager != nil {
		for _, svc := range c.ha.Manager.Services {
			v.HA[svc.SID] = svc.State
		}
	}
	return v
}

// A place is a guest and where it is.
type place struct {
	report.Guest
	cluster *cluster
	config  *parse.GuestConfig // nil when configurations were not read
}

// find returns the one guest that an argument names: digits are a VMID, other
// text is the exact name in any letter case; CLUSTER/ before either chooses one
// of several clusters.
func (inv *inventory) find(arg Text) (*place, error) {
	name, in := string(arg), ""
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		in, name = name[:i], name[i+1:]
		if !slices.ContainsFunc(inv.clusters, func(c *cluster) bool { return strings.EqualFold(c.Name, in) }) {
			return nil, errorf(report.NotFound, "no cluster named %q", in).hint("clusters: %s", strings.Join(inv.names(), ", "))
		}
	}
	vmid := 0
	if digits(name) {
		n, err := strconv.Atoi(name)
		if err != nil || n < 100 || n > 999999999 {
			return nil, errorf(report.InvalidArgument, "a VMID is a number from 100 to 999999999")
		}
		vmid = n
	}
	var hits []place
	unsure := false
	for _, c := range inv.clusters {
		if in != "" && !strings.EqualFold(c.Name, in) {
			continue
		}
		unsure = unsure || !c.has(needConfigs)
		for _, g := range report.Guests(c.view(inv), true) {
			if g.VMID == vmid || vmid == 0 && strings.EqualFold(g.Name, name) {
				hits = append(hits, place{Guest: g, cluster: c, config: c.config(g.VMID)})
			}
		}
	}
	switch len(hits) {
	case 1:
		return &hits[0], nil
	case 0:
		e := errorf(report.NotFound, "no guest %s", name).hint("list_guests shows all; a name must be exact")
		if vmid == 0 && unsure {
			e.Message += " among the names that could be read"
		}
		return nil, e
	}
	var list []string
	for _, h := range hits {
		list = append(list, fmt.Sprintf("%s/%d on %s (%s)", h.cluster.Name, h.VMID, h.Node, h.Name))
	}
	return nil, errorf(report.Ambiguous, "%s is %d guests: %s", name, len(hits), strings.Join(list, ", ")).hint("name one as VMID, or as CLUSTER/VMID")
}

func digits(s string) bool { return s != "" && strings.Trim(s, "0123456789") == "" }

func (c *cluster) config(vmid int) *parse.GuestConfig {
	for i := range c.configs {
		if c.configs[i].VMID == vmid {
			return &c.configs[i]
		}
	}
	return nil
}

func (inv *inventory) names() []string {
	var out []string
	for _, c := range inv.clusters {
		out = append(out, c.Name)
	}
	return out
}

// A site is one node and its cluster.
type site struct {
	cluster *cluster
	node    string
}

// node returns the node that an argument names: its PVE name, SSH destination or
// full domain name, exactly or in another letter case. CLUSTER/ before it
// chooses one of several clusters.
func (inv *inventory) node(arg string) (*site, error) {
	name, in := arg, ""
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		in, name = name[:i], name[i+1:]
	}
	same := []func(string, string) bool{
		func(a, b string) bool { return a == b },
		strings.EqualFold,
		func(node, arg string) bool { return strings.EqualFold(node, shortName(arg)) },
	}
	var all []string
	for _, c := range inv.clusters {
		all = append(all, c.nodes()...)
	}
	for _, eq := range same {
		var hits []site
		for _, c := range inv.clusters {
			if in != "" && !strings.EqualFold(c.Name, in) {
				continue
			}
			for _, n := range c.nodes() {
				e := c.members[n]
				if eq(n, name) || e != nil && eq(e.dest, name) {
					hits = append(hits, site{c, n})
				}
			}
		}
		if len(hits) == 1 {
			return &hits[0], nil
		}
		if len(hits) > 1 {
			var list []string
			for _, h := range hits {
				list = append(list, h.cluster.Name+"/"+h.node)
			}
			return nil, errorf(report.Ambiguous, "%s is %d nodes: %s", name, len(hits), strings.Join(list, ", ")).hint("name one as CLUSTER/NODE")
		}
	}
	return nil, errorf(report.NotFound, "no node named %s", arg).hint("nodes are: %s", strings.Join(all, ", "))
}
