package tools

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// An addressBook is everything that files and tables say of addresses: read
// once, then asked for any number of them.
type addressBook struct {
	s        *Session
	inv      *inventory
	holders  []report.Holder
	seen     []report.NeighbourSeen
	nodes    []nodeNet
	gateways []netip.Addr
	networks []netip.Prefix
	ranges   []parse.AddressRange
	blocking []string
	open     []string
	owners   map[string]string // by MAC
	wirings  []report.Wiring
	vnets    map[string]report.Segment // VLANs that SDN has a name for, by cluster and name
	unlisted []netip.Prefix            // SDN's subnets of which its own list of addresses says nothing
	probed   int                       // addresses asked for in this call
	stopped  map[string][]string       // stopped guests that may hold addresses, by network
	dynamic  []dynamicNIC              // of running guests whose addresses are not in the configuration
	closed   []dynamicNIC              // of stopped guests, with addresses that may be set inside

	mu sync.Mutex
}

// nodeNet is one node's view of the network.
type nodeNet struct {
	at     site
	wiring report.Wiring
	routes []parse.Route
}

// A dynamicNIC is a network device whose address is not in the configuration.
type dynamicNIC struct {
	place   place
	nic     report.NIC
	segment report.Segment
}

// permitted refuses addresses and networks that the profile does not permit.
func (s *Session) permitted(p netip.Prefix) error {
	if len(s.Profile.PermittedNetworks) == 0 {
		return errorf(report.InvalidArgument, "profile %s permits no networks, so no address is checked", s.Profile.Name).hint("add permitted_networks = [\"10.0.0.0/24\"] to the profile")
	}
	for _, n := range s.Profile.PermittedNetworks {
		if n.Contains(p.Addr()) && n.Bits() <= p.Bits() {
			return nil
		}
	}
	return errorf(report.InvalidArgument, "%s is outside permitted_networks of profile %s", p, s.Profile.Name).hint("permitted are %s", strings.Join(texts(s.Profile.PermittedNetworks), ", "))
}

func texts[T fmt.Stringer](in []T) []string {
	var out []string
	for _, x := range in {
		out = append(out, x.String())
	}
	return out
}

// addressBook reads configurations, neighbour tables, node addresses and SDN.
// What cannot be read keeps every address from being proven free.
func (s *Session) addressBook() (*addressBook, error) {
	inv, err := s.inventory(needConfigs | needLive)
	if err != nil {
		return nil, err
	}
	b := &addressBook{s: s, inv: inv, owners: map[string]string{}, stopped: map[string][]string{}, vnets: map[string]report.Segment{}}
	var sites []site
	for _, c := range inv.clusters {
		s.offlineNodes(c, "")
		if !c.has(needConfigs) {
			b.block("configurations of cluster %s could not be read", c.Name)
		}
		b.guests(c)
		b.sdn(c)
		for _, n := range c.nodes() {
			sites = append(sites, site{c, n})
		}
	}
	for _, e := range inv.unplaced {
		b.block("%s does not answer, and what guests it has is not known", e.dest)
	}
	parallel(sites, func(_ int, at site) { b.node(at) })
	slices.SortFunc(b.nodes, func(x, y nodeNet) int {
		return cmp.Or(strings.Compare(x.at.node, y.at.node), strings.Compare(x.at.cluster.Name, y.at.cluster.Name))
	})
	for _, n := range b.nodes {
		b.wirings = append(b.wirings, n.wiring)
	}
	slices.Sort(b.blocking)
	slices.Sort(b.open)
	b.countShared()
	return b, nil
}

func (b *addressBook) block(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.blocking = append(b.blocking, fmt.Sprintf(format, args...))
}

func (b *addressBook) leaveOpen(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if text := fmt.Sprintf(format, args...); !slices.Contains(b.open, text) {
		b.open = append(b.open, text)
	}
}

// uplinks are the nodes that are on-link for an address, with each interface that
// has its network.
func (b *addressBook) uplinks(a netip.Addr) []report.Uplink {
	var out []report.Uplink
	for _, n := range b.nodes {
		for i, dev := range parse.OnLinks(n.routes, a) {
			u := report.Uplink{Node: n.at.node, Cluster: n.at.cluster.Name, Dev: dev, Segment: n.wiring.Segment(dev), Local: n.wiring.Local(dev), Second: i > 0}
			for _, r := range n.routes {
				if slices.Contains(r.Devs, dev) && len(r.Gateways) == 0 && r.Dst.Contains(a) && r.Type == "unicast" && r.Dst.Bits() > u.Prefix.Bits() {
					u.Prefix = r.Dst
				}
			}
			out = append(out, u)
		}
	}
	return out
}

