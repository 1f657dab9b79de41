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

// Form returns a copy of the line of the table that permits c.
func (c Command) Form() Form {
	if c.IsZero() {
		return Form{}
	}
	return forms[c.form-1].clone()
}

// ID returns the form's identity, such as "guest-configs".
func (c Command) ID() string { return c.Form().ID }

// Argv returns a copy of the words.
func (c Command) Argv() []string { return slices.Clone(c.words) }

// Node returns the node that c must run on, or "" when any node will do: the
// value of {node}, save in a path under /etc/pve, which every node of a cluster
// shares. Such a command is sent only to that node, and a gate compares the value
// with its own host name.
func (c Command) Node() string {
	if c.IsZero() {
		return ""
	}
	for i, p := range forms[c.form-1].Argv {
		if strings.HasPrefix(p, "/etc/pve/") {
			continue
		}
		values, _ := matchWord(p, c.words[i])
		for _, v := range values {
			if v.slot.name == "{node}" {
				return v.text
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
// *Refusal. [Both] stands for a host whose role is not known: a form of either
// role fits it. Check never changes a word.
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
		if !f.sentTo(role) {
			refusal = &Refusal{Class: WrongRole, Form: f.ID, Rule: "it is for hosts of role " + string(f.Role), Word: -1}
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

// sentTo reports whether the form may be sent to a host of the role.
func (f Form) sentTo(role Role) bool {
	switch role {
	case PVE, Docker:
		return f.Role == role || f.Role == Both
	}
	return role == Both
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
		values, fits := matchWord(f.Argv[min(i, n-1)], w)
		if !fits {
			return nil, false
		}
		for _, v := range values {
			if bad == nil && !v.slot.holds(v.text) {
				bad = &Refusal{Class: BadSlot, Slot: v.slot.name, Rule: v.slot.rule, Word: i, Len: len(v.text), Byte: v.slot.offends(v.text)}
			}
		}
	}
	return bad, true
}

// A value is what stands in a slot's place.
type value struct {
	slot *slot
	text string
}

// matchWord compares a word with its pattern, segment by segment between
// slashes. A segment with a slot is the slot, then a literal suffix.
func matchWord(pattern, word string) (values []value, fits bool) {
	if !hasSlot(pattern) {
		return nil, pattern == word
	}
	ps, ws := strings.Split(pattern, "/"), strings.Split(word, "/")
	if len(ps) == 1 {
		ws = []string{word} // a slash in a value breaks the slot's rule, not the form
	}
	if len(ps) != len(ws) {
		return nil, false
	}
	for i, p := range ps {
		s, suffix := slotOf(p)
		text, ok := strings.CutSuffix(ws[i], suffix)
		if !ok || s == nil && text != "" {
			return nil, false
		}
		if s != nil {
			values = append(values, value{s, text})
		}
	}
	return values, true
}
