package tools

import (
	"bytes"
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// The probes: at most maxProbes a call, probesPerMinute a process.
const (
	maxProbes       = 16
	probesPerMinute = 60
)

var probes = &probeBudget{}

// A probeBudget counts the probes of the last minute.
type probeBudget struct {
	mu   sync.Mutex
	sent []time.Time
}

func (p *probeBudget) take(now time.Time) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = slices.DeleteFunc(p.sent, func(t time.Time) bool { return now.Sub(t) >= time.Minute })
	if len(p.sent) >= probesPerMinute {
		return false
	}
	p.sent = append(p.sent, now)
	return true
}

// toAsk are the uplinks to ask on: one for each network that the address may be
// on.
func (b *addressBook) toAsk(uplinks []report.Uplink) []report.Uplink {
	var out []report.Uplink
	for _, second := range []bool{false, true} {
		for _, u := range uplinks {
			if u.Second == second && !slices.ContainsFunc(out, func(o report.Uplink) bool { return u.SameNetwork(o, b.wirings) }) {
				out = append(out, u)
			}
		}
	}
	return out
}

// probe asks for an address on each network that a node is on-link with: a ping
// makes the kernel ask on layer 2, and the neighbour table then tells, even where
// the ping is dropped.
func (b *addressBook) probe(v *report.AddressView) {
	if len(v.Uplinks) == 0 {
		v.Unprobed = "no node that can be asked is on-link for it"
	}
	for _, u := range b.toAsk(v.Uplinks) {
		p, why := b.probeOn(u, v.Address)
		if p == nil {
			v.Unprobed = cmp.Or(v.Unprobed, why)
			continue
		}
		v.Probes = append(v.Probes, p)
		v.At = b.s.Now().Unix()
		v.Seen = slices.DeleteFunc(v.Seen, func(n report.NeighbourSeen) bool { return n.Node == u.Node && n.Dev == u.Dev })
	}
}

// probeOn asks on one uplink; why says why there is no answer to that.
func (b *addressBook) probeOn(u report.Uplink, a netip.Addr) (_ *report.AddressProbe, why string) {
	i := slices.IndexFunc(b.nodes, func(n nodeNet) bool { return n.at.node == u.Node && n.at.cluster.Name == u.Cluster })
	e, err := b.nodes[i].at.cluster.at(u.Node)
	switch {
	case u.Second:
		return nil, fmt.Sprintf("it may be on %s of %s too, and that node asks on another interface", u.Dev, u.Node)
	case u.Prefix.Addr().Is4() && u.Prefix.Bits() < 16, u.Prefix.Addr().Is6() && u.Prefix.Bits() < 64:
		return nil, fmt.Sprintf("the network %s is too large", u.Prefix)
	case err != nil:
		return nil, "node " + u.Node + " cannot be asked"
	case b.probed >= maxProbes:
		return nil, fmt.Sprintf("a call sends at most %d probes", maxProbes)
	case !probes.take(time.Now()):
		return nil, fmt.Sprintf("this process has sent %d probes in the last minute", probesPerMinute)
	}
	b.probed++
	out, err := b.s.exec(b.s.ctx, e, "ping", a.String())
	if err == nil {
		if bad := failure(out); bad != nil {
			err = bad
		}
	}
	if err == nil && out.Exit != 0 && bytes.Contains(out.Stderr, []byte("ping: ")) { // a firewall of the node's own: nothing was asked
		err = errorf(report.Internal, "ping: %s", firstLine(out.Stderr))
	}
	if err != nil {
		b.s.miss(u.Node, err)
		return nil, "the probe failed: " + AsError(err).Message
	}
	p := &report.AddressProbe{Node: u.Node, Dev: u.Dev, Answered: out.Exit == 0}
	for try := range 2 {
		if p.After, err = b.after(e, u, a); err != nil {
			b.s.miss(u.Node, err)
			return nil, "the neighbour table could not be read after the probe: " + AsError(err).Message
		}
		if try > 0 || !incomplete(p.After) || sleep(b.s.ctx, time.Second) != nil {
			break
		}
	}
	return p, ""
}

func incomplete(ns []report.NeighbourSeen) bool {
	return slices.ContainsFunc(ns, func(n report.NeighbourSeen) bool { return n.State == parse.NeighbourIncomplete })
}

// after reads what one node's table says of an address now.
func (b *addressBook) after(e *entry, u report.Uplink, a netip.Addr) ([]report.NeighbourSeen, error) {
	out, err := b.s.ask(b.s.ctx, e, "neighbours")
	if err != nil {
		return nil, err
	}
	table, notes, err := parse.Neighbours(out)
	if err == nil && len(notes) > 0 {
		err = fmt.Errorf("%s", notes[0])
	}
	if err != nil {
		return nil, unread("neighbours", err)
	}
	var found []report.NeighbourSeen
	shared := map[string]int{}
	for _, n := range table {
		if n.Dev == u.Dev && n.MAC != "" && n.Addr.Is4() == a.Is4() && !n.Addr.IsLinkLocalUnicast() {
			shared[n.MAC]++
		}
	}
	for _, n := range table {
		if n.Addr == a && n.Dev == u.Dev {
			found = append(found, report.NeighbourSeen{Node: u.Node, Neighbour: n, Shared: shared[n.MAC]})
		}
	}
	return found, nil
}