// locate tells of a holder on which of the address's networks it is, or that this
// cannot be told.
func (b *addressBook) locate(h report.Holder, uplinks []report.Uplink) report.Holder {
	if h.Segment == nil || h.Aside != "" {
		return h
	}
	for _, u := range uplinks {
		switch b.relate(*h.Segment, h.Cluster, u) {
		case report.Same:
			h.Segment, h.Maybe = &u.Segment, ""
			return h
		case report.Unsure:
			h.Maybe = fmt.Sprintf("whether %s is the network of %s on %s cannot be told", h.Segment, u.Dev, u.Node)
		}
	}
	return h
}

// view is what the book knows of one address.
func (b *addressBook) view(a netip.Addr) report.AddressView {
	v := report.AddressView{Address: a, At: b.s.now.Unix(), Uplinks: b.uplinks(a), Gateways: b.gateways, Ranges: b.ranges, Owners: b.owners, Blocking: slices.Clone(b.blocking), Open: slices.Clone(b.open)}
	at := networkOf(v)
	if _, known := b.stopped[at]; !known {
		b.stopped[at] = stoppedText(b.onSegment(v, b.closed))
	}
	v.Open = append(v.Open, b.stopped[at]...)
	for _, p := range b.networks {
		if p.Contains(a) && !slices.Contains(v.Networks, p.Masked()) {
			v.Networks = append(v.Networks, p.Masked())
		}
	}
	for _, h := range b.holders {
		if h.Address == a {
			v.Holders = append(v.Holders, b.locate(h, v.Uplinks))
		}
	}
	for _, n := range b.seen {
		if n.Addr == a {
			v.Seen = append(v.Seen, n)
		}
	}
	for _, n := range b.unlisted {
		if n.Contains(a) {
			v.Blocking = append(v.Blocking, fmt.Sprintf("which addresses of %s SDN has given out is not in its list: another IPAM, or a version before that list, keeps them", n))
		}
	}
	for _, u := range v.Uplinks {
		if mac, shared := b.answersForMany(u); shared > 0 {
			v.Blocking = append(v.Blocking, fmt.Sprintf("%s answers for %d addresses on %s of %s (proxy ARP?), so silence there proves nothing", mac, shared, u.Dev, u.Node))
		}
	}
	return v
}

// answersForMany finds a MAC of nobody known that answers for many addresses on
// an uplink.
func (b *addressBook) answersForMany(u report.Uplink) (mac string, shared int) {
	for _, n := range b.seen {
		if n.Node == u.Node && n.Dev == u.Dev && n.Shared > max(shared, report.ManyAddresses-1) && b.owners[strings.ToLower(n.MAC)] == "" && !report.VirtualRouter(n.MAC) {
			mac, shared = n.MAC, n.Shared
		}
	}
	return mac, shared
}

// onSegment are those of nics that are on the network of an address; without an
// uplink it is every one.
func (b *addressBook) onSegment(v report.AddressView, nics []dynamicNIC) []dynamicNIC {
	var out []dynamicNIC
	for _, d := range nics {
		if len(v.Uplinks) == 0 || slices.ContainsFunc(v.Uplinks, func(u report.Uplink) bool {
			return b.relate(d.segment, d.place.cluster.Name, u) != report.Other
		}) || len(d.nic.Trunks) > 0 {
			out = append(out, d)
		}
	}
	return out
}

// stoppedText names stopped guests with their devices, a line a guest; many are
// named by their numbers alone.
func stoppedText(nics []dynamicNIC) []string {
	const most = 12
	keys, ids := map[string][]string{}, []string{}
	for _, d := range nics {
		keys[guestText(d.place.Guest)] = append(keys[guestText(d.place.Guest)], d.nic.Key)
		if id := fmt.Sprint(d.place.VMID); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	if len(keys) > most {
		var out []string
		for some := range slices.Chunk(ids, 2*most) {
			out = append(out, fmt.Sprintf("%d of %d stopped guests whose addresses inside are not known: %s", len(some), len(ids), strings.Join(some, ", ")))
		}
		return out
	}
	var out []string
	for _, who := range slices.Sorted(maps.Keys(keys)) {
		out = append(out, fmt.Sprintf("%s is stopped; addresses set inside it are not known (%s)", who, strings.Join(keys[who], ", ")))
	}
	return out
}
