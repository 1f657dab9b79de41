package tools

import (
	"context"
	"slices"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type getNodeCapacityIn struct {
	Common
	Paged
	Node string `json:"node,omitempty" help:"one node: PVE name, SSH destination or FQDN; default: all" pos:"true"`
}

var getNodeCapacity = define("get_node_capacity", "Show what a node has left",
	"Shows CPU, load, memory with the ZFS cache apart, swap, root filesystem, pressure, and what the running guests are configured for against what the node has, with findings. Reads files only.",
	func(_ context.Context, s *Session, in getNodeCapacityIn) (*report.CapacityList, error) {
		inv, err := s.inventory(0)
		if err != nil {
			return nil, err
		}
		var sites []site
		if in.Node != "" {
			at, err := inv.node(in.Node)
			if err != nil {
				return nil, err
			}
			s.offlineNodes(at.cluster, at.node)
			sites = []site{*at}
		} else {
			for _, c := range inv.clusters {
				s.offlineNodes(c, "")
				for _, n := range c.nodes() {
					sites = append(sites, site{c, n})
				}
			}
		}
		out := &report.CapacityList{}
		sites, out.Page = report.Cut(sites, in.Offset, in.Limit)
		s.unreportedGuests(inv, sites)
		out.Items = make([]report.Capacity, len(sites))
		parallel(sites, func(i int, at site) {
			v := s.nodeView(inv, at)
			out.Items[i] = report.NodeCapacity(v, s.judge())
		})
		return out, nil
	})

// unreportedGuests says of which nodes the running guests cannot be summed.
func (s *Session) unreportedGuests(inv *inventory, sites []site) {
	for _, c := range inv.clusters {
		s.otherNumbers(c)
		wanted := func(node string) bool { return slices.Contains(sites, site{c, node}) }
		s.unmeasured(c, "what its guests are configured for is unknown or old", wanted)
		for _, n := range c.nodes() {
			if _, ok := c.State.RRD.Nodes[n]; !ok || !wanted(n) || report.Offline(c.State, n) {
				continue
			}
			if g := c.stateless(n, false); len(g) > 0 {
				s.miss(n, errorf(report.Internal, "pvestatd on %s does not report guest %d (%d in all), so what its running guests are configured for is unknown", n, g[0].VMID, len(g)))
			}
		}
	}
}

// nodeView reads what a node says of itself. What cannot be read leaves the
// answer incomplete.
func (s *Session) nodeView(inv *inventory, at site) report.NodeView {
	v := report.NodeView{Cluster: at.cluster.view(inv), Node: at.node, Destination: at.cluster.destinations()[at.node]}
	e, err := at.cluster.at(at.node)
	if err != nil {
		if !report.Offline(at.cluster.State, at.node) {
			s.miss(at.node, err)
		}
		return v
	}
	parallel([]string{"node-proc", "node-df"}, func(_ int, form string) {
		out, err := s.ask(s.ctx, e, form)
		if err != nil {
			s.miss(at.node, err)
			return
		}
		var notes []parse.Note
		if form == "node-proc" {
			v.Proc, notes, err = parse.ParseNodeProc(out)
		} else {
			v.Filesystems, notes, err = parse.DF(out)
		}
		if err != nil {
			s.miss(at.node, unread(form, err))
		}
		s.notes(at.node, form, notes)
	})
	return v
}

// notes records lines of an output that could not be read.
func (s *Session) notes(node, form string, notes []parse.Note) {
	for _, n := range notes {
		s.miss(node, errorf(report.Internal, "%s: %s", form, report.Clean(n.Text)))
	}
}
