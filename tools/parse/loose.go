package parse

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// A Note says what a parser left out of an answer that is otherwise good: one
// broken line, one field of an unexpected type. It holds no remote text.
type Note struct {
	Line int    // line or entry of the output, from 1; 0 means the output as a whole
	Text string // what was wanted and not found
}

// String is the note on one line: "line 3: id: want 64 lower-case hex digits".
func (n Note) String() string {
	if n.Line == 0 {
		return n.Text
	}
	return fmt.Sprintf("line %d: %s", n.Line, n.Text)
}

// jsonObject is one JSON object read field by field. The same field arrives as a
// number, as text or as "" depending on the program's version, and one bad field
// must lose itself and not the object.
type jsonObject struct {
	fields map[string]json.RawMessage
	line   int
	path   string
	notes  *[]Note
}

// jsonList decodes an array of objects. An entry that is no object becomes a
// note; anything but an array is an error that begins with what.
func jsonList(what string, out []byte) ([]jsonObject, *[]Note, error) {
	var raw []json.RawMessage
	if err := jsonDecode(what, "a JSON array of objects", out, &raw); err != nil {
		return nil, nil, err
	}
	if raw == nil {
		return nil, nil, fmt.Errorf("%s: want a JSON array of objects, got null", what)
	}
	notes := &[]Note{}
	list := make([]jsonObject, 0, len(raw))
	for i, r := range raw {
		if o, ok := jsonEntry(r, i+1, notes); ok {
			list = append(list, o)
		}
	}
	if len(raw) > 0 && len(list) == 0 {
		return nil, nil, fmt.Errorf("%s: want a JSON array of objects, got no object in it", what)
	}
	return list, notes, nil
}

// jsonOne decodes one object.
func jsonOne(what string, out []byte) (jsonObject, error) {
	o := jsonObject{notes: &[]Note{}}
	if err := jsonDecode(what, "a JSON object", out, &o.fields); err != nil {
		return o, err
	}
	if o.fields == nil {
		return o, fmt.Errorf("%s: want a JSON object, got null", what)
	}
	return o, nil
}

func jsonEntry(raw json.RawMessage, line int, notes *[]Note) (jsonObject, bool) {
	o := jsonObject{line: line, notes: notes}
	if err := json.Unmarshal(raw, &o.fields); err != nil || o.fields == nil {
		*notes = append(*notes, Note{line, "want a JSON object"})
		return o, false
	}
	return o, true
}

// jsonDecode is json.Unmarshal with errors that never repeat remote bytes.
func jsonDecode(what, want string, out []byte, into any) error {
	if len(bytes.TrimSpace(out)) == 0 {
		return fmt.Errorf("%s: want %s, got nothing", what, want)
	}
	err := json.Unmarshal(out, into)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		return fmt.Errorf("%s: want %s, got something else at byte %d of %d", what, want, syntax.Offset, len(out))
	case errors.As(err, &kind):
		return fmt.Errorf("%s: want %s, got another kind of JSON", what, want)
	default:
		return fmt.Errorf("%s: want %s", what, want)
	}
}

func (o jsonObject) note(key, want string) {
	*o.notes = append(*o.notes, Note{o.line, o.path + key + ": want " + want})
}

// has reports whether the field is there and not null.
func (o jsonObject) has(key string) bool {
	raw, ok := o.fields[key]
	return ok && !bytes.Equal(raw, []byte("null"))
}

// text returns a field as text; a number keeps its own digits. Absent and null
// are "".
func (o jsonObject) text(key string) string {
	if !o.has(key) {
		return ""
	}
	if !isScalar(o.fields[key]) {
		o.note(key, "text")
	}
	return scalarText(o.fields[key])
}

