package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/netip"
	"strconv"
	"strings"
)

// A GuestInterface is one network interface as seen inside a guest.
type GuestInterface struct {
	Name      string // eth0, br0.30, "Ethernet 2"
	MAC       string // lower case; "" when there is none, as on tunnels and loopback
	Kind      InterfaceKind
	Addresses []netip.Prefix // in the guest's order; empty is normal, for a bridge's port
	RXBytes   *int64         // VMs
	TXBytes   *int64
}

// An InterfaceKind says, from the name alone, whether an interface's addresses
// can be those of the guest on its network.
type InterfaceKind string

// The kinds. Addresses of container bridges repeat on every Docker host and mean
// nothing outside the guest.
const (
	InterfacePlain     InterfaceKind = ""
	InterfaceLoopback  InterfaceKind = "loopback"
	InterfaceContainer InterfaceKind = "container-bridge" // docker0, br-…, veth…, cni0, podman0
	InterfaceOverlay   InterfaceKind = "overlay"          // tailscale0, wg0, zt…, tun0
)

// ErrGuestNotRunning is the answer null: the container's first process is gone.
// Its addresses are unknown; it does exist.
var ErrGuestNotRunning = errors.New("container interfaces: the container does not run")

// LXCInterfaces reads /nodes/N/lxc/ID/interfaces of pvesh (PVE 8 and 9):
//
//	[{"hwaddr":"bc:24:11:aa:01:01","inet":"192.168.20.101/24","ip-addresses":[{"ip-address":"192.168.20.101","ip-address-type":"inet","prefix":"24"}],"name":"eth0"}]
//
// Before PVE 8.3 there are only inet and inet6, each the last address of its
// family. The answer null, which a stopped container gives, is ErrGuestNotRunning.
func LXCInterfaces(out []byte) ([]GuestInterface, []Note, error) {
	if bytes.Equal(bytes.TrimSpace(out), []byte("null")) {
		return nil, nil, ErrGuestNotRunning
	}
	return guestInterfaces("container interfaces", out)
}

// QemuInterfaces reads /nodes/N/qemu/ID/agent/network-get-interfaces of pvesh
// (PVE 7 to 9), and the bare list that qm guest cmd prints:
//
//	{"result":[{"hardware-address":"bc:24:11:bb:02:00","ip-addresses":[{"ip-address":"192.168.20.151","ip-address-type":"ipv4","prefix":24}],"name":"enp0s18","statistics":{"rx-bytes":1076,…}}]}
//
// An interface without addresses is normal.
func QemuInterfaces(out []byte) ([]GuestInterface, []Note, error) {
	list, err := agentResult("agent interfaces", out)
	if err != nil {
		return nil, nil, err
	}
	return guestInterfaces("agent interfaces", list)
}

// agentResult takes the list out of {"result":[…]}; a bare list stays.
func agentResult(what string, out []byte) ([]byte, error) {
	if !bytes.HasPrefix(bytes.TrimSpace(out), []byte("{")) {
		return out, nil
	}
	var wrapped struct{ Result json.RawMessage }
	if err := jsonDecode(what, `a JSON object with "result"`, out, &wrapped); err != nil {
		return nil, err
	}
	if len(wrapped.Result) == 0 {
		return nil, errors.New(what + `: want "result"`)
	}
	return wrapped.Result, nil
}

func guestInterfaces(what string, out []byte) ([]GuestInterface, []Note, error) {
	list, notes, err := jsonList(what, out)
	if err != nil {
		return nil, nil, err
	}
	interfaces := []GuestInterface{}
	for _, o := range list {
		name := o.text("name")
		if name == "" {
			o.note("name", "a name")
			continue
		}
		i := GuestInterface{Name: name, Kind: interfaceKind(name), Addresses: interfaceAddresses(o), MAC: normalMAC(o.text("hardware-address"))}
		if i.MAC == "" {
			i.MAC = normalMAC(o.text("hwaddr"))
		}
		if s, ok := o.object("statistics"); ok {
			i.RXBytes, i.TXBytes = nonNegative(s.integer("rx-bytes")), nonNegative(s.integer("tx-bytes"))
		}
		interfaces = append(interfaces, i)
	}
	return interfaces, *notes, nil
}

func interfaceAddresses(o jsonObject) []netip.Prefix {
	out := []netip.Prefix{}
	if !o.has("ip-addresses") {
		for _, key := range []string{"inet", "inet6"} {
			addr, bits, _ := strings.Cut(o.text(key), "/")
			if p := joinPrefix(addr, parseInt(bits)); p.IsValid() {
				out = append(out, p)
			}
		}
		return out
	}
	for _, a := range o.objects("ip-addresses") {
		p := joinPrefix(a.text("ip-address"), a.integer("prefix"))
		if !p.IsValid() {
			a.note("ip-address", "an address")
			continue
		}
		out = append(out, p)
	}
	return out
}

func interfaceKind(name string) InterfaceKind {
	name = strings.ToLower(name)
	switch {
	case name == "lo" || strings.HasPrefix(name, "loopback"):
		return InterfaceLoopback
	case isContainerBridge(name):
		return InterfaceContainer
	case hasNumberAfter(name, "wg", "zt", "tun", "utun", "tailscale", "nebula", "netbird", "wt", "ipsec", "vpn"), strings.HasPrefix(name, "zt"), strings.HasPrefix(name, "tailscale"):
		return InterfaceOverlay
	}
	return InterfacePlain
}

// isContainerBridge: Docker names its bridges docker0, docker_gwbridge and br-
// with 12 hex digits of the network's ID.
func isContainerBridge(name string) bool {
	if id, ok := strings.CutPrefix(name, "br-"); ok {
		return len(id) == 12 && strings.Trim(id, "0123456789abcdef") == ""
	}
	for _, prefix := range []string{"docker", "veth", "cni", "podman", "flannel", "cali", "cilium", "lxcbr", "lxdbr", "incusbr", "virbr", "hassio"} {
		if strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

func hasNumberAfter(name string, prefixes ...string) bool {
	for _, p := range prefixes {
		if rest, ok := strings.CutPrefix(name, p); ok {
			if _, err := strconv.ParseUint(rest, 10, 16); err == nil {
				return true
			}
		}
	}
	return false
}
