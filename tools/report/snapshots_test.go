package report

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

// Four snapshots: one with memory from which the running state comes, one left
// in the middle of its removal, one without its parent and without a time.
const snapshotSections = `name: app
parent: pre-upgrade
snaptime: 0
[autodaily261101]
snaptime: 1793502000
[pre-upgrade]
parent: autodaily261101
snaptime: 1795802400
vmstate: local-lvm:vm-120-state-pre-upgrade
[stuck1]
parent: autodaily261101
snapstate: delete
snaptime: 1795143600
[lost]
parent: gone-parent
snaptime: 0
`

func rowsOf(t *testing.T, text string) []Snapshot {
	t.Helper()
	cfg, err := parse.GuestConfigFile("qemu", "pve-a", 120, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return SnapshotRows(Guest{VMID: 120, Name: "app", Node: "pve-a"}, cfg, backupsSeenAt)
}

func TestSnapshotTree(t *testing.T) {
	day := int64(86400)
	want := []Snapshot{
		{Name: "autodaily261101", CreatedAt: "2026-11-01T03:00:00Z", AgeS: Ptr(28*day + 13*3600)},
		{Name: "stuck1", Parent: "autodaily261101", Depth: 1, CreatedAt: "2026-11-20T03:00:00Z", AgeS: Ptr(9*day + 13*3600), State: "delete"},
		{Name: "pre-upgrade", Parent: "autodaily261101", Depth: 1, CreatedAt: "2026-11-27T18:00:00Z", AgeS: Ptr(day + 22*3600), WithRAM: true, Current: true},
		{Name: "lost", Parent: "gone-parent", ParentMissing: true},
	}
	for i := range want {
		want[i].VMID, want[i].Guest, want[i].Node = 120, "app", "pve-a"
	}
	if d := cmp.Diff(want, rowsOf(t, snapshotSections)); d != "" {
		t.Error(d)
	}
}

// Parents that form a ring, or that are their own, lose no snapshot.
func TestSnapshotRing(t *testing.T) {
	rows := rowsOf(t, "[a]\nparent: b\n[b]\nparent: a\n[c]\nparent: c\n")
	var names []string
	for _, r := range rows {
		names = append(names, r.Name)
	}
	if d := cmp.Diff([]string{"c", "a", "b"}, names); d != "" {
		t.Error(d)
	}
}

func TestSnapshotFindings(t *testing.T) {
	many := []Snapshot{}
	for range 11 {
		many = append(many, Snapshot{Name: "s", AgeS: Ptr(int64(60))})
	}
	for _, c := range []struct {
		name string
		rows []Snapshot
		busy bool
		want []string
	}{
		{"old and stuck", rowsOf(t, snapshotSections), false, []string{"SNAPSHOT_OLD warning", "SNAPSHOT_STUCK warning"}},
		{"a task is at it", rowsOf(t, snapshotSections), true, []string{"SNAPSHOT_OLD warning", "SNAPSHOT_STUCK info"}},
		{"stuck has no age", []Snapshot{{Name: "x", State: "prepare", AgeS: Ptr(int64(1e7))}}, false, []string{"SNAPSHOT_STUCK warning"}},
		{"seven days are not old", []Snapshot{{Name: "x", AgeS: Ptr(int64(7 * 86400))}}, false, nil},
		{"unknown time has no age", []Snapshot{{Name: "x"}}, false, nil},
		{"many", many, false, []string{"SNAPSHOT_MANY warning"}},
		{"ten are not many", many[:10], false, nil},
		{"left behind by a backup", []Snapshot{{Name: "vzdump", AgeS: Ptr(int64(60))}}, false, []string{"SNAPSHOT_STUCK warning"}},
		{"of a backup that runs", []Snapshot{{Name: "vzdump", AgeS: Ptr(int64(60))}}, true, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			for _, f := range Findings(Judge{}.SnapshotFindings("guest/120", c.rows, c.busy)...) {
				got = append(got, f.Code+" "+string(f.Severity))
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestDescriptionsAreCleanedAndClipped(t *testing.T) {
	rows := rowsOf(t, snapshotSections)
	long := make([]byte, 5000)
	for i := range long {
		long[i] = 'x'
	}
	Describe(rows, parse.SnapshotList{Snapshots: []parse.ListedSnapshot{{Name: "pre-upgrade", Description: "before 9.1\nsecond line: 100% \x1b[2Jsure"}, {Name: "lost", Description: string(long)}}})
	if rows[2].Description != "before 9.1\nsecond line: 100% sure" || len(rows[3].Description) > MaxNote || rows[0].Description != "" {
		t.Errorf("got %q, %d bytes, %q", rows[2].Description, len(rows[3].Description), rows[0].Description)
	}
}
