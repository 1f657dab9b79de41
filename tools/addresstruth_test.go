package tools

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/profiles"
	"pvelens/tools/parse"
	"pvelens/tools/report"
	"pvelens/transport"
)

// forget takes the probes of earlier tests off the budget of this minute.
func (p *probeBudget) forget() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sent = nil
}

// checkIn asks for an address in a scenario, with 10.20.0.0/24 permitted.
func checkIn(t *testing.T, sc fixtures.Scenario, address string) *report.AddressReport {
	t.Helper()
	probes.forget()
	env := replay(t, sc, fixtures.Options{})
	_, p := behind(t, env)
	p.PermittedNetworks = []netip.Prefix{netip.MustParsePrefix("10.20.0.0/24")}
	return answer[*report.AddressReport](t, env, "check_ip_availability", `{"address":"`+address+`"}`)
}

func setAnswer(sc fixtures.Scenario, machine int, key string, a fixtures.Answer) {
	sc.Machines[machine].Source.(instead).answers[key] = a
}

// second is another lone node, on its own network of the same numbers.
func second() fixtures.Machine {
	m := member("other", stateOf(`{"nodename":"other","version":3}`, `{"version":1,"ids":{}}`, ""))
	for key, out := range map[string]string{
		"addresses":  `[{"ifname":"vmbr0","flags":["UP","LOWER_UP"],"address":"02:00:00:00:00:20","linkinfo":{"info_kind":"bridge"},"addr_info":[{"family":"inet","local":"10.20.0.20","prefixlen":24,"scope":"global"}]}]`,
		"routes":     `[{"dst":"10.20.0.0/24","dev":"vmbr0","protocol":"kernel","scope":"link","prefsrc":"10.20.0.20","flags":[]}]`,
		"neighbours": `[]`,
	} {
		m.Source.(instead).answers[key] = printed(out)
	}
	m.Source.(instead).answers["sdn"] = fixtures.Answer{Exit: 2}
	m.Source.(instead).answers["sdn-ipam"] = fixtures.Answer{Exit: 1, Stderr: []byte("tail: cannot open '/etc/pve/sdn/pve-ipam-state.json' for reading: No such file or directory\n")}
	return m
}

func TestFreeNeedsEveryNodeOfTheProfile(t *testing.T) {
	sc := oneNode(`[]`)
	sc.Machines = append(sc.Machines, second())
	if r := checkIn(t, sc, "10.20.0.99"); r.Verdict != report.Free {
		t.Errorf("two lone nodes: %s because %s", r.Verdict, r.Reason)
	}
	// VLAN 30 of vmbr0 there need not be another network than vmbr0 here.
	sc.Machines[0], sc.Machines[1] = sc.Machines[1], sc.Machines[0]
	setAnswer(sc, 1, "routes", printed(`[]`))
	if r := checkIn(t, sc, "10.20.0.130"); r.Verdict != report.Unknown || !strings.Contains(r.Reason, "VLAN 30") {
		t.Errorf("a guest of another cluster: %s because %s", r.Verdict, r.Reason)
	}
	sc = oneNode(`[]`)
	sc.Machines = append(sc.Machines, second())
	setAnswer(sc, 1, "ping+10.20.0.99", fixtures.Answer{Stdout: []byte("64 bytes from 10.20.0.99\n")})
	if r := checkIn(t, sc, "10.20.0.99"); r.Verdict != report.InUse || !strings.Contains(r.Reason, "other") {
		t.Errorf("it answers on the second one's network: %s because %s", r.Verdict, r.Reason)
	}
	setAnswer(sc, 1, "state", fixtures.Answer{Exit: 255, Stderr: []byte("boom\n")})
	if r := checkIn(t, sc, "10.20.0.99"); r.Verdict != report.Unknown || !strings.Contains(r.Reason, "other") {
		t.Errorf("a lone node does not answer: %s because %s", r.Verdict, r.Reason)
	}
}

