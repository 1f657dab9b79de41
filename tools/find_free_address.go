package tools

import (
	"context"
	"fmt"
	"net/netip"
	"strings"

	"pvelens/tools/report"
)

type findFreeIn struct {
	Common
	Network string `json:"network,omitempty" help:"such as 10.0.0.0/24; default: the permitted one" pos:"true"`
	Count   int    `json:"count,omitempty" help:"how many candidates" min:"1" max:"16" default:"1"`
	After   string `json:"after,omitempty" help:"begin after this address" max:"64"`
}

var findFree = define("find_free_address", "Find a free address",
	"Finds the next addresses of a permitted network that nobody is known to have, each with its verdict and reason; at most 16 are asked for a call. free is an observation, not a reservation.",
	func(_ context.Context, s *Session, in findFreeIn) (*report.FreeList, error) {
		networks, err := s.networks(in.Network)
		if err != nil {
			return nil, err
		}
		if len(networks) > 1 {
			return nil, errorf(report.InvalidArgument, "network is needed: the profile permits %d of them", len(networks)).hint("permitted are %s", strings.Join(texts(networks), ", "))
		}
		network := networks[0]
		first := network.Addr()
		if in.After != "" {
			if first, err = parseAddress(in.After); err != nil {
				return nil, err
			}
			if !network.Contains(first) {
				return nil, errorf(report.InvalidArgument, "after must be an address of %s", network)
			}
			first = first.Next()
		}
		b, err := s.addressBook()
		if err != nil {
			return nil, err
		}
		out := &report.FreeList{Network: network.String(), Free: []string{}, Items: []report.AddressCheck{}}
		b.search(out, network, first, in.Count)
		return out, nil
	})

// maxSteps bounds the walk through a large network.
const maxSteps = 70000

// search walks through a network. What is known to be taken costs nothing;
// guests are asked once, then the network for each candidate.
func (b *addressBook) search(out *report.FreeList, network netip.Prefix, first netip.Addr, count int) {
	asked := map[string]bool{} // by network
	for a, step := first, 0; network.Contains(a) && step < maxSteps; a, step = a.Next(), step+1 {
		if b.s.ctx.Err() != nil {
			out.Reason = "the deadline passed; go on with after=" + a.Prev().String()
			return
		}
		v := b.view(a)
		c := report.JudgeAddress(v)
		if c.Verdict == report.Reserved || c.Verdict == report.InUse {
			out.Skipped++
			continue
		}
		if at := networkOf(v); !asked[at] {
			b.s.progress(1, 2, "asking guests for their addresses")
			b.observe(b.onSegment(v, b.dynamic))
			if len(asked) == 0 {
				b.containers()
			}
			asked[at] = true
			v = b.view(a)
			if c = report.JudgeAddress(v); c.Verdict == report.Reserved || c.Verdict == report.InUse {
				out.Skipped++
				continue
			}
		}
		if len(v.Blocking) == 0 && len(v.Uplinks) > 0 {
			b.probe(&v)
			c = report.JudgeAddress(v)
		}
		out.Items = append(out.Items, c)
		b.s.progress(len(out.Items), maxProbes, "%s", a)
		if c.Verdict == report.Free {
			out.Free = append(out.Free, c.Address)
		}
		switch {
		case len(out.Free) >= count:
			return
		case len(v.Blocking) > 0 || len(v.Uplinks) == 0:
			out.Reason = "no address here can be proven free: " + c.Reason
			if len(out.Items) >= count {
				return
			}
		case len(out.Items) >= maxProbes || b.probed >= maxProbes:
			out.Reason = fmt.Sprintf("%d addresses were asked for, as many as one call may; go on with after=%s", len(out.Items), a)
			return
		case b.s.ctx.Err() != nil:
			out.Reason = "the deadline passed; go on with after=" + a.String()
			return
		}
	}
	if len(out.Free) < count && out.Reason == "" {
		out.Reason = "the network has no further candidates"
	}
}

// networkOf names the networks that an address may be on.
func networkOf(v report.AddressView) string {
	var on []string
	for _, u := range v.Uplinks {
		on = append(on, u.Cluster+" "+u.Node+" "+u.Dev)
	}
	return strings.Join(on, ", ")
}
