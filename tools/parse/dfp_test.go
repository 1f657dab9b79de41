package parse

import "testing"

func TestDiskFree(t *testing.T) {
	const head = "Filesystem     1024-blocks    Used Available Capacity Mounted on\n"
	for _, tc := range []struct {
		name, in string
		want     []GuestFilesystem
		notes    []string
		err      string
	}{
		{"coreutils", head + "/dev/loop0         8154588 2060452   5658068      27% /\nnone                   492       4       488       1% /dev\ntmpfs             12638012       0  12638012       0% /dev/shm\n", []GuestFilesystem{
			{Source: "/dev/loop0", Mountpoint: "/", Total: 8154588 << 10, Used: 2060452 << 10, Available: 5658068 << 10},
			{Source: "none", Mountpoint: "/dev", Total: 492 << 10, Used: 4 << 10, Available: 488 << 10, Virtual: true},
			{Source: "tmpfs", Mountpoint: "/dev/shm", Total: 12638012 << 10, Available: 12638012 << 10, Virtual: true},
		}, []string{}, ""},
		{"busybox", "Filesystem           1024-blocks    Used Available Use% Mounted on\nrpool/data/subvol-104-disk-0  33554432 1467968 32086464   4% /\n", []GuestFilesystem{
			{Source: "rpool/data/subvol-104-disk-0", Mountpoint: "/", Total: 33554432 << 10, Used: 1467968 << 10, Available: 32086464 << 10},
		}, []string{}, ""},
		{"another language, blanks, remote, full beyond the reserve", "Dateisystem 1024-Blöcke Benutzt Verfügbar Kapazität Eingehängt auf\n//nas/my share 100 90 10 90% /mnt/my share\nnas:/export 10 5 5 50% /mnt/nfs\n[2001:db8::1]:/e 10 5 5 50% /mnt/nfs6\n/dev/sda1 100 100 -3 103% /srv\n", []GuestFilesystem{
			{Source: "//nas/my share", Mountpoint: "/mnt/my share", Total: 100 << 10, Used: 90 << 10, Available: 10 << 10, Remote: true},
			{Source: "nas:/export", Mountpoint: "/mnt/nfs", Total: 10 << 10, Used: 5 << 10, Available: 5 << 10, Remote: true},
			{Source: "[2001:db8::1]:/e", Mountpoint: "/mnt/nfs6", Total: 10 << 10, Used: 5 << 10, Available: 5 << 10, Remote: true},
			{Source: "/dev/sda1", Mountpoint: "/srv", Total: 100 << 10, Used: 100 << 10},
		}, []string{}, ""},
		{"without size", head + "proc 0 0 0 - /proc\n", []GuestFilesystem{}, []string{}, ""},
		{"a broken row costs itself", head + "df: /mnt: Stale file handle\n/dev/sda1 1 1 0 100% /\n/dev/sdb1 99999999999999999999 1 0 1% /x\n", []GuestFilesystem{{Source: "/dev/sda1", Mountpoint: "/", Total: 1 << 10, Used: 1 << 10}}, []string{"line 2: want a source, three numbers, a percentage and a mount point", "line 4: want kibibytes below 2^53"}, ""},
		{"nothing", "", nil, nil, "df: want a heading with 1024-blocks in line 1"},
		{"without a heading", "/dev/sda1 1024 1 0 100% /\n", nil, nil, "want a heading"},
		{"other units", "Filesystem 1K-blocks Used Available Use% Mounted on\n", nil, nil, "want a heading"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, notes, err := DiskFree([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, tc.want, got)
			if err == nil {
				diff(t, tc.notes, noteTexts(notes))
			}
		})
	}
}

// Law: a row more is a mount more, and no size is negative.
func FuzzDiskFree(f *testing.F) {
	f.Add("Filesystem     1024-blocks    Used Available Capacity Mounted on\n/dev/loop0 8154588 2060452 5658068 27% /\n")
	f.Add("1024\nx")
	for _, g := range garbage {
		f.Add(g)
	}
	f.Fuzz(func(t *testing.T, out string) {
		mounts, _, err := DiskFree([]byte(out))
		if err != nil {
			return
		}
		more, _, err := DiskFree([]byte(out + "\n/dev/x 1 1 0 1% /x"))
		if err != nil || len(more) != len(mounts)+1 {
			t.Fatal(len(mounts), len(more), err)
		}
		for _, m := range mounts {
			if m.Total <= 0 || m.Used < 0 || m.Available < 0 {
				t.Fatalf("impossible mount %+v", m)
			}
		}
	})
}
