package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"pvelens/tools/parse"
)

// The verdicts on an address.
const (
	InUse    = "in_use"
	Reserved = "reserved"
	Free     = "free"
)

// How much a piece of evidence proves. Proof is an answer seen now, strong one
// that cannot well be wrong, weak one that may be old or of another network;
// configured is a static setting, which holds whether its guest runs or not.
const (
	Proof      = "proof"
	Strong     = "strong"
	Weak       = "weak"
	Configured = "configured"
)

// AddressEvidence is what one source says of an address. Found is false where
// the source was read and knows nothing of it, or an answer did not come.
type AddressEvidence struct {
	Source   string `json:"source"`
	Found    bool   `json:"found"`
	Strength string `json:"strength"`
	Detail   string `json:"detail"`
}

// AddressCheck is what is known of one address. Missing names what could not be
// read, and what may hold further addresses; Reason says what the verdict rests
// on. A verdict is an observation at observed_at; free is no reservation.
type AddressCheck struct {
	Address    string            `json:"address"`
	Verdict    string            `json:"verdict"`
	Reason     string            `json:"reason"`
	Network    string            `json:"network,omitempty"`
	Evidence   []AddressEvidence `json:"evidence"`
	Missing    []string          `json:"missing"`
	ObservedAt string            `json:"observed_at"`
}

// AddressReport is the answer of check_ip_availability.
type AddressReport struct {
	Answer
	AddressCheck
}

// A Segment is one layer-2 network: a bridge and, on it, a VLAN; 0 is untagged.
type Segment struct {
	Bridge string
	VLAN   int64
}

// Same reports whether two segments are one network as far as names tell. VLAN 1
// is what untagged frames are in, unless somebody changed it.
func (s Segment) Same(o Segment) bool {
	untagged := func(v int64) bool { return v == 0 || v == 1 }
	return s.Bridge == o.Bridge && (s.VLAN == o.VLAN || untagged(s.VLAN) && untagged(o.VLAN))
}

func (s Segment) String() string {
	if s.VLAN != 0 {
		return fmt.Sprintf("%s VLAN %d", s.Bridge, s.VLAN)
	}
	return s.Bridge
}

// A Holder is somebody who has an address, or would have.
type Holder struct {
	Subject string // guest/101
	Detail  string // who, in words
	Source  string // config, cloudinit, agent, lxc, container, node, sdn
	Address netip.Addr
	Prefix  netip.Prefix // the address with its network's length; invalid when not known
	MAC     string
	Segment *Segment // nil: not known
	Running bool
	State   string // of the guest: running, stopped, unknown, …
	Aside   string // "snapshot x" or "template": it does not hold the address now
	Maybe   string // why it cannot be told whether it is on the network of the address
	Cluster string // whose guest it is
}

// A Uplink is a node that is on-link for an address: it can ask for it on layer
// 2.
type Uplink struct {
	Node, Dev string
	Prefix    netip.Prefix
	Segment   Segment
	Cluster   string
	Local     bool // a bridge that ends inside the node
	Second    bool // the node sends through another interface
}

// SameNetwork reports whether asking on one uplink answers for the other: within
// a cluster a network has one name; what ends inside a node is that node's.
func (u Uplink) SameNetwork(o Uplink, nodes []Wiring) bool {
	return u.Cluster == o.Cluster && (u.Node == o.Node || !u.Local && !o.Local) && Relate(u.Segment, u.Cluster, o, nodes) == Same
}

// A NeighbourSeen is one node's neighbour entry.
type NeighbourSeen struct {
	Node string
	parse.Neighbour
	// Shared is how many addresses of the network the same MAC answers for.
	Shared int
}

// AddressProbe is what became of asking for the address from one node.
type AddressProbe struct {
	Node, Dev string
	Answered  bool            // it answered the ping
	After     []NeighbourSeen // the node's entries for it afterwards
}

// AddressView is everything that was read about one address.
type AddressView struct {
	Address  netip.Addr
	At       int64 // unix seconds
	Uplinks  []Uplink
	Holders  []Holder // of this address
	Seen     []NeighbourSeen
	Probes   []*AddressProbe // one for each network that it may be on
	Gateways []netip.Addr
	Ranges   []parse.AddressRange // that SDN hands out by DHCP
	Networks []netip.Prefix       // of guests' and SDN's configuration, beside the uplinks'
	Blocking []string             // what could not be read, so that free is not proven
	Open     []string             // what may hold further addresses
	Unprobed string               // why the address was not asked for everywhere; "" when it was
	Owners   map[string]string    // who has a MAC, in words
}

// ManyAddresses is from how many addresses on one MAC is taken for proxy ARP.
const ManyAddresses = 3