func TestFreeNeedsAnAnswerOfEveryDockerHost(t *testing.T) {
	sc := oneNode(`[]`)
	host := fixtures.Machine{Name: "nas", Role: allowlist.Docker, Source: instead{answers: map[string]fixtures.Answer{
		"host-services":  printed("/sys/fs/cgroup/system.slice/docker.service/cgroup.procs\n"),
		"host-docker-ps": {Exit: 1, Stderr: []byte("permission denied while trying to connect to the docker API at unix:///var/run/docker.sock\n")},
	}}}
	sc.Machines = append(sc.Machines, host)
	if r := checkIn(t, sc, "10.20.0.99"); r.Verdict != report.Unknown || !strings.Contains(r.Reason, "nas") {
		t.Errorf("%s because %s", r.Verdict, r.Reason)
	}
}

func TestWhatWasNotReallyAskedIsNotFree(t *testing.T) {
	sc := oneNode(`[{"dst":"10.20.0.99","dev":"vmbr0","state":["FAILED"]}]`)
	setAnswer(sc, 0, "ping+10.20.0.99", fixtures.Answer{Exit: 1, Stderr: []byte("ping: sendmsg: Operation not permitted\n")})
	if r := checkIn(t, sc, "10.20.0.99"); r.Verdict != report.Unknown {
		t.Errorf("the node's firewall drops the ping: %s because %s", r.Verdict, r.Reason)
	}
	for form, out := range map[string]string{
		"neighbours": `[{"dst":"x","dev":"vmbr0","state":["REACHABLE"]},{"dst":"10.20.0.99","dev":"vmbr0","state":["FAILED"]}]`,
		"routes":     `[{"dst":"x"},{"dst":"10.20.0.0/24","dev":"vmbr0","scope":"link","flags":[]}]`,
	} {
		sc := oneNode(`[]`)
		setAnswer(sc, 0, form, printed(out))
		if r := checkIn(t, sc, "10.20.0.99"); r.Verdict != report.Unknown || r.Complete {
			t.Errorf("a part of %s cannot be read: %s because %s", form, r.Verdict, r.Reason)
		}
	}
	sc = oneNode(`[]`)
	setAnswer(sc, 0, "routes", printed(`[{"dst":"10.20.0.0/24","dev":"vmbr0","scope":"link","flags":[]},{"dst":"10.20.0.0/24","dev":"vmbr1","scope":"link","metric":5,"flags":[]}]`))
	if r := checkIn(t, sc, "10.20.0.99"); r.Verdict != report.Unknown || !strings.Contains(r.Reason, "vmbr1") {
		t.Errorf("a second interface on that network: %s because %s", r.Verdict, r.Reason)
	}
}

