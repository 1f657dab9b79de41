package allowlist

import (
	"fmt"
	"slices"
	"strings"
)

// A Command is a permitted command. The zero Command is none and is refused by
// transport; only [Check] and [CheckLine] return another one.
type Command struct {
	form  int // index in forms, plus one
	words []string
}

// IsZero reports whether c is the zero Command.
func (c Command) IsZero() bool { return c.form == 0 }

// Form returns the line of the table that permits c.
func (c Command) Form() Form {
	if c.IsZero() {
		return Form{}
	}
	return forms[c.form-1]
}

// ID returns the form's identity, such as "guest-configs".
func (c Command) ID() string { return c.Form().ID }

// Argv returns a copy of the words.
func (c Command) Argv() []string { return slices.Clone(c.words) }

// Node returns the value of the {node} slot, or "" when the form has none. Such
// a form is sent only to that node, and a gate compares it with its own name.
func (c Command) Node() string { return c.slot("{node}") }

func (c Command) slot(name string) string {
	if c.IsZero() {
		return ""
	}
	for i, p := range forms[c.form-1].Argv {
		if m := matchWord(p, c.words[i]); strings.Contains(p, name) {
			for _, v := range m.values {
				if v.slot.name == name {
					return v.text
				}
			}
		}
	}
	return ""
}

// A Class says why words were refused. The texts are stable.
type Class string

// The classes of refusal.
const (
	Empty     Class = "empty"      // no words
	BadByte   Class = "bad-byte"   // a control byte, a byte outside ASCII, or too long
	NoForm    Class = "no-form"    // the words fit no form
	WrongRole Class = "wrong-role" // the form is for the other role
	BadSlot   Class = "bad-slot"   // the literal words fit, a value does not
)

// A Refusal is the error of Check and CheckLine. It never holds the refused
// words: a value that was refused is written nowhere.
type Refusal struct {
	Class Class
	Form  string // of wrong-role and bad-slot
	Slot  string // of bad-slot
	Rule  string // what was wanted, in words
	Word  int    // index of the word, or -1
	Len   int    // its length in bytes
	Byte  string // first offending byte as \xNN, or ""
}

func (r *Refusal) Error() string {
	s := "refused (" + string(r.Class) + ")"
	if r.Form != "" {
		s += ": form " + r.Form
	}
	if r.Slot != "" {
		s += ", slot " + r.Slot
	}
	return s + ": " + r.Rule
}

func noForm() *Refusal {
	return &Refusal{Class: NoForm, Rule: "no form has these words; `pvelens allowlist` prints all forms", Word: -1}
}

const maxWord = 8 * kib

// Check returns the Command for words sent to a host of the given role, or a
// *Refusal. It never changes a word.
func Check(role Role, words ...string) (Command, error) {
	if len(words) == 0 {
		return Command{}, &Refusal{Class: Empty, Rule: "a command has at least one word", Word: -1}
	}
	for i, w := range words {
		if b, ok := badByte(w); ok {
			return Command{}, &Refusal{Class: BadByte, Rule: "words are printable ASCII", Word: i, Len: len(w), Byte: fmt.Sprintf(`\x%02x`, b)}
		}
		if len(w) > maxWord {
			return Command{}, &Refusal{Class: BadByte, Rule: fmt.Sprintf("a word has at most %d bytes", maxWord), Word: i, Len: len(w)}
		}
	}
	refusal := noForm()
	for i, f := range forms {
		bad, fits := f.match(words)
		if !fits {
			continue
		}
		if f.Role != role && f.Role != Both {
			if refusal.Class == NoForm {
				refusal = &Refusal{Class: WrongRole, Form: f.ID, Rule: fmt.Sprintf("it is for hosts of role %s, not %s", f.Role, role), Word: -1}
			}
			continue
		}
		if bad == nil {
			return Command{form: i + 1, words: slices.Clone(words)}, nil
		}
		bad.Form = f.ID
		refusal = bad
	}
	return Command{}, refusal
}

// badByte returns the first byte of w that is no printable ASCII.
func badByte(w string) (byte, bool) {
	for i := range len(w) {
		if w[i] < 0x20 || w[i] >= 0x7f {
			return w[i], true
		}
	}
	return 0, false
}

// match reports whether the literal parts of f fit words; bad is the first value
// that breaks its slot's rule, or nil.
func (f Form) match(words []string) (bad *Refusal, fits bool) {
	n := len(f.Argv)
	if repeat := repeats(f.Argv[n-1]); repeat > 0 {
		if len(words) < n || len(words) > n-1+repeat {
			return nil, false
		}
	} else if len(words) != n {
		return nil, false
	}
	for i, w := range words {
		m := matchWord(f.Argv[min(i, n-1)], w)
		if !m.fits {
			return nil, false
		}
		for _, v := range m.values {
			if bad == nil && !v.slot.holds(v.text) {
				bad = &Refusal{Class: BadSlot, Slot: v.slot.name, Rule: v.slot.rule, Word: i, Len: len(v.text), Byte: v.slot.offends(v.text)}
			}
		}
	}
	return bad, true
}

type value struct {
	slot *slot
	text string
}

type wordMatch struct {
	fits   bool
	values []value
}

// matchWord compares a word with its pattern, segment by segment between
// slashes. A segment with a slot is the slot, then a literal suffix.
func matchWord(pattern, word string) wordMatch {
	if !strings.Contains(pattern, "{") {
		return wordMatch{fits: pattern == word}
	}
	ps, ws := []string{pattern}, []string{word}
	if strings.Contains(pattern, "/") && hasSlot(pattern) {
		ps, ws = strings.Split(pattern, "/"), strings.Split(word, "/")
	}
	if len(ps) != len(ws) {
		return wordMatch{}
	}
	m := wordMatch{fits: true}
	for i, p := range ps {
		s, suffix := slotOf(p)
		if s == nil {
			if p != ws[i] {
				return wordMatch{}
			}
			continue
		}
		text, ok := strings.CutSuffix(ws[i], suffix)
		if !ok {
			return wordMatch{}
		}
		m.values = append(m.values, value{s, text})
	}
	return m
}
