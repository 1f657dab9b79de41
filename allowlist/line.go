package allowlist

import (
	"fmt"
	"strconv"
	"strings"
)

// MaxLine is the most bytes a line may have. Longer ones end in "Argument list
// too long", or kill the connection.
const MaxLine = 120 * kib

// Become says how a command gets the rights it needs.
type Become string

// The ways to get rights.
const (
	AsIs     Become = "none"     // the login user has them, or goes without
	Sudo     Become = "sudo"     // sudo -n for forms that need root
	SudoAll  Become = "sudo-all" // sudo -n also for forms that need www-data
	ViaGate  Become = "gate"     // the node-side gate raises them
	maxWords        = 256
)

// Line renders the words as one string that every login shell splits into the
// same words again. This exact string is what a gate accepts.
func (c Command) Line() string {
	out := make([]string, len(c.words))
	for i, w := range c.words {
		out[i] = quote(w)
	}
	return strings.Join(out, " ")
}

// Wire renders what is sent: the time limit, sudo where it is wanted and the
// form needs it, then [Command.Line]. A gate keeps the time itself, so it is
// sent the bare line.
func (c Command) Wire(b Become) string {
	if c.IsZero() {
		return ""
	}
	if b == ViaGate {
		return c.Line()
	}
	f := c.Form()
	words := append(append(argv{}, timeoutWords...), strconv.Itoa(f.Limit))
	if b == Sudo && f.Rights == Root || b == SudoAll && f.Rights != Any {
		words = append(words, sudoWords...)
	}
	return strings.Join(words, " ") + " " + c.Line()
}

// quote renders a word for sh, bash, dash, zsh, fish, tcsh, ksh, mksh and
// busybox ash alike. Outside single quotes stand only letters, digits, the
// bytes _./:,@+- and, not first, = and %; a quote, a backslash and an
// exclamation mark are written outside the single quotes, because fish reads a
// backslash and tcsh an exclamation mark inside them.
func quote(w string) string {
	if w == "" {
		return "''"
	}
	var b strings.Builder
	quoted := false
	for i := range len(w) {
		c := w[i]
		special := c == '\'' || c == '\\' || c == '!'
		if special && quoted {
			b.WriteByte('\'')
			quoted = false
		}
		switch {
		case c == '\'':
			b.WriteString(`"'"`)
		case special:
			b.WriteByte('\\')
			b.WriteByte(c)
		case quoted || strings.IndexByte(alnum+"_./:,@+-", c) >= 0 || i > 0 && (c == '=' || c == '%'):
			b.WriteByte(c)
		default:
			b.WriteByte('\'')
			b.WriteByte(c)
			quoted = true
		}
	}
	if quoted {
		b.WriteByte('\'')
	}
	return b.String()
}

// CheckLine accepts exactly the strings that [Command.Line] renders for a
// permitted argv of the role, and returns a *Refusal for every other one. It
// does not split the string as a shell would: it compares it with each form's
// own rendering.
func CheckLine(role Role, line string) (Command, error) {
	if len(line) > MaxLine {
		return Command{}, &Refusal{Class: BadByte, Rule: fmt.Sprintf("a line has at most %d bytes", MaxLine), Word: -1, Len: len(line)}
	}
	if line == "" {
		return Check(role)
	}
	if b, bad := badByte(line); bad {
		return Command{}, &Refusal{Class: BadByte, Rule: "a line is printable ASCII", Word: -1, Len: len(line), Byte: fmt.Sprintf(`\x%02x`, b)}
	}
	refused := error(nil)
	for _, f := range forms {
		words, ok := f.unrender(line)
		if !ok {
			continue
		}
		c, err := Check(role, words...)
		if err == nil && c.Line() == line {
			return c, nil
		}
		refused = err
	}
	if refused == nil {
		refused = noForm()
	}
	return Command{}, refused
}

// unrender returns the words whose rendering line could be, by the literal parts
// of f: a value ends at the first byte outside its slot's set.
func (f Form) unrender(line string) ([]string, bool) {
	var words []string
	for i := 0; ; i++ {
		p := f.Argv[min(i, len(f.Argv)-1)]
		word, rest, ok := unrenderWord(p, line)
		if !ok {
			return nil, false
		}
		words = append(words, word)
		last := i >= len(f.Argv)-1
		if rest == "" {
			return words, last
		}
		if rest[0] != ' ' || last && repeats(p) == 0 || len(words) > maxWords {
			return nil, false
		}
		line = rest[1:]
	}
}

func unrenderWord(pattern, line string) (word, rest string, ok bool) {
	if !hasSlot(pattern) {
		rest, ok = strings.CutPrefix(line, quote(pattern))
		return pattern, rest, ok
	}
	for i, p := range strings.Split(pattern, "/") {
		if i > 0 {
			if line, ok = strings.CutPrefix(line, "/"); !ok {
				return "", "", false
			}
			word += "/"
		}
		if s, suffix := slotOf(p); s != nil {
			n := 0
			for n < len(line) && n <= s.max && strings.IndexByte(s.first+s.rest, line[n]) >= 0 {
				n++
			}
			word, line, p = word+line[:n], line[n:], suffix
		}
		if line, ok = strings.CutPrefix(line, p); !ok {
			return "", "", false
		}
		word += p
	}
	return word, line, true
}
