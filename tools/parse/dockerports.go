package parse

import (
	"cmp"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A Port is one way into a container: published on the host, or only exposed.
// A range is one Port; End equals the first port of a single one.
type Port struct {
	Protocol     string // tcp, udp or sctp
	Container    int
	ContainerEnd int
	Published    bool   // false: only exposed, reachable from the same network alone
	HostIP       string // "0.0.0.0", "::", one address; "" means every address, both families
	Host         int    // 0 with Ephemeral
	HostEnd      int
	Ephemeral    bool // configured without a fixed host port: the daemon picks one at each start
	Configured   bool // from the configuration of a container that does not run: nothing listens now
}

// AllAddresses reports whether a published port listens on every address of the
// host, of one family or of both.
func (p Port) AllAddresses() bool {
	return p.Published && (p.HostIP == "" || p.HostIP == "0.0.0.0" || p.HostIP == "::")
}

// LoopbackOnly reports whether a published port is reachable from the host alone.
func (p Port) LoopbackOnly() bool {
	a, err := netip.ParseAddr(p.HostIP)
	return p.Published && err == nil && a.IsLoopback()
}

// portsProse reads the ports of ps, whose form differs by version:
//
//	0.0.0.0:80->80/tcp, :::80->80/tcp      docker up to 26
//	[::]:80->80/tcp, [::1]:8081->8080/tcp  docker 27 and later
//	0.0.0.0:5000-5003->5000-5003/tcp, 2000-2002/udp, 1234/tcp
//
// bad counts the parts that are none of these.
func portsProse(s string) (ports []Port, bad int) {
	ports = []Port{}
	for _, part := range splitFields(s, ",") {
		if p, ok := portProse(part); ok {
			ports = append(ports, p)
		} else {
			bad++
		}
	}
	return sortPorts(ports), bad
}

func portProse(s string) (Port, bool) {
	host, target, published := strings.Cut(s, "->")
	if !published {
		target = s
	}
	p, ok := targetPort(target)
	if !ok || !published {
		return p, ok
	}
	p.Published = true
	port := host
	if i := strings.LastIndexByte(host, ':'); i >= 0 {
		if p.HostIP, ok = hostIP(host[:i]); !ok {
			return p, false
		}
		port = host[i+1:]
	}
	p.Host, p.HostEnd, ok = portRange(port)
	return p, ok
}

// targetPort reads "80/tcp" or "5000-5003/tcp"; a missing protocol is tcp.
func targetPort(s string) (Port, bool) {
	number, protocol, found := strings.Cut(s, "/")
	if !found {
		protocol = "tcp"
	}
	p := Port{Protocol: protocol}
	var ok bool
	p.Container, p.ContainerEnd, ok = portRange(number)
	return p, ok && (protocol == "tcp" || protocol == "udp" || protocol == "sctp")
}

func portRange(s string) (first, last int, ok bool) {
	a, b, isRange := strings.Cut(s, "-")
	first, ok = portNumber(a)
	if last = first; ok && isRange {
		last, ok = portNumber(b)
	}
	return first, last, ok && first <= last
}

func portNumber(s string) (int, bool) {
	if s == "" || len(s) > 5 || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n > 0 && n < 1<<16
}

// hostIP drops the brackets of IPv6; no address means every address.
func hostIP(s string) (string, bool) {
	s = strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")
	if s == "" || s == "*" {
		return "", true
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return "", false
	}
	return a.String(), true
}

// inspectPorts joins what listens now ("ports"), what is configured
// ("bindings") and what the image exposes. A container that does not run has
// empty or, in podman, configured ports; with the host's network nothing is
// published, whatever is configured.
func inspectPorts(o jsonObject, state ContainerState, networkMode string) []Port {
	live := state == StateRunning || state == StatePaused
	ports, exposed := portMap(o, "ports")
	if !live {
		ports, _ = portMap(o, "bindings")
		for i := range ports {
			ports[i].Configured = true
		}
	}
	if networkMode == "host" {
		ports = nil
	}
	exposed = append(exposed, rawKeys(o.fields["exposed"])...)
	return sortPorts(append(mergePorts(ports), mergePorts(exposedPorts(ports, exposed))...))
}

// portMap reads {"80/tcp":[{"HostIp":"","HostPort":"8080"}],"1900/udp":null}.
// A port with null or [] is exposed only.
func portMap(o jsonObject, key string) (ports []Port, exposed []string) {
	m, ok := o.object(key)
	if !ok {
		return nil, nil
	}
	for _, target := range m.keys() {
		p, ok := targetPort(target)
		if !ok {
			o.note(key, "PORT/PROTOCOL as keys")
			continue
		}
		listeners := m.objects(target)
		if len(listeners) == 0 {
			exposed = append(exposed, target)
		}
		for _, l := range listeners {
			if q, ok := binding(p, l); ok {
				ports = append(ports, q)
			}
		}
	}
	return ports, exposed
}

func binding(p Port, l jsonObject) (Port, bool) {
	p.Published = true
	var ok bool
	if p.HostIP, ok = hostIP(l.text("HostIp")); !ok {
		l.note("HostIp", "an address")
		return p, false
	}
	port := l.text("HostPort")
	if port == "" || port == "0" {
		p.Ephemeral = true
		return p, true
	}
	if p.Host, p.HostEnd, ok = portRange(port); !ok {
		l.note("HostPort", "a port")
	}
	// One container port bound to a range of host ports: the daemon picks one.
	p.Ephemeral = p.HostEnd-p.Host != p.ContainerEnd-p.Container
	return p, ok
}

// exposedPorts keeps the exposed ports that are not published as well.
func exposedPorts(published []Port, targets []string) []Port {
	seen := map[Port]bool{}
	for _, p := range published {
		seen[Port{Protocol: p.Protocol, Container: p.Container, ContainerEnd: p.ContainerEnd}] = true
	}
	out := []Port{}
	for _, t := range targets {
		if p, ok := targetPort(t); ok && !seen[p] {
			seen[p] = true
			out = append(out, p)
		}
	}
	return out
}

// mergePorts joins neighbours that differ by one on both sides into ranges, as
// ps does: 5000->5000 and 5001->5001 become 5000-5001->5000-5001.
func mergePorts(ports []Port) []Port {
	slices.SortFunc(ports, func(a, b Port) int {
		return cmp.Or(strings.Compare(a.Protocol, b.Protocol), strings.Compare(a.HostIP, b.HostIP),
			cmp.Compare(a.Container-a.Host, b.Container-b.Host), comparePorts(a, b))
	})
	out := []Port{}
	for _, p := range ports {
		if i := len(out) - 1; i >= 0 && follows(out[i], p) {
			out[i].ContainerEnd, out[i].HostEnd = p.ContainerEnd, p.HostEnd
			continue
		}
		out = append(out, p)
	}
	return out
}

func follows(a, b Port) bool {
	same := a.Protocol == b.Protocol && a.HostIP == b.HostIP && a.Published == b.Published && !a.Ephemeral && !b.Ephemeral
	return same && b.Container == a.ContainerEnd+1 && (!a.Published || b.Host == a.HostEnd+1)
}

func sortPorts(ports []Port) []Port {
	slices.SortFunc(ports, comparePorts)
	return slices.Compact(ports)
}

func comparePorts(a, b Port) int {
	return cmp.Or(cmp.Compare(a.Container, b.Container), cmp.Compare(a.ContainerEnd, b.ContainerEnd),
		strings.Compare(a.Protocol, b.Protocol), cmp.Compare(a.Host, b.Host), cmp.Compare(a.HostEnd, b.HostEnd),
		strings.Compare(a.HostIP, b.HostIP))
}
