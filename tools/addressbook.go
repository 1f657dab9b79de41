package tools

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

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

// guests takes the addresses from the configurations of a cluster's guests:
// those that hold now, those that are pending, and, apart, snapshots' and
// templates'.
func (b *addressBook) guests(c *cluster) {
	rows := map[int]report.Guest{}
	for _, g := range report.Guests(c.view(b.inv), false) {
		rows[g.VMID] = g
	}
	for i := range c.configs {
		cfg := &c.configs[i]
		row, ok := rows[cfg.VMID]
		if !ok {
			row = report.Guest{VMID: cfg.VMID, Type: cfg.Kind, Node: cfg.Node, Name: report.Clean(cfg.Current.Name), Status: report.Unknown}
		}
		p := place{Guest: row, cluster: c, config: cfg}
		b.settings(p, cfg.Current, "")
		if cfg.Pending != nil {
			b.settings(p, cfg.Pending.Settings, "")
		}
		for _, snap := range cfg.Snapshots {
			b.settings(p, snap.Settings, "snapshot "+report.Clean(snap.Name))
		}
		b.undetermined(p)
		if n := len(cfg.BadLines); n > 0 {
			b.block("configuration of guest %d has lines that cannot be read", cfg.VMID)
		}
	}
	for _, g := range c.State.Guests {
		if c.has(needConfigs) && c.config(g.VMID) == nil {
			b.block("the configuration of guest %d on %s was not there to read", g.VMID, g.Node)
		}
	}
}

// settings takes the static addresses of one section; aside says that they are
// not in use now.
func (b *addressBook) settings(p place, g parse.GuestSettings, aside string) {
	if p.Template && aside == "" {
		aside = "template"
	}
	cfg := report.Configuration(p.Guest, parse.GuestConfig{Kind: p.Type, Current: g}).Current
	segments := map[string]report.Segment{}
	for _, n := range cfg.NICs {
		segments[strings.TrimPrefix(n.Key, "net")] = segmentOf(n)
		if n.MAC != "" && aside == "" {
			b.owners[strings.ToLower(n.MAC)] = guestText(p.Guest)
		}
		if !strings.HasPrefix(n.Key, "lxc.net.") {
			seg := segmentOf(n)
			b.static(p, n, &seg, n.MAC, "config", aside)
		}
	}
	for _, r := range g.Raw.NICs {
		for _, prefix := range r.Addresses {
			b.hold(p, fmt.Sprintf("lxc.net.%d", r.Index), prefix, nil, r.MAC, "config", aside)
		}
	}
	for _, n := range cfg.CloudInit {
		if seg, ok := segments[strings.TrimPrefix(n.Key, "ipconfig")]; ok {
			b.static(p, n, &seg, "", "cloudinit", aside)
		} else {
			b.static(p, n, nil, "", "cloudinit", aside)
		}
	}
}

func segmentOf(n report.NIC) report.Segment {
	seg := report.Segment{Bridge: n.Bridge}
	if n.VLAN != nil {
		seg.VLAN = *n.VLAN
	}
	return seg
}

func guestText(g report.Guest) string {
	return strings.TrimSpace(fmt.Sprintf("guest %d %s", g.VMID, g.Name))
}

func (b *addressBook) static(p place, n report.NIC, seg *report.Segment, mac, source, aside string) {
	for _, prefix := range n.Prefixes() {
		b.hold(p, n.Key, prefix, seg, mac, source, aside)
	}
	for _, g := range []string{n.IPv4Gateway, n.IPv6Gateway} {
		if a, err := netip.ParseAddr(g); err == nil && aside == "" {
			b.gateways = append(b.gateways, a)
		}
	}
}

// hold notes that a guest has an address by configuration; seg is nil where it is
// not known on which network.
func (b *addressBook) hold(p place, key string, prefix netip.Prefix, seg *report.Segment, mac, source, aside string) {
	if seg != nil && seg.Bridge == "" && source == "cloudinit" {
		seg = nil
	}
	b.holders = append(b.holders, report.Holder{
		Subject: fmt.Sprintf("guest/%d", p.VMID), Detail: fmt.Sprintf("%s on %s, %s", guestText(p.Guest), p.Node, key), Source: source, Cluster: p.cluster.Name,
		Address: prefix.Addr().Unmap(), Prefix: prefix, MAC: mac, Segment: seg, Running: p.Status == report.Running, State: p.Status, Aside: aside,
	})
	if aside == "" {
		b.networks = append(b.networks, prefix)
	}
}

