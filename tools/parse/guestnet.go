package parse

import (
	"net/netip"
	"strings"
)

// The modes of an [Addressing]; empty means that nothing is configured.
const (
	AddressStatic = "static"
	AddressDHCP   = "dhcp"
	AddressAuto   = "auto"   // IPv6 only: by router advertisement
	AddressManual = "manual" // set inside the guest, so unknown here
)

// Addressing is how one family gets its address. Address and Gateway are
// invalid when not set. A value that is neither an address nor a mode gives an
// empty Mode and stays in the options of its line.
type Addressing struct {
	Mode    string
	Address netip.Prefix
	Gateway netip.Addr
}

// GuestNIC is one netN line. Name is the interface inside a container, Model
// the card of a VM. MAC is upper-case. Bridge is empty for a NIC on none (a VM
// then has user-mode NAT). Rate is megabytes a second. MTU 1 of a VM means: as
// the bridge.
type GuestNIC struct {
	Key         string
	Index       int
	Name        string
	Model       string
	MAC         string
	Bridge      string
	VLAN        *int64
	Trunks      []string // numbers or ranges such as 10-20
	Firewall    bool
	LinkDown    bool
	HostManaged bool
	Rate        *float64
	MTU         *int64
	Queues      *int64
	Type        string
	IPv4, IPv6  Addressing // containers only
	Options     []Option   // what has no field, or a value that could not be read
}

// IPConfig is one ipconfigN line: what cloud-init was told for NIC netN.
type IPConfig struct {
	Key        string
	Index      int
	IPv4, IPv6 Addressing
	Options    []Option
}

// parseGuestNIC reads one NIC line of either kind, for example
//
//	net0: name=eth0,bridge=vmbr0,gw=10.20.0.1,hwaddr=BC:24:11:00:01:50,ip=10.20.0.150/24,ip6=auto,tag=20,type=veth
//	net1: virtio=BC:24:11:00:02:01,bridge=vmbr1,mtu=1,queues=4,tag=30
func parseGuestNIC(key string, index int, value string) (GuestNIC, bool) {
	n := GuestNIC{Key: key, Index: index}
	options := splitOptions(value, "model")
	for _, o := range options {
		if !n.option(o) && !addressOption(&n.IPv4, &n.IPv6, o) {
			n.Options = append(n.Options, o)
		}
	}
	return n, len(options) > 0
}

func (n *GuestNIC) option(o Option) bool {
	switch o.Key {
	case "name":
		return setText(&n.Name, o.Value)
	case "model":
		return setText(&n.Model, o.Value)
	case "hwaddr", "macaddr":
		return setText(&n.MAC, strings.ToUpper(o.Value))
	case "bridge":
		return setText(&n.Bridge, o.Value)
	case "tag":
		return setInt(&n.VLAN, o.Value)
	case "trunks":
		n.Trunks = splitList(o.Value)
		return true
	case "firewall":
		return setFlag(&n.Firewall, o.Value)
	case "link_down":
		return setFlag(&n.LinkDown, o.Value)
	case "host-managed":
		return setFlag(&n.HostManaged, o.Value)
	case "rate":
		return setFloat(&n.Rate, o.Value)
	case "mtu":
		return setInt(&n.MTU, o.Value)
	case "queues":
		return setInt(&n.Queues, o.Value)
	case "type":
		return setText(&n.Type, o.Value)
	}
	// The short form of a VM has its model as the key of the MAC.
	if n.Model == "" && isMAC(o.Value) {
		n.Model, n.MAC = o.Key, strings.ToUpper(o.Value)
		return true
	}
	return false
}

func isMAC(s string) bool {
	if len(s) != 17 {
		return false
	}
	for i := range len(s) {
		if i%3 == 2 && s[i] != ':' || i%3 != 2 && !isHex(s[i]) {
			return false
		}
	}
	return true
}

func isHex(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'f'
}

// parseIPConfig reads one cloud-init line, for example
//
//	ipconfig0: ip=192.168.20.203/24,gw=192.168.20.1,ip6=fd00:20::203/64
func parseIPConfig(key string, index int, value string) (IPConfig, bool) {
	c := IPConfig{Key: key, Index: index}
	options := splitOptions(value, "ip")
	for _, o := range options {
		if !addressOption(&c.IPv4, &c.IPv6, o) {
			c.Options = append(c.Options, o)
		}
	}
	return c, len(options) > 0
}

// addressOption reads ip, gw, ip6 and gw6.
func addressOption(v4, v6 *Addressing, o Option) bool {
	switch o.Key {
	case "ip":
		return v4.set(o.Value)
	case "ip6":
		return v6.set(o.Value)
	case "gw":
		return v4.setGateway(o.Value)
	case "gw6":
		return v6.setGateway(o.Value)
	}
	return false
}

func (a *Addressing) set(value string) bool {
	switch mode := strings.ToLower(value); mode {
	case AddressDHCP, AddressAuto, AddressManual:
		a.Mode = mode
		return true
	}
	p, ok := parseAddress(value)
	if ok {
		a.Mode, a.Address = AddressStatic, p
	}
	return ok
}

func (a *Addressing) setGateway(value string) bool {
	gw, err := netip.ParseAddr(value)
	if err == nil {
		a.Gateway = gw
	}
	return err == nil
}

// parseAddress reads 10.0.0.1/24; an address alone has its full length.
func parseAddress(s string) (netip.Prefix, bool) {
	if p, err := netip.ParsePrefix(s); err == nil {
		return p, true
	}
	addr, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, false
	}
	return netip.PrefixFrom(addr.WithZone(""), addr.BitLen()), true
}