// JudgeAddress weighs the evidence. In use and reserved need one good witness,
// free needs all of them.
func JudgeAddress(v AddressView) AddressCheck {
	c := AddressCheck{Address: v.Address.String(), Evidence: []AddressEvidence{}, Missing: []string{}, ObservedAt: At(v.At)}
	w := &weighing{v: v, c: &c}
	if len(v.Uplinks) > 0 {
		c.Network = fmt.Sprintf("%s on %s", v.Uplinks[0].Prefix.Masked(), v.Uplinks[0].Segment)
	}
	w.network()
	w.holders()
	w.neighbours()
	w.probes()
	w.decide()
	for _, m := range append(slices.Clone(v.Blocking), v.Open...) {
		c.Missing = append(c.Missing, Clean(m))
	}
	return c
}

// weighing collects what speaks for which verdict.
type weighing struct {
	v        AddressView
	c        *AddressCheck
	used     string // the best reason for in_use
	seen     string // somebody answered before
	reserved string
	shared   string // why layer-2 answers prove nothing
	unsure   string // somebody may have it
	silent   bool   // asked, and nobody answered
	pending  bool   // asked, and no end of it yet
}

func (w *weighing) add(source string, found bool, strength, format string, args ...any) string {
	e := AddressEvidence{Source: source, Found: found, Strength: strength, Detail: Clean(fmt.Sprintf(format, args...))}
	if !slices.Contains(w.c.Evidence, e) {
		w.c.Evidence = append(w.c.Evidence, e)
	}
	return e.Detail
}

// network finds addresses that nobody may have: the first and last of their
// network, and the gateway.
func (w *weighing) network() {
	prefixes := slices.Clone(w.v.Networks)
	for _, u := range w.v.Uplinks {
		prefixes = append(prefixes, u.Prefix)
	}
	for _, p := range prefixes {
		if what := edge(p, w.v.Address); what != "" {
			w.reserved = w.add("network", true, Strong, "%s address of %s", what, p.Masked())
		}
	}
	if slices.Contains(w.v.Gateways, w.v.Address) {
		w.reserved = w.add("network", true, Configured, "a gateway by configuration")
	}
	for _, r := range w.v.Ranges {
		if r.First.Compare(w.v.Address) <= 0 && w.v.Address.Compare(r.Last) <= 0 {
			w.reserved = w.add("sdn", true, Configured, "in the DHCP range %s to %s of SDN", r.First, r.Last)
		}
	}
}

// edge says whether an address is the first or last of an IPv4 network, or the
// anycast address of an IPv6 one.
func edge(p netip.Prefix, a netip.Addr) string {
	if !p.Contains(a) || a.Is4() && p.Bits() >= 31 || a.Is6() && p.Bits() >= 127 {
		return ""
	}
	if a == p.Masked().Addr() {
		if a.Is6() {
			return "router anycast"
		}
		return "network"
	}
	if a.Is4() && a == lastAddr(p) {
		return "broadcast"
	}
	return ""
}

