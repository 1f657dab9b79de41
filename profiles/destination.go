package profiles

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// destination is what ssh takes out of its host argument before it reads any file. Port 0 is not given.
type destination struct {
	user, host string
	port       int
}

// parseDestination reads host, user@host and ssh://[user@]host[:port], as ssh does. It is narrower than ssh: no
// percent escapes, no host or user that begins with a dash or holds a character that a shell would read.
func parseDestination(s string) (destination, error) {
	var d destination
	rest := s
	uri := len(s) >= 6 && strings.EqualFold(s[:6], "ssh://")
	if uri {
		rest = strings.TrimSuffix(s[6:], "/")
	}
	if at := strings.LastIndexByte(rest, '@'); at >= 0 {
		d.user, rest = rest[:at], rest[at+1:]
		if !validUser(d.user) {
			return d, fmt.Errorf("%s: no user name before the @", quoteName(s))
		}
	}
	if uri {
		var err error
		if rest, d.port, err = cutPort(rest); err != nil {
			return d, fmt.Errorf("%s: %w", quoteName(s), err)
		}
	}
	if !validHost(rest) {
		return d, fmt.Errorf("%s: want host, user@host or ssh://user@host:port", quoteName(s))
	}
	d.host = rest
	return d, nil
}

// cutPort splits host[:port] and [address][:port]; port 0 is none.
func cutPort(s string) (host string, port int, err error) {
	digits, given := "", false
	if strings.HasPrefix(s, "[") {
		inner, after, ok := strings.Cut(s[1:], "]")
		if !ok {
			return "", 0, errors.New("no closing bracket")
		}
		if host = inner; after == "" {
			return host, 0, nil
		}
		if digits, given = strings.CutPrefix(after, ":"); !given {
			return "", 0, errors.New("want [address]:port")
		}
	} else if host, digits, given = strings.Cut(s, ":"); !given {
		return host, 0, nil
	}
	port, ok := parsePort(digits)
	if !ok {
		return "", 0, errors.New("want a port of 1 to 65535")
	}
	return host, port, nil
}

// parsePort reads a decimal port without sign or leading zero.
func parsePort(s string) (int, bool) {
	if s == "" || len(s) > 5 || s[0] == '0' {
		return 0, false
	}
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
	}
	n, err := strconv.Atoi(s)
	return n, err == nil && n <= 65535
}

// validHost is a name, an alias or an address; a comma, a slash and the like are no part of either.
func validHost(s string) bool {
	if s == "" || len(s) > 255 || s[0] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-:", c) >= 0) {
			return false
		}
	}
	return !strings.Contains(s, ":") || isAddress(s)
}

// validUser is a login name: nothing that a shell, ssh or a proxy command would read as more than that.
func validUser(s string) bool {
	if s == "" || len(s) > 64 || s[0] == '-' {
		return false
	}
	for _, c := range []byte(s) {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("._-@+", c) >= 0) {
			return false
		}
	}
	return true
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}
