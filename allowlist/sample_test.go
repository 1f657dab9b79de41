package allowlist

import "strings"

// samples are values that each slot admits.
var samples = map[string][]string{
	"{vmid}":      {"100", "101", "999999999"},
	"{node}":      {"pve1", "a", "PVE-1", strings.Repeat("n", 63)},
	"{storage}":   {"local", "a", "Tank_1.b-c", "s" + strings.Repeat("t", 99)},
	"{container}": {strings.Repeat("0123456789abcdef", 4), strings.Repeat("f", 64)},
	"{ip}":        {"10.0.0.9", "192.168.254.255", "fd00::1", "2001:db8::a:b"},
	"{disk}":      {"sda", "sdzzz", "nvme0n1", "nvme12n345"},
}

// sampled returns permitted words of f, one set for each round of values; those
// that repeat their last slot come last, with 1, 2 and the most values.
func sampled(f Form) (out [][]string) {
	for round := range 4 {
		out = append(out, fill(f.Argv, round))
	}
	last := f.Argv[len(f.Argv)-1]
	if n := repeats(last); n > 0 {
		for _, times := range []int{2, n} {
			words := fill(f.Argv, 0)
			for len(words) < len(f.Argv)-1+times {
				words = append(words, fill(argv{last}, len(words))...)
			}
			out = append(out, words)
		}
	}
	return out
}

func fill(pattern argv, round int) []string {
	words := make([]string, len(pattern))
	for i, p := range pattern {
		words[i] = p
		if !hasSlot(p) {
			continue
		}
		for name, values := range samples {
			words[i] = strings.ReplaceAll(words[i], name, values[round%len(values)])
		}
	}
	return words
}

func hostRole(f Form) Role {
	if f.Role == Both {
		return PVE
	}
	return f.Role
}