func lastAddr(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for i := range b {
		host := 8 - min(max(p.Bits()-8*i, 0), 8)
		b[i] |= byte(1<<host - 1)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// holders weighs who has the address by configuration, or was seen with it.
func (w *weighing) holders() {
	for _, h := range w.v.Holders {
		other := w.elsewhere(h)
		switch {
		case h.Aside != "":
			w.add(h.Source, true, Weak, "%s: only in its %s", h.Detail, h.Aside)
		case other != "":
			w.add(h.Source, true, Weak, "%s, but on %s: another network", h.Detail, other)
		case h.Maybe != "":
			w.unsure = w.add(h.Source, true, Weak, "%s; %s", h.Detail, h.Maybe)
		case h.Source == "sdn":
			w.reserved = w.add("sdn", true, Configured, "%s", h.Detail)
		case h.Source == "agent" || h.Source == "lxc" || h.Source == "node":
			w.used = w.add(h.Source, true, Proof, "%s", h.Detail)
		case h.Source == "container":
			w.used = w.add("container", true, Strong, "%s", h.Detail)
		default:
			state := cmp.Or(h.State, Stopped)
			if h.Running {
				state = Running
			}
			w.used = w.add(h.Source, true, Configured, "%s (%s)", h.Detail, state)
		}
	}
}

// elsewhere names the holder's network where it is known to be another one than
// the one that would be asked.
func (w *weighing) elsewhere(h Holder) string {
	if h.Segment == nil || h.Maybe != "" || len(w.v.Uplinks) == 0 {
		return ""
	}
	for _, u := range w.v.Uplinks {
		if u.Segment.Same(*h.Segment) {
			return ""
		}
	}
	if h.Segment.Bridge == "" {
		return "no bridge"
	}
	return h.Segment.String()
}

// neighbours weighs what the nodes' tables know.
func (w *weighing) neighbours() {
	for _, n := range w.v.Seen {
		w.neighbour(n, false)
	}
	if len(w.v.Seen) == 0 && len(w.v.Uplinks) > 0 {
		w.add("neighbour", false, Weak, "in no node's neighbour table: that proves nothing")
	}
}

func (w *weighing) neighbour(n NeighbourSeen, probed bool) {
	if !slices.ContainsFunc(w.v.Uplinks, func(u Uplink) bool { return u.Node == n.Node && u.Dev == n.Dev }) {
		w.add("neighbour", true, Weak, "%s has an entry on %s: another network", n.Node, n.Dev)
		return
	}
	who := n.MAC
	if owner := w.v.Owners[strings.ToLower(n.MAC)]; owner != "" {
		who += ", " + owner
	}
	proxy := n.Proxy || n.Shared >= ManyAddresses && !VirtualRouter(n.MAC) && w.v.Owners[strings.ToLower(n.MAC)] == ""
	switch n.Grade() {
	case parse.GradeStatic:
		w.reserved = w.add("neighbour", true, Configured, "%s has a permanent entry on %s (%s)", n.Node, n.Dev, who)
	case parse.GradeAnswered, parse.GradeSeen:
		if proxy {
			w.shared = w.add("neighbour", true, Weak, "%s answers for %d addresses on %s: proxy ARP proves nothing", n.MAC, n.Shared, n.Dev)
			return
		}
		if n.Grade() == parse.GradeAnswered {
			w.used = w.add("neighbour", true, Proof, "answered on layer 2: %s on %s at %s", who, n.Dev, n.Node)
			return
		}
		w.seen = w.add("neighbour", true, Weak, "was seen on layer 2: %s on %s at %s (%s)", who, n.Dev, n.Node, n.State)
	case parse.GradeSilent:
		w.add("neighbour", false, Weak, "nobody answered %s on %s lately", n.Node, n.Dev)
		w.silent = w.silent || probed
	default:
		w.add("neighbour", false, Weak, "%s has asked on %s and has no answer yet", n.Node, n.Dev)
		w.pending = w.pending || probed
	}
}

// VirtualRouter reports whether a MAC is VRRP's or CARP's, which stands for an
// address, not for a machine.
func VirtualRouter(mac string) bool {
	mac = strings.ToLower(mac)
	return strings.HasPrefix(mac, "00:00:5e:00:01:") || strings.HasPrefix(mac, "00:00:5e:00:02:")
}

// probes weighs what asking for the address brought. Every network that was
// asked must be silent.
func (w *weighing) probes() {
	all := len(w.v.Probes) > 0
	for _, p := range w.v.Probes {
		w.silent = false
		w.probe(p)
		all = all && w.silent
	}
	w.silent = all
}

func (w *weighing) probe(p *AddressProbe) {
	if p.Answered {
		w.used = w.add("probe", true, Proof, "answered a ping from %s", p.Node)
	} else {
		w.add("probe", false, Weak, "no answer to a ping from %s; hosts may drop it", p.Node)
	}
	for _, n := range p.After {
		w.neighbour(n, true)
	}
	w.pending = w.pending || !p.Answered && len(p.After) == 0
}

func (w *weighing) decide() {
	c := w.c
	switch {
	case w.used != "":
		c.Verdict, c.Reason = InUse, w.used
	case w.reserved != "":
		c.Verdict, c.Reason = Reserved, w.reserved
	case w.seen != "" && len(w.v.Probes) == 0:
		c.Verdict, c.Reason = InUse, w.seen
	default:
		c.Verdict, c.Reason = Unknown, w.unproven()
	}
	if c.Reason == "" {
		c.Verdict, c.Reason = Free, "nobody has it by configuration, and nobody answered for it on layer 2 just now"
	}
}

// unproven is the first reason why the address is not proven free, or "".
func (w *weighing) unproven() string {
	switch {
	case w.shared != "":
		return w.shared
	case w.seen != "":
		return w.seen + ", and does not answer now"
	case w.unsure != "":
		return w.unsure
	case len(w.v.Blocking) > 0:
		return Clean(w.v.Blocking[0])
	case len(w.v.Uplinks) == 0:
		return "no node that can be asked is on-link for this address, so nothing on layer 2 is known"
	case len(w.v.Probes) == 0 || w.v.Unprobed != "":
		return "it was not asked for: " + w.v.Unprobed
	case w.pending || !w.silent:
		return "the question on layer 2 has no end yet; ask again"
	}
	return ""
}

// Tables shows the check to people.
func (r *AddressReport) Tables() []Table { return r.AddressCheck.tables() }

func (c AddressCheck) tables() []Table {
	t := Table{Title: fmt.Sprintf("%s: %s", c.Address, c.Verdict), Columns: []string{"source", "found", "strength", "detail"}}
	for _, e := range c.Evidence {
		t.Rows = append(t.Rows, []string{e.Source, YesNo(&e.Found), e.Strength, e.Detail})
	}
	t.Notes = append(t.Notes, "because: "+c.Reason)
	for _, m := range c.Missing {
		t.Notes = append(t.Notes, "not known: "+m)
	}
	t.Notes = append(t.Notes, "observed at "+c.ObservedAt+"; an observation, not a reservation")
	return []Table{t}
}
