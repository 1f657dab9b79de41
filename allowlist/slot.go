package allowlist

import (
	"fmt"
	"net/netip"
	"strings"
)

// A slot is a set of values: a first byte, further bytes, and a length. The
// values of {ip} and {disk} must also have the right shape.
type slot struct {
	name, first, rest, last string
	min, max, repeat        int
	rule                    string
}

// slotOf returns the slot that pattern begins with, and the literal after it.
func slotOf(pattern string) (*slot, string) {
	for i := range slots {
		if suffix, ok := strings.CutPrefix(pattern, slots[i].name); ok {
			return &slots[i], suffix
		}
	}
	return nil, pattern
}

// enforced renders the slot for the table's hash. The rule in words stands for
// the shapes of {ip} and {disk}, which are code.
func (s *slot) enforced() string {
	return fmt.Sprintf("%q %q %q %q %d %d %d %q", s.name, s.first, s.rest, s.last, s.min, s.max, s.repeat, s.rule)
}

func hasSlot(pattern string) bool {
	for p := range strings.SplitSeq(pattern, "/") {
		if s, _ := slotOf(p); s != nil {
			return true
		}
	}
	return false
}

func repeats(pattern string) int {
	if s, suffix := slotOf(pattern); s != nil && suffix == "" {
		return s.repeat
	}
	return 0
}

func (s *slot) holds(v string) bool {
	if len(v) < s.min || len(v) > s.max || s.offends(v) != "" {
		return false
	}
	if s.last != "" && !strings.Contains(s.last, v[len(v)-1:]) {
		return false
	}
	switch s.name {
	case "{ip}":
		return unicast(v)
	case "{disk}":
		return isDisk(v)
	}
	return true
}

// offends returns the first byte that the slot does not admit, as \xNN, or "".
func (s *slot) offends(v string) string {
	for i := range len(v) {
		set := s.rest
		if i == 0 {
			set = s.first
		}
		if strings.IndexByte(set, v[i]) < 0 {
			return fmt.Sprintf(`\x%02x`, v[i])
		}
	}
	return ""
}

func unicast(v string) bool {
	a, err := netip.ParseAddr(v)
	if err != nil || a.String() != v || a.Zone() != "" || a.Is4In6() {
		return false
	}
	if a.Is4() && (a.As4()[0] == 0 || a.As4()[0] >= 240) {
		return false // "this network", reserved and limited broadcast
	}
	return !a.IsUnspecified() && !a.IsLoopback() && !a.IsMulticast()
}

// isDisk admits sda..sdzzz and nvme0n1..nvme999n999.
func isDisk(v string) bool {
	if t, ok := strings.CutPrefix(v, "sd"); ok {
		return len(t) <= 3 && strings.Trim(t, alpha[26:]) == ""
	}
	t, ok := strings.CutPrefix(v, "nvme")
	if !ok {
		return false
	}
	ctrl, ns, ok := strings.Cut(t, "n")
	number := func(t string) bool { return t != "" && len(t) <= 3 && strings.Trim(t, digits) == "" }
	return ok && number(ctrl) && number(ns)
}