// undetermined names the network devices that may hold addresses which no
// configuration tells.
func (b *addressBook) undetermined(p place) {
	if p.Template {
		return
	}
	cfg := report.Configuration(p.Guest, *p.config).Current
	static := map[string]bool{}
	for _, n := range cfg.CloudInit {
		static[strings.Replace(n.Key, "ipconfig", "net", 1)] = n.IPv4Mode == "static" && (n.IPv6Mode == "static" || n.IPv6Mode == "")
	}
	for _, n := range cfg.NICs {
		if static[n.Key] || p.Type == "lxc" && n.IPv4Mode == "static" && n.IPv6Mode != "dhcp" && n.IPv6Mode != "auto" && n.IPv6Mode != "manual" {
			continue
		}
		if p.Status == report.Stopped {
			if p.Type == "qemu" || n.IPv4Mode == "manual" || n.IPv6Mode == "manual" {
				b.closed = append(b.closed, dynamicNIC{p, n, segmentOf(n)})
			}
			continue
		}
		b.dynamic = append(b.dynamic, dynamicNIC{p, n, segmentOf(n)})
	}
}

// sdn takes gateways, ranges and given-out addresses from a cluster's SDN.
func (b *addressBook) sdn(c *cluster) {
	var subnets []netip.Prefix
	out, err := b.s.ask(b.s.ctx, c.server, "sdn")
	if err == nil {
		var sdn *parse.SDN
		if sdn, err = parse.ParseSDN(out); err == nil {
			b.vlanNets(c, sdn)
			for _, n := range sdn.Subnets {
				b.networks = append(b.networks, n.Network)
				subnets = append(subnets, n.Network.Masked())
				b.ranges = append(b.ranges, n.Ranges...)
				if n.Gateway.IsValid() {
					b.gateways = append(b.gateways, n.Gateway)
				}
			}
			if len(sdn.BadLines) > 0 {
				b.block("SDN of cluster %s has lines that cannot be read", c.Name)
			}
		}
	}
	if err != nil {
		b.s.miss(c.server.name(), err)
		b.block("SDN of cluster %s could not be read", c.Name)
	}
	out, err = b.s.ask(b.s.ctx, c.server, "sdn-ipam")
	var entries []parse.IPAMEntry
	var notes []parse.Note
	if err == nil {
		entries, notes, err = parse.IPAM(out)
	}
	if err != nil || len(notes) > 0 {
		b.s.miss(c.server.name(), err)
		b.s.notes(c.server.name(), "sdn-ipam", notes)
		b.block("SDN's addresses of cluster %s could not be read", c.Name)
	}
	for _, n := range subnets {
		if err == nil && !slices.ContainsFunc(entries, func(e parse.IPAMEntry) bool { return e.Subnet.Masked() == n }) {
			b.unlisted = append(b.unlisted, n)
		}
	}
	for _, e := range entries {
		who := "given out by SDN"
		if e.VMID != nil {
			who += fmt.Sprintf(" to guest %d", *e.VMID)
		}
		if e.Gateway {
			who = "an SDN gateway"
		}
		b.holders = append(b.holders, report.Holder{Subject: "sdn", Detail: strings.TrimSpace(who + " " + report.Clean(e.Hostname)), Source: "sdn", Address: e.Address, MAC: e.MAC})
	}
}

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

// maxObserved is how many guests are asked for their addresses in one call.
const maxObserved = 24

// observe asks running guests what addresses they have, and their containers.
func (b *addressBook) observe(nics []dynamicNIC) {
	byGuest := map[string]dynamicNIC{}
	for _, d := range nics {
		byGuest[fmt.Sprintf("%s/%d", d.place.cluster.Name, d.place.VMID)] = d
	}
	keys := slices.Sorted(maps.Keys(byGuest))
	for i, k := range keys {
		if i >= maxObserved {
			b.leaveOpen("%s was not asked for its addresses (%d guests a call are)", guestText(byGuest[k].place.Guest), maxObserved)
		}
	}
	parallel(keys[:min(len(keys), maxObserved)], func(_ int, k string) {
		d := byGuest[k]
		found, err := b.s.observed(&d.place)
		if err != nil {
			b.leaveOpen("addresses of %s (%s): %s", guestText(d.place.Guest), modeText(d.nic), AsError(err).Message)
		}
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, i := range found {
			seg := b.segmentOfMAC(d.place, i.MAC)
			if seg == nil && i.Kind != parse.InterfacePlain || i.Kind == parse.InterfaceLoopback {
				continue
			}
			if seg != nil && seg.VLAN == 0 && manyWith(found, i.MAC) {
				seg = nil // a VLAN of the guest's own may be on that device
			}
			for _, a := range i.Addresses {
				source := "lxc"
				if d.place.Type == "qemu" {
					source = "agent"
				}
				b.holders = append(b.holders, report.Holder{Subject: fmt.Sprintf("guest/%d", d.place.VMID), Detail: fmt.Sprintf("%s on %s, %s", guestText(d.place.Guest), d.place.Node, report.Clean(i.Name)), Source: source, Address: a.Addr(), Prefix: a, MAC: i.MAC, Running: true, State: report.Running, Segment: seg, Cluster: d.place.cluster.Name})
			}
		}
	})
}

