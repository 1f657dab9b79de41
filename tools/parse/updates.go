package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

const pkgupdatesPath = "/var/lib/pve-manager/pkgupdates"

// Update is one package that waits for its upgrade. Security is true when the
// origin says so; Debian's own origin does not tell, so nil. DebianUpdate is
// true for a version of the form that Debian gives to security and point
// release updates (…+deb12u3).
type Update struct {
	Package      string
	OldVersion   string // empty: would be newly installed
	NewVersion   string
	Origin       string
	Security     *bool
	DebianUpdate bool
}

// Updates reads the form updates: the list that Proxmox keeps. nil without an
// error means that there is no list yet; an empty one that nothing waits.
// Descriptions and changelog addresses, which can hold a repository's password,
// are dropped. An entry that cannot be read becomes a note.
//
// Program: tail -v of a file of pve-manager 7.4 to 9.2. Input:
//
//	[{"Version":"1.21.23","Package":"dpkg","Arch":"amd64","Origin":"Debian","OldVersion":"1.21.22"}]
func Updates(out []byte) ([]Update, []Note, error) {
	files, err := Files(out, []string{pkgupdatesPath})
	if err != nil {
		return nil, nil, fmt.Errorf("updates: %w", err)
	}
	raw := bytes.TrimSpace(files[pkgupdatesPath])
	if len(raw) == 0 {
		return nil, nil, nil
	}
	var entries []json.RawMessage
	if err := readJSON(pkgupdatesPath, raw, &entries); err != nil {
		return nil, nil, err
	}
	updates, notes := []Update{}, []Note(nil)
	for i, entry := range entries {
		var in struct{ Package, OldVersion, Version, Origin jsonText }
		if json.Unmarshal(entry, &in) != nil || in.Package.String() == "" {
			notes = append(notes, Note{Line: i + 1, Text: "want an object with Package"})
			continue
		}
		u := Update{Package: in.Package.String(), OldVersion: in.OldVersion.String(), NewVersion: in.Version.String(), Origin: in.Origin.String()}
		if strings.Contains(strings.ToLower(u.Origin), "security") {
			u.Security = new(true)
		}
		u.DebianUpdate = isDebianUpdate(u.NewVersion)
		updates = append(updates, u)
	}
	return updates, notes, nil
}

// isDebianUpdate tells versions such as 1.10.0-3+deb12u1.
func isDebianUpdate(version string) bool {
	i := max(strings.LastIndex(version, "+deb"), strings.LastIndex(version, "~deb"))
	if i < 0 {
		return false
	}
	release, update, ok := strings.Cut(version[i+len("+deb"):], "u")
	return ok && parseInt(release) != nil && parseInt(update) != nil
}
