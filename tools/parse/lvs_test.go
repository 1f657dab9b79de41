package parse

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func TestLVsMetadataFull(t *testing.T) {
	got, notes, err := LVs(captured(t, "lvs-metadata-full.json"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	want := LVM{
		Groups: []VolumeGroup{{Name: "pve", VolumeCount: 5}, {Name: "ssd", VolumeCount: 1}},
		Pools: []ThinPool{
			{Group: "pve", Name: "data", Size: new(int64(343597383680)), DataUsed: new(0.612), MetadataUsed: new(0.9375), VirtualBytes: 2 * 214748364800, SnapshotBytes: 214748364800, Thin: 3},
			{Group: "ssd", Name: "fast", Size: new(int64(107374182400)), DataUsed: new(1.0), MetadataUsed: new(0.12), Trouble: PoolOutOfData},
		},
		Volumes: []LogicalVolume{
			{Group: "pve", Name: "root", Size: new(int64(103079215104)), Active: true},
			{Group: "pve", Name: "snap_vm-101-disk-0_pre", Size: new(int64(214748364800)), Pool: "data", Snapshot: true},
			{Group: "pve", Name: "vm-101-disk-0", Size: new(int64(214748364800)), Pool: "data", DataUsed: new(0.881), Active: true},
			{Group: "pve", Name: "vm-102-disk-0", Size: new(int64(214748364800)), Pool: "data", DataUsed: new(0.0207), Active: true},
		},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Error(d)
	}
}

func TestLVs(t *testing.T) {
	pool := func(attr string) string {
		return `{"report":[{"lv":[{"lv_name":"data","vg_name":"pve","lv_attr":"` + attr + `","lv_size":1024,"lv_metadata_size":"512B","vg_size":"4096","vg_free":"0"}]}],"log":[]}`
	}
	for _, tc := range []struct {
		name, in string
		got      func(LVM) any
		want     any
	}{
		{"numbers as numbers, with a suffix, and a full group", pool("twi-aotz--"), func(l LVM) any { return []any{*l.Pools[0].Size, *l.Pools[0].MetadataSize, *l.Groups[0].Free} }, []any{int64(1024), int64(512), int64(0)}},
		{"metadata read-only", pool("twi-aotzM-"), func(l LVM) any { return l.Pools[0].Trouble }, PoolMetadataReadOnly},
		{"failed", pool("twi-aotzF-"), func(l LVM) any { return l.Pools[0].Trouble }, PoolFailed},
		{"partial", pool("twi-aotzp-"), func(l LVM) any { return l.Pools[0].Trouble }, PoolPartial},
		{"a new letter", pool("twi-aotzQ-"), func(l LVM) any { return l.Pools[0].Trouble }, PoolUnknown},
		{"not measured", pool("twi-aotz--"), func(l LVM) any { return l.Pools[0].DataUsed == nil }, true},
		{"no volume", `{"report":[{"lv":[]}]}`, func(l LVM) any { return len(l.Pools) + len(l.Volumes) + len(l.Groups) }, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			l, notes, err := LVs([]byte(tc.in))
			wantError(t, err, "")
			diff(t, []Note{}, notes)
			diff(t, tc.want, tc.got(l))
		})
	}
}

func TestLVsBadInput(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		notes    []string
		err      string
	}{
		{"nothing", "", nil, "lvs: want a JSON object, got nothing"},
		{"text", "  LV   VG", nil, "got something else at byte"},
		{"half", `{"report":[{"lv":[`, nil, "got something else at byte"},
		{"no report", `{"log":[]}`, nil, `lvs: want "report" in its JSON`},
		{"no name, no size", `{"report":[{"lv":[{"vg_name":"pve"},{"vg_name":"pve","lv_name":"a","lv_size":"1.00g"}]}]}`, []string{"line 1: lv_name: want a volume and its group", "line 2: lv_size: want bytes"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, notes, err := LVs([]byte(tc.in))
			wantError(t, err, tc.err)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}

// Law: every visible volume is counted in exactly one group.
func FuzzLVs(f *testing.F) {
	f.Add(captured(f, "lvs-metadata-full.json"))
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		l, _, err := LVs(out)
		if err != nil {
			return
		}
		n := 0
		for _, g := range l.Groups {
			n += g.VolumeCount
		}
		if n != len(l.Pools)+len(l.Volumes) {
			t.Fatalf("%d in groups, %d listed", n, len(l.Pools)+len(l.Volumes))
		}
	})
}
