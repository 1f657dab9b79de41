package allowlist

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestEveryFormPermitsItsWords(t *testing.T) {
	for i, f := range forms {
		for _, words := range sampled(f) {
			c, err := Check(hostRole(f), words...)
			if err != nil {
				t.Errorf("%s: %v", f.ID, err)
				continue
			}
			if c.ID() != f.ID || c.form != i+1 || !slices.Equal(c.Argv(), words) {
				t.Errorf("%s: became %s %q", f.ID, c.ID(), c.Argv())
			}
		}
	}
}

// Every mutation of permitted words is refused, or differs in a slot's value
// alone and is permitted by the same form.
func TestEveryMutationIsRefused(t *testing.T) {
	tried := 0
	for _, f := range forms {
		for _, words := range [][]string{fill(f.Argv, 1), fill(f.Argv, 2)} {
			for _, m := range mutations(words) {
				tried++
				c, err := Check(hostRole(f), m...)
				if err == nil && (c.ID() != f.ID || !sameLiterals(f, m)) {
					t.Errorf("%s: permitted %q as %s", f.ID, m, c.ID())
				}
			}
		}
	}
	if tried < 50000 {
		t.Errorf("tried %d mutations, want 50000", tried)
	}
}

func sameLiterals(f Form, words []string) bool {
	if len(words) < len(f.Argv) || len(words) > len(f.Argv) && !strings.HasPrefix(f.Argv[len(f.Argv)-1], "{container}") {
		return false
	}
	for i, w := range words {
		p := f.Argv[min(i, len(f.Argv)-1)]
		if !hasSlot(p) && p != w || strings.Count(p, "/") != strings.Count(w, "/") {
			return false
		}
	}
	return true
}

func mutations(words []string) (out [][]string) {
	out = append(out, nil, append(slices.Clone(words), ""), append([]string{""}, words...), []string{strings.Join(words, " ")},
		append(slices.Clone(words), "--help"), append(slices.Clone(words), ";", "id"), append([]string{"sudo"}, words...), append([]string{"/bin/sh", "-c"}, words...))
	for i := range words {
		out = append(out, slices.Delete(slices.Clone(words), i, i+1), slices.Insert(slices.Clone(words), i, words[i]), slices.Insert(slices.Clone(words), i, "--"))
		for j := range i {
			if m := slices.Clone(words); m[i] != m[j] {
				m[i], m[j] = m[j], m[i]
				out = append(out, m)
			}
		}
		for _, w := range wordMutations(words[i]) {
			if w != words[i] {
				m := slices.Clone(words)
				m[i] = w
				out = append(out, m)
			}
		}
	}
	return out
}

var lookAlikes = strings.NewReplacer("a", "а", "c", "с", "e", "е", "o", "о", "p", "р", "x", "х", "i", "і", "-", "‐", "/", "∕", ".", "．")

