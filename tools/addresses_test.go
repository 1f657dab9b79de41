package tools

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/tools/report"
)

// oneNode is a lone node on 10.20.0.0/24 with one running and one stopped guest;
// neighbours is its table.
func oneNode(neighbours string) fixtures.Scenario {
	m := member("solo", stateOf(soloState, `{"version":1,"ids":{"101":{"node":"solo","type":"lxc","version":1},"102":{"node":"solo","type":"lxc","version":1}}}`,
		soloNumber+"\npve2.3-vm/102:0:old:stopped:0:1795971290:1:U:1024:U:4096:0:U:U:U:U"),
		"/etc/pve/nodes/solo/lxc/101.conf:hostname: dns",
		"/etc/pve/nodes/solo/lxc/101.conf:net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:01,ip=10.20.0.101/24,gw=10.20.0.1",
		"/etc/pve/nodes/solo/lxc/102.conf:hostname: old",
		"/etc/pve/nodes/solo/lxc/102.conf:net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,ip=10.20.0.102/24",
		"/etc/pve/nodes/solo/lxc/102.conf:net1: name=eth1,bridge=vmbr0,tag=30,hwaddr=BC:24:11:00:00:03,ip=10.20.0.130/24",
		"/etc/pve/nodes/solo/lxc/102.conf:[before]",
		"/etc/pve/nodes/solo/lxc/102.conf:net0: name=eth0,bridge=vmbr0,hwaddr=BC:24:11:00:00:02,ip=10.20.0.103/24",
	)
	for key, out := range map[string]string{
		"addresses":        `[{"ifindex":2,"ifname":"vmbr0","flags":["UP","LOWER_UP"],"mtu":1500,"operstate":"UP","address":"02:00:00:00:00:10","linkinfo":{"info_kind":"bridge"},"addr_info":[{"family":"inet","local":"10.20.0.10","prefixlen":24,"scope":"global"}]}]`,
		"routes":           `[{"dst":"default","gateway":"10.20.0.1","dev":"vmbr0","flags":[]},{"dst":"10.20.0.0/24","dev":"vmbr0","protocol":"kernel","scope":"link","prefsrc":"10.20.0.10","flags":[]}]`,
		"neighbours":       neighbours,
		"lxc-services+101": "/sys/fs/cgroup/lxc/101/ns/init.scope/cgroup.procs\n",
	} {
		m.Source.(instead).answers[key] = fixtures.Answer{Stdout: []byte(out)}
	}
	m.Source.(instead).answers["sdn"] = fixtures.Answer{Exit: 2}
	m.Source.(instead).answers["sdn-ipam"] = fixtures.Answer{Exit: 1, Stderr: []byte("tail: cannot open '/etc/pve/sdn/pve-ipam-state.json' for reading: No such file or directory\n")}
	m.Source.(instead).answers["lxc-docker-client+101"] = fixtures.Answer{Exit: 127, Stderr: []byte("lxc-attach: 101: ../src/lxc/attach.c: lxc_attach_run_command: 1841 No such file or directory - Failed to exec \"docker\"\n")}
	m.Source.(instead).answers["lxc-podman-ps+101"] = fixtures.Answer{Exit: 127, Stderr: []byte("lxc-attach: 101: ../src/lxc/attach.c: lxc_attach_run_command: 1841 No such file or directory - Failed to exec \"podman\"\n")}
	return scenario(m)
}

func addressEnv(t *testing.T, neighbours string) *Env {
	t.Helper()
	probes.forget()
	env := replay(t, oneNode(neighbours), fixtures.Options{})
	_, p := behind(t, env)
	p.PermittedNetworks = []netip.Prefix{netip.MustParsePrefix("10.20.0.0/24")}
	return env
}

func TestCheckIPAvailability(t *testing.T) {
	const table = `[{"dst":"10.20.0.1","dev":"vmbr0","lladdr":"02:00:00:00:00:01","state":["REACHABLE"]},{"dst":"10.20.0.40","dev":"vmbr0","lladdr":"02:00:00:00:00:40","state":["STALE"]},{"dst":"10.20.0.43","dev":"vmbr0","lladdr":"02:00:00:00:00:43","state":["PERMANENT"]}]`
	for address, want := range map[string]string{
		"10.20.0.101":          report.InUse,    // a running guest
		"10.20.0.102":          report.InUse,    // a stopped one
		"10.20.0.103":          report.Free,     // only in a snapshot; asked, silent
		"10.20.0.130":          report.Free,     // in another VLAN
		"10.20.0.10":           report.InUse,    // the node
		"10.20.0.1":            report.InUse,    // the gateway answers
		"10.20.0.43":           report.Reserved, // a permanent entry
		"10.20.0.255":          report.Reserved,
		"10.20.0.40":           report.Unknown, // seen before, silent now
		"10.20.0.99":           report.Free,
		"::ffff:10.20.0.101":   report.InUse,
		"0:0:0:0:0:ffff:a14:1": report.InUse,
	} {
		r := answer[*report.AddressReport](t, addressEnv(t, table), "check_ip_availability", `{"address":"`+address+`"}`)
		if r.Verdict != want {
			t.Errorf("%s: %s because %s, want %s; evidence %+v missing %v", address, r.Verdict, r.Reason, want, r.Evidence, r.Missing)
		}
	}
}

