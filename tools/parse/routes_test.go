package parse

import (
	"fmt"
	"net/netip"
	"testing"
)

func TestRoutesRecorded(t *testing.T) {
	routes, notes, err := Routes(captured(t, "ip-route.json"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	diff(t, 28, len(routes))
	diff(t, Route{Type: "unicast", Dst: netip.MustParsePrefix("0.0.0.0/0"), Gateways: []netip.Addr{netip.MustParseAddr("192.168.20.1")}, Devs: []string{"vmbr0"}, Table: "main"}, routes[0])
	for _, tc := range []struct{ addr, dev string }{
		{"192.168.20.77", "vmbr0"}, {"fd00:20::99", "vmbr0"}, {"::ffff:192.168.20.77", "vmbr0"},
		{"192.168.20.11", ""}, // the node itself
		{"10.0.0.1", ""},      // behind the router
		{"fe80::1", ""}, {"ff02::1", ""}, {"2001:db8::1", ""},
	} {
		dev, ok := OnLink(routes, netip.MustParseAddr(tc.addr))
		if dev != tc.dev || ok != (tc.dev != "") {
			t.Errorf("%s: on-link through %q, want %q", tc.addr, dev, tc.dev)
		}
	}
}

func TestOnLinkLongestMatch(t *testing.T) {
	routes, notes, err := Routes([]byte(`[
		{"dst":"default","dev":"ppp0","flags":[]},
		{"dst":"10.0.0.0/8","dev":"vmbr0","flags":[]},
		{"dst":"10.1.0.0/16","gateway":"10.0.0.9","dev":"vmbr0","flags":[]},
		{"dst":"10.2.0.0/16","dev":"vmbr2","flags":["linkdown"]},
		{"dst":"10.3.0.0/24","dev":"eth1","metric":200,"flags":[]},
		{"dst":"10.3.0.0/24","dev":"eth0","metric":100,"flags":[]},
		{"type":"blackhole","dst":"10.4.0.0/16","flags":[]},
		{"dst":"10.5.0.0/16","table":"100","dev":"vrf1","flags":[]},
		{"dst":"10.6.0.0/16","flags":[],"nexthops":[{"gateway":"10.0.0.1","dev":"a","weight":1,"flags":[]},{"gateway":"10.0.0.2","dev":"b","weight":1,"flags":[]}]},
		{"dst":"10.7.0.1","via":{"family":"inet6","host":"fe80::1"},"dev":"vmbr0","flags":[]}]`))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	for addr, want := range map[string]string{
		"10.9.9.9": "vmbr0", "10.1.0.1": "", "10.2.0.1": "vmbr0", "10.3.0.1": "eth0", "10.4.0.1": "", "10.5.0.1": "vmbr0", "10.6.0.1": "", "10.7.0.1": "", "8.8.8.8": "",
	} {
		if dev, _ := OnLink(routes, netip.MustParseAddr(addr)); dev != want {
			t.Errorf("%s: on-link through %q, want %q", addr, dev, want)
		}
	}
}

func TestRoutesDestinations(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{`{"dst":"default","gateway":"fe80::1","dev":"a","pref":"medium"}`, "::/0"},
		{`{"dst":"default","dev":"a","pref":"medium"}`, "::/0"},
		{`{"dst":"default","dev":"a"}`, "0.0.0.0/0"},
		{`{"dst":"default","via":{"family":"inet6","host":"fe80::1"},"dev":"a"}`, "0.0.0.0/0"},
		{`{"dst":"10.0.0.1","dev":"a"}`, "10.0.0.1/32"},
		{`{"dst":"10.0.0.7/24","dev":"a"}`, "10.0.0.0/24"},
	} {
		routes, notes, err := Routes([]byte("[" + tc.in + "]"))
		wantError(t, err, "")
		diff(t, []Note{}, notes)
		diff(t, tc.want, fmt.Sprint(routes[0].Dst))
	}
}

func TestRoutesBadInput(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		notes    []string
		err      string
	}{
		{"nothing", "", nil, "ip route: want a JSON array of objects, got nothing"},
		{"text", "default via 10.0.0.1", nil, "got something else at byte"},
		{"no destination", `[{"dev":"a"},{"dst":"x/24"},{"dst":"10.0.0.0/x"},{"dst":"10.0.0.0/24"}]`, []string{"line 1: dst: want a network, an address or default", "line 2: dst: want a network, an address or default", "line 3: dst: want a network, an address or default"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, notes, err := Routes([]byte(tc.in))
			wantError(t, err, tc.err)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}