// TestOneNetworkUnderAnotherName puts the node on the network of a stopped guest
// (vmbr0, VLAN 30, 10.20.0.130) in each of the ways of a Linux node.
func TestOneNetworkUnderAnotherName(t *testing.T) {
	const (
		eno1   = `{"ifname":"eno1","flags":["UP","LOWER_UP"],"master":"vmbr0"},`
		vmbr0  = `{"ifname":"vmbr0","flags":["UP","LOWER_UP"],"linkinfo":{"info_kind":"bridge"}}`
		vlan30 = `"linkinfo":{"info_kind":"vlan","info_data":{"id":30}}`
	)
	for name, c := range map[string]struct{ dev, links, want string }{
		"a VLAN of the bridge":             {"vmbr0.30", vmbr0 + `,{"ifname":"vmbr0.30","link":"vmbr0",` + vlan30 + `}`, report.InUse},
		"a VLAN with a name of its own":    {"mgmt", vmbr0 + `,{"ifname":"mgmt","link":"vmbr0",` + vlan30 + `}`, report.InUse},
		"a VLAN of the bridge's card":      {"eno1.30", vmbr0 + `,{"ifname":"eno1.30","link":"eno1",` + vlan30 + `}`, report.InUse},
		"a bridge on that":                 {"vmbr30", vmbr0 + `,{"ifname":"eno1.30","link":"eno1","master":"vmbr30",` + vlan30 + `},{"ifname":"vmbr30","linkinfo":{"info_kind":"bridge"}}`, report.InUse},
		"an SDN network on the bridge":     {"vnet30", vmbr0 + `,{"ifname":"vmbr0.30","link":"vmbr0","master":"vnet30",` + vlan30 + `},{"ifname":"vnet30","linkinfo":{"info_kind":"bridge"}}`, report.InUse},
		"the bridge's own VLAN":            {"vmbr0", `{"ifname":"vmbr0","linkinfo":{"info_kind":"bridge","info_data":{"vlan_filtering":1}},"addr_info":[{"local":"10.20.0.10","prefixlen":24}]}`, report.InUse},
		"a card that is on no bridge":      {"eno2", vmbr0 + `,{"ifname":"eno2"}`, report.Unknown},
		"Open vSwitch":                     {"vlan30", `{"ifname":"vmbr0","linkinfo":{"info_kind":"openvswitch"}},{"ifname":"vlan30","linkinfo":{"info_kind":"openvswitch"}}`, report.Unknown},
		"another bridge":                   {"vmbr1", vmbr0 + `,{"ifname":"eno2","master":"vmbr1"},{"ifname":"vmbr1","linkinfo":{"info_kind":"bridge"}}`, report.Free},
		"another VLAN of the same bridge":  {"vmbr0.40", vmbr0 + `,{"ifname":"vmbr0.40","link":"vmbr0","linkinfo":{"info_kind":"vlan","info_data":{"id":40}}}`, report.Free},
		"the bridge, with VLANs, untagged": {"vmbr0", vmbr0, report.Free},
	} {
		sc := oneNode(`[{"dst":"10.20.0.200","dev":"` + c.dev + `","lladdr":"02:00:00:00:00:77","state":["STALE"]}]`)
		setAnswer(sc, 0, "addresses", printed("["+eno1+c.links+"]"))
		setAnswer(sc, 0, "routes", printed(`[{"dst":"10.20.0.0/24","dev":"`+c.dev+`","scope":"link","flags":[]}]`))
		setAnswer(sc, 0, "bridge-vlans", printed(`[{"ifname":"vmbr0","vlans":[{"vlan":30,"flags":["PVID","Egress Untagged"]}]}]`))
		if r := checkIn(t, sc, "10.20.0.130"); r.Verdict != c.want {
			t.Errorf("%s: %s because %s", name, r.Verdict, r.Reason)
		}
	}
}

func TestEveryAddressOfARawInterface(t *testing.T) {
	sc := oneNode(`[]`)
	a := sc.Machines[0].Source.(instead).answers["guest-configs"]
	a.Stdout = []byte(string(a.Stdout) + "/etc/pve/nodes/solo/lxc/101.conf:lxc.net.1.type: veth\n/etc/pve/nodes/solo/lxc/101.conf:lxc.net.1.ipv4.address: 10.20.0.160/24\n/etc/pve/nodes/solo/lxc/101.conf:lxc.net.1.ipv4.address: 10.20.0.161/24\n")
	setAnswer(sc, 0, "guest-configs", a)
	for _, address := range []string{"10.20.0.160", "10.20.0.161"} {
		if r := checkIn(t, sc, address); r.Verdict != report.InUse {
			t.Errorf("%s: %s because %s", address, r.Verdict, r.Reason)
		}
	}
}

