package report

import (
	"reflect"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxText is the most bytes of a name or a message that came from a node.
const MaxText = 300

// MaxNote is the most bytes of free text written by people.
const MaxNote = 1 << 10

// MaxError is the most bytes of an error's message or hint. A hint may hold a
// line for known_hosts, and half a key is worse than none.
const MaxError = 4 << 10

// CleanError is Clean for the texts of this program's own errors, in which what
// a server said is already clipped: the length is at most MaxError bytes.
func CleanError(s string) string { return clean(s, MaxError, ' ') }

// Clean makes text from a node, a guest or a container fit for a report: ANSI
// sequences, control, bidirectional and zero-width characters and invalid UTF-8
// are removed, blanks around it too, and the length is at most MaxText bytes. A
// line feed becomes a blank. The text stays data: whoever reads a report must
// not follow it.
func Clean(s string) string { return clean(s, MaxText, ' ') }

// CleanNote is Clean for free text written by people: lines stay, and the length
// is at most MaxNote bytes.
func CleanNote(s string) string { return clean(s, MaxNote, '\n') }

func clean(s string, limit int, newline rune) string {
	if plain(s) && len(s) <= limit {
		return strings.TrimSpace(s)
	}
	return clip(strings.TrimSpace(strip(s, limit, newline)), limit)
}

// strip takes out what has no place in a report, and stops after limit bytes.
func strip(s string, limit int, newline rune) string {
	var b strings.Builder
	for i := 0; i < len(s) && b.Len() <= limit; {
		if n := escape(s[i:]); n > 0 {
			i += n
			continue
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		switch {
		case r == '\n' || r == '\t':
			if r == '\n' {
				r = newline
			} else {
				r = ' '
			}
			b.WriteRune(r)
		case r == utf8.RuneError && n == 1, hidden(r):
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// Scrub takes out of every text of a report what Clean would take out, and cuts
// none. Reports are built from cleaned text; this is the net below, for the field
// that a builder forgot. report is a pointer to a struct.
func Scrub(report any) { scrub(reflect.ValueOf(report)) }

func scrub(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			scrub(v.Elem())
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				scrub(v.Field(i))
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			scrub(v.Index(i))
		}
	case reflect.Map:
		for _, k := range v.MapKeys() {
			if s := k.String(); k.Kind() == reflect.String && !plain(s) {
				v.SetMapIndex(reflect.ValueOf(strip(s, len(s), ' ')).Convert(k.Type()), v.MapIndex(k))
				v.SetMapIndex(k, reflect.Value{})
			}
		}
	case reflect.String:
		if s := v.String(); v.CanSet() && !plain(s) {
			v.SetString(strip(s, len(s), '\n'))
		}
	}
}

// plain reports whether s is printable ASCII only.
func plain(s string) bool {
	for i := range len(s) {
		if s[i] < 0x20 || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// hidden reports whether a rune has no place in a report: controls, format
// characters (bidirectional, zero-width, tags), separators other than the
// blank, surrogates, private use and variation selectors.
func hidden(r rune) bool {
	return unicode.In(r, unicode.Cc, unicode.Cf, unicode.Cs, unicode.Co, unicode.Zl, unicode.Zp) ||
		r >= 0xFE00 && r <= 0xFE0F || r >= 0xE0100 && r <= 0xE01EF ||
		r == 0x115F || r == 0x1160 || r == 0x3164 || r == 0xFFA0 || r == 0x034F
}

// escape returns the length of the terminal escape sequence that s begins with,
// or 0.
func escape(s string) int {
	intro := 0
	switch {
	case strings.HasPrefix(s, "\x1b"):
		intro = 1
	case strings.HasPrefix(s, "\u009b"):
		return csi(s, len("\u009b"))
	default:
		return 0
	}
	if len(s) == intro {
		return intro
	}
	switch s[intro] {
	case '[':
		return csi(s, 2)
	case ']', 'P', 'X', '^', '_': // a string, up to BEL or ESC \
		for i := 2; i < len(s); i++ {
			if s[i] == 0x07 {
				return i + 1
			}
			if s[i] == 0x1b {
				return min(i+2, len(s))
			}
			if s[i] == '\n' {
				return i
			}
		}
		return len(s)
	}
	if s[1] >= 0x20 && s[1] <= 0x2f && len(s) > 2 {
		return 3
	}
	if s[1] >= 0x20 && s[1] < 0x7f {
		return 2
	}
	return 1
}

// csi returns the length of a control sequence whose parameters begin at i.
func csi(s string, i int) int {
	for ; i < len(s); i++ {
		switch {
		case s[i] >= 0x40 && s[i] <= 0x7e:
			return i + 1
		case s[i] < 0x20 || s[i] >= 0x7f:
			return i
		}
	}
	return i
}

// clip cuts s to at most limit bytes, on a rune's border, and marks the cut.
func clip(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	const mark = "…"
	cut := limit - len(mark)
	for cut > 0 && !utf8.RuneStart(s[cut]) {
		cut--
	}
	return s[:cut] + mark
}
