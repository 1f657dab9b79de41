package parse

import (
	"slices"
	"testing"
	"time"
)

func unix(n int64) *time.Time { return new(time.Unix(n, 0).UTC()) }

func TestSnapshots(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     SnapshotList
	}{
		{"none, only the marker", string(captured(t, "snapshots-none.json")), SnapshotList{Snapshots: []ListedSnapshot{}, Running: new(true)}},
		{"a container's", string(captured(t, "snapshots-lxc.json")), SnapshotList{
			Current: "nach_update", Running: new(true),
			Snapshots: []ListedSnapshot{
				{Name: "grundzustand", Description: "Frisch installiert\n", Created: unix(1790812800)},
				{Name: "experiment", Parent: "grundzustand", Created: unix(1791504000)},
				{Name: "vor_update", Parent: "grundzustand", Description: "Vor dem Update auf v1.99:\nalles läuft,  zwei  Leerzeichen\ndritte Zeile\n", Created: unix(1792108800)},
				{Name: "nach_update", Parent: "vor_update", Description: "nach Update -> ok\n", Created: unix(1793318400)},
			},
		}},
		{"with RAM", string(captured(t, "snapshots-qemu.json")), SnapshotList{
			Current: "mit_ram", Running: new(false),
			Snapshots: []ListedSnapshot{
				{Name: "sauber", Created: unix(1790000000)},
				{Name: "mit_ram", Parent: "sauber", Description: "mit RAM – läuft", Created: unix(1793577600), WithRAM: true},
			},
		}},
		{"stuck, and without its parent", string(captured(t, "snapshots-stuck.json")), SnapshotList{
			Current: "pre-upgrade", Running: new(true),
			Snapshots: []ListedSnapshot{
				{Name: "autodaily261101", Created: unix(1793502000)},
				{Name: "stuck1", Parent: "autodaily261101", Created: unix(1795143600), State: "delete"},
				{Name: "pre-upgrade", Parent: "autodaily261101", Description: "before 9.1\nsecond line: 100% sure", Created: unix(1795802400), WithRAM: true},
				{Name: "lost", Parent: "gone-parent", ParentMissing: true},
			},
		}},
		{"numbers as text", `[{"name":"a","snaptime":"1793502000","vmstate":"1","parent":null}]`, SnapshotList{Snapshots: []ListedSnapshot{{Name: "a", Created: unix(1793502000), WithRAM: true}}}},
		{"an empty list", "[]", SnapshotList{Snapshots: []ListedSnapshot{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, notes, err := Snapshots([]byte(tc.in))
			wantError(t, err, "")
			diff(t, []Note{}, notes)
			diff(t, tc.want, got)
		})
	}
}

func TestSnapshotsBadInput(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		notes    []string
		err      string
	}{
		{"nothing", "", nil, "snapshots: want a JSON array of objects, got nothing"},
		{"null", "null", nil, "got null"},
		{"half", `[{"name":"a"`, nil, "got something else at byte"},
		{"without a name", `[{"snaptime":1},{"name":"a","snaptime":"soon"}]`, []string{"line 1: name: want a name", "line 2: snaptime: want a whole number"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, notes, err := Snapshots([]byte(tc.in))
			wantError(t, err, tc.err)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}

// Law: "current" is never a snapshot, the list is in order, and no time is 1970.
func FuzzSnapshots(f *testing.F) {
	for _, name := range []string{"snapshots-none.json", "snapshots-lxc.json", "snapshots-qemu.json", "snapshots-stuck.json"} {
		f.Add(captured(f, name))
	}
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		list, _, err := Snapshots(out)
		if err != nil {
			return
		}
		for _, s := range list.Snapshots {
			if s.Name == "current" || s.Name == "" || s.Created != nil && s.Created.Unix() <= 0 {
				t.Fatalf("impossible snapshot %+v", s)
			}
		}
		if !slices.IsSortedFunc(list.Snapshots, func(a, b ListedSnapshot) int { return compareTimes(a.Created, b.Created) }) {
			t.Fatal("not in order")
		}
	})
}
