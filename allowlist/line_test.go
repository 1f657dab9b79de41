package allowlist

import (
	"errors"
	"slices"
	"strings"
	"testing"
)

func TestCheckLineReadsLine(t *testing.T) {
	for _, f := range forms {
		for _, words := range sampled(f) {
			c, err := Check(hostRole(f), words...)
			if err != nil {
				t.Fatalf("%s: %v", f.ID, err)
			}
			got, err := CheckLine(hostRole(f), c.Line())
			if err != nil || got.ID() != f.ID || !slices.Equal(got.Argv(), words) {
				t.Errorf("%s: got %s %q, %v", f.ID, got.ID(), got.Argv(), err)
			}
			if len(c.Wire(SudoAll)) > MaxLine {
				t.Errorf("%s: %d bytes, at most %d can be sent", f.ID, len(c.Wire(SudoAll)), MaxLine)
			}
		}
	}
}

// A changed byte makes another line: refused, unless it is another value of a
// slot in the same form.
func TestCheckLineIsExact(t *testing.T) {
	for _, f := range forms {
		c, err := Check(hostRole(f), fill(f.Argv, 1)...)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range lineMutations(c.Line()) {
			got, err := CheckLine(hostRole(f), m)
			if err != nil {
				continue
			}
			if got.ID() != f.ID || got.Line() != m || !sameLiterals(f, got.Argv()) {
				t.Errorf("%s: permitted %.300q as %s", f.ID, m, got.ID())
			}
		}
	}
}

func lineMutations(line string) (out []string) {
	for _, s := range []string{" ", "\n", "\r", "\t", "\x00", ";id", " ;id", " id", "&", "|id", "#", "'", `"`, `\`, "\u00a0", "\u200b", " --", " -x"} {
		out = append(out, line+s, s+line)
	}
	out = append(out, "'"+line+"'", `"`+line+`"`, strings.ToUpper(line), strings.ReplaceAll(line, " ", "  "), strings.ReplaceAll(line, " ", "\t"), strings.ReplaceAll(line, "'", `"`), strings.ReplaceAll(line, "'", ""),
		"'"+strings.ReplaceAll(line, " ", "' '")+"'", line+" "+line, line+"\n"+line, "exec "+line, "A=b "+line, strings.Repeat(" ", MaxLine)+line)
	step := 1 + len(line)/150
	for i := 0; i < len(line); i += step {
		head, tail := line[:i], line[i+1:]
		out = append(out, head+tail, line[:i+1]+line[i:])
		for _, c := range []string{" ", "'", `"`, `\`, "a", "Z", "0", "/", ".", "-", "$", "\x00", "\x80", "é"} {
			if c != line[i:i+1] {
				out = append(out, head+c+tail)
			}
			out = append(out, head+c+line[i:])
		}
	}
	return out
}

func TestCheckLineRefuses(t *testing.T) {
	tests := []struct {
		name, line string
		class      Class
	}{
		{"nothing", "", Empty},
		{"blank", " ", NoForm},
		{"too long", strings.Repeat("a", MaxLine+1), BadByte},
		{"1 MB", strings.Repeat("/usr/sbin/qm list ", 1<<16), BadByte},
		{"newline", "/usr/sbin/qm list\n", BadByte},
		{"quoted without need", "/usr/sbin/qm 'list'", NoForm},
		{"bad value", "/usr/sbin/pct exec 99 -- df -P -k", BadSlot},
		{"long value", "/usr/sbin/pct exec 1000000000 -- df -P -k", BadSlot},
		{"many words", "docker container inspect --format " + quote(inspectTemplate) + strings.Repeat(" a", 1<<14), NoForm},
	}
	for _, tt := range tests {
		c, err := CheckLine(PVE, tt.line)
		var r *Refusal
		if !errors.As(err, &r) || r.Class != tt.class || !c.IsZero() {
			t.Errorf("%s: got %v, want %s", tt.name, err, tt.class)
		}
	}
	c, _ := Check(Docker, "docker", "version", "--format", versionTemplate)
	var r *Refusal
	if _, err := CheckLine(PVE, c.Line()); !errors.As(err, &r) || r.Class != WrongRole {
		t.Errorf("other role: %v", err)
	}
}

func TestQuote(t *testing.T) {
	tests := []struct{ in, want string }{
		{"", "''"},
		{"/bin/grep", "/bin/grep"},
		{"a=b%c", "a=b%c"},
		{"=a", "'=a'"},
		{"%a", "'%a'"},
		{"a b", "a' b'"},
		{"it's", `it"'"s`},
		{`a\b!`, `a\\b\!`},
		{`$x'y`, `'$x'"'"y`},
		{"~", "'~'"},
	}
	for _, tt := range tests {
		if got := quote(tt.in); got != tt.want {
			t.Errorf("%q: got %s, want %s", tt.in, got, tt.want)
		}
	}
}

// Law: Check never changes a word, and what it permits CheckLine reads again.
func FuzzCheck(f *testing.F) {
	for _, form := range forms {
		f.Add(strings.Join(fill(form.Argv, 1), "\x1f"))
	}
	f.Add("")
	f.Fuzz(func(t *testing.T, joined string) {
		words := strings.Split(joined, "\x1f")
		given := slices.Clone(words)
		for _, role := range []Role{PVE, Docker, Both} {
			c, err := Check(role, words...)
			if !slices.Equal(words, given) {
				t.Fatal("the caller's words changed")
			}
			if err != nil {
				var r *Refusal
				if !errors.As(err, &r) || !c.IsZero() {
					t.Fatalf("refused with %T and %q", err, c.Argv())
				}
				continue
			}
			if !slices.Equal(c.Argv(), words) {
				t.Fatalf("permitted %q as %q", words, c.Argv())
			}
			if again, err := CheckLine(role, c.Line()); err != nil || !slices.Equal(again.Argv(), words) {
				t.Fatalf("line %q: %q, %v", c.Line(), again.Argv(), err)
			}
		}
	})
}

// Law: CheckLine permits only what Line renders, of words that Check permits.
func FuzzCheckLine(f *testing.F) {
	for _, form := range forms {
		c, err := Check(Both, fill(form.Argv, 1)...)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(c.Line())
	}
	for _, line := range hostile(f).Hostile {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, line string) {
		for _, role := range []Role{PVE, Docker, Both} {
			c, err := CheckLine(role, line)
			if err != nil {
				if !c.IsZero() {
					t.Fatalf("refused, but gave %q", c.Argv())
				}
				continue
			}
			again, err := Check(role, c.Argv()...)
			if err != nil || again.Line() != line || again.ID() != c.ID() {
				t.Fatalf("permitted %q, which is %q, %v", line, again.Line(), err)
			}
		}
	})
}
