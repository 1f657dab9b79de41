package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pvelens/tools/parse"
)

// containerPorts joins the listeners of one publication: IPv4 and IPv6 are two
// addresses of one port.
func containerPorts(ports []parse.Port) []ContainerPort {
	out := []ContainerPort{}
	for _, p := range ports {
		row := ContainerPort{Protocol: p.Protocol, ContainerPort: p.Container, HostPort: p.Host, Published: p.Published, Ephemeral: p.Ephemeral, Configured: p.Configured}
		if p.ContainerEnd > p.Container {
			row.ContainerPortEnd = p.ContainerEnd
		}
		if p.HostEnd > p.Host {
			row.HostPortEnd = p.HostEnd
		}
		address := ""
		if p.Published {
			address = cmp.Or(p.HostIP, "*")
		}
		i := slices.IndexFunc(out, func(o ContainerPort) bool { return o.same(row) })
		if i < 0 {
			out, i = append(out, row), len(out)
		}
		if address != "" && !slices.Contains(out[i].Addresses, address) {
			out[i].Addresses = append(out[i].Addresses, address)
		}
	}
	for i := range out {
		slices.Sort(out[i].Addresses)
	}
	return out
}

func (p ContainerPort) same(q ContainerPort) bool {
	p.Addresses, q.Addresses = nil, nil
	return p.text() == q.text() && p.Published == q.Published && p.Ephemeral == q.Ephemeral && p.Configured == q.Configured
}

// text renders a port for people: 8080->80/tcp, 127.0.0.1:9000-9002->9000-9002/tcp,
// 443/tcp if it is only exposed.
func (p ContainerPort) text() string {
	target := portText(p.ContainerPort, p.ContainerPortEnd) + "/" + p.Protocol
	if !p.Published {
		return target
	}
	host := "?"
	if p.HostPort > 0 {
		host = portText(p.HostPort, p.HostPortEnd)
	}
	if !p.everywhere() && len(p.Addresses) > 0 {
		host = strings.Join(p.Addresses, ",") + ":" + host
	}
	return host + "->" + target
}

func portText(from, to int) string {
	if to > from {
		return fmt.Sprintf("%d-%d", from, to)
	}
	return fmt.Sprint(from)
}

// everywhere reports whether the port listens on every address of a family.
func (p ContainerPort) everywhere() bool {
	return p.Published && slices.ContainsFunc(p.Addresses, func(a string) bool { return a == "*" || a == "0.0.0.0" || a == "::" })
}

// Listens reports whether a published port covers the number on the host; an
// ephemeral range does so only perhaps, and counts.
func (p ContainerPort) Listens(port int) bool {
	return p.Published && p.HostPort > 0 && p.HostPort <= port && port <= max(p.HostPort, p.HostPortEnd)
}
