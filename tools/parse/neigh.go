package parse

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// A Neighbour is one line of a node's ARP or ND table.
type Neighbour struct {
	Addr   netip.Addr
	Dev    string // evidence for the network of this interface alone
	MAC    string // lower case; "" when nobody answered
	State  NeighbourState
	Router bool
	Extern bool // learned by a routing daemon, not by asking
	Proxy  bool
}

// A NeighbourState is the kernel's word for what it knows.
type NeighbourState string

// The kernel's states.
const (
	NeighbourReachable  NeighbourState = "REACHABLE"
	NeighbourDelay      NeighbourState = "DELAY"
	NeighbourProbe      NeighbourState = "PROBE"
	NeighbourStale      NeighbourState = "STALE"
	NeighbourPermanent  NeighbourState = "PERMANENT"
	NeighbourNoARP      NeighbourState = "NOARP"
	NeighbourIncomplete NeighbourState = "INCOMPLETE"
	NeighbourFailed     NeighbourState = "FAILED"
	NeighbourNone       NeighbourState = "NONE"
)

// A NeighbourGrade is how much a neighbour's state proves.
type NeighbourGrade string

// The grades. An address that is not in the table has none of them: nothing is
// known, and that is not "free".
const (
	GradeAnswered NeighbourGrade = "answered" // somebody answered a moment ago
	GradeSeen     NeighbourGrade = "seen"     // somebody answered before
	GradeStatic   NeighbourGrade = "static"   // an entry made by hand or by SDN: reserved
	GradeSilent   NeighbourGrade = "silent"   // asked just now, nobody answered
	GradeUnknown  NeighbourGrade = "unknown"  // the question is under way, or there was none
)

// Grade says what the entry proves. Without a MAC nobody can have answered.
func (n Neighbour) Grade() NeighbourGrade {
	switch n.State {
	case NeighbourPermanent, NeighbourNoARP:
		return GradeStatic
	case NeighbourFailed:
		return GradeSilent
	}
	if n.MAC == "" {
		return GradeUnknown
	}
	switch n.State {
	case NeighbourReachable:
		return GradeAnswered
	case NeighbourDelay, NeighbourProbe, NeighbourStale:
		return GradeSeen
	}
	return GradeUnknown
}

// Neighbours reads ip -j neigh show (iproute2 5.10 to 6.x). Flags such as router
// are keys with the value null.
//
//	[{"dst":"192.168.20.60","dev":"vmbr0","lladdr":"ba:19:f6:c4:ac:f1","state":["DELAY"]},{"dst":"fe80::1","dev":"vmbr0","lladdr":"ba:19:f6:c4:ac:f1","router":null,"state":["REACHABLE"]}]
//
// Entries are sorted by address, then interface. One without an address is left
// out and noted.
func Neighbours(out []byte) ([]Neighbour, []Note, error) {
	list, notes, err := jsonList("ip neigh", out)
	if err != nil {
		return nil, nil, err
	}
	table := []Neighbour{}
	for _, o := range list {
		if len(o.fields) == 0 {
			continue
		}
		addr := joinPrefix(o.text("dst"), nil)
		if !addr.IsValid() {
			o.note("dst", "an address")
			continue
		}
		table = append(table, Neighbour{
			Addr: addr.Addr(), Dev: o.text("dev"), MAC: normalMAC(o.text("lladdr")), State: neighbourState(o.texts("state")),
			Router: o.mark("router"), Extern: o.mark("extern_learn"), Proxy: o.mark("proxy"),
		})
	}
	slices.SortFunc(table, func(a, b Neighbour) int { return cmp.Or(a.Addr.Compare(b.Addr), strings.Compare(a.Dev, b.Dev)) })
	return table, *notes, nil
}

// mark reports a flag that stands as a key: null, or true in other versions.
func (o jsonObject) mark(key string) bool {
	_, there := o.fields[key]
	return there && (!o.has(key) || o.yes(key))
}

// neighbourState picks, of several states, the one that matters most: a static
// entry stays static whatever else is said of it.
func neighbourState(states []string) NeighbourState {
	for _, s := range []NeighbourState{
		NeighbourPermanent, NeighbourNoARP, NeighbourReachable, NeighbourDelay, NeighbourProbe,
		NeighbourStale, NeighbourIncomplete, NeighbourFailed,
	} {
		if slices.ContainsFunc(states, func(have string) bool { return strings.EqualFold(have, string(s)) }) {
			return s
		}
	}
	return NeighbourNone
}
