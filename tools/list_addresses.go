package tools

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type listAddressesIn struct {
	Common
	Paged
	Network string `json:"network,omitempty" help:"only this network, such as 10.0.0.0/24; default: all permitted ones" pos:"true"`
	Guest   Text   `json:"guest,omitempty" help:"only this guest's"`
	Observe bool   `json:"observe,omitempty" help:"also ask running guests and their containers (seconds)"`
}

var listAddresses = define("list_addresses", "List known addresses",
	"Lists every known address of the permitted networks: who has it, configured or seen, where, and which two want the same. open names what may hold further addresses.",
	func(_ context.Context, s *Session, in listAddressesIn) (*report.AddressList, error) {
		networks, err := s.networks(in.Network)
		if err != nil {
			return nil, err
		}
		b, err := s.addressBook()
		if err != nil {
			return nil, err
		}
		only := ""
		if in.Guest != "" {
			p, err := b.inv.find(in.Guest)
			if err != nil {
				return nil, err
			}
			only = guestText(p.Guest)
		}
		out := &report.AddressList{Open: []string{}}
		if in.Observe {
			b.observe(b.dynamic)
			b.containers()
		}
		var findings []*report.Finding
		if in.Observe {
			findings = b.noLease(s.judge())
		}
		rows := report.Addresses(networks, b.holders, b.seen, b.owners)
		if only != "" {
			rows = slices.DeleteFunc(rows, func(r report.AddressRow) bool { return !strings.HasPrefix(r.Who, only) })
		}
		findings = append(findings, report.AddressFindings(b.holders, b.seen, s.judge())...)
		findings = append(findings, report.MACFindings(b.nics(), s.judge())...)
		out.Findings = report.Findings(findings...)
		out.Open = append(out.Open, b.openTexts(in.Observe)...)
		out.Items, out.Page = report.Cut(rows, in.Offset, in.Limit)
		return out, nil
	})

// networks are the permitted networks, or the one that is asked for.
func (s *Session) networks(arg string) ([]netip.Prefix, error) {
	if arg == "" {
		if len(s.Profile.PermittedNetworks) == 0 {
			return nil, s.permitted(netip.Prefix{})
		}
		return s.Profile.PermittedNetworks, nil
	}
	p, err := netip.ParsePrefix(arg)
	if err != nil {
		return nil, errorf(report.InvalidArgument, "network must be a network such as 10.0.0.0/24")
	}
	return []netip.Prefix{p.Masked()}, s.permitted(p.Masked())
}

// openTexts names what may hold further addresses, and what could not be read.
func (b *addressBook) openTexts(observed bool) []string {
	out := slices.Concat(b.blocking, b.open, stoppedText(b.closed))
	if !observed {
		keys := map[string]bool{}
		for _, d := range b.dynamic {
			who := fmt.Sprintf("%s (%s): its address is not in its configuration (%s)", guestText(d.place.Guest), d.place.Status, modeText(d.nic))
			if !keys[who] {
				keys[who] = true
				out = append(out, who)
			}
		}
	}
	for i := range out {
		out[i] = report.Clean(out[i])
	}
	return out
}

// nics are all guests' network devices.
func (b *addressBook) nics() []report.GuestNIC {
	var out []report.GuestNIC
	for _, c := range b.inv.clusters {
		for _, g := range report.Guests(c.view(b.inv), false) {
			cfg := c.config(g.VMID)
			if cfg == nil || g.Template {
				continue
			}
			for _, n := range report.Configuration(g, *cfg).Current.NICs {
				out = append(out, report.GuestNIC{Subject: fmt.Sprintf("guest/%d", g.VMID), Who: guestText(g) + " " + n.Key, MAC: n.MAC, Segment: segmentOf(n), Cluster: c.Name})
			}
		}
	}
	return out
}

// noLease finds running guests that take their address by DHCP and have none: a
// guest that answered, on a device that has only link-local addresses.
func (b *addressBook) noLease(j report.Judge) []*report.Finding {
	var out []*report.Finding
	for _, d := range b.dynamic {
		if d.nic.IPv4Mode != "dhcp" {
			continue
		}
		found, err := b.s.observed(&d.place)
		if err != nil {
			continue
		}
		for _, i := range found {
			if !strings.EqualFold(i.MAC, d.nic.MAC) || i.MAC == "" {
				continue
			}
			lease := slices.ContainsFunc(i.Addresses, func(p netip.Prefix) bool { return p.Addr().Is4() && !p.Addr().IsLinkLocalUnicast() })
			if !lease && i.Kind == parse.InterfacePlain {
				out = append(out, j.Find("NET_NO_LEASE", "", fmt.Sprintf("guest/%d", d.place.VMID), fmt.Sprintf("%s %s takes its address by DHCP and has none", guestText(d.place.Guest), d.nic.Key)))
			}
		}
	}
	return out
}
