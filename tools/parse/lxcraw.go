package parse

import (
	"net/netip"
	"strings"
)

// RawLXC holds the lxc.* lines of a container, which Proxmox passes on to LXC
// unread. They repeat, and their order counts: an empty value resets the list
// before it.
type RawLXC struct {
	Lines           []Option // every line whose value is kept and could be read, in order
	AppArmorProfile string
	CapDrop         []string
	CapKeep         []string
	DevicesAllow    []string
	DevicesDeny     []string
	IDMaps          []IDMap
	Mounts          []RawMount
	NICs            []RawNIC // by index
}

// IDMap is one lxc.idmap line. Kind is u or g.
type IDMap struct {
	Kind                   string
	Container, Host, Count int64
}

// RawMount is one lxc.mount.entry line without its options, where passwords
// can stand.
type RawMount struct{ Source, Target, Type string }

// RawNIC is what lxc.net.N.* lines say.
type RawNIC struct {
	Index     int
	Type      string
	Link      string
	MAC       string
	Addresses []netip.Prefix
	Gateways  []netip.Addr
}

// line reads one lxc.* line. kept is false for a key whose value must not be
// kept; ok is false for a value that could not be read.
func (r *RawLXC) line(key, value string) (kept, ok bool) {
	ok = true
	switch key {
	case "lxc.apparmor.profile":
		r.AppArmorProfile = value
	case "lxc.cap.drop":
		r.CapDrop = resettable(r.CapDrop, value)
	case "lxc.cap.keep":
		r.CapKeep = resettable(r.CapKeep, value)
	case "lxc.cgroup.devices.allow", "lxc.cgroup2.devices.allow":
		r.DevicesAllow = append(r.DevicesAllow, value)
	case "lxc.cgroup.devices.deny", "lxc.cgroup2.devices.deny":
		r.DevicesDeny = append(r.DevicesDeny, value)
	case "lxc.idmap":
		ok = r.idmap(strings.Fields(value))
	case "lxc.mount.entry":
		value, ok = r.mount(strings.Fields(value))
	case "lxc.apparmor.allow_nesting", "lxc.mount.auto", "lxc.seccomp.profile":
	default:
		rest, isNet := strings.CutPrefix(key, "lxc.net.")
		if !isNet {
			return false, true
		}
		if kept, ok = r.nic(rest, value); !kept {
			return false, true
		}
	}
	if ok {
		r.Lines = append(r.Lines, Option{Key: key, Value: value})
	}
	return true, ok
}

func resettable(list []string, value string) []string {
	if value == "" {
		return nil
	}
	return append(list, strings.Fields(value)...)
}

func (r *RawLXC) idmap(f []string) bool {
	if len(f) == 0 {
		r.IDMaps = nil
		return true
	}
	if len(f) != 4 {
		return false
	}
	container, host, count := parseInt(f[1]), parseInt(f[2]), parseInt(f[3])
	if container == nil || host == nil || count == nil {
		return false
	}
	r.IDMaps = append(r.IDMaps, IDMap{Kind: f[0], Container: *container, Host: *host, Count: *count})
	return true
}

// mount returns the value without its options.
func (r *RawLXC) mount(f []string) (string, bool) {
	if len(f) == 0 {
		r.Mounts = nil
		return "", true
	}
	if len(f) < 2 {
		return "", false
	}
	f = append(f, "")[:3]
	r.Mounts = append(r.Mounts, RawMount{Source: unescapeOctal(f[0]), Target: unescapeOctal(f[1]), Type: f[2]})
	return strings.TrimSpace(strings.Join(f, " ")), true
}

func (r *RawLXC) nic(rest, value string) (kept, ok bool) {
	number, field, _ := strings.Cut(rest, ".")
	index := parseInt(number)
	if index == nil || *index < 0 || *index > highestIndex {
		return false, true
	}
	n := r.nicAt(int(*index))
	switch field {
	case "type":
		n.Type = value
	case "link":
		n.Link = value
	case "hwaddr":
		n.MAC = strings.ToUpper(value)
	case "ipv4.address", "ipv6.address":
		p, ok := parseAddress(firstField(value))
		if ok {
			n.Addresses = append(n.Addresses, p)
		}
		return true, ok || value == ""
	case "ipv4.gateway", "ipv6.gateway":
		gw, err := netip.ParseAddr(value)
		if err == nil {
			n.Gateways = append(n.Gateways, gw)
		}
		return true, err == nil || value == "auto" || value == "dev" || value == ""
	default:
		return false, true
	}
	return true, true
}

func firstField(s string) string {
	if f := strings.Fields(s); len(f) > 0 {
		return f[0]
	}
	return ""
}

func (r *RawLXC) nicAt(index int) *RawNIC {
	at := 0
	for at < len(r.NICs) && r.NICs[at].Index < index {
		at++
	}
	if at == len(r.NICs) || r.NICs[at].Index != index {
		r.NICs = append(r.NICs[:at], append([]RawNIC{{Index: index}}, r.NICs[at:]...)...)
	}
	return &r.NICs[at]
}

// unescapeOctal reads the \040 of fstab and of /proc/self/mounts.
func unescapeOctal(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) && isOctal(s[i+1], '3') && isOctal(s[i+2], '7') && isOctal(s[i+3], '7') {
			b.WriteByte((s[i+1]-'0')<<6 | (s[i+2]-'0')<<3 | (s[i+3] - '0'))
			i += 3
			continue
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func isOctal(c, most byte) bool { return '0' <= c && c <= most }
