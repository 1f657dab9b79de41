package parse

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func prefixes(s ...string) []netip.Prefix {
	out := []netip.Prefix{}
	for _, p := range s {
		out = append(out, netip.MustParsePrefix(p))
	}
	return out
}

func TestLXCInterfaces(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []GuestInterface
	}{
		{"recorded", string(captured(t, "interfaces-lxc.json")), []GuestInterface{
			{Name: "lo", Kind: InterfaceLoopback, Addresses: prefixes("127.0.0.1/8", "::1/128")},
			{Name: "eth0", MAC: "bc:24:11:aa:01:02", Addresses: prefixes("192.168.20.137/24", "fd00:20::1:37/64", "fe80::be24:11ff:feaa:102/64")},
			{Name: "eth1", MAC: "bc:24:11:aa:02:02", Addresses: prefixes("10.20.0.102/24")},
		}},
		{"inet is only the last address; an overlay has no MAC", string(captured(t, "interfaces-lxc-overlay.json")), []GuestInterface{
			{Name: "lo", Kind: InterfaceLoopback, Addresses: prefixes("127.0.0.1/8", "::1/128")},
			{Name: "eth0", MAC: "bc:24:11:00:01:60", Addresses: prefixes("10.20.0.160/24", "10.20.0.199/24", "fe80::be24:11ff:fe00:160/64")},
			{Name: "docker0", MAC: "02:42:00:00:00:01", Kind: InterfaceContainer, Addresses: prefixes("172.17.0.1/16")},
			{Name: "tailscale0", Kind: InterfaceOverlay, Addresses: prefixes("100.64.7.9/32")},
		}},
		{"before PVE 8.3", `[{"hwaddr":"BC:24:11:00:00:01","inet":"10.0.0.5/24","inet6":"fe80::1/64","name":"eth0"},{"name":"eth1","hwaddr":"bc:24:11:00:00:02"}]`, []GuestInterface{
			{Name: "eth0", MAC: "bc:24:11:00:00:01", Addresses: prefixes("10.0.0.5/24", "fe80::1/64")},
			{Name: "eth1", MAC: "bc:24:11:00:00:02", Addresses: prefixes()},
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, notes, err := LXCInterfaces([]byte(tc.in))
			wantError(t, err, "")
			diff(t, []Note{}, notes)
			diff(t, tc.want, got)
		})
	}
}

func TestLXCInterfacesOfAStoppedContainer(t *testing.T) {
	if _, _, err := LXCInterfaces([]byte("null\n")); !errors.Is(err, ErrGuestNotRunning) {
		t.Errorf("got %v", err)
	}
}