// Two sites behind their jump hosts use the same addresses: a node that has not
// answered is not taken for a member of the other site's cluster.
func TestOneAddressBehindTwoJumpHosts(t *testing.T) {
	at := func(addr, jump string) *entry {
		target := &profiles.Target{HostName: addr}
		if jump != "" {
			target.ProxyJump = []*profiles.Target{{HostName: jump, Port: 22}}
		}
		return &entry{dest: "x" + addr, host: &transport.Host{Target: target}}
	}
	state := &parse.State{}
	state.Members.Cluster = &parse.ClusterInfo{Name: "lab"}
	state.Members.Nodes = []parse.Member{{Name: "pve-a", IP: "10.0.0.1"}, {Name: "pve-b", IP: "10.0.0.2"}}
	server := at("10.0.0.1", "site-a")
	c := &cluster{Name: "lab", State: state, server: server, members: map[string]*entry{"pve-a": server}}
	inv := &inventory{clusters: []*cluster{c}}
	for jump, want := range map[string]bool{"site-a": true, "site-b": false, "": false} {
		e := at("10.0.0.2", jump)
		owner, _ := inv.owner(e)
		if got := (*Session)(nil).isMember(e, arrival{entry: server, state: state}); got != want || (owner != nil) != want {
			t.Errorf("behind %q: member %v, owner %v", jump, got, owner)
		}
	}
	if !inv.knows(at("10.0.0.1", "site-a")) || inv.knows(at("10.0.0.1", "site-b")) || inv.knows(at("10.0.0.9", "site-a")) {
		t.Error("a second name of a node is known, another site's is not")
	}
}

// A large network with many stopped guests is walked through within the deadline,
// and the guests are named without filling the answer.
func TestManyStoppedGuests(t *testing.T) {
	sc := oneNode(`[]`)
	configs := string(sc.Machines[0].Source.(instead).answers["guest-configs"].Stdout)
	list, numbers := "", ""
	for id := 1000; id < 1200; id++ {
		configs += fmt.Sprintf("/etc/pve/nodes/solo/qemu-server/%d.conf:name: v\n/etc/pve/nodes/solo/qemu-server/%d.conf:net0: virtio=BC:24:11:00:10:%02X,bridge=vmbr0\n", id, id, id%256)
		list += fmt.Sprintf(`,"%d":{"node":"solo","type":"qemu","version":1}`, id)
		numbers += fmt.Sprintf("\npve2.3-vm/%d:0:v:stopped:0:1795971290:1:U:1024:U:4096:0:U:U:U:U", id)
	}
	vms := strings.TrimSuffix(soloGuests, "}}") + `,"102":{"node":"solo","type":"lxc","version":1}` + list + "}}"
	setAnswer(sc, 0, "state", printed(stateOf(soloState, vms, soloNumber+"\npve2.3-vm/102:0:old:stopped:0:1795971290:1:U:1024:U:4096:0:U:U:U:U"+numbers)))
	setAnswer(sc, 0, "guest-configs", printed(configs))
	setAnswer(sc, 0, "routes", printed(`[{"dst":"10.20.0.0/16","dev":"vmbr0","scope":"link","flags":[]}]`))
	setAnswer(sc, 0, "sdn", printed("/etc/pve/sdn/subnets.cfg:subnet: z-10.20.0.0-16\n/etc/pve/sdn/subnets.cfg:\tdhcp-range start-address=10.20.0.1,end-address=10.20.250.0\n"))
	setAnswer(sc, 0, "sdn-ipam", printed("==> /etc/pve/sdn/pve-ipam-state.json <==\n"+`{"zones":{"z":{"subnets":{"10.20.0.0/16":{"ips":{"10.20.0.1":{"gateway":1}}}}}}}`+"\n"))
	env := replay(t, sc, fixtures.Options{})
	_, p := behind(t, env)
	p.PermittedNetworks = []netip.Prefix{netip.MustParsePrefix("10.20.0.0/16")}
	r := answer[*report.FreeList](t, env, "find_free_address", `{"network":"10.20.0.0/16"}`)
	if len(r.Free) != 1 || r.Free[0] != "10.20.250.1" || r.Skipped != 64001 {
		t.Fatalf("free %v, skipped %d: %s", r.Free, r.Skipped, r.Reason)
	}
	if m := r.Items[0].Missing; len(m) > 10 || !strings.Contains(strings.Join(m, " "), "1199") {
		t.Errorf("%d lines: %q", len(m), m)
	}
}

