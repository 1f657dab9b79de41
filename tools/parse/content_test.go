package parse

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestContentRecordedArchives(t *testing.T) {
	c, notes, err := Content(captured(t, "content-usb-backup.json"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	if len(c.Archives) != 8 || len(c.Volumes)+len(c.Unfinished)+c.Other+c.HostBackups != 0 {
		t.Fatalf("got %d archives and other things %+v, want 8", len(c.Archives), c)
	}
	diff(t, Archive{
		Volume: "usb-backup:backup/vzdump-lxc-102-2026_11_28-02_30_40.tar.zst", Storage: "usb-backup", VMID: new(102), Type: "lxc",
		Created: new(time.Unix(1795833040, 0).UTC()), Size: new(int64(991000)), Format: "tar.zst", Notes: "immich – vor Update", Protected: true,
	}, c.Archives[2])
}

func TestContentRecordedVolumes(t *testing.T) {
	for _, tc := range []struct {
		storage        string
		volumes, other int
		want           Volume // one of them
	}{
		{"local-lvm", 7, 0, Volume{Volume: "local-lvm:vm-103-disk-0", Storage: "local-lvm", Name: "vm-103-disk-0", Kind: "rootdir", VMID: new(103), Format: "raw", Size: new(int64(4294967296)), Created: new(time.Unix(1767225700, 0).UTC())}},
		{"local", 12, 5, Volume{Volume: "local:105/base-105-disk-0.raw", Storage: "local", Name: "base-105-disk-0.raw", Kind: "rootdir", VMID: new(105), Format: "raw", Size: new(int64(4294967296)), Used: new(int64(0)), Created: new(time.Unix(1795968594, 0).UTC())}},
		{"tank", 2, 0, Volume{Volume: "tank:subvol-104-disk-0", Storage: "tank", Name: "subvol-104-disk-0", Kind: "rootdir", VMID: new(104), Format: "subvol", Size: new(int64(34359738368))}},
	} {
		t.Run(tc.storage, func(t *testing.T) {
			c, notes, err := Content(captured(t, "content-"+tc.storage+".json"))
			wantError(t, err, "")
			diff(t, []Note{}, notes)
			diff(t, []int{tc.volumes, tc.other, 0}, []int{len(c.Volumes), c.Other, len(c.Archives)})
			i := slices.IndexFunc(c.Volumes, func(v Volume) bool { return v.Volume == tc.want.Volume })
			diff(t, tc.want, c.Volumes[i])
		})
	}
}

func TestContentVerificationAndOrder(t *testing.T) {
	c, _, err := Content(captured(t, "content-pbs.json"))
	wantError(t, err, "")
	got := []string{}
	for _, a := range c.Archives {
		got = append(got, fmt.Sprintf("%d %s %s verify=%q protected=%t encrypted=%t notes=%q", *a.VMID, a.Type, a.Created.Format(time.RFC3339), a.Verification, a.Protected, a.Encrypted, a.Notes))
	}
	diff(t, []string{
		`101 lxc 2026-11-28T01:00:05Z verify="ok" protected=false encrypted=false notes=""`,
		`101 lxc 2026-11-29T01:00:05Z verify="failed" protected=false encrypted=true notes=""`,
		`140 lxc 2026-01-13T20:30:00Z verify="" protected=true encrypted=false notes="dc2\nparked, keep"`,
		`9000 qemu 2026-10-01T01:00:00Z verify="ok" protected=false encrypted=false notes=""`,
	}, got)
}

func TestContentEntries(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     func(StorageContent) any
		is       any
	}{
		{"an empty list is an answer", "[]", func(c StorageContent) any { return c }, StorageContent{Archives: []Archive{}, Unfinished: []Archive{}, Volumes: []Volume{}}},
		{"the second storage", string(captured(t, "content-second-storage.json")), func(c StorageContent) any { return []int{*c.Archives[0].VMID, *c.Archives[1].VMID} }, []int{100, 101}},
		{"a running PBS backup is no archive", `[{"content":"backup","format":"pbs-vm","size":1,"volid":"pbs:backup/vm/100/2026-11-29T01:00:00Z"}]`, func(c StorageContent) any { return []int{len(c.Archives), len(c.Unfinished)} }, []int{0, 1}},
		{"a one-byte file on a directory stays", `[{"content":"backup","format":"tar","size":1,"volid":"nas:backup/vzdump-lxc-101-2026_11_27-02_30_01.tar"}]`, func(c StorageContent) any { return len(c.Archives) }, 1},
		{"a host's backup is no guest", `[{"content":"backup","size":9,"volid":"pbs:backup/host/nas/2026-11-29T01:00:00Z"}]`, func(c StorageContent) any { return []int{len(c.Archives), c.HostBackups} }, []int{0, 1}},
		{"guest, kind and time from a PBS name", `[{"content":"backup","volid":"pbs:backup/ct/101/2026-11-29T01:00:05Z"}]`, func(c StorageContent) any {
			a := c.Archives[0]
			return []any{*a.VMID, a.Type, a.Created.Format(time.RFC3339), a.Size == nil}
		}, []any{101, "lxc", "2026-11-29T01:00:05Z", true}},
		{"guest from a vzdump name, no time from it", `[{"content":"backup","volid":"nas:backup/vzdump-qemu-100-2026_11_29-02_00_03.vma.zst"}]`, func(c StorageContent) any {
			a := c.Archives[0]
			return []any{*a.VMID, a.Type, a.Created == nil}
		}, []any{100, "qemu", true}},
		{"a free name tells no guest", `[{"content":"backup","ctime":"1795746601","volid":"nas:backup/old.tar.zst"}]`, func(c StorageContent) any { return []any{c.Archives[0].VMID == nil, c.Archives[0].Created != nil} }, []any{true, true}},
		{"encrypted by fingerprint", `[{"content":"backup","encrypted":"aa:bb","volid":"pbs:backup/ct/101/2026-11-29T01:00:05Z"}]`, func(c StorageContent) any { return c.Archives[0].Encrypted }, true},
		{"a linked clone belongs to the clone", `[{"content":"images","volid":"zfs:base-9000-disk-0/vm-101-disk-0","size":"10"}]`, func(c StorageContent) any { return []any{*c.Volumes[0].VMID, c.Volumes[0].Name, *c.Volumes[0].Size} }, []any{101, "vm-101-disk-0", int64(10)}},
		{"a volume of nobody", `[{"content":"images","volid":"zfs:backup"}]`, func(c StorageContent) any { return c.Volumes[0].VMID == nil }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c, notes, err := Content([]byte(tc.in))
			wantError(t, err, "")
			diff(t, []Note{}, notes)
			diff(t, tc.is, tc.want(c))
		})
	}
}