func TestAddressesOutsideAreNeverAsked(t *testing.T) {
	env := addressEnv(t, `[]`)
	for _, a := range []string{"10.21.0.9", "192.168.1.1", "fd00::9", "224.0.0.1", "127.0.0.1", "0.0.0.0", "fe80::1", "10.20.0.09", "10.20.0", "x", ""} {
		if _, err := call(t, env, "check_ip_availability", `{"address":"`+a+`"}`); err == nil || AsError(err).Code != report.InvalidArgument {
			t.Errorf("%s: %v", a, err)
		}
	}
	cluster, p := behind(t, env)
	if n := cluster.Counts().Connections; n != 0 {
		t.Errorf("%d connections", n)
	}
	p.PermittedNetworks = nil
	if _, err := call(t, env, "check_ip_availability", `{"address":"10.20.0.9"}`); err == nil || !strings.Contains(err.Error(), "permitted_networks") {
		t.Errorf("without permitted networks: %v", err)
	}
}

func TestProxyARPProvesNothing(t *testing.T) {
	const table = `[{"dst":"10.20.0.2","dev":"vmbr0","lladdr":"02:00:00:00:00:77","state":["REACHABLE"]},{"dst":"10.20.0.3","dev":"vmbr0","lladdr":"02:00:00:00:00:77","state":["STALE"]},{"dst":"10.20.0.4","dev":"vmbr0","lladdr":"02:00:00:00:00:77","state":["REACHABLE"]}]`
	env := addressEnv(t, table)
	for _, a := range []string{"10.20.0.2", "10.20.0.99"} {
		if r := answer[*report.AddressReport](t, env, "check_ip_availability", `{"address":"`+a+`"}`); r.Verdict != report.Unknown || !strings.Contains(r.Reason, "proxy ARP") {
			t.Errorf("%s: %s because %s", a, r.Verdict, r.Reason)
		}
	}
}

// TestEverySourceThatFailsKeepsFreeAway lets one form after the other fail: the
// verdict on an address that is free otherwise must be unknown.
func TestEverySourceThatFailsKeepsFreeAway(t *testing.T) {
	for _, form := range []string{"guest-configs", "sdn", "sdn-ipam", "addresses", "routes", "neighbours", "ping"} {
		sc := oneNode(`[]`)
		sc.Machines[0].Source.(instead).answers[form] = fixtures.Answer{Exit: 255, Stderr: []byte("boom\n")}
		if form == "ping" {
			sc.Machines[0].Source.(instead).answers["ping+10.20.0.99"] = fixtures.Answer{Exit: 2, Stderr: []byte("boom\n")}
		}
		env := replay(t, sc, fixtures.Options{})
		_, p := behind(t, env)
		p.PermittedNetworks = []netip.Prefix{netip.MustParsePrefix("10.20.0.0/24")}
		r := answer[*report.AddressReport](t, env, "check_ip_availability", `{"address":"10.20.0.99"}`)
		if r.Verdict != report.Unknown || r.Complete {
			t.Errorf("%s fails: %s because %s, complete %v", form, r.Verdict, r.Reason, r.Complete)
		}
	}
}

func TestFindFreeAddress(t *testing.T) {
	env := addressEnv(t, `[{"dst":"10.20.0.1","dev":"vmbr0","lladdr":"02:00:00:00:00:01","state":["REACHABLE"]}]`)
	r := answer[*report.FreeList](t, env, "find_free_address", `{"network":"10.20.0.0/24","count":2,"after":"10.20.0.100"}`)
	if want := []string{"10.20.0.103", "10.20.0.104"}; !slices.Equal(r.Free, want) || r.Skipped != 2 {
		t.Errorf("free %v, skipped %d, want %v", r.Free, r.Skipped, want)
	}
	cluster, _ := behind(t, env)
	pings := 0
	for _, s := range cluster.Nodes[0].Seen() {
		if s.Form == "ping" && s.Become == allowlist.AsIs {
			pings++
		}
	}
	if pings != 2 {
		t.Errorf("%d probes for two candidates", pings)
	}
	if r := answer[*report.FreeList](t, env, "find_free_address", `{"after":"10.20.0.100"}`); r.Network != "10.20.0.0/24" {
		t.Errorf("the one permitted network is not the default: %s", r.Network)
	}
	for _, args := range []string{`{"network":"10.0.0.0/8"}`, `{"network":"10.20.0.0/24","count":17}`, `{"network":"x"}`, `{"network":"10.20.0.0/24","after":"10.21.0.1"}`} {
		if _, err := call(t, env, "find_free_address", args); err == nil || AsError(err).Code != report.InvalidArgument {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestListAddresses(t *testing.T) {
	env := addressEnv(t, `[{"dst":"10.20.0.101","dev":"vmbr0","lladdr":"bc:24:11:00:00:01","state":["REACHABLE"]},{"dst":"10.20.0.77","dev":"vmbr0","lladdr":"02:00:00:00:00:77","state":["STALE"]}]`)
	l := answer[*report.AddressList](t, env, "list_addresses", `{}`)
	var got []string
	for _, r := range l.Items {
		live := ""
		if r.Live {
			live = " live"
		}
		got = append(got, r.Address+" "+r.How+live)
	}
	want := []string{"10.20.0.10 node live", "10.20.0.77 neighbour live", "10.20.0.101 config live", "10.20.0.102 config", "10.20.0.103 config", "10.20.0.130 config"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
}