func TestQemuInterfaces(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string
	}{
		{"recorded, wrapped", string(captured(t, "interfaces-qemu.json")), []string{
			"lo  loopback [127.0.0.1/8 ::1/128] 0", "x0 b2:2a:6d:f7:11:29  [fe80::b02a:6dff:fef7:1129/64] 1332",
			"enp0s18 bc:24:11:bb:02:00  [192.168.20.151/24 fd00:20::151/64 fe80::be24:11ff:febb:200/64] 1076",
		}},
		{"bridges of Docker come first", string(captured(t, "interfaces-qemu-docker.json")), []string{
			"lo  loopback [127.0.0.1/8 ::1/128] -", "br-16aa0d4bf229 02:42:9d:00:00:01 container-bridge [172.18.0.1/16 fe80::42:9dff:fe00:1/64] -",
			"docker0 02:42:9d:00:00:02 container-bridge [172.17.0.1/16] -", "veth1c2d3e4 7a:00:00:00:00:01 container-bridge [fe80::7800:ff:fe00:1/64] -",
			"ens18 bc:24:11:00:02:30  [10.20.0.230/24 2001:db8:20::230/64 fe80::be24:11ff:fe00:230/64] 9007199254740993",
			"tailscale0  overlay [100.101.102.103/32 fd7a:115c:a1e0::1/128] -",
		}},
		{"without addresses, and with a blank in the name", string(captured(t, "interfaces-qemu-without-addresses.json")), []string{
			"lo  loopback [127.0.0.1/8] -", "eth0 bc:24:11:00:02:40  [] -", "br0 bc:24:11:00:02:40  [fe80::be24:11ff:fe00:240/64] -",
			"br0.30 bc:24:11:00:02:40  [10.30.0.240/24] -", "Ethernet 2 bc:24:11:00:02:41  [169.254.17.5/16] -",
		}},
		{"Windows gives a zone", `{"result":[{"name":"Ethernet","ip-addresses":[{"ip-address":"fe80::1%12","prefix":64}]}]}`, []string{"Ethernet   [fe80::1/64] -"}},
		{"IPv4 in IPv6", `[{"name":"a","ip-addresses":[{"ip-address":"::ffff:10.0.0.1","prefix":24}]}]`, []string{"a   [10.0.0.1/24] -"}},
		{"no interface", `{"result":[]}`, []string{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, notes, err := QemuInterfaces([]byte(tc.in))
			wantError(t, err, "")
			diff(t, []Note{}, notes)
			got := []string{}
			for _, i := range list {
				rx := "-"
				if i.RXBytes != nil {
					rx = fmt.Sprint(*i.RXBytes)
				}
				got = append(got, fmt.Sprintf("%s %s %s %v %s", i.Name, i.MAC, i.Kind, i.Addresses, rx))
			}
			diff(t, tc.want, got)
		})
	}
}

func TestInterfaceKind(t *testing.T) {
	for name, want := range map[string]InterfaceKind{
		"br-lan": InterfacePlain, "br-cafe": InterfacePlain, "br0": InterfacePlain, "br-0123456789ab": InterfaceContainer, "docker_gwbridge": InterfaceContainer, "ens18": InterfacePlain,
		"Loopback Pseudo-Interface 1": InterfaceLoopback, "wg0": InterfaceOverlay, "wgs": InterfacePlain, "ztabc123": InterfaceOverlay, "tun0": InterfaceOverlay, "hassio": InterfaceContainer,
	} {
		if got := interfaceKind(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
}

func TestInterfacesBadInput(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		notes    []string
		err      string
	}{
		{"nothing", "", nil, "agent interfaces: want a JSON array of objects, got nothing"},
		{"null", "null", nil, "got null"},
		{"an error instead of a list", `{"result":{"error":"x"}}`, nil, "another kind of JSON"},
		{"no result", `{}`, nil, `agent interfaces: want "result"`},
		{"half", `{"result":[{"name"`, nil, "got something else at byte"},
		{"one bad address", `[{"name":"a","ip-addresses":[{"ip-address":"x"},{"ip-address":"10.0.0.1","prefix":99}]},{"mac":1}]`, []string{"line 1: ip-addresses.ip-address: want an address", "line 2: name: want a name"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, notes, err := QemuInterfaces([]byte(tc.in))
			wantError(t, err, tc.err)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}

// Law: wrapped and bare lists say the same, and every address is one.
func FuzzInterfaces(f *testing.F) {
	for _, name := range []string{"interfaces-lxc.json", "interfaces-lxc-overlay.json", "interfaces-qemu-docker.json", "interfaces-qemu-without-addresses.json"} {
		f.Add(captured(f, name))
	}
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		bare, _, err := LXCInterfaces(out)
		if err != nil || !json.Valid(out) {
			return
		}
		wrapped, _, err := QemuInterfaces(append(append([]byte(`{"result":`), out...), '}'))
		if err != nil || !cmp.Equal(bare, wrapped, sameAddresses) {
			t.Fatalf("wrapped: %v", err)
		}
		for _, i := range bare {
			for _, a := range i.Addresses {
				if !a.IsValid() || a.Addr().Zone() != "" || a.Addr().Is4In6() {
					t.Fatalf("%q is no plain address", a)
				}
			}
		}
	})
}
