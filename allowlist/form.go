package allowlist

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Role says where a form is sent.
type Role string

// Rights says what a form needs on the node.
type Rights string

// An Effect says what a form does there although it asks for no change.
type Effect string

type argv []string

// exits lists a form's good exit statuses. With partial, exit 1 is good only if
// every line of stderr names a missing file or package. With mask, the status
// is a bit mask and every value is good.
type exits struct {
	codes         []int
	partial, mask bool
}

// A Form is one line of the table: one permitted command.
type Form struct {
	ID      string
	Role    Role
	Rights  Rights
	Effect  Effect
	Limit   int // seconds
	Cap     int // bytes of stdout
	exits   exits
	Argv    argv
	Reveals string
	Why     string
}

// Timeout is the form's time limit on the node.
func (f Form) Timeout() time.Duration { return time.Duration(f.Limit) * time.Second }

// Exits describes the good exit statuses: "0", "0 1", "0 1?" where 1 is good
// only if stderr names what is missing, "mask" where the status is a bit mask.
func (f Form) Exits() string {
	if f.exits.mask {
		return "mask"
	}
	s := strings.Trim(fmt.Sprint(f.exits.codes), "[]")
	if f.exits.partial {
		s += "?"
	}
	return s
}

// Good reports whether exit is a good status, given what stderr says. A stderr
// line that names a missing file or package, or a file that this kernel does not
// support, excuses exit 1 of tail and dpkg-query.
func (f Form) Good(exit int, stderr []byte) bool {
	if f.exits.mask { // bit 0: the command line was not understood; 124, 126: timeout and a gate
		return exit >= 0 && exit&1 == 0 && exit != 124 && exit != 126
	}
	if !slices.Contains(f.exits.codes, exit) {
		return false
	}
	if exit != 1 || !f.exits.partial {
		return true
	}
	named := false
	for line := range strings.Lines(string(stderr)) {
		// Coreutils begin a message with the path they were called by.
		line = strings.TrimPrefix(strings.TrimSpace(line), "/usr/bin/")
		switch {
		case strings.HasPrefix(line, "tail: ") && (strings.HasSuffix(line, ": No such file or directory") || strings.HasSuffix(line, ": Operation not supported")),
			strings.HasPrefix(line, "dpkg-query: ") && strings.Contains(line, "no packages found matching"):
			named = true
		case strings.HasPrefix(line, "tail: "), strings.HasPrefix(line, "dpkg-query: "):
			return false
		}
	}
	return named
}

// ClientOnly reports whether the form is one that a gate refuses by design.
func (f Form) ClientOnly() bool { return f.ID == ClientOnly }

// Forms returns a copy of the table, in its order.
func Forms() []Form {
	out := make([]Form, len(forms))
	for i, f := range forms {
		out[i] = f.clone()
	}
	return out
}

// clone makes a form whose words a caller may change without changing the table.
func (f Form) clone() Form {
	f.Argv = slices.Clone(f.Argv)
	return f
}

// Slots returns each slot's name and its rule in words, in the table's order.
func Slots() [][2]string {
	out := make([][2]string, 0, len(slots))
	for _, s := range slots {
		out = append(out, [2]string{s.name, s.rule})
	}
	return out
}

// Hash is the SHA-256 of everything that is enforced, in hex: the forms, the
// slots, the prefixes and the limits of a line. Two programs with the same hash
// permit the same commands.
func Hash() string {
	h := sha256.New()
	for _, s := range slots {
		fmt.Fprintln(h, s.enforced())
	}
	fmt.Fprintf(h, "%q %q %q %q %d %d %d\n", []string(timeoutWords), []string(sudoWords), GatePath, ClientOnly, maxWord, maxWords, MaxLine)
	for _, f := range forms {
		fmt.Fprintln(h, FormHash(f))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// FormHash is the SHA-256 of one form's enforced columns and of the slots it
// uses, in hex: it tells which forms differ between two tables.
func FormHash(f Form) string {
	b := fmt.Appendf(nil, "%q %q %q %q %d %d %q %q", f.ID, f.Role, f.Rights, f.Effect, f.Limit, f.Cap, f.Exits(), []string(f.Argv))
	for _, word := range f.Argv {
		for segment := range strings.SplitSeq(word, "/") {
			if s, _ := slotOf(segment); s != nil {
				b = fmt.Append(b, "\n", s.enforced())
			}
		}
	}
	s := sha256.Sum256(b)
	return hex.EncodeToString(s[:])
}
