package tools

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

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
