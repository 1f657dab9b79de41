package report

import (
	"slices"

	"pvelens/tools/parse"
)

// A Wiring is the network interfaces of one node, from which it can be told
// which names mean one layer-2 network there: a VLAN of a bridge, a VLAN
// interface on it or on the card below, and a bridge on that VLAN interface.
type Wiring struct {
	Node, Cluster string
	Links         []parse.Link
	Ports         []parse.BridgePort // of VLAN-aware bridges, where they were read
}

func (w Wiring) link(name string) *parse.Link {
	i := slices.IndexFunc(w.Links, func(l parse.Link) bool { return l.Name == name })
	if i < 0 {
		return nil
	}
	return &w.Links[i]
}

// Segment is the network that the node itself has on an interface: a bridge, or
// a VLAN on one. A VLAN-aware bridge may put the node into a VLAN of its own.
func (w Wiring) Segment(dev string) Segment {
	l := w.link(dev)
	switch {
	case l == nil:
	case l.Kind == "vlan" && l.VLAN != nil:
		return Segment{Bridge: l.Parent, VLAN: int64(*l.VLAN)}
	case w.Aware(dev):
		for _, p := range w.Ports {
			if p.Name == dev && p.PVID != nil && *p.PVID != 1 {
				return Segment{Bridge: dev, VLAN: int64(*p.PVID)}
			}
		}
	}
	return Segment{Bridge: dev}
}

// Aware reports whether an interface is a VLAN-aware bridge.
func (w Wiring) Aware(dev string) bool {
	l := w.link(dev)
	return l != nil && l.VLANFiltering != nil && *l.VLANFiltering
}

// Local reports whether a bridge ends inside the node: none of its ports leads
// out, although the node has cards.
func (w Wiring) Local(bridge string) bool {
	l := w.link(bridge)
	cards := slices.ContainsFunc(w.Links, func(l parse.Link) bool { return l.Kind == "" && l.Name != "lo" })
	return l != nil && l.Kind == "bridge" && cards && len(w.outside(bridge)) == 0
}

// outside are the ports of a bridge that may lead out of the node: all but those
// of guests.
func (w Wiring) outside(bridge string) []string {
	var out []string
	for _, l := range w.Links {
		if l.Master == bridge && l.Kind != "veth" && l.Kind != "tun" && l.Kind != "tap" {
			out = append(out, l.Name)
		}
	}
	return out
}

// below follows a network down to the interface that carries it; ok is false
// where the node has no such interface.
func (w Wiring) below(s Segment) (_ Segment, ok bool) {
	for range 8 {
		l := w.link(s.Bridge)
		if l == nil {
			return s, false
		}
		ports := w.outside(l.Name)
		switch {
		case l.Kind == "vlan" && l.VLAN != nil && l.Parent != "" && (s.VLAN == 0 || s.VLAN == 1):
			s = Segment{Bridge: l.Parent, VLAN: int64(*l.VLAN)}
		case l.Kind == "bridge" && len(ports) == 1:
			s.Bridge = ports[0]
		default:
			return s, true
		}
	}
	return s, true
}

// same reports whether two names mean one network on this node.
func (w Wiring) same(a, b Segment) bool {
	x, ok := w.below(a)
	y, ok2 := w.below(b)
	return ok && ok2 && x.Same(y)
}

// readable reports whether the names tell the network of an interface: guests
// are on bridges, and what a card, a bond or Open vSwitch is connected to is not
// seen.
func (w Wiring) readable(dev string) bool {
	l := w.link(dev)
	if l != nil && l.Kind == "vlan" {
		l = w.link(l.Parent)
	}
	return l == nil || l.Kind == "bridge"
}

// A Relation says whether a network is the one that an uplink is on.
type Relation int

// The relations; Unsure is where neither can be told.
const (
	Other Relation = iota
	Unsure
	Same
)

// Relate compares a network of a cluster with an uplink's: by name, and by how any
// node is wired. What another cluster calls its networks says nothing.
func Relate(s Segment, cluster string, u Uplink, nodes []Wiring) Relation {
	if s.Same(u.Segment) {
		return Same
	}
	if cluster != u.Cluster {
		if s.Bridge == "" {
			return Other
		}
		return Unsure
	}
	if slices.ContainsFunc(nodes, func(w Wiring) bool { return w.Cluster == cluster && w.same(s, u.Segment) }) {
		return Same
	}
	i := slices.IndexFunc(nodes, func(w Wiring) bool { return w.Node == u.Node && w.Cluster == u.Cluster })
	if s.Bridge != "" && i >= 0 && !nodes[i].readable(u.Dev) {
		return Unsure
	}
	return Other
}
