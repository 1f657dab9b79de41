package parse

import (
	"net/netip"
	"strings"
)

// joinPrefix makes one value of an address and the length of its network. An
// IPv6 zone is dropped, an IPv4-mapped address is IPv4. A missing or impossible
// length is the whole address; what is no address is the zero Prefix.
func joinPrefix(addr string, bits *int64) netip.Prefix {
	a, err := netip.ParseAddr(strings.TrimSpace(addr))
	if err != nil {
		return netip.Prefix{}
	}
	a = a.WithZone("").Unmap()
	n := a.BitLen()
	if bits != nil && *bits >= 0 && *bits <= int64(n) {
		n = int(*bits)
	}
	return netip.PrefixFrom(a, n)
}

// normalMAC returns a MAC in lower case with colons; what is no MAC of six
// bytes, and the all-zero one of loopbacks, is "".
func normalMAC(s string) string {
	s = strings.ReplaceAll(strings.ToLower(strings.TrimSpace(s)), "-", ":")
	if len(s) != 17 || s == "00:00:00:00:00:00" {
		return ""
	}
	for i := range s {
		colon, hex := s[i] == ':', strings.IndexByte("0123456789abcdef", s[i]) >= 0
		if i%3 == 2 && !colon || i%3 != 2 && !hex {
			return ""
		}
	}
	return s
}
