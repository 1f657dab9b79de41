package report

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"pvelens/tools/parse"
)

var judgedAt = time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)

// lxcConfig reads the text of a container's configuration.
func lxcConfig(t testing.TB, text string) *parse.GuestConfig {
	t.Helper()
	g, err := parse.GuestConfigText("lxc", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &g
}

func vmConfig(t testing.TB, text string) *parse.GuestConfig {
	t.Helper()
	g, err := parse.GuestConfigText("qemu", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return &g
}

// archive is one archive, hours old.
func archive(kind string, hours int) parse.Archive {
	at := judgedAt.Add(-time.Duration(hours) * time.Hour)
	return parse.Archive{Volume: fmt.Sprintf("nas:backup/vzdump-%s-%d", kind, hours), Storage: "nas", Type: kind, Created: &at}
}

func covered(archives ...parse.Archive) BackupState {
	return BackupState{Cover: Cover{Jobs: []parse.BackupJob{{ID: "nightly", Enabled: true}}}, Archives: archives, StdExcludes: true}
}

// The container of the tests: one mount of each kind.
const filesCT = `rootfs: local-zfs:subvol-130-disk-0,size=12G
mp0: tank:subvol-130-disk-1,mp=/srv/photos,size=500G
mp1: tank:subvol-130-disk-2,mp=/srv/docs,backup=1,size=50G
mp2: /tank/media,mp=/srv/media
mp3: tank:subvol-130-disk-3,mp=/srv/tmp/,backup=0,size=20G
mp4: tank:subvol-130-disk-4,mp=/var/lib/docker,size=20G
mp5: tank:subvol-130-disk-5,mp=/srv/photos/raw,backup=1,size=20G
mp6: /tank/docs,mp=/srv/docs/shared,backup=1
lxc.mount.entry: /mnt/samba mnt/samba none bind,create=dir 0 0
`

// filesMounts is its mount table: docker's named volume "nfs" is NFS, "bound" a
// bind mount of mp2, "inner" one of the root filesystem.
var filesMounts = []parse.GuestMount{
	{Device: "0:50", Root: "/", Target: "/"},
	{Device: "0:51", Root: "/", Target: "/srv/photos"},
	{Device: "0:52", Root: "/", Target: "/srv/docs"},
	{Device: "0:40", Root: "/media", Target: "/srv/media"},
	{Device: "0:53", Root: "/", Target: "/srv/tmp"},
	{Device: "0:54", Root: "/", Target: "/var/lib/docker"},
	{Device: "0:55", Root: "/", Target: "/srv/photos/raw"},
	{Device: "0:40", Root: "/docs", Target: "/srv/docs/shared"},
	{Device: "8:3", Root: "/samba", Target: "/mnt/samba"},
	{Device: "0:61", Root: "/", Target: "/proc"},
	{Device: "0:70", Root: "/", Target: "/opt/volumes/nfs/_data"},
	{Device: "0:40", Root: "/media/films", Target: "/opt/volumes/bound/_data"},
	{Device: "0:50", Root: "/opt/data", Target: "/opt/volumes/inner/_data"},
	{Device: "0:99", Root: "/", Target: "/mnt/nas"},
	{Device: "0:99", Root: "/", Target: "/mnt/twice"},
	{Device: "0:50", Root: "/x", Target: "/mnt/twice"},
}

func bind(src string) parse.ContainerMount {
	return parse.ContainerMount{Type: "bind", Source: src, Destination: "/data"}
}

func volume(src string) parse.ContainerMount {
	return parse.ContainerMount{Type: "volume", Name: "v", Source: src, Destination: "/data", Driver: "local"}
}

func TestBackupOfAContainersMount(t *testing.T) {
	for _, tc := range []struct {
		name           string
		m              parse.ContainerMount
		want, on, says string
	}{
		{"root filesystem", bind("/etc/app"), "yes", "rootfs", "38h"},
		{"trailing slash and dots", bind("/etc//app/../app/"), "yes", "rootfs", ""},
		{"volume without backup=1", bind("/srv/photos/2026"), "no", "mp0", "without backup=1"},
		{"the mount point itself", bind("/srv/docs"), "unknown", "mp1", "/srv/docs/shared"},
		{"backup=1", bind("/srv/docs/paper"), "yes", "mp1", ""},
		{"bind mount of the node", bind("/srv/media/films"), "no", "mp2", "never in a backup"},
		{"backup=0", bind("/srv/tmp/x"), "no", "mp3", "backup=0"},
		{"a name that only begins alike", bind("/srv/photos2"), "yes", "rootfs", ""},
		{"nested volume with backup=1", bind("/srv/photos/raw/a"), "yes", "mp5", ""},
		{"nested bind mount with backup=1", bind("/srv/docs/shared/a"), "no", "mp6", "never in a backup"},
		{"raw mount entry", bind("/mnt/samba/x"), "no", "lxc.mount.entry", "never in a backup"},
		{"docker's own disk", volume("/var/lib/docker/volumes/v/_data"), "no", "mp4", "without backup=1"},
		{"a parent of what is left out", bind("/srv"), "unknown", "rootfs", "/srv/docs/shared"},
		{"NFS mounted inside", bind("/mnt/nas/films"), "no", "", "mounted inside the guest at /mnt/nas"},
		{"two mounts at one place", bind("/mnt/twice/a"), "unknown", "", "several filesystems"},
		{"volume that is NFS", volume("/opt/volumes/nfs/_data"), "no", "", "mounted inside"},
		{"volume that is a bind mount", volume("/opt/volumes/bound/_data"), "no", "mp2", "never in a backup"},
		{"volume bound to the root filesystem", volume("/opt/volumes/inner/_data"), "yes", "rootfs", ""},
		{"plain volume", volume("/opt/volumes/plain/_data"), "yes", "rootfs", ""},
		{"snap", volume("/var/snap/docker/common/var-lib-docker/volumes/v/_data"), "unknown", "rootfs", "snap"},
		{"driver", parse.ContainerMount{Type: "volume", Name: "v", Source: "/var/lib/docker/plugins/x", Driver: "rclone"}, "unknown", "", "driver rclone"},
		{"tmpfs", parse.ContainerMount{Type: "tmpfs", Destination: "/t"}, "no", "", "memory"},
		{"cluster volume", parse.ContainerMount{Type: "cluster", Name: "c"}, "unknown", "", "type cluster"},
		{"no path", parse.ContainerMount{Type: "volume", Name: "v", Driver: "local"}, "unknown", "", "no path"},
		{"socket", bind("/var/run/docker.sock"), "no", "", "running system"},
		{"temporary", bind("/tmp/cache"), "no", "rootfs", "/tmp"},
		{"temporary by a longer name", bind("/tmpfiles"), "yes", "rootfs", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := GuestFiles{Kind: "lxc", Config: lxcConfig(t, filesCT), Mounts: filesMounts, Backup: covered(archive("lxc", 38), archive("lxc", 62)), Judged: judgedAt}
			b := BackupOf(tc.m, true, nil, g)
			if b.InBackup != tc.want || b.GuestVolume != tc.on || !strings.Contains(b.Reason, tc.says) {
				t.Errorf("%+v", b)
			}
			if (b.ArchiveAgeS != nil) != (tc.want == "yes") {
				t.Errorf("archive of %s: %+v", tc.want, b)
			}
			if tc.want == "yes" && tc.m.Type == "bind" != (b.Assumes != "") {
				t.Errorf("assumes %q", b.Assumes)
			}
		})
	}
}

// What is known of the jobs and archives decides the end of the chain.
func TestBackupOfTheChainsEnd(t *testing.T) {
	old := archive("lxc", 24*300)
	failed := archive("lxc", 1)
	failed.Verification = parse.VerifyFailed
	future := archive("lxc", -48)
	undated := parse.Archive{Type: "lxc"}
	for _, tc := range []struct {
		name       string
		backup     BackupState
		want, says string
		ageHours   int
	}{
		{"archive", covered(archive("lxc", 5)), "yes", "job nightly", 5},
		{"the newest counts", covered(archive("lxc", 50), archive("lxc", 5), archive("lxc", 9)), "yes", "5h", 5},
		{"no job, but an archive", BackupState{Archives: []parse.Archive{old}}, "yes", "no enabled job", 7200},
		{"job, no archive", covered(), "no", "no archive of it yet", 0},
		{"nothing", BackupState{}, "no", "no enabled backup job", 0},
		{"a storage was not read", BackupState{Cover: covered().Cover, Unread: []string{"pbs"}}, "unknown", "pbs", 0},
		{"an archive, and a storage that was not read", BackupState{Cover: covered().Cover, Archives: []parse.Archive{archive("lxc", 30)}, Unread: []string{"pbs"}}, "yes", "newer one may be on pbs", 30},
		{"a storage is disabled", BackupState{Cover: covered().Cover, Disabled: []string{"old"}}, "unknown", "disabled: old", 0},
		{"an archive, and a storage that is disabled", BackupState{Cover: covered().Cover, Archives: []parse.Archive{archive("lxc", 30)}, Disabled: []string{"old"}}, "yes", "", 30},
		{"a folder that no storage names", BackupState{Cover: Cover{Jobs: []parse.BackupJob{{ID: "f", Enabled: true, DumpDir: "/mnt/x"}}}}, "unknown", "job f writes into a folder", 0},
		{"an archive of a VM that had the number", covered(archive("qemu", 5)), "no", "no archive", 0},
		{"only a failed verification", covered(failed), "no", "no archive", 0},
		{"a failed one and an older good one", covered(failed, archive("lxc", 25)), "yes", "", 25},
		{"a time in the future", covered(future), "no", "", 0},
		{"no time", covered(undated), "no", "", 0},
		{"nothing is known", BackupState{Problem: "the cluster's storages could not be read"}, "unknown", "could not be read", 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := GuestFiles{Kind: "lxc", Config: lxcConfig(t, "rootfs: local:130/vm-130-disk-0.raw,size=8G\n"), Mounts: filesMounts[:1], Backup: tc.backup, Judged: judgedAt}
			b := BackupOf(volume("/var/lib/docker/volumes/v/_data"), true, nil, g)
			if b.InBackup != tc.want || !strings.Contains(b.Reason, tc.says) {
				t.Errorf("%+v", b)
			}
			if tc.want == "yes" && (b.ArchiveAgeS == nil || *b.ArchiveAgeS != int64(tc.ageHours)*3600) {
				t.Errorf("age %v", b.ArchiveAgeS)
			}
		})
	}
}