// texts returns a field that is a list of text, or one text with commas. The
// result is sorted, without blanks and empty parts, never nil.
func (o jsonObject) texts(key string) []string {
	out := []string{}
	if !o.has(key) {
		return out
	}
	if raw := o.fields[key]; raw[0] == '[' {
		var parts []json.RawMessage
		if json.Unmarshal(raw, &parts) != nil {
			return out
		}
		for _, p := range parts {
			if s := scalarText(p); s != "" {
				out = append(out, s)
			}
		}
	} else {
		out = append(out, splitFields(o.text(key), ",")...)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// integer returns a whole number, exact to 64 bits, from a number or from text.
func (o jsonObject) integer(key string) *int64 {
	if !o.has(key) {
		return nil
	}
	n := parseInt(scalarText(o.fields[key]))
	if n == nil && !o.empty(key) {
		o.note(key, "a whole number")
	}
	return n
}

// number returns a finite number, from a number or from text.
func (o jsonObject) number(key string) *float64 {
	if !o.has(key) {
		return nil
	}
	f := parseFloat(scalarText(o.fields[key]))
	if f == nil && !o.empty(key) {
		o.note(key, "a number")
	}
	return f
}

// empty reports whether the field is empty text, Perl's word for nothing.
func (o jsonObject) empty(key string) bool { return string(o.fields[key]) == `""` }

// flag returns a truth value: 0/1, true/false, and the same as text; "" is false.
func (o jsonObject) flag(key string) *bool {
	if !o.has(key) {
		return nil
	}
	if o.empty(key) {
		return new(false)
	}
	b := parseBool(scalarText(o.fields[key]))
	if b == nil {
		o.note(key, "0 or 1")
	}
	return b
}

// yes reports whether the flag is there and true.
func (o jsonObject) yes(key string) bool {
	b := o.flag(key)
	return b != nil && *b
}

// seconds returns a Unix time in UTC; absent, 0 and negative are nil: nothing on
// a node happened in 1970.
func (o jsonObject) seconds(key string) *time.Time { return unixSeconds(o.integer(key)) }

func unixSeconds(n *int64) *time.Time {
	const lastSecond = 253402300799 // of the year 9999
	if n == nil || *n <= 0 || *n > lastSecond {
		return nil
	}
	t := time.Unix(*n, 0).UTC()
	return &t
}

// object returns a field that is an object. A field of another kind is noted.
func (o jsonObject) object(key string) (jsonObject, bool) {
	sub := jsonObject{line: o.line, path: o.path + key + ".", notes: o.notes}
	if !o.has(key) {
		return sub, false
	}
	if json.Unmarshal(o.fields[key], &sub.fields) != nil {
		o.note(key, "an object")
		return sub, false
	}
	return sub, true
}

// objects returns a field that is a list of objects; other entries are noted.
func (o jsonObject) objects(key string) []jsonObject {
	if !o.has(key) {
		return nil
	}
	var raw []json.RawMessage
	if json.Unmarshal(o.fields[key], &raw) != nil {
		o.note(key, "a list")
		return nil
	}
	list := make([]jsonObject, 0, len(raw))
	for _, r := range raw {
		sub := jsonObject{line: o.line, path: o.path + key + ".", notes: o.notes}
		if json.Unmarshal(r, &sub.fields) != nil || sub.fields == nil {
			o.note(key, "objects in the list")
			continue
		}
		list = append(list, sub)
	}
	return list
}

// keys returns the field names, sorted.
func (o jsonObject) keys() []string {
	names := make([]string, 0, len(o.fields))
	for k := range o.fields {
		names = append(names, k)
	}
	slices.Sort(names)
	return names
}

// splitFields splits at any of the separators and drops blanks and empty parts.
func splitFields(s, separators string) []string {
	out := []string{}
	for _, p := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(separators, r) }) {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return out
}

// positive drops the zero with which several programs say "not measured".
func positive(n *int64) *int64 {
	if n == nil || *n <= 0 {
		return nil
	}
	return n
}

// nonNegative drops a negative number, which no size or counter can be.
func nonNegative(n *int64) *int64 {
	if n == nil || *n < 0 {
		return nil
	}
	return n
}

// rawKeys returns the names of a field that is an object or null, sorted.
func rawKeys(raw json.RawMessage) []string {
	var m map[string]json.RawMessage
	if json.Unmarshal(raw, &m) != nil {
		return nil
	}
	return jsonObject{fields: m}.keys()
}
