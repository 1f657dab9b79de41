package tools

import (
	"context"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type listNodesIn struct {
	Common
	Paged
}

var listNodes = define("list_nodes", "List nodes",
	"Lists the Proxmox nodes of all clusters: online or not, SSH destination, PVE version, CPU, memory, root filesystem, uptime, number of guests. Reads files only. used memory counts the ZFS cache; get_node_capacity takes it apart.",
	func(_ context.Context, s *Session, in listNodesIn) (*report.NodeList, error) {
		inv, err := s.inventory(0)
		if err != nil {
			return nil, err
		}
		out := &report.NodeList{}
		var rows []report.Node
		for _, c := range inv.clusters {
			s.offlineNodes(c, "")
			s.otherNumbers(c)
			s.unmeasured(c, "its numbers are unknown or old", func(string) bool { return true })
			rows = append(rows, report.Nodes(c.view(inv), c.destinations(), s.versions(c))...)
		}
		if len(inv.clusters) == 1 && !inv.clusters[0].Lone {
			out.Quorate = report.Ptr(report.Quorate(inv.clusters[0].State))
		}
		out.Items, out.Page = report.Cut(rows, in.Offset, in.Limit)
		return out, nil
	})

// destinations are the SSH destinations of a cluster's nodes.
func (c *cluster) destinations() map[string]string {
	out := map[string]string{}
	for node, e := range c.members {
		out[node] = e.dest
	}
	return out
}

// versions reads each node's PVE version. A node that cannot be asked leaves the
// answer incomplete, unless the cluster calls it offline, which is said already.
func (s *Session) versions(c *cluster) map[string]string {
	out := make([]string, len(c.nodes()))
	parallel(c.nodes(), func(i int, node string) {
		p, err := s.packages(c, node)
		if err != nil {
			if !report.Offline(c.State, node) {
				s.miss(node, err)
			}
			return
		}
		if out[i] = p.Versions["pve-manager"]; out[i] == "" {
			s.miss(node, errorf(report.Internal, "node-packages: pve-manager is not among the installed packages that were told"))
		}
	})
	versions := map[string]string{}
	for i, node := range c.nodes() {
		versions[node] = out[i]
	}
	return versions
}

func (s *Session) packages(c *cluster, node string) (*parse.Packages, error) {
	e, err := c.at(node)
	if err != nil {
		return nil, err
	}
	out, err := s.ask(s.ctx, e, "node-packages")
	if err != nil {
		return nil, err
	}
	p, notes, err := parse.ParsePackages(out)
	if err != nil {
		return nil, unread("node-packages", err)
	}
	s.notes(node, "node-packages", notes)
	return p, nil
}

// unread is the error of an output that could not be parsed.
func unread(form string, err error) error {
	return errorf(report.Internal, "%s: %s", form, report.Clean(err.Error()))
}