// Yes is never said of what was not looked at.
func TestBackupIsUnknownWithoutEvidence(t *testing.T) {
	cfg := lxcConfig(t, "rootfs: local:130/vm-130-disk-0.raw,size=8G\n")
	whole := GuestFiles{Kind: "lxc", Config: cfg, Mounts: filesMounts[:1], Backup: covered(archive("lxc", 5)), Judged: judgedAt}
	m := volume("/var/lib/docker/volumes/v/_data")
	if b := BackupOf(m, true, nil, whole); b.InBackup != BackupYes {
		t.Fatalf("with evidence: %+v", b)
	}
	for _, tc := range []struct {
		name  string
		inUse bool
		g     GuestFiles
	}{
		{"no mount table", true, GuestFiles{Kind: "lxc", Config: cfg, Backup: whole.Backup, Judged: judgedAt}},
		{"an empty mount table", true, GuestFiles{Kind: "lxc", Config: cfg, Mounts: []parse.GuestMount{}, Backup: whole.Backup, Judged: judgedAt}},
		{"no configuration", true, GuestFiles{Kind: "lxc", Mounts: whole.Mounts, Backup: whole.Backup, Judged: judgedAt}},
		{"a docker host", true, GuestFiles{Host: true, Judged: judgedAt}},
		{"nobody uses the volume now", false, whole},
	} {
		if b := BackupOf(m, tc.inUse, nil, tc.g); b.InBackup != BackupUnknown || b.Reason == "" {
			t.Errorf("%s: %+v", tc.name, b)
		}
	}
}

