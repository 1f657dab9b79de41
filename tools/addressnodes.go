package tools

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// vlanNets notes which virtual networks are only another name of a VLAN of a
// bridge.
func (b *addressBook) vlanNets(c *cluster, sdn *parse.SDN) {
	for _, v := range sdn.VNets {
		i := slices.IndexFunc(sdn.Zones, func(z parse.SDNZone) bool { return z.ID == v.Zone && z.Type == "vlan" && z.Bridge != "" })
		if i >= 0 && v.Tag != nil {
			b.vnets[c.Name+"/"+v.ID] = report.Segment{Bridge: sdn.Zones[i].Bridge, VLAN: *v.Tag}
		}
	}
}

// relate is report.Relate with SDN's names for VLANs.
func (b *addressBook) relate(s report.Segment, cluster string, u report.Uplink) report.Relation {
	best := report.Relate(s, cluster, u, b.wirings)
	vlan, named := b.vnets[cluster+"/"+s.Bridge]
	if named {
		best = max(best, report.Relate(vlan, cluster, u, b.wirings))
	}
	if other, ok := b.vnets[u.Cluster+"/"+u.Segment.Bridge]; ok {
		u.Segment = other
		best = max(best, report.Relate(s, cluster, u, b.wirings))
		if named {
			best = max(best, report.Relate(vlan, cluster, u, b.wirings))
		}
	}
	return best
}

// node reads one node's addresses, routes and neighbours.
func (b *addressBook) node(at site) {
	e, err := at.cluster.at(at.node)
	if err != nil {
		b.block("node %s cannot be asked: %s", at.node, AsError(err).Message)
		if !report.Offline(at.cluster.State, at.node) {
			b.s.miss(at.node, err)
		}
		if m := at.cluster.member(at.node); m != nil {
			if a, err := netip.ParseAddr(m.IP); err == nil {
				b.mu.Lock()
				b.holders = append(b.holders, report.Holder{Subject: "node/" + at.node, Detail: "node " + at.node, Source: "node", Address: a})
				b.mu.Unlock()
			}
		}
		return
	}
	n := nodeNet{at: at, wiring: report.Wiring{Node: at.node, Cluster: at.cluster.Name}}
	var table []parse.Neighbour
	parallel([]string{"addresses", "routes", "neighbours"}, func(_ int, form string) {
		out, err := b.s.ask(b.s.ctx, e, form)
		var notes []parse.Note
		if err == nil {
			switch form {
			case "addresses":
				n.wiring.Links, notes, err = parse.Links(out)
			case "routes":
				n.routes, notes, err = parse.Routes(out)
			default:
				table, notes, err = parse.Neighbours(out)
			}
			if err != nil {
				err = unread(form, err)
			}
		}
		if err != nil {
			b.s.miss(at.node, err)
			b.block("%s of node %s could not be read", form, at.node)
		} else if len(notes) > 0 {
			b.block("a part of the %s of node %s could not be read", form, at.node)
		}
		b.s.notes(at.node, form, notes)
	})
	b.vlans(e, &n)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.nodes = append(b.nodes, n)
	for _, l := range n.wiring.Links {
		if l.MAC != "" {
			b.owners[strings.ToLower(l.MAC)] = "node " + at.node
		}
		for _, a := range l.Addresses {
			b.holders = append(b.holders, report.Holder{Subject: "node/" + at.node, Detail: fmt.Sprintf("node %s on %s", at.node, report.Clean(l.Name)), Source: "node", Address: a.Prefix.Addr(), Prefix: a.Prefix, MAC: l.MAC})
		}
	}
	for _, r := range n.routes {
		b.gateways = append(b.gateways, r.Gateways...)
	}
	for _, t := range table {
		b.seen = append(b.seen, report.NeighbourSeen{Node: at.node, Neighbour: t})
	}
}

// vlans reads in which VLAN a VLAN-aware bridge puts the node itself, where it has
// an address there.
func (b *addressBook) vlans(e *entry, n *nodeNet) {
	if !slices.ContainsFunc(n.wiring.Links, func(l parse.Link) bool { return n.wiring.Aware(l.Name) && len(l.Addresses) > 0 }) {
		return
	}
	out, err := b.s.ask(b.s.ctx, e, "bridge-vlans")
	var notes []parse.Note
	if err == nil {
		if n.wiring.Ports, notes, err = parse.BridgeVLANs(out); err != nil {
			err = unread("bridge-vlans", err)
		}
	}
	if err != nil || len(notes) > 0 {
		b.s.miss(n.at.node, err)
		b.s.notes(n.at.node, "bridge-vlans", notes)
		b.block("the VLANs of the bridges of node %s could not be read", n.at.node)
	}
}

// countShared counts for each entry how many addresses its MAC answers for on
// that interface.
func (b *addressBook) countShared() {
	count := map[string]int{}
	key := func(n report.NeighbourSeen) string {
		family := "4"
		if n.Addr.Is6() {
			family = "6"
		}
		return n.Node + " " + n.Dev + " " + family + " " + n.MAC
	}
	for _, n := range b.seen {
		if n.MAC != "" && !n.Addr.IsLinkLocalUnicast() && (n.Grade() == parse.GradeAnswered || n.Grade() == parse.GradeSeen) {
			count[key(n)]++
		}
	}
	for i := range b.seen {
		b.seen[i].Shared = count[key(b.seen[i])]
	}
}
