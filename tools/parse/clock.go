package parse

import (
	"errors"
	"strings"
	"time"
)

// Clock reads the form clock: the node's time, in the zone it has now.
//
// Program: date +%s.%N%z of coreutils. Input:
//
//	1795970999.123456789+0100
func Clock(out []byte) (time.Time, error) {
	bad := errors.New("clock: want SECONDS.NANOSECONDS+HHMM")
	text := strings.TrimSpace(string(out))
	i := strings.LastIndexAny(text, "+-")
	if i <= 0 {
		return time.Time{}, bad
	}
	seconds, nanos, _ := strings.Cut(text[:i], ".")
	zone, err := time.Parse("-0700", text[i:])
	s, n := parseInt(seconds), parseInt(nanos)
	if err != nil || s == nil || n == nil || *n < 0 || *n >= 1e9 || len(nanos) != 9 {
		return time.Time{}, bad
	}
	_, offset := zone.Zone()
	return time.Unix(*s, *n).In(time.FixedZone("", offset)), nil
}
