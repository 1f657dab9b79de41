package parse

import (
	"net/netip"
	"slices"
	"strings"
)

// A Route is one line of a node's routing tables.
type Route struct {
	Type     string       // unicast, local, broadcast, multicast, blackhole, unreachable, prohibit, …
	Dst      netip.Prefix // masked; a default route has length 0
	Gateways []netip.Addr // empty: on-link
	Devs     []string     // one, or several with next hops
	Table    string       // main, local, default or a number
	Protocol string       // kernel, static, dhcp, ra, …
	Scope    string
	Source   netip.Addr
	Metric   *int64
	Down     bool // its interface has no carrier, or is gone
}

// Routes reads ip -j route show table all (iproute2 5.10 to 6.x), both families:
//
//	[{"dst":"default","gateway":"192.168.20.1","dev":"vmbr0","flags":[]},{"dst":"192.168.20.0/24","dev":"vmbr0","protocol":"kernel","scope":"link","prefsrc":"192.168.20.11","flags":[]}]
//
// The order is the kernel's. A route without a destination is left out and noted.
func Routes(out []byte) ([]Route, []Note, error) {
	list, notes, err := jsonList("ip route", out)
	if err != nil {
		return nil, nil, err
	}
	routes := []Route{}
	for _, o := range list {
		if len(o.fields) == 0 {
			continue
		}
		if r, ok := route(o); ok {
			routes = append(routes, r)
		}
	}
	return routes, *notes, nil
}

func route(o jsonObject) (Route, bool) {
	r := Route{
		Type: o.text("type"), Table: o.text("table"), Protocol: o.text("protocol"), Scope: o.text("scope"), Metric: nonNegative(o.integer("metric")),
		Gateways: []netip.Addr{}, Devs: []string{},
	}
	if r.Type == "" {
		r.Type = "unicast"
	}
	if r.Table == "" {
		r.Table = "main"
	}
	r.Source = address(o.text("prefsrc"))
	flags := o.texts("flags")
	for _, hop := range append([]jsonObject{o}, o.objects("nexthops")...) {
		r.hop(hop)
		flags = append(flags, hop.texts("flags")...)
	}
	r.Down = slices.Contains(flags, "linkdown") || slices.Contains(flags, "dead")
	r.Dst = routeDestination(o, r)
	if !r.Dst.IsValid() {
		o.note("dst", "a network, an address or default")
	}
	return r, r.Dst.IsValid()
}

// hop adds one next hop: its own gateway, or one of the other family ("via").
func (r *Route) hop(o jsonObject) {
	gateway := address(o.text("gateway"))
	if via, ok := o.object("via"); ok {
		gateway = address(via.text("host"))
	}
	if gateway.IsValid() {
		r.Gateways = append(r.Gateways, gateway)
	}
	if dev := o.text("dev"); dev != "" && !slices.Contains(r.Devs, dev) {
		r.Devs = append(r.Devs, dev)
	}
}

func address(s string) netip.Addr { return joinPrefix(s, nil).Addr() }

// routeDestination: "default" does not name its family; a gateway does, and
// only IPv6 routes have a preference.
func routeDestination(o jsonObject, r Route) netip.Prefix {
	dst := o.text("dst")
	if dst == "default" || dst == "all" {
		_, v6 := o.fields["pref"]
		if len(r.Gateways) > 0 && !o.has("via") {
			v6 = r.Gateways[0].Is6()
		}
		if v6 {
			return netip.PrefixFrom(netip.IPv6Unspecified(), 0)
		}
		return netip.PrefixFrom(netip.IPv4Unspecified(), 0)
	}
	addr, bits, isNetwork := strings.Cut(dst, "/")
	length := parseInt(bits)
	if isNetwork && length == nil {
		return netip.Prefix{}
	}
	return joinPrefix(addr, length).Masked()
}

// OnLink reports through which interface a node reaches an address without a
// router, by its main table: the longest match decides, as in the kernel. A
// link-local address, which every interface has a route for, is never on-link
// here, and neither is one of the node's own.
func OnLink(routes []Route, addr netip.Addr) (dev string, ok bool) {
	addr = addr.WithZone("").Unmap()
	if !addr.IsValid() || addr.IsLinkLocalUnicast() || addr.IsMulticast() {
		return "", false
	}
	best := -1
	for i, r := range routes {
		if r.Down || !r.Dst.Contains(addr) {
			continue
		}
		if r.Table == "local" && r.Type == "local" {
			return "", false
		}
		if r.Table == "main" && (best < 0 || better(r, routes[best])) {
			best = i
		}
	}
	if best < 0 {
		return "", false
	}
	r := routes[best]
	if r.Type != "unicast" || len(r.Gateways) > 0 || len(r.Devs) != 1 || r.Dst.Bits() == 0 {
		return "", false
	}
	return r.Devs[0], true
}

// OnLinks are the interfaces that have the network of an address: the one that the
// node sends through (see [OnLink]) first, then others with the same prefix.
func OnLinks(routes []Route, addr netip.Addr) []string {
	first, ok := OnLink(routes, addr)
	if !ok {
		return nil
	}
	on := func(r Route) bool {
		return r.Table == "main" && r.Type == "unicast" && !r.Down && len(r.Gateways) == 0 && len(r.Devs) == 1 && r.Dst.Contains(addr) && r.Dst.Bits() > 0
	}
	longest := 0
	for _, r := range routes {
		if on(r) && r.Devs[0] == first {
			longest = max(longest, r.Dst.Bits())
		}
	}
	out := []string{first}
	for _, r := range routes {
		if on(r) && r.Dst.Bits() == longest && !slices.Contains(out, r.Devs[0]) {
			out = append(out, r.Devs[0])
		}
	}
	return out
}

// better: the longer prefix, then the smaller metric; absent is the best metric.
func better(a, b Route) bool {
	if a.Dst.Bits() != b.Dst.Bits() {
		return a.Dst.Bits() > b.Dst.Bits()
	}
	return metric(a) < metric(b)
}

func metric(r Route) int64 {
	if r.Metric == nil {
		return 0
	}
	return *r.Metric
}
