package report

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"
)

// An AddressRow is one known address and one who has it. How is config,
// cloudinit, agent, lxc, container, node, sdn or neighbour; Live is set where it
// was seen, not only configured.
type AddressRow struct {
	Address string `json:"address"`
	Who     string `json:"who"`
	How     string `json:"how"`
	Where   string `json:"where,omitempty"`
	MAC     string `json:"mac,omitempty"`
	Live    bool   `json:"live,omitempty"`
	Note    string `json:"note,omitempty"`
}

// AddressList is the answer of list_addresses.
type AddressList struct {
	Answer
	Items    []AddressRow `json:"items"`
	Findings []Finding    `json:"findings"`
	Open     []string     `json:"open"`
	Page
}

// Addresses returns a row for each holder and each neighbour inside the
// networks, by address; a neighbour that is a known guest's or node's device is
// part of that one's row.
func Addresses(networks []netip.Prefix, holders []Holder, seen []NeighbourSeen, owners map[string]string) []AddressRow {
	inside := func(a netip.Addr) bool {
		return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(a) })
	}
	rows := []AddressRow{}
	at := map[string][]int{}
	for _, h := range holders {
		if !inside(h.Address) {
			continue
		}
		r := AddressRow{Address: h.Address.String(), Who: Clean(h.Detail), How: h.Source, MAC: strings.ToLower(Clean(h.MAC)), Note: Clean(cmp.Or(h.Aside, h.Maybe)), Live: liveSource(h.Source)}
		if h.Segment != nil {
			r.Where = Clean(h.Segment.String())
		}
		if !slices.Contains(rows, r) {
			at[r.Address] = append(at[r.Address], len(rows))
			rows = append(rows, r)
		}
	}
	for _, n := range seen {
		if n.MAC == "" || !inside(n.Addr) || n.Grade() == "unknown" || n.Grade() == "silent" {
			continue
		}
		a, mac := n.Addr.String(), strings.ToLower(n.MAC)
		owner, known := owners[mac], false
		for _, i := range at[a] {
			bare := rows[i].MAC == "" && rows[i].How == "node" && owner == ""
			if rows[i].MAC == mac || bare || owner != "" && strings.HasPrefix(rows[i].Who, owner) {
				rows[i].Live, known = true, true
			}
		}
		if known {
			continue
		}
		r := AddressRow{Address: a, Who: cmp.Or(owner, "a device of nobody known"), How: "neighbour", Where: n.Dev, MAC: mac, Live: n.Grade() != "static", Note: string(n.State)}
		if !slices.ContainsFunc(rows, func(o AddressRow) bool { return o.Address == r.Address && o.MAC == r.MAC }) {
			at[a] = append(at[a], len(rows))
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(x, y AddressRow) int {
		a, _ := netip.ParseAddr(x.Address)
		b, _ := netip.ParseAddr(y.Address)
		return cmp.Or(a.Compare(b), cmp.Compare(x.How, y.How), cmp.Compare(x.Who, y.Who))
	})
	return rows
}

func liveSource(s string) bool { return s == "agent" || s == "lxc" || s == "node" || s == "container" }

// AddressFindings finds addresses and MACs that two have on one network. Both
// live is critical, else it waits to happen. VRRP and CARP addresses are shared
// on purpose.
func AddressFindings(holders []Holder, seen []NeighbourSeen, j Judge) []*Finding {
	var out []*Finding
	type key struct {
		addr netip.Addr
		seg  Segment
	}
	byAddr := map[key][]Holder{}
	for _, h := range holders {
		if h.Aside != "" || h.Segment == nil || h.Segment.Bridge == "" || !strings.HasPrefix(h.Subject, "guest/") || VirtualRouter(h.MAC) {
			continue
		}
		seg := *h.Segment
		if seg.VLAN == 1 {
			seg.VLAN = 0
		}
		k := key{h.Address, seg}
		if !slices.ContainsFunc(byAddr[k], func(o Holder) bool { return o.Subject == h.Subject && o.Cluster == h.Cluster }) {
			byAddr[k] = append(byAddr[k], h)
		}
	}
	for k, hs := range byAddr {
		if len(hs) < 2 {
			continue
		}
		running, message := 0, ""
		var who []string
		for _, h := range hs {
			if h.Cluster != hs[0].Cluster {
				message = ", if the networks of the clusters are one"
			}
			who = append(who, Clean(h.Detail))
			if h.Running {
				running++
			}
		}
		slices.Sort(who)
		severity := Warning
		if running > 1 && message == "" {
			severity = Critical
		}
		slices.SortFunc(hs, func(a, b Holder) int {
			return cmp.Or(cmp.Compare(a.Subject, b.Subject), cmp.Compare(a.Cluster, b.Cluster))
		})
		out = append(out, j.Find("IP_DUPLICATE", severity, hs[0].Subject, fmt.Sprintf("%s on %s belongs to %s%s", k.addr, k.seg, strings.Join(who, " and "), message),
			Evidence{Name: "address", Value: k.addr.String()}, Evidence{Name: "running", Value: fmt.Sprint(running)}))
	}
	return append(out, macConflicts(seen, j)...)
}