// Sixteen probes a call and sixty a minute are all there are, however many ask.
func TestProbesAreCounted(t *testing.T) {
	probes.forget()
	t.Cleanup(probes.forget)
	sc := oneNode(`[]`)
	setAnswer(sc, 0, "routes", printed(`[{"dst":"10.20.0.0/24","dev":"vmbr0","scope":"link","flags":[]}]`))
	for i := range 256 { // somebody new answers each ping, so no call finds a free one
		setAnswer(sc, 0, fmt.Sprintf("ping+10.20.0.%d", i), printed("64 bytes\n"))
	}
	env := replay(t, sc, fixtures.Options{})
	_, p := behind(t, env)
	p.PermittedNetworks = []netip.Prefix{netip.MustParsePrefix("10.20.0.0/24")}
	for range 5 {
		r := answer[*report.FreeList](t, env, "find_free_address", `{"network":"10.20.0.0/24","after":"10.20.0.140","count":16}`)
		if len(r.Free) != 0 || len(r.Items) > maxProbes {
			t.Fatalf("free %v of %d", r.Free, len(r.Items))
		}
	}
	if n := forms(t, env)["ping"]; n != probesPerMinute {
		t.Errorf("%d probes", n)
	}
}

// Before PVE kept SDN's addresses where they can be read, and with another IPAM,
// it is not known which addresses of a subnet are given out.
func TestSDNWithoutItsList(t *testing.T) {
	sc := oneNode(`[]`)
	setAnswer(sc, 0, "sdn", printed("/etc/pve/sdn/subnets.cfg:subnet: z-10.20.0.0-24\n/etc/pve/sdn/subnets.cfg:\tvnet v\n"))
	if r := checkIn(t, sc, "10.20.0.99"); r.Verdict != report.Unknown || !strings.Contains(r.Reason, "SDN") {
		t.Errorf("no list: %s because %s", r.Verdict, r.Reason)
	}
	setAnswer(sc, 0, "sdn-ipam", printed("==> /etc/pve/sdn/pve-ipam-state.json <==\n"+`{"zones":{"z":{"subnets":{"10.20.0.0/24":{"ips":{"10.20.0.50":{"vmid":"7","mac":"BC:24:11:00:00:99"}}}}}}}`+"\n"))
	for address, want := range map[string]string{"10.20.0.99": report.Free, "10.20.0.50": report.Reserved} {
		if r := checkIn(t, sc, address); r.Verdict != want {
			t.Errorf("%s: %s because %s", address, r.Verdict, r.Reason)
		}
	}
}

// A virtual network of SDN is a VLAN of its zone's bridge also where the wires
// between the two are not seen.
func TestAVirtualNetworkIsAVLAN(t *testing.T) {
	for tag, want := range map[string]string{"30": report.InUse, "40": report.Free} {
		sc := oneNode(`[{"dst":"10.20.0.200","dev":"iot","lladdr":"02:00:00:00:00:77","state":["STALE"]}]`)
		setAnswer(sc, 0, "addresses", printed(`[{"ifname":"vmbr0","linkinfo":{"info_kind":"bridge"}},{"ifname":"ln_iot","master":"iot","linkinfo":{"info_kind":"veth"}},{"ifname":"iot","linkinfo":{"info_kind":"bridge"}}]`))
		setAnswer(sc, 0, "routes", printed(`[{"dst":"10.20.0.0/24","dev":"iot","scope":"link","flags":[]}]`))
		setAnswer(sc, 0, "sdn", printed("/etc/pve/sdn/vnets.cfg:vnet: iot\n/etc/pve/sdn/vnets.cfg:\tzone z\n/etc/pve/sdn/vnets.cfg:\ttag "+tag+"\n/etc/pve/sdn/zones.cfg:vlan: z\n/etc/pve/sdn/zones.cfg:\tbridge vmbr0\n"))
		if r := checkIn(t, sc, "10.20.0.130"); r.Verdict != want {
			t.Errorf("VLAN %s: %s because %s", tag, r.Verdict, r.Reason)
		}
	}
}