// A symbolic link may lead to what is mounted inside the guest, and a place for
// mounts may be empty only now.
func TestBackupOfAPathThatMayLeadElsewhere(t *testing.T) {
	g := GuestFiles{Kind: "lxc", Config: lxcConfig(t, "rootfs: local:130/vm-130-disk-0.raw,size=8G\n"), Mounts: filesMounts[:1], Backup: covered(archive("lxc", 5)), Judged: judgedAt}
	if b := BackupOf(bind("/opt/app"), true, nil, g); b.InBackup != BackupYes || b.Assumes != "" {
		t.Errorf("nothing else is mounted: %+v", b)
	}
	if b := BackupOf(bind("/mnt/nas/films"), false, nil, g); b.InBackup != BackupUnknown {
		t.Errorf("nobody uses it now: %+v", b)
	}
	g.Mounts = append(g.Mounts[:1:1], parse.GuestMount{Device: "0:99", Root: "/", Target: "/mnt/nas"})
	if b := BackupOf(bind("/opt/app"), true, nil, g); b.InBackup != BackupYes || !strings.Contains(b.Assumes, "/mnt/nas") {
		t.Errorf("NFS is mounted: %+v", b)
	}
}

func TestOtherJobs(t *testing.T) {
	jobs := []parse.BackupJob{{ID: "a", Enabled: true, All: true, Schedule: "02:00"}, {ID: "b", All: true, Schedule: "02:00"}, {ID: "c", Enabled: true, All: true}, {ID: "d", VMIDs: []int{9}}}
	var got []string
	for _, j := range OtherJobs(jobs, JobGuest{VMID: 130, Node: "pve1"}) {
		got = append(got, j.ID)
	}
	if strings.Join(got, " ") != "b c" {
		t.Errorf("%v", got)
	}
}

