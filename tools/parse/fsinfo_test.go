package parse

import (
	"fmt"
	"testing"
)

func filesystemRows(a AgentFilesystems) []string {
	rows := []string{}
	for _, f := range a.Filesystems {
		size := "-"
		if f.Total != nil && f.Used != nil {
			size = fmt.Sprintf("%d/%d", *f.Used, *f.Total)
		}
		rows = append(rows, fmt.Sprintf("%s %s %s %s %s", f.Mountpoint, f.Device, f.Type, size, f.Skip))
	}
	return rows
}

func TestFilesystemsOfAgentCountEachDeviceOnce(t *testing.T) {
	a, notes, err := FilesystemsOfAgent(captured(t, "fsinfo-double-counting.json"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	diff(t, []string{
		"/ sda5 erofs 231211008/231211008 read-only",
		"/mnt/data sda8 ext4 6442450944/30064771072 ",
		"/mnt/media //nas/media cifs 7900000000000/8000000000000 remote",
		"/mount1 sdb1 btrfs 42949672960/85899345920 ",
		"/mount2 sdb1 btrfs 42949672960/85899345920 same-device",
		"/tmp zram2 ext4 98304/16777216 virtual",
		"/var/lib/docker sda8 ext4 6442450944/30064771072 same-device",
		"/var/lib/docker/overlay2/abc/merged overlay overlay 6442450944/30064771072 virtual",
		"/var/log/journal sda8 ext4 6442450944/30064771072 same-device",
		"System Reserved System Reserved NTFS - no-size",
	}, filesystemRows(a))
	diff(t, []int64{115964116992, 49392123904, 2}, []int64{a.Total, a.Used, int64(a.Counted)})
}

func TestFilesystemsOfAgent(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     []string
		counted  int
	}{
		{"two Windows volumes of one disk", `{"result":[{"disk":[{"dev":"\\\\.\\PhysicalDrive0"}],"mountpoint":"D:\\","name":"\\\\?\\Volume{2}\\","total-bytes":20,"type":"NTFS","used-bytes":2},{"disk":[{"dev":"\\\\.\\PhysicalDrive0"}],"mountpoint":"C:\\","name":"\\\\?\\Volume{1}\\","total-bytes":"10","type":"NTFS","used-bytes":"1"}]}`, []string{`C:\ \\?\Volume{1}\ NTFS 1/10 `, `D:\ \\?\Volume{2}\ NTFS 2/20 `}, 2},
		{"FreeBSD names no disk", `{"result":[{"disk":[],"mountpoint":"/","name":"/dev/gpt/rootfs","total-bytes":10,"type":"ufs","used-bytes":1}]}`, []string{"/ /dev/gpt/rootfs ufs 1/10 "}, 1},
		{"datasets of one pool", `{"result":[{"disk":[],"mountpoint":"/zroot/a","name":"zroot/a","total-bytes":9,"type":"zfs","used-bytes":1},{"disk":[],"mountpoint":"/","name":"zroot/ROOT","total-bytes":10,"type":"zfs","used-bytes":1}]}`, []string{"/ zroot/ROOT zfs 1/10 ", "/zroot/a zroot/a zfs 1/9 same-device"}, 1},
		{"none", `{"result":[]}`, []string{}, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, notes, err := FilesystemsOfAgent([]byte(tc.in))
			wantError(t, err, "")
			diff(t, []Note{}, notes)
			diff(t, tc.want, filesystemRows(a))
			diff(t, tc.counted, a.Counted)
		})
	}
}

func TestFilesystemsOfAgentBadInput(t *testing.T) {
	for _, tc := range []struct{ name, in, err string }{
		{"nothing", "", "agent filesystems: want a JSON array of objects, got nothing"},
		{"null", "null", "got null"},
		{"no list", `{"result":7}`, "another kind of JSON"},
		{"half", `{"result":[{"mount`, "got something else at byte"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, _, err := FilesystemsOfAgent([]byte(tc.in))
			wantError(t, err, tc.err)
		})
	}
}

// Law: of the mounts of one device at most one counts, and the sum is theirs.
func FuzzFilesystemsOfAgent(f *testing.F) {
	f.Add(captured(f, "fsinfo-double-counting.json"))
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		a, _, err := FilesystemsOfAgent(out)
		if err != nil {
			return
		}
		seen := map[string]bool{}
		var total int64
		for _, fs := range a.Filesystems {
			if fs.Skip != SkipNot {
				continue
			}
			if seen[deviceKey(fs)] {
				t.Fatalf("%q counted twice", fs.Device)
			}
			seen[deviceKey(fs)] = true
			total += *fs.Total
		}
		if total != a.Total || len(seen) != a.Counted {
			t.Fatalf("sum %d of %d, want %d of %d", a.Total, a.Counted, total, len(seen))
		}
	})
}