func TestContentBadInput(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		notes    []string
		err      string
	}{
		{"nothing", "", nil, "storage content: want a JSON array of objects, got nothing"},
		{"null", "null", nil, "got null"},
		{"half", `[{"volid":"a:b"},{"vol`, nil, "got something else at byte"},
		{"an object", "{}", nil, "another kind of JSON"},
		{"no objects", "[1,2]", nil, "got no object in it"},
		{"one without a volume", `[{"content":"images"},{"content":"images","volid":"a:b"}]`, []string{"line 1: volid: want STORAGE:NAME"}, ""},
		{"one field", `[{"content":"backup","volid":"a:backup/b","size":"big","verification":7,"protected":"maybe"}]`, []string{"line 1: size: want a whole number", "line 1: protected: want 0 or 1", "line 1: verification: want an object"}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, notes, err := Content([]byte(tc.in))
			wantError(t, err, tc.err)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}

// Law: every entry is counted exactly once or noted, and the order of the
// entries, which is random in Perl, does not matter.
func FuzzContent(f *testing.F) {
	for _, name := range []string{"content-local.json", "content-pbs.json", "content-usb-backup.json", "content-tank.json"} {
		f.Add(captured(f, name))
	}
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		c, _, err := Content(out)
		if err != nil {
			return
		}
		var raw []json.RawMessage
		if err := json.Unmarshal(out, &raw); err != nil {
			t.Fatal(err)
		}
		if n := len(c.Archives) + len(c.Unfinished) + len(c.Volumes) + c.HostBackups + c.Other; n > len(raw) {
			t.Fatalf("%d things from %d entries", n, len(raw))
		}
		slices.Reverse(raw)
		reversed, _, err := Content(append(append([]byte("["), bytes.Join(rawBytes(raw), []byte(","))...), ']'))
		if err != nil || len(reversed.Archives) != len(c.Archives) || len(reversed.Volumes) != len(c.Volumes) {
			t.Fatalf("reversed: %v", err)
		}
		for i := range c.Archives {
			if !cmp.Equal(c.Archives[i].Volume, reversed.Archives[i].Volume) {
				t.Fatal("the order of the entries matters")
			}
		}
	})
}

func rawBytes(raw []json.RawMessage) [][]byte {
	out := [][]byte{}
	for _, r := range raw {
		out = append(out, r)
	}
	return out
}