// macConflicts finds one address that two MACs answer for on one node's
// interface. The kernel keeps one entry an address, so this shows only between
// nodes.
func macConflicts(seen []NeighbourSeen, j Judge) []*Finding {
	var out []*Finding
	first := map[string]NeighbourSeen{}
	for _, n := range seen {
		if n.MAC == "" || n.Grade() != "answered" || n.Addr.IsLinkLocalUnicast() {
			continue
		}
		k := n.Addr.String() + " " + n.Dev
		if o, ok := first[k]; ok && o.MAC != n.MAC && !VirtualRouter(n.MAC) && !VirtualRouter(o.MAC) {
			out = append(out, j.Find("IP_DUPLICATE", Critical, "cluster", fmt.Sprintf("%s answers as %s to %s and as %s to %s", n.Addr, o.MAC, o.Node, n.MAC, n.Node), Evidence{Name: "address", Value: n.Addr.String()}))
			continue
		}
		first[k] = n
	}
	return out
}

// MACFindings finds one MAC on two guests of one network.
func MACFindings(nics []GuestNIC, j Judge) []*Finding {
	by := map[string][]GuestNIC{}
	for _, n := range nics {
		if n.MAC != "" && n.Segment.Bridge != "" && !VirtualRouter(n.MAC) {
			k := strings.ToLower(n.MAC) + " " + n.Segment.Bridge
			by[k] = append(by[k], n)
		}
	}
	var out []*Finding
	for _, ns := range by {
		slices.SortFunc(ns, func(a, b GuestNIC) int { return cmp.Compare(a.Subject+a.Who+a.Cluster, b.Subject+b.Who+b.Cluster) })
		for i, n := range ns {
			before := slices.IndexFunc(ns[:i], func(o GuestNIC) bool { return o.Segment.Same(n.Segment) })
			if before < 0 {
				continue
			}
			o, severity, unless := ns[before], Severity(""), ""
			if o.Cluster != n.Cluster {
				severity, unless = Warning, ", if the networks of the clusters are one"
			}
			out = append(out, j.Find("MAC_DUPLICATE", severity, o.Subject, fmt.Sprintf("%s is the MAC of %s and of %s on %s%s", strings.ToLower(n.MAC), o.Who, n.Who, n.Segment, unless), Evidence{Name: "mac", Value: strings.ToLower(n.MAC)}))
		}
	}
	return out
}

// A GuestNIC is a network device and whose it is.
type GuestNIC struct {
	Subject, Who, MAC string
	Segment           Segment
	Cluster           string
}

// FreeList is the answer of find_free_address: candidates of a network, each
// with its verdict, the free ones first.
type FreeList struct {
	Answer
	Network string         `json:"network"`
	Free    []string       `json:"free"`
	Items   []AddressCheck `json:"items"`
	Skipped int            `json:"skipped"`
	Reason  string         `json:"reason,omitempty"`
}

// Tables shows the addresses to people.
func (l *AddressList) Tables() []Table {
	t := Table{Columns: []string{"address", "who", "how", "network", "mac", "live", "note"}}
	for _, r := range l.Items {
		t.Rows = append(t.Rows, []string{r.Address, r.Who, r.How, r.Where, r.MAC, Yes(r.Live), r.Note})
	}
	t.Notes = append(t.Notes, l.Page.note("addresses"))
	for _, o := range l.Open {
		t.Notes = append(t.Notes, "not known: "+o)
	}
	t.Notes = append(t.Notes, findingLines(l.Findings)...)
	return []Table{t}
}

// Tables shows the candidates to people.
func (l *FreeList) Tables() []Table {
	t := Table{Title: "Candidates in " + l.Network, Columns: []string{"address", "verdict", "because"}}
	for _, c := range l.Items {
		t.Rows = append(t.Rows, []string{c.Address, c.Verdict, c.Reason})
	}
	t.Notes = append(t.Notes, fmt.Sprintf("%d free, %d addresses passed over because somebody has them", len(l.Free), l.Skipped))
	if l.Reason != "" {
		t.Notes = append(t.Notes, l.Reason)
	}
	return []Table{t}
}