// manyWith reports whether several interfaces of a guest have one MAC.
func manyWith(found []parse.GuestInterface, mac string) bool {
	n := 0
	for _, i := range found {
		if i.MAC == mac {
			n++
		}
	}
	return n > 1
}

// segmentOfMAC is the network of the guest's device with that MAC; nil where it
// is none of them.
func (b *addressBook) segmentOfMAC(p place, mac string) *report.Segment {
	for _, n := range report.Configuration(p.Guest, *p.config).Current.NICs {
		if mac != "" && strings.EqualFold(n.MAC, mac) {
			seg := segmentOf(n)
			return &seg
		}
	}
	return nil
}

func modeText(n report.NIC) string {
	switch {
	case n.IPv4Mode != "" && n.IPv4Mode != "static":
		return n.Key + " " + n.IPv4Mode
	case n.IPv6Mode != "" && n.IPv6Mode != "static":
		return n.Key + " " + n.IPv6Mode
	}
	return n.Key + ", set inside"
}

// observed asks one running guest for its interfaces.
func (s *Session) observed(p *place) ([]parse.GuestInterface, error) {
	if p.Status != report.Running {
		return nil, errorf(report.NotFound, "its state is %s", p.Status)
	}
	e, err := p.cluster.at(p.Node)
	if err != nil {
		return nil, err
	}
	var found []parse.GuestInterface
	var notes []parse.Note
	if p.Type == "lxc" {
		out, err := s.ask(s.ctx, e, "lxc-interfaces", p.Node, fmt.Sprint(p.VMID))
		if err != nil {
			return nil, err
		}
		if found, notes, err = parse.LXCInterfaces(out); err != nil {
			return nil, unread("lxc-interfaces", err)
		}
	} else {
		if _, reason := agentAllowed(p.config); reason != "" {
			return nil, errorf(report.Unsupported, "%s", reason)
		}
		out, trouble, err := s.askAgent(e, p.VMID, "qemu-interfaces", p.Node, fmt.Sprint(p.VMID))
		if err != nil {
			return nil, err
		}
		if out.Exit != 0 {
			return nil, errorf(report.Unsupported, "the guest agent does not answer (%v)", trouble)
		}
		if found, notes, err = parse.QemuInterfaces(out.Stdout); err != nil {
			return nil, unread("qemu-interfaces", err)
		}
	}
	if len(notes) > 0 {
		return found, errorf(report.Internal, "part of its interfaces could not be read")
	}
	return found, nil
}

// containers takes the addresses of containers on networks of their own (macvlan
// and ipvlan) from running guests and docker hosts. Addresses inside a bridge
// network of Docker are the guest's own business.
func (b *addressBook) containers() {
	places := b.s.runningGuests(b.inv)
	for _, e := range b.s.dockers {
		places = append(places, newDockerHost(e))
	}
	for _, r := range b.s.askDocker(places, true, nil) {
		switch r.Place.Status {
		case report.PlaceOK:
		case report.PlaceNoDocker, report.PlaceDaemonStopped, report.PlaceGuestStopped:
			continue
		default:
			text := fmt.Sprintf("containers of %s: %s", whereText(r.Place.Where), r.Place.Reason)
			if r.Place.Type == "qemu" {
				b.leaveOpen("%s", text) // its agent is asked, which need not be there
			} else {
				b.block("%s", text)
			}
		}
		for _, d := range r.Details {
			for _, n := range d.Networks {
				maybe := ""
				if !slices.Contains(b.gateways, n.Gateway) {
					maybe = "whether network " + report.Clean(n.Name) + " is one of the guest's own cannot be told"
				}
				for _, p := range []netip.Prefix{n.IPv4, n.IPv6} {
					if p.IsValid() && n.Assigned {
						b.holders = append(b.holders, report.Holder{
							Subject: "container", Detail: fmt.Sprintf("container %s in %s, network %s", report.Clean(d.Name), whereText(r.Place.Where), report.Clean(n.Name)),
							Source: "container", Address: p.Addr(), Prefix: p, MAC: n.MAC, Running: true, Maybe: maybe,
						})
					}
				}
			}
		}
	}
}

func whereText(w report.Where) string {
	if w.Host != "" {
		return w.Host
	}
	return strings.TrimSpace(fmt.Sprintf("guest %d %s", w.Guest, w.GuestName))
}

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
