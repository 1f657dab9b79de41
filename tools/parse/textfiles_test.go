package parse

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestPools(t *testing.T) {
	got, notes, err := Pools(testdata(t, "pools-pve9.txt"))
	if err != nil || notes != nil {
		t.Fatal(err, notes)
	}
	want := []Pool{
		{Name: "dmz", Comment: "Alles was von aussen erreichbar ist", VMIDs: []int{101, 200}, Storages: []string{"usb-backup"}},
		{Name: "prod", VMIDs: []int{102, 203}, Storages: []string{"local", "local-lvm"}},
		{Name: "prod/db", Parent: "prod", Comment: "verschachtelt", VMIDs: []int{104}, Storages: []string{}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPoolsBrokenLines(t *testing.T) {
	got, notes, err := Pools([]byte("pool:a:50%25 done%3A yes:1::\npool:b\npool:c::x:\n\npool:d:::\n"))
	want := []Pool{{Name: "a", Comment: "50% done: yes", VMIDs: []int{1}, Storages: []string{}}, {Name: "d", VMIDs: []int{}, Storages: []string{}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"line 2: want pool:NAME:COMMENT:VMIDS:STORAGES:", "line 3: want pool:NAME:COMMENT:VMIDS:STORAGES:"}, noteTexts(notes)); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	_, _, err = Pools([]byte("user:root@pam:1\n"))
	checkError(t, err, "pools: line 1: want pool:NAME:COMMENT:VMIDS:STORAGES:")
}

func TestDF(t *testing.T) {
	got, notes, err := DF(testdata(t, "node-df-pve9.txt"))
	if err != nil || notes != nil {
		t.Fatal(err, notes)
	}
	if len(got) != 5 {
		t.Fatalf("%d filesystems, want 5", len(got))
	}
	root := NodeFilesystem{
		Type: "ext4", Inodes: new(int64(6291456)), InodesUsed: new(int64(73412)), Size: new(int64(101017534464)),
		Used: new(int64(21474836480)), Available: new(int64(74365861888)), Source: "/dev/mapper/pve-root", Target: "/",
	}
	if diff := cmp.Diff(root, got[1]); diff != "" {
		t.Errorf("root (-want +got)\n%s", diff)
	}
	if got[3].Inodes != nil || got[3].Target != "/etc/pve" {
		t.Errorf("no inodes: %+v", got[3])
	}
	if got[4].Source != "tank/guests/subvol 104 disk-0" || got[4].Target != "/tank/guests/subvol 104 disk-0" {
		t.Errorf("blanks: %+v", got[4])
	}
}

func TestDFBroken(t *testing.T) {
	header := "Type Inodes IUsed 1B-blocks Used Avail Filesystem Mounted on\n"
	got, notes, err := DF([]byte(header + "ext4 1 2\next4 1 2 3 4 5 /dev/a /\next4 x 2 3 4 5 /dev/b /b\next4 1 2 3 4 5 /dev/c\n"))
	if err != nil || len(got) != 1 || got[0].Source != "/dev/a" {
		t.Errorf("%+v, %v", got, err)
	}
	if diff := cmp.Diff([]string{"line 2: want 8 columns", "line 4: want 8 columns", "line 5: want 8 columns"}, noteTexts(notes)); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
	for _, in := range []string{"", "ext4 1 2 3 4 5 /dev/a /\n", "df: /x: Permission denied\n"} {
		_, _, err := DF([]byte(in))
		checkError(t, err, "df: line 1: want a header of 8 columns")
	}
	if got, _, err := DF([]byte(header)); err != nil || got == nil || len(got) != 0 {
		t.Errorf("only a header: %v, %v", got, err)
	}
}

func TestMounts(t *testing.T) {
	got, notes, err := Mounts([]byte("proc /proc proc rw\n192.168.20.50:/volume1/proxmox /mnt/pve/nas-nfs nfs4 rw\n" +
		"https://u:p@cloud.example/dav /mnt/my\\040files fuse ro\nuser:secret@fsid.fs=/ /mnt/ceph ceph rw\nbroken line\n"))
	want := []Mount{
		{Source: "proc", Target: "/proc", Type: "proc"},
		{Source: "192.168.20.50:/volume1/proxmox", Target: "/mnt/pve/nas-nfs", Type: "nfs4"},
		{Source: "cloud.example/dav", Target: "/mnt/my files", Type: "fuse", ReadOnly: true},
		{Source: "fsid.fs=/", Target: "/mnt/ceph", Type: "ceph"},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got)\n%s", err, diff)
	}
	if diff := cmp.Diff([]string{"line 5: want SOURCE TARGET TYPE rw|ro"}, noteTexts(notes)); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
}

func TestPackages(t *testing.T) {
	p, notes, err := ParsePackages(testdata(t, "packages-pve9.txt"))
	if err != nil || notes != nil {
		t.Fatal(err, notes)
	}
	want := []Kernel{
		{"proxmox-kernel-6.14.11-4-pve-signed", "6.14.11-4", "6.14.11-4-pve"},
		{"proxmox-kernel-6.17.4-2-pve-signed", "6.17.4-2", "6.17.4-2-pve"},
	}
	if diff := cmp.Diff(want, p.Kernels); diff != "" {
		t.Errorf("kernels (-want +got)\n%s", diff)
	}
	if p.PVEManager() != "9.2.11" || p.NewestKernel() != "6.17.4-2-pve" || len(p.Versions) != 9 {
		t.Errorf("%q, %q, %d packages", p.PVEManager(), p.NewestKernel(), len(p.Versions))
	}
}

func TestPackagesOfOtherVersions(t *testing.T) {
	p, notes, err := ParsePackages([]byte("pve-manager\t7.4-19\tii \npve-kernel-5.15.152-1-pve\t5.15.152-1\tii \npve-kernel-5.15.9-1-pve\t5.15.9-1\tii \n" +
		"pve-kernel-5.15\t7.4-14\tii \npve-kernel-helper\t7.3-9\tii \nproxmox-ve\t\tun \npve-kernel-5.4.1-1-pve\t5.4.1-1\trc \nproxmox-kernel-6.8.12-10-pve\t6.8.12-10\tii \nproxmox-kernel-6.8.12-11-dbg\t1\tii \nproxmox-kernel-6.8-pve\t1\tii \nbroken\n"))
	if err != nil {
		t.Fatal(err)
	}
	var releases []string
	for _, k := range p.Kernels {
		releases = append(releases, k.Release)
	}
	if diff := cmp.Diff([]string{"5.15.9-1-pve", "5.15.152-1-pve", "6.8.12-10-pve"}, releases); diff != "" {
		t.Errorf("kernels (-want +got)\n%s", diff)
	}
	if _, ok := p.Versions["proxmox-ve"]; ok {
		t.Error("a package that is not installed has a version")
	}
	if diff := cmp.Diff([]string{"line 11: want PACKAGE VERSION STATE"}, noteTexts(notes)); diff != "" {
		t.Errorf("notes (-want +got)\n%s", diff)
	}
}

func TestCompareReleases(t *testing.T) {
	order := []string{"", "5.15.9-1-pve", "5.15.152-1-pve", "6.8.12-9-pve", "6.8.12-10-pve", "6.17.4-2-pve", "6.17.4-2-pve2"}
	for i, a := range order {
		for j, b := range order {
			want := 0
			if i < j {
				want = -1
			} else if i > j {
				want = 1
			}
			if got := CompareReleases(a, b); got != want {
				t.Errorf("CompareReleases(%q, %q) = %d, want %d", a, b, got, want)
			}
		}
	}
}

func TestUpdates(t *testing.T) {
	got, notes, err := Updates(testdata(t, "updates-pve9.txt"))
	if err != nil || notes != nil {
		t.Fatal(err, notes)
	}
	if len(got) != 110 {
		t.Fatalf("%d updates, want 110", len(got))
	}
	want := []Update{
		{Package: "dpkg", OldVersion: "1.21.22", NewVersion: "1.21.23", Origin: "Debian"},
		{Package: "libssh2-1", OldVersion: "1.10.0-3+b1", NewVersion: "1.10.0-3+deb12u1", Origin: "Debian", DebianUpdate: true},
	}
	if diff := cmp.Diff(want, got[:2]); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestUpdatesShapes(t *testing.T) {
	file := func(s string) []byte { return []byte("==> /var/lib/pve-manager/pkgupdates <==\n" + s) }
	got, notes, err := Updates(file(`[{"Package":"a","Version":"1","Origin":"Debian-Security","ChangeLogUrl":"https://u:secret@x"},5,{"Version":"1"},{"Package":"b","OldVersion":null,"Version":2}]`))
	want := []Update{{Package: "a", NewVersion: "1", Origin: "Debian-Security", Security: new(true)}, {Package: "b", NewVersion: "2"}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(notes) != 2 {
		t.Errorf("%v, notes %v (-want +got)\n%s", err, notes, diff)
	}
	for _, in := range [][]byte{nil, file("\n")} {
		if got, _, err := Updates(in); got != nil || err != nil {
			t.Errorf("no list yet: %v, %v", got, err)
		}
	}
	if got, _, err := Updates(file("[]\n")); got == nil || len(got) != 0 || err != nil {
		t.Errorf("nothing waits: %v, %v", got, err)
	}
	_, _, err = Updates(file(`[{"Package":`))
	checkError(t, err, "/var/lib/pve-manager/pkgupdates: line 1: want whole JSON")
	_, _, err = Updates(file(`{}`))
	checkError(t, err, "/var/lib/pve-manager/pkgupdates: line 1: want a JSON list")
}

func TestStamps(t *testing.T) {
	got, notes, err := Stamps([]byte("1795900000:29810:/var/lib/pve-manager/pkgupdates\n1795800000:4096:/var/log/a:b\nx\n1:x:/c\nx:1:/c\n"))
	want := []Stamp{{"/var/lib/pve-manager/pkgupdates", 1795900000, 29810}, {"/var/log/a:b", 1795800000, 4096}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(notes) != 3 {
		t.Errorf("%v, notes %v (-want +got)\n%s", err, notes, diff)
	}
}

func TestAptRepositories(t *testing.T) {
	got, notes, err := AptRepositories([]byte(
		"/etc/apt/sources.list.d/ceph.list:deb [arch=amd64 signed-by=/usr/share/k.gpg] https://enterprise.proxmox.com/debian/ceph-quincy bookworm enterprise # off soon\n" +
			"/etc/apt/sources.list:deb http://download.proxmox.com/debian/pve bookworm pve-no-subscription\n" +
			in("/etc/apt/sources.list.d/debian.sources", "Types: deb\nSuites: trixie trixie-updates\nComponents: main contrib\nTypes: deb\nSuites: trixie-security\nComponents: main\n") +
			in("/etc/apt/sources.list.d/pve.sources", "Types: deb\nURIs: https://enterprise.proxmox.com/debian/pve\nSuites: trixie\nComponents: pve-enterprise\nEnabled: false\nTypes: deb\nURIs: http://download.proxmox.com/debian/pve\nSuites: trixie\nComponents: pve-no-subscription\n") +
			in("/etc/apt/sources.list.d/first.sources", "Enabled: no\nTypes: deb\nURIs: http://download.proxmox.com/debian/a\nEnabled: yes\nTypes: deb\nURIs: http://download.proxmox.com/debian/b\n") +
			"what is this\n"))
	if err != nil {
		t.Fatal(err)
	}
	want := []AptRepository{
		{File: "/etc/apt/sources.list", URIs: []string{"http://download.proxmox.com/debian/pve"}, Types: []string{"deb"}, Suites: []string{"bookworm"}, Components: []string{"pve-no-subscription"}, Enabled: true},
		{File: "/etc/apt/sources.list.d/ceph.list", URIs: []string{"https://enterprise.proxmox.com/debian/ceph-quincy"}, Types: []string{"deb"}, Suites: []string{"bookworm"}, Components: []string{"enterprise"}, Enabled: true},
		{File: "/etc/apt/sources.list.d/first.sources", URIs: []string{"http://download.proxmox.com/debian/a"}, Types: []string{"deb"}},
		{File: "/etc/apt/sources.list.d/first.sources", URIs: []string{"http://download.proxmox.com/debian/b"}, Types: []string{"deb"}, Enabled: true},
		{File: "/etc/apt/sources.list.d/pve.sources", URIs: []string{"https://enterprise.proxmox.com/debian/pve"}, Types: []string{"deb"}, Suites: []string{"trixie"}, Components: []string{"pve-enterprise"}},
		{File: "/etc/apt/sources.list.d/pve.sources", URIs: []string{"http://download.proxmox.com/debian/pve"}, Types: []string{"deb"}, Suites: []string{"trixie"}, Components: []string{"pve-no-subscription"}, Enabled: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(notes) != 1 || notes[0].Line != 24 {
		t.Errorf("notes %v", notes)
	}
	if got, _, err := AptRepositories(nil); got == nil || len(got) != 0 || err != nil {
		t.Errorf("none: %v, %v", got, err)
	}
}

func TestStartDelays(t *testing.T) {
	got, notes, err := StartDelays(testdata(t, "startup-delay-pve9.txt"))
	if diff := cmp.Diff([]StartDelay{{"pve1", 10}}, got); diff != "" || err != nil || notes != nil {
		t.Errorf("%v, %v (-want +got)\n%s", err, notes, diff)
	}
	for _, in := range []string{"/etc/pve/nodes/a/config:description: 1", "a/config:startall-onboot-delay: 1", "/etc/pve/nodes/a:startall-onboot-delay: 1",
		"/etc/pve/nodes/a/b/config:startall-onboot-delay: 1", "/etc/pve/nodes//config:startall-onboot-delay: 1", "/etc/pve/nodes/a/config:startall-onboot-delay: x"} {
		_, _, err = StartDelays([]byte(in + "\n"))
		checkError(t, err, "start delays: line 1: want /etc/pve/nodes/NODE/config:startall-onboot-delay: SECONDS")
	}
}

func TestDatacenter(t *testing.T) {
	got, notes, err := ParseDatacenter(testdata(t, "datacenter-pve9.txt"))
	want := &Datacenter{
		CRS: []Option{{"ha", "static"}}, MACPrefix: "BC:24:11", MigrationType: "secure", MigrationNetwork: netip.MustParsePrefix("192.168.20.0/24"),
		TagStyle:       []Option{{"color-map", "prod:1f7a3d:ffffff;dmz:c0392b"}, {"ordering", "alphabetical"}, {"shape", "full"}},
		RegisteredTags: []string{"backup", "dmz", "prod"}, NextIDLower: new(int64(100)), NextIDUpper: new(int64(999)),
	}
	if diff := cmp.Diff(want, got, addresses); diff != "" || err != nil || notes != nil {
		t.Errorf("%v, %v (-want +got)\n%s", err, notes, diff)
	}
	got, notes, err = ParseDatacenter([]byte("ha: shutdown_policy=migrate\nreplication: insecure\nmigration: network=nonsense\nmax_workers: 4\nfencing: watchdog\nbwlimit: clone=100\n"))
	want = &Datacenter{HAShutdownPolicy: "migrate", ReplicationType: "insecure", MaxWorkers: new(int64(4)), Fencing: "watchdog", BandwidthLimits: []Option{{"clone", "100"}}}
	if diff := cmp.Diff(want, got, addresses); diff != "" || err != nil || len(notes) != 1 || notes[0].Line != 3 {
		t.Errorf("%v, %v (-want +got)\n%s", err, notes, diff)
	}
}

func TestVzdumpDefaults(t *testing.T) {
	got, notes, err := ParseVzdumpDefaults([]byte("storage: nas\nmode: snapshot\nprune-backups: keep-last=3\nexclude-path: /tmp /var/cache\nstdexcludes: 0\nremove: x\nfleecing: enabled=1,storage=fast\n"))
	want := &VzdumpDefaults{Storage: "nas", Mode: "snapshot", Prune: []Option{{"keep-last", "3"}}, ExcludePath: []string{"/tmp", "/var/cache"},
		StdExcludes: new(false), Fleecing: []Option{{"enabled", "1"}, {"storage", "fast"}}}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(notes) != 1 || notes[0].Line != 6 {
		t.Errorf("%v, %v (-want +got)\n%s", err, notes, diff)
	}
	if got, _, err := ParseVzdumpDefaults(nil); err != nil || got == nil {
		t.Errorf("nothing set: %v, %v", got, err)
	}
}

func TestClock(t *testing.T) {
	got, err := Clock([]byte("1795970999.123456789+0100\n"))
	if err != nil || got.UnixNano() != 1795970999123456789 || got.Format("-07:00") != "+01:00" {
		t.Errorf("%v, %v", got, err)
	}
	for _, in := range []string{"", "1795970999", "1795970999.5+0100", "1795970999.%N+0100", "-5", "x.123456789+0100", "1.-12345678+0100", "1.123456789+9999999"} {
		if _, err := Clock([]byte(in)); err == nil || err.Error() != "clock: want SECONDS.NANOSECONDS+HHMM" {
			t.Errorf("%q: %v", in, err)
		}
	}
}

func TestStorageReasons(t *testing.T) {
	got, notes, err := StorageReasons([]byte("1795970980.1 pve1 pvestatd[1234]: storage 'nas-nfs' is not online\n" +
		"1795970985.1 pve1 pvestatd[1234]: unable to activate storage 'usb' - directory is expected to be a mount point but is not mounted: '/mnt/usb'\n" +
		"1795970990.1 pve1 pvestatd[1234]: storage 'nas-nfs' is not online\n   and a second line of it\n-- Boot 0123 --\n" +
		"1795970991.1 pve1 pvestatd[1234]: pbs-main: error fetching datastores - 500 Can't connect to pbs.home.arpa:8007\n" +
		"1795970992.1 pve1 pvestatd[1234]: status update time (12.345 seconds)\nnonsense\n"))
	want := []StorageReason{
		{Text: "status update time (12.345 seconds)", Time: 1795970992, Count: 1},
		{Storage: "pbs-main", Text: "pbs-main: error fetching datastores - 500 Can't connect to pbs.home.arpa:8007", Time: 1795970991, Count: 1},
		{Storage: "nas-nfs", Text: "storage 'nas-nfs' is not online", Time: 1795970990, Count: 2},
		{Storage: "usb", Text: "unable to activate storage 'usb' - directory is expected to be a mount point but is not mounted: '/mnt/usb'", Time: 1795970985, Count: 1},
	}
	if diff := cmp.Diff(want, got); diff != "" || err != nil || len(notes) != 1 || notes[0].Line != 8 {
		t.Errorf("%v, %v (-want +got)\n%s", err, notes, diff)
	}
	if got, _, err := StorageReasons(nil); got == nil || err != nil {
		t.Errorf("quiet: %v, %v", got, err)
	}
}

func TestNamedStorage(t *testing.T) {
	tests := map[string]string{
		"storage 'a.b_c-1' is not online":        "a.b_c-1",
		"could not activate storage 'tank', zfs": "tank",
		"storage 'a/b' is not online":            "",
		"storage '1a' is not online":             "",
		"storage 'x is not online":               "",
		"storage '' is not online":               "",
		"pbs: error fetching datastores - 401":   "pbs",
		"mount error: Job failed":                "",
		"a b: error fetching datastores - 401":   "",
	}
	for text, want := range tests {
		if got := namedStorage(text); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}

// Whatever stands on a line between two good ones, the good ones come out.
func FuzzLines(f *testing.F) {
	for _, s := range []string{"pool:a:b:1:", "proc /proc proc rw", "1:2:/x", "pve-manager\t9\tii", "1.5 h p: t", "/etc/pve/nodes/a/config:startall-onboot-delay: 1",
		"/etc/apt/a.list:deb x y z", "/var/log/vzdump/lxc-1.log:2026-11-29 02:30:41 INFO: backup mode: stop", "ext4 1 2 3 4 5 /a /b", "105 running backup web"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		line = strings.NewReplacer("\n", "", "\r", "").Replace(line) + "\n"
		if p, _, err := Pools([]byte("pool:first:::\n" + line + "pool:last:::\n")); err != nil || p[0].Name != "first" || p[len(p)-1].Name != "last" {
			t.Error("a pool was lost")
		}
		if m, _, err := Mounts([]byte("a /a x rw\n" + line + "z /z x ro\n")); err != nil || m[0].Target != "/a" || m[len(m)-1].Target != "/z" {
			t.Error("a mount was lost")
		} else {
			for _, mount := range m {
				if strings.Contains(mount.Source, "@") {
					t.Error("a source with an @")
				}
			}
		}
		if s, _, err := Stamps([]byte("1:2:/a\n" + line + "3:4:/z\n")); err != nil || s[0].Path != "/a" || s[len(s)-1].Path != "/z" {
			t.Error("a stamp was lost")
		}
		if d, _, err := DF([]byte("T I U S U A F Mounted on\ne 1 2 3 4 5 a /a\n" + line + "e 1 2 3 4 5 z /z\n")); err != nil || d[0].Target != "/a" || d[len(d)-1].Target != "/z" {
			t.Error("a filesystem was lost")
		}
		if r, _, err := PctList([]byte("VMID Status Lock Name\n100 running a\n" + line + "999 stopped z\n")); err != nil || r[0].VMID != 100 || r[len(r)-1].VMID != 999 {
			t.Error("a container was lost")
		}
		if r, _, err := QmList([]byte("VMID NAME STATUS MEM(MB) BOOTDISK(GB) PID\n100 a running 1 1.00 5\n" + line + "999 z stopped 1 0.00 0\n")); err != nil || r[0].VMID != 100 || r[len(r)-1].VMID != 999 {
			t.Error("a VM was lost")
		}
		if p, _, err := ParsePackages([]byte("pve-manager\t9\tii \n" + line + "proxmox-kernel-6.17.4-2-pve\t1\tii \n")); err != nil || (p.PVEManager() != "9" && !strings.Contains(line, "pve-manager")) || p.Versions["proxmox-kernel-6.17.4-2-pve"] != "1" {
			t.Error("a package was lost")
		}
		if b, _, err := BackupLogs([]byte("/var/log/vzdump/lxc-5.log:2026-11-29 02:30:41 INFO: backup mode: stop\n" + line)); err != nil || (b[len(b)-1].VMID != 5 && !strings.Contains(line, "vzdump")) {
			t.Error("a backup log was lost")
		}
		_, _, _ = StorageReasons([]byte(line))
		_, _, _ = AptRepositories([]byte(line))
		_, _, _ = ParseDatacenter([]byte(line))
		_, _, _ = ParseVzdumpDefaults([]byte(line))
		_, _, _ = StartDelays([]byte(line))
		_, _ = Clock([]byte(line))
	})
}
