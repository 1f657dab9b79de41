package parse

import (
	"errors"
	"strings"
)

// eachLine reads one item a line; blank lines count for nothing. A line that
// read refuses becomes a note with its number; when it refuses every line, the
// output is not what was asked and that is an error.
func eachLine[T any](subject, want string, out []byte, read func(line string) (T, bool)) ([]T, []Note, error) {
	items, notes := []T{}, []Note(nil)
	number := 0
	for line := range strings.Lines(string(out)) {
		number++
		line = strings.TrimRight(line, "\r\n")
		if strings.TrimSpace(line) == "" {
			continue
		}
		item, ok := read(line)
		if !ok {
			notes = append(notes, Note{Line: number, Text: "want " + want})
			continue
		}
		items = append(items, item)
	}
	if len(items) == 0 && notes != nil {
		return nil, nil, errors.New(subject + ": " + notes[0].String())
	}
	return items, notes, nil
}

// afterKey returns the value of a "KEY: VALUE" line.
func afterKey(line, key string) (string, bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(line), key)
	rest, ok2 := strings.CutPrefix(strings.TrimLeft(rest, " \t"), ":")
	return strings.TrimSpace(rest), ok && ok2
}

// keyValues reads lines "KEY: VALUE" and hands each to set; lines that it
// refuses become notes, and an output of only such lines is an error.
func keyValues(subject string, out []byte, set func(key, value string) bool) ([]Note, error) {
	_, notes, err := eachLine(subject, "KEY: VALUE", out, func(line string) (struct{}, bool) {
		key, value, ok := strings.Cut(line, ":")
		return struct{}{}, ok && set(strings.TrimSpace(key), strings.TrimSpace(value))
	})
	return notes, err
}