// Containers that were made after the archive may have made their data then.
func TestBackupOfDataThatMayBeNewer(t *testing.T) {
	g := GuestFiles{Kind: "lxc", Config: lxcConfig(t, "rootfs: local:130/vm-130-disk-0.raw,size=8G\n"), Mounts: filesMounts[:1], Backup: covered(archive("lxc", 5)), Judged: judgedAt}
	m := volume("/var/lib/docker/volumes/v/_data")
	before, after := judgedAt.Add(-6*time.Hour), judgedAt.Add(-4*time.Hour)
	if b := BackupOf(m, true, &before, g); b.InBackup != BackupYes || b.Assumes != "" {
		t.Errorf("made before: %+v", b)
	}
	if b := BackupOf(m, true, &after, g); b.InBackup != BackupYes || !strings.Contains(b.Assumes, "made after the archive") {
		t.Errorf("made after: %+v", b)
	}
}

func TestBackupOfAVMsMount(t *testing.T) {
	const all = "scsi0: local:200/vm-200-disk-0.qcow2,size=32G\nscsi1: tank:vm-200-disk-1,size=100G\nide2: local:iso/x.iso,media=cdrom\nefidisk0: local:200/vm-200-disk-2.qcow2\nunused0: tank:vm-200-disk-9\n"
	for _, tc := range []struct {
		name, config string
		m            parse.ContainerMount
		want, says   string
	}{
		{"every disk", all, volume("/var/lib/docker/volumes/v/_data"), "yes", "every disk"},
		{"every disk, a path", all, bind("/opt/app"), "yes", ""},
		{"every disk, a place of network mounts", all, bind("/mnt/nas/films"), "unknown", "network filesystem"},
		{"one is left out", all + "scsi2: tank:vm-200-disk-3,backup=0,size=1T\n", volume("/var/lib/docker/volumes/v/_data"), "unknown", "scsi2"},
		{"none is in", "scsi0: local:200/vm-200-disk-0.qcow2,backup=0,size=32G\n", bind("/opt/app"), "no", "backup=0"},
		{"no disk", "memory: 512\n", bind("/opt/app"), "unknown", "no disk"},
		{"shared directory", all + "virtiofs0: films\n", bind("/opt/app"), "unknown", "virtiofs"},
		{"older than the VM", all + "meta: creation-qemu=9.0.2,ctime=1795960000\n", bind("/opt/app"), "no", "no archive"},
		{"younger than the VM", all + "meta: creation-qemu=9.0.2,ctime=1736000000\n", bind("/opt/app"), "yes", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := GuestFiles{Kind: "qemu", Config: vmConfig(t, tc.config), Backup: covered(archive("qemu", 14)), Judged: judgedAt}
			b := BackupOf(tc.m, true, nil, g)
			if b.InBackup != tc.want || !strings.Contains(b.Reason, tc.says) {
				t.Errorf("%+v", b)
			}
			if (b.InBackup == BackupYes) != (b.Assumes != "") {
				t.Errorf("%s assumes %q", b.InBackup, b.Assumes)
			}
		})
	}
}

