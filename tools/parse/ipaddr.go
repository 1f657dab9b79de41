package parse

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
)

// A Link is one network interface of a node.
type Link struct {
	Index   int
	Name    string
	Kind    string // bridge, vlan, bond, veth, tun, …; "" for a real card, or without -d
	MAC     string // lower case; "" when none
	MTU     *int64
	State   string // operstate: UP, DOWN, UNKNOWN, LOWERLAYERDOWN
	Up      bool   // administratively
	Carrier bool
	Master  string // the bridge or bond that it is a port of
	Parent  string // vlan: the interface below

	VLAN          *int   // vlan: its number
	BondMode      string // bond: active-backup, 802.3ad, …
	VLANFiltering *bool  // bridge: VLAN-aware

	Addresses []LinkAddress // in the kernel's order
}

// A LinkAddress is one address of a node's interface.
type LinkAddress struct {
	Prefix     netip.Prefix // the address with the length of its network
	Scope      string       // global, link, host, site
	Dynamic    bool         // by DHCP or SLAAC
	Temporary  bool
	Deprecated bool
	Tentative  bool // not yet, or not, free on the network
}

// Links reads ip -j -d addr show (iproute2 5.10 to 6.x); without -d too, then
// kinds are unknown.
//
//	[{"ifindex":2,"ifname":"vmbr0","flags":["BROADCAST","MULTICAST","UP","LOWER_UP"],"mtu":1500,"operstate":"UP","address":"36:74:48:f4:9b:44","linkinfo":{"info_kind":"bridge","info_data":{"vlan_filtering":1}},"addr_info":[{"family":"inet","local":"192.168.20.11","prefixlen":24,"scope":"global"}]}]
//
// Links are sorted by name. Empty objects, which some versions print, are
// skipped; a link without a name or an unreadable address is noted.
func Links(out []byte) ([]Link, []Note, error) {
	list, notes, err := jsonList("ip addr", out)
	if err != nil {
		return nil, nil, err
	}
	links := []Link{}
	for _, o := range list {
		if len(o.fields) == 0 {
			continue
		}
		if o.text("ifname") == "" {
			o.note("ifname", "a name")
			continue
		}
		links = append(links, link(o))
	}
	slices.SortFunc(links, func(a, b Link) int { return cmp.Or(strings.Compare(a.Name, b.Name), cmp.Compare(a.Index, b.Index)) })
	return links, *notes, nil
}

func link(o jsonObject) Link {
	flags := o.texts("flags")
	l := Link{
		Name: o.text("ifname"), MAC: normalMAC(o.text("address")), MTU: positive(o.integer("mtu")), State: o.text("operstate"),
		Up: slices.Contains(flags, "UP"), Carrier: slices.Contains(flags, "LOWER_UP"), Master: o.text("master"), Parent: o.text("link"),
		Addresses: []LinkAddress{},
	}
	if n := smallInt(o.integer("ifindex")); n != nil {
		l.Index = *n
	}
	if info, ok := o.object("linkinfo"); ok {
		l.describe(info)
	}
	for _, a := range o.objects("addr_info") {
		if address, ok := linkAddress(a); ok {
			l.Addresses = append(l.Addresses, address)
		}
	}
	return l
}

func (l *Link) describe(info jsonObject) {
	l.Kind = info.text("info_kind")
	data, _ := info.object("info_data")
	switch l.Kind {
	case "vlan":
		l.VLAN = smallInt(positive(data.integer("id")))
	case "bond":
		l.BondMode = data.text("mode")
	case "bridge":
		l.VLANFiltering = data.flag("vlan_filtering")
	}
}

func linkAddress(a jsonObject) (LinkAddress, bool) {
	if len(a.fields) == 0 {
		return LinkAddress{}, false
	}
	local := cmp.Or(a.text("local"), a.text("address"))
	p := joinPrefix(local, a.integer("prefixlen"))
	if !p.IsValid() {
		a.note("local", "an address")
		return LinkAddress{}, false
	}
	return LinkAddress{
		Prefix: p, Scope: a.text("scope"), Dynamic: a.yes("dynamic"),
		Temporary: a.yes("temporary"), Deprecated: a.yes("deprecated"), Tentative: a.yes("tentative") || a.yes("dadfailed"),
	}, true
}
