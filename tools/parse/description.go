package parse

import "strings"

// describe keeps a description that was sent, and its presence if it was not.
func (s *GuestSettings) describe(value string) bool {
	if value == "" {
		s.SetKeys = appendOnce(s.SetKeys, "description")
		return true
	}
	s.Description = new(decodeDescription(value))
	return true
}

// decodeDescription undoes Proxmox's percent-encoding; what is no encoding
// stays. The closing line feed is not part of the text.
func decodeDescription(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) && isHex(s[i+1]) && isHex(s[i+2]) {
			b.WriteByte(hexValue(s[i+1])<<4 | hexValue(s[i+2]))
			i += 2
			continue
		}
		b.WriteByte(s[i])
	}
	return strings.TrimRight(b.String(), "\n")
}

func hexValue(c byte) byte {
	if c <= '9' {
		return c - '0'
	}
	return c | 0x20 - 'a' + 10
}
