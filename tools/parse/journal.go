package parse

import (
	"cmp"
	"slices"
	"strings"
)

// StorageReason is something that pvestatd said while it looked at storages.
// Storage is empty when the message names none. Time is the unix second of the
// latest of Count equal messages.
type StorageReason struct {
	Storage string
	Text    string
	Time    int64
	Count   int
}

// StorageReasons reads the form storage-reasons, the latest first, equal
// messages once. An empty output is a quiet pvestatd. A line that cannot be
// read becomes a note.
//
// Program: journalctl --output=short-unix of systemd 247 to 257. Input:
//
//	1795970990.123456 pve1 pvestatd[1234]: storage 'nas-nfs' is not online
func StorageReasons(out []byte) ([]StorageReason, []Note, error) {
	lines, notes, err := eachLine("storage reasons", "SECONDS HOST PROGRAM: TEXT", out, journalLine)
	if err != nil {
		return nil, nil, err
	}
	type key struct{ storage, text string }
	index := map[key]int{}
	reasons := []StorageReason{}
	for _, l := range lines {
		if l.Text == "" {
			continue
		}
		k := key{l.Storage, l.Text}
		i, ok := index[k]
		if !ok {
			i = len(reasons)
			index[k] = i
			reasons = append(reasons, StorageReason{Storage: l.Storage, Text: l.Text})
		}
		reasons[i].Count++
		reasons[i].Time = max(reasons[i].Time, l.Time)
	}
	slices.SortStableFunc(reasons, func(a, b StorageReason) int { return cmp.Compare(b.Time, a.Time) })
	return reasons, notes, nil
}

// journalLine reads one entry; the journal's own remarks, as "-- Boot …", and
// the further lines of a long message, which are indented, have no text.
func journalLine(line string) (StorageReason, bool) {
	if strings.HasPrefix(line, "-- ") || line[0] == ' ' || line[0] == '\t' {
		return StorageReason{}, true
	}
	f, rest := cutFields(line, 3)
	if len(f) < 3 || !strings.HasSuffix(f[2], ":") {
		return StorageReason{}, false
	}
	seconds, _, _ := strings.Cut(f[0], ".")
	at := parseInt(seconds)
	if at == nil {
		return StorageReason{}, false
	}
	return StorageReason{Storage: namedStorage(rest), Text: rest, Time: *at}, true
}

// namedStorage finds the storage in messages such as "storage 'x' is not
// online" and "x: error fetching datastores - …".
func namedStorage(text string) string {
	if _, rest, ok := strings.Cut(text, "storage '"); ok {
		if id, _, ok := strings.Cut(rest, "'"); ok && isStorageID(id) {
			return id
		}
	}
	if id, rest, ok := strings.Cut(text, ": "); ok && isStorageID(id) && strings.HasPrefix(rest, "error fetching") {
		return id
	}
	return ""
}

func isStorageID(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := 'a' <= c|0x20 && c|0x20 <= 'z'
		if !letter && (i == 0 || !(isDigit(c) || c == '.' || c == '_' || c == '-')) {
			return false
		}
	}
	return s != ""
}
