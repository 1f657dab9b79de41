package parse

import "strings"

// Option is one item of a Proxmox property string such as
// local:101/disk.raw,size=8G,backup=1. Key is empty for the bare first item.
type Option struct{ Key, Value string }

// splitOptions splits a property string. bare is the key that the item without
// one stands for, as the first item of a disk stands for its volume. A path
// with = inside is no key.
func splitOptions(value, bare string) []Option {
	var options []Option
	for part := range strings.SplitSeq(value, ",") {
		part = strings.TrimSpace(part)
		if part == "" {
			continue
		}
		key, val, ok := strings.Cut(part, "=")
		if key = strings.TrimSpace(key); !ok || strings.ContainsAny(key, "/:; ") {
			key, val = bare, part
		}
		options = append(options, Option{Key: key, Value: strings.TrimSpace(val)})
	}
	return options
}

// splitList splits a Proxmox list: ; , blank, tab and NUL separate, empty parts
// are dropped.
func splitList(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool {
		return r == ';' || r == ',' || r == ' ' || r == '\t' || r == '\r' || r == '\n' || r == 0
	})
}

// splitSet is splitList without repetitions, in the order first seen.
func splitSet(value string) []string {
	set, seen := []string{}, map[string]bool{}
	for _, s := range splitList(value) {
		if !seen[s] {
			seen[s] = true
			set = append(set, s)
		}
	}
	return set
}

// splitVolume takes a volume identifier such as local:101/disk.raw apart at the
// first colon; ok is false for a path.
func splitVolume(volid string) (storage, name string, ok bool) {
	storage, name, ok = strings.Cut(volid, ":")
	if !ok || storage == "" || name == "" || strings.Contains(storage, "/") {
		return "", "", false
	}
	return storage, name, true
}

// setBool and its kin store a value that can be read and report whether it can.
func setBool(to **bool, value string) bool {
	return set(to, parseBool(value))
}

func setInt(to **int64, value string) bool {
	return set(to, parseInt(value))
}

func setFloat(to **float64, value string) bool {
	return set(to, parseFloat(value))
}

func set[T any](to **T, value *T) bool {
	if value != nil {
		*to = value
	}
	return value != nil
}

// setFlag stores a flag whose default is no.
func setFlag(to *bool, value string) bool {
	b := parseBool(value)
	if b != nil {
		*to = *b
	}
	return b != nil
}

// setText stores text; only the empty one is refused.
func setText(to *string, value string) bool {
	*to = value
	return value != ""
}
