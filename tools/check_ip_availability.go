package tools

import (
	"context"
	"net/netip"

	"pvelens/tools/report"
)

type checkIPIn struct {
	Common
	Address string `json:"address" help:"IPv4 or IPv6 address, in any spelling" required:"true" pos:"true" max:"64"`
}

var checkIP = define("check_ip_availability", "Check whether an address is taken",
	"Says whether an address is in_use, reserved, unknown or free, with the evidence of each source: all guests' configurations, neighbour tables, nodes, SDN, guests, containers and one ping. free only when every source agrees; an observation, not a reservation.",
	func(_ context.Context, s *Session, in checkIPIn) (*report.AddressReport, error) {
		a, err := parseAddress(in.Address)
		if err != nil {
			return nil, err
		}
		if err := s.permitted(netip.PrefixFrom(a, a.BitLen())); err != nil {
			return nil, err
		}
		b, err := s.addressBook()
		if err != nil {
			return nil, err
		}
		return &report.AddressReport{AddressCheck: b.check(a)}, nil
	})

func parseAddress(s string) (netip.Addr, error) {
	a, err := netip.ParseAddr(s)
	if err != nil {
		return a, errorf(report.InvalidArgument, "address must be an IPv4 or IPv6 address such as 10.0.0.9")
	}
	if a = a.Unmap(); a.Zone() != "" || a.IsMulticast() || a.IsUnspecified() || a.IsLoopback() || a.IsLinkLocalUnicast() {
		return a, errorf(report.InvalidArgument, "address must be a unicast address of a network, without a zone")
	}
	return a, nil
}

// check takes the cheapest evidence first: what is configured or seen ends it;
// else guests and containers are asked, and then the network itself.
func (b *addressBook) check(a netip.Addr) report.AddressCheck {
	v := b.view(a)
	c := report.JudgeAddress(v)
	if c.Verdict == report.Reserved || c.Verdict == report.InUse && settled(c) {
		return c
	}
	b.s.progress(1, 3, "asking guests for their addresses")
	b.observe(b.onSegment(v, b.dynamic))
	b.containers()
	v = b.view(a)
	if c = report.JudgeAddress(v); c.Verdict == report.InUse && settled(c) {
		return c
	}
	b.s.progress(2, 3, "asking the network for %s", a)
	b.probe(&v)
	return report.JudgeAddress(v)
}

// settled reports whether a verdict needs no further witness: it rests on more
// than an old entry of a neighbour table.
func settled(c report.AddressCheck) bool {
	for _, e := range c.Evidence {
		if e.Found && (e.Strength == report.Proof || e.Strength == report.Strong || e.Strength == report.Configured) {
			return true
		}
	}
	return false
}