func TestExcludePath(t *testing.T) {
	const src = "/opt/stacks/media/config"
	for _, tc := range []struct {
		defaults, job []string
		want          string
	}{
		{nil, nil, "yes"},
		{[]string{"/var/cache"}, nil, "yes"},
		{[]string{"/opt/stacks"}, nil, "no"},
		{[]string{"/opt/stacks/"}, nil, "no"},
		{[]string{"/opt/*"}, nil, "no"},
		{[]string{"/opt/stacks/*/config"}, nil, "no"},
		{[]string{"/*"}, nil, "no"},
		{[]string{src + "/cache"}, nil, "unknown"},
		{[]string{"/opt/stacks/media/*/cache"}, nil, "unknown"},
		{[]string{"/opt/stacks/other/*/cache"}, nil, "yes"},
		{[]string{"*.log"}, nil, "unknown"},
		{[]string{"/opt/**/x"}, nil, "unknown"},
		{[]string{"/opt/[z"}, nil, "unknown"},
		{nil, []string{"/opt/stacks"}, "unknown"}, // one of two jobs
	} {
		b := covered(archive("lxc", 5))
		b.ExcludePaths = tc.defaults
		b.Cover.Jobs = append(b.Cover.Jobs, parse.BackupJob{ID: "weekly", ExcludePath: tc.job})
		g := GuestFiles{Kind: "lxc", Config: lxcConfig(t, "rootfs: local:130/vm-130-disk-0.raw,size=8G\n"), Mounts: filesMounts[:1], Backup: b, Judged: judgedAt}
		if got := BackupOf(bind(src), true, nil, g); got.InBackup != tc.want {
			t.Errorf("%v %v: %+v, want %s", tc.defaults, tc.job, got, tc.want)
		}
	}
	// A job that is disabled now may have made the archive.
	was := covered(archive("lxc", 5))
	was.Others = []parse.BackupJob{{ID: "old", ExcludePath: []string{"/opt"}}}
	if got := BackupOf(bind(src), true, nil, GuestFiles{Kind: "lxc", Config: lxcConfig(t, "rootfs: local:130/vm-130-disk-0.raw,size=8G\n"), Mounts: filesMounts[:1], Backup: was, Judged: judgedAt}); got.InBackup != BackupUnknown {
		t.Errorf("a disabled job leaves it out: %+v", got)
	}
	both := covered(archive("lxc", 5))
	both.Cover.Jobs[0].ExcludePath = []string{"/opt"}
	g := GuestFiles{Kind: "lxc", Config: lxcConfig(t, "rootfs: local:130/vm-130-disk-0.raw,size=8G\n"), Mounts: filesMounts[:1], Backup: both, Judged: judgedAt}
	if got := BackupOf(bind(src), true, nil, g); got.InBackup != BackupNo {
		t.Errorf("every job leaves it out: %+v", got)
	}
}

// Law: whatever the paths are, yes needs an area that backups contain and an
// archive; a path on an excluded area is never yes.
func FuzzBackupOf(f *testing.F) {
	f.Add("/srv/photos/a", true, "bind")
	f.Add("/srv/../srv/media", true, "volume")
	f.Add("//opt", false, "volume")
	cfg := lxcConfig(f, filesCT)
	f.Fuzz(func(t *testing.T, src string, inUse bool, kind string) {
		m := parse.ContainerMount{Type: kind, Source: src, Driver: "local"}
		g := GuestFiles{Kind: "lxc", Config: cfg, Mounts: filesMounts, Backup: covered(archive("lxc", 5)), Judged: judgedAt}
		b := BackupOf(m, inUse, nil, g)
		switch b.InBackup {
		case BackupYes:
			if b.GuestVolume != "rootfs" && b.GuestVolume != "mp1" && b.GuestVolume != "mp5" || b.ArchiveAt == "" {
				t.Errorf("%q: %+v", src, b)
			}
		case BackupNo, BackupUnknown:
			if b.Reason == "" {
				t.Errorf("%q: no reason", src)
			}
		default:
			t.Errorf("%q: %q", src, b.InBackup)
		}
		if b := BackupOf(m, inUse, nil, GuestFiles{Kind: "lxc", Config: cfg, Mounts: filesMounts, Backup: covered(), Judged: judgedAt}); b.InBackup == BackupYes {
			t.Errorf("%q: yes without an archive", src)
		}
	})
}

// A job whose storage is gone renews nothing, but may have made what is there.
func TestAble(t *testing.T) {
	b := BackupState{Cover: Cover{Jobs: []parse.BackupJob{{ID: "good", Storage: "nas"}, {ID: "gone", Storage: "old"}, {ID: "off", Storage: "usb"}, {ID: "default"}}}}
	b.Able([]parse.StorageConfig{{ID: "nas", Type: "dir", Content: []string{"backup"}}, {ID: "usb", Type: "dir", Disabled: true, Content: []string{"backup"}}}, "pve1")
	if got := jobNames(b.Cover); got != "default, good" || len(b.Others) != 2 {
		t.Errorf("%s; others %v", got, b.Others)
	}
}
