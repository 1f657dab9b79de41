package tools

import (
	"context"

	"pvelens/tools/report"
)

type listGuestsIn struct {
	Common
	Paged
	Node     string `json:"node,omitempty" help:"only on this node"`
	Type     string `json:"type,omitempty" help:"only containers or only VMs" enum:"lxc,qemu"`
	Status   string `json:"status,omitempty" help:"only in this state" enum:"running,stopped,paused,suspended,io-error,unknown"`
	Tag      string `json:"tag,omitempty" help:"only with this tag"`
	Pool     string `json:"pool,omitempty" help:"only of this pool"`
	Name     string `json:"name,omitempty" help:"only names with this text"`
	Template *bool  `json:"template,omitempty" help:"true: only templates; false: none"`
}

var listGuests = define("list_guests", "List guests",
	"Lists the containers and VMs of all clusters: VMID, name, node, state, tags, pool, lock, template. Reads files only. Guests of an offline node are listed as unknown with their last state. detail=detailed adds CPU, memory, disk and uptime.",
	func(_ context.Context, s *Session, in listGuestsIn) (*report.GuestList, error) {
		inv, err := s.inventory(needConfigs | needPools | needHA | needLive)
		if err != nil {
			return nil, err
		}
		filter := report.GuestFilter{Type: in.Type, Status: in.Status, Tag: in.Tag, Pool: in.Pool, Name: in.Name, Template: in.Template}
		var at *site
		if in.Node != "" {
			if at, err = inv.node(in.Node); err != nil {
				return nil, err
			}
			filter.Node = at.node
		}
		var rows []report.Guest
		for _, c := range inv.clusters {
			if at != nil && at.cluster != c {
				continue
			}
			s.offlineNodes(c, filter.Node)
			rows = append(rows, report.Guests(c.view(inv), s.Detailed)...)
		}
		out := &report.GuestList{}
		out.Items, out.Page = report.Cut(filter.Keep(rows), in.Offset, in.Limit)
		return out, nil
	})

// offlineNodes says that the answer lacks what only an offline node knows; only
// is "" or the one node that counts.
func (s *Session) offlineNodes(c *cluster, only string) {
	if !quorate(c.State) {
		e := errorf(report.HostUnreachable, "cluster %s has no quorum on %s: what other nodes do is not known", c.Name, c.State.Members.Node)
		s.miss(c.State.Members.Node, e.hint("bring the other nodes back; cluster_health says more"))
	}
	for _, n := range c.nodes() {
		if (only == "" || only == n) && report.Offline(c.State, n) && quorate(c.State) {
			s.miss(n, errorf(report.HostUnreachable, "the cluster says that node %s is offline; its guests' states are unknown", n))
		}
	}
}
