package parse

import (
	"fmt"
	"testing"
)

func TestNeighboursGraded(t *testing.T) {
	for _, tc := range []struct{ name, in, want string }{
		{"reachable", `{"dst":"10.20.0.1","dev":"vmbr0","lladdr":"bc:24:11:00:00:01","state":["REACHABLE"]}`, "10.20.0.1 vmbr0 bc:24:11:00:00:01 REACHABLE answered"},
		{"stale", `{"dst":"10.20.0.40","dev":"vmbr0","lladdr":"bc:24:11:00:00:40","state":["STALE"]}`, "10.20.0.40 vmbr0 bc:24:11:00:00:40 STALE seen"},
		{"failed", `{"dst":"10.20.0.41","dev":"vmbr0","state":["FAILED"]}`, "10.20.0.41 vmbr0  FAILED silent"},
		{"incomplete", `{"dst":"10.20.0.42","dev":"vmbr0","state":["INCOMPLETE"]}`, "10.20.0.42 vmbr0  INCOMPLETE unknown"},
		{"permanent", `{"dst":"10.20.0.43","dev":"vmbr0","lladdr":"BC:24:11:00:00:43","state":["PERMANENT"]}`, "10.20.0.43 vmbr0 bc:24:11:00:00:43 PERMANENT static"},
		{"delay", `{"dst":"10.20.0.44","dev":"vmbr0","lladdr":"bc:24:11:00:00:44","state":["DELAY"]}`, "10.20.0.44 vmbr0 bc:24:11:00:00:44 DELAY seen"},
		{"another VLAN", `{"dst":"10.20.0.45","dev":"vmbr0.30","lladdr":"bc:24:11:00:00:45","state":["STALE"]}`, "10.20.0.45 vmbr0.30 bc:24:11:00:00:45 STALE seen"},
		{"a router that failed", `{"dst":"2001:db8:20::9","dev":"vmbr0","router":null,"state":["FAILED"]}`, "2001:db8:20::9 vmbr0  FAILED silent router"},
		{"a router", `{"dst":"fe80::1","dev":"vmbr0","lladdr":"bc:24:11:00:00:01","router":null,"state":["REACHABLE"]}`, "fe80::1 vmbr0 bc:24:11:00:00:01 REACHABLE answered router"},
		{"learned elsewhere", `{"dst":"10.20.0.50","dev":"vxlan1","lladdr":"bc:24:11:00:00:50","extern_learn":null,"state":["NOARP"]}`, "10.20.0.50 vxlan1 bc:24:11:00:00:50 NOARP static extern"},
		{"a proxy", `{"dst":"10.20.0.51","dev":"vmbr0","proxy":null}`, "10.20.0.51 vmbr0  NONE unknown proxy"},
		{"not a router", `{"dst":"10.20.0.52","dev":"vmbr0","router":false,"state":"STALE"}`, "10.20.0.52 vmbr0  STALE unknown"},
		{"reachable without a MAC, on a tunnel", `{"dst":"10.9.0.1","dev":"tun0","lladdr":"10.0.0.1","state":["REACHABLE"]}`, "10.9.0.1 tun0  REACHABLE unknown"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, notes, err := Neighbours([]byte("[" + tc.in + "]"))
			wantError(t, err, "")
			diff(t, []Note{}, notes)
			n := list[0]
			got := fmt.Sprintf("%s %s %s %s %s", n.Addr, n.Dev, n.MAC, n.State, n.Grade())
			for word, set := range map[string]bool{" router": n.Router, " extern": n.Extern, " proxy": n.Proxy} {
				if set {
					got += word
				}
			}
			diff(t, tc.want, got)
		})
	}
}

func TestNeighboursRecorded(t *testing.T) {
	list, notes, err := Neighbours(captured(t, "ip-neigh.json"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	got := []string{}
	for _, n := range list {
		got = append(got, fmt.Sprint(n.Addr, " ", n.Grade()))
	}
	diff(t, []string{"192.168.20.1 seen", "192.168.20.12 unknown", "192.168.20.13 seen", "192.168.20.50 answered", "192.168.20.60 seen"}, got)
}

func TestNeighboursBadInput(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		notes    []string
		err      string
	}{
		{"nothing", "", nil, "ip neigh: want a JSON array of objects, got nothing"},
		{"text", "10.20.0.1 dev vmbr0 REACHABLE", nil, "got something else at byte"},
		{"an empty table", "[ ]", []string{}, ""},
		{"no address", `[{"dst":"x","dev":"a"},{}]`, []string{"line 1: dst: want an address"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, notes, err := Neighbours([]byte(tc.in))
			wantError(t, err, tc.err)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}
