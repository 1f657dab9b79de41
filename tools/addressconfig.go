package tools

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

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