func wordMutations(w string) (out []string) {
	for _, tail := range []string{"\x00", "\n", "\r", "\t", " ", "\v", "\x7f", "\x80", "\xff", "\u00a0", "\u200b", "\u202e", ";id", "&&id", "|id", "`id`", "$(id)", "${IFS}id", ">x", "#", "'", `"`, `\`, "*", "/", "/..", "/../..", "=x", ",x", "%"} {
		out = append(out, w+tail, tail+w)
	}
	out = append(out, "", "-"+w, "--"+w, strings.ToUpper(w), strings.ToLower(w), w[:len(w)/2]+" "+w[len(w)/2:], w[:len(w)/2]+"\x00"+w[len(w)/2:],
		strings.Map(shift('0', '9', '٠'), w), strings.Map(shift('0', '9', '０'), w), strings.Map(shift('a', 'z', 'ａ'), w), lookAlikes.Replace(w),
		strings.ReplaceAll(w, "/", "//"), strings.ReplaceAll(w, "/", "/./"), strings.ReplaceAll(w, "/", "/../"), "'"+w+"'", `"`+w+`"`, w+strings.Repeat("x", maxWord))
	for name := range samples {
		out = append(out, name, "/"+name)
	}
	return out
}

func shift(from, to, at rune) func(rune) rune {
	return func(r rune) rune {
		if r >= from && r <= to {
			return r - from + at
		}
		return r
	}
}

func TestSlotValues(t *testing.T) {
	tests := []struct{ slot, good, bad string }{
		{"{vmid}", "100 101 999999999", "0 1 99 099 0100 1000000000 +100 -100 1e2 0x64 100.0 1_00 １０１ ١٠١ 10a a00"},
		{"{node}", "a 1 pve1 PVE-1 a--b", "-a a- a.b a_b . .. a/b a;b рve1 " + strings.Repeat("n", 64)},
		{"{storage}", "a local Tank_1.b-c a..b", "1a -a .a _a a/b a:b a@b a;b " + strings.Repeat("s", 101)},
		{"{container}", strings.Repeat("a", 64), strings.Repeat("a", 63) + " " + strings.Repeat("a", 65) + " " + strings.Repeat("A", 64) + " " + strings.Repeat("g", 64) + " web"},
		{"{ip}", "10.0.0.9 1.1.1.1 192.168.0.255 fd00::1 fe80::1 2001:db8:1:2:3:4:5:6", "0.0.0.0 0.1.2.3 127.0.0.1 127.9.9.9 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 :: ::1 ff02::1 ::ffff:10.0.0.9 ::ffff:a00:9 " +
			"fe80::1%eth0 FD00::1 fd00:0::1 fd00:0:0:0:0:0:0:1 10.0.0 10.0.0.09 010.0.0.9 10.0.0.9/32 10.0.0.9:22 [fd00::1] 167772169 0xa000009 10.0.0.256 10.0.0.٩ localhost a"},
		{"{disk}", "sda sdb sdzzz nvme0n1 nvme10n10 nvme999n999", "sd sdA sda1 sdaaaa nvme0 nvme0n nvmen1 nvme0n1p1 nvme0000n1 vda hda mem mapper zero SDA nvme-1n1"},
	}
	for _, tt := range tests {
		s, _ := slotOf(tt.slot)
		for v := range strings.FieldsSeq(tt.good) {
			if !s.holds(v) {
				t.Errorf("%s: refused %q", tt.slot, v)
			}
		}
		for v := range strings.FieldsSeq(tt.bad) {
			if s.holds(v) {
				t.Errorf("%s: permitted %q", tt.slot, v)
			}
		}
		if s.holds("") {
			t.Errorf("%s: permitted nothing", tt.slot)
		}
	}
}

func TestRepeats(t *testing.T) {
	id := strings.Repeat("a", 64)
	words := []string{"docker", "container", "inspect", "--format", inspectTemplate}
	for _, n := range []int{0, 1, 100, 101} {
		_, err := Check(Docker, append(slices.Clone(words), slices.Repeat([]string{id}, n)...)...)
		if permitted := n >= 1 && n <= 100; (err == nil) != permitted {
			t.Errorf("%d containers: %v", n, err)
		}
	}
}

func TestRefusalSaysTheRuleNotTheWord(t *testing.T) {
	const secret = "s3cr3t"
	tests := []struct {
		name  string
		role  Role
		words []string
		want  Refusal
	}{
		{"no words", PVE, nil, Refusal{Class: Empty, Word: -1}},
		{"empty word", PVE, []string{""}, Refusal{Class: NoForm, Word: -1}},
		{"NUL", PVE, []string{"/usr/sbin/qm", "list\x00" + secret}, Refusal{Class: BadByte, Word: 1, Len: 5 + len(secret), Byte: `\x00`}},
		{"too long", PVE, []string{strings.Repeat("a", maxWord+1)}, Refusal{Class: BadByte, Word: 0, Len: maxWord + 1}},
		{"neighbour", PVE, []string{"/usr/sbin/qm", "lis" + secret}, Refusal{Class: NoForm, Word: -1}},
		{"other role", PVE, []string{"docker", "version", "--format", versionTemplate}, Refusal{Class: WrongRole, Form: "host-docker-version", Word: -1}},
		{"no role", "", []string{"/usr/sbin/qm", "list"}, Refusal{Class: WrongRole, Form: "qemu-list", Word: -1}},
		{"no role, form of both", "x", []string{"/bin/echo", "pvelens-probe"}, Refusal{Class: WrongRole, Form: "probe", Word: -1}},
		{"bad value", PVE, []string{"/usr/sbin/pct", "exec", "10" + secret, "--", "df", "-P", "-k"}, Refusal{Class: BadSlot, Form: "lxc-df", Slot: "{vmid}", Word: 2, Len: 2 + len(secret), Byte: `\x73`}},
		{"bad shape", PVE, []string{"/bin/ping", "-n", "-c", "1", "-W", "3", "127.0.0.1"}, Refusal{Class: BadSlot, Form: "ping", Slot: "{ip}", Word: 6, Len: 9}},
		{"slash in a value", PVE, []string{"/usr/sbin/pct", "exec", "101/../102", "--", "df", "-P", "-k"}, Refusal{Class: BadSlot, Form: "lxc-df", Slot: "{vmid}", Word: 2, Len: 10, Byte: `\x2f`}},
	}
	for _, tt := range tests {
		c, err := Check(tt.role, tt.words...)
		var got *Refusal
		if !errors.As(err, &got) || !c.IsZero() {
			t.Errorf("%s: got %v, %v", tt.name, c, err)
			continue
		}
		tt.want.Rule = got.Rule
		if *got != tt.want || got.Rule == "" {
			t.Errorf("%s: got %+v, want %+v", tt.name, *got, tt.want)
		}
		if strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the error holds the word: %v", tt.name, err)
		}
	}
}

// A host of unknown role is sent what a host of either role is sent.
func TestUnknownRole(t *testing.T) {
	for _, f := range forms {
		if _, err := Check(Both, fill(f.Argv, 0)...); err != nil {
			t.Errorf("%s: %v", f.ID, err)
		}
		other := map[Role]Role{PVE: Docker, Docker: PVE}[f.Role]
		if _, err := Check(other, fill(f.Argv, 0)...); other != "" && err == nil {
			t.Errorf("%s: permitted on a host of role %s", f.ID, other)
		}
	}
}
