package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

// jobsFile is jobs.cfg as the form cluster-configs sends it: a disabled job with
// a list, one by pool, one without "enabled" that takes all but two on one node,
// and one that has no schedule and separates its list in three ways.
const jobsFile = `/etc/pve/jobs.cfg:vzdump: backup-1a2b
/etc/pve/jobs.cfg:	enabled 0
/etc/pve/jobs.cfg:	node pve-a
/etc/pve/jobs.cfg:	schedule thu 07:30
/etc/pve/jobs.cfg:	storage nas
/etc/pve/jobs.cfg:	vmid 102
/etc/pve/jobs.cfg:vzdump: backup-3c4d
/etc/pve/jobs.cfg:	enabled 1
/etc/pve/jobs.cfg:	pool prod
/etc/pve/jobs.cfg:	schedule 21:00
/etc/pve/jobs.cfg:	storage pbs
/etc/pve/jobs.cfg:vzdump: backup-5e6f
/etc/pve/jobs.cfg:	all 1
/etc/pve/jobs.cfg:	exclude 101,103
/etc/pve/jobs.cfg:	node pve-b
/etc/pve/jobs.cfg:	schedule sat 02:00
/etc/pve/jobs.cfg:	storage nas
/etc/pve/jobs.cfg:vzdump: backup-7788
/etc/pve/jobs.cfg:	enabled 1
/etc/pve/jobs.cfg:	storage nas
/etc/pve/jobs.cfg:	vmid 104, 105;999
`

func TestCoverOf(t *testing.T) {
	configs, err := parse.ParseClusterConfigs([]byte(jobsFile))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		guest  JobGuest
		jobs   []string
		passed []PassedJob
		every  time.Duration
	}{
		{"member of the pool", JobGuest{101, "pve-a", "prod"}, []string{"backup-3c4d"}, []PassedJob{{"backup-5e6f", "excludes it"}}, 24 * time.Hour},
		{"only a disabled job", JobGuest{102, "pve-a", ""}, []string{}, []PassedJob{{"backup-1a2b", "is disabled"}, {"backup-5e6f", "takes only what is on node pve-b"}}, 0},
		{"in a pool inside the job's pool", JobGuest{103, "pve-b", "prod/db"}, []string{}, []PassedJob{{"backup-3c4d", "takes pool prod, not the pool prod/db inside it"}, {"backup-5e6f", "excludes it"}}, 0},
		{"only a job without a schedule", JobGuest{104, "pve-a", ""}, []string{}, []PassedJob{{"backup-5e6f", "takes only what is on node pve-b"}, {"backup-7788", "has no schedule, so it never runs by itself"}}, 0},
		{"on the job's node", JobGuest{105, "pve-b", ""}, []string{"backup-5e6f"}, []PassedJob{{"backup-7788", "has no schedule, so it never runs by itself"}}, 7 * 24 * time.Hour},
		{"named by none", JobGuest{106, "pve-a", ""}, []string{}, []PassedJob{{"backup-5e6f", "takes only what is on node pve-b"}}, 0},
		{"a pool whose name only begins alike", JobGuest{107, "pve-a", "production"}, []string{}, []PassedJob{{"backup-5e6f", "takes only what is on node pve-b"}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := CoverOf(configs.BackupJobs, c.guest)
			jobs := []string{}
			for _, j := range got.Jobs {
				jobs = append(jobs, j.ID)
			}
			every, _ := got.Interval()
			if d := cmp.Diff(c.jobs, jobs) + cmp.Diff(c.passed, got.Passed) + cmp.Diff(c.every, every); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestExcluded(t *testing.T) {
	// The configuration of a container with every kind of mount point.
	const files = `hostname: files
mp0: tank:subvol-130-disk-1,mp=/srv/photos,size=500G
mp1: tank:subvol-130-disk-2,mp=/srv/docs,backup=1,size=50G
mp2: /tank/media,mp=/srv/media
mp3: tank:subvol-130-disk-3,mp=/srv/tmp,backup=0,size=20G
rootfs: local-zfs:subvol-130-disk-0,mountoptions=noatime,size=12G
unused0: tank:subvol-130-disk-9
lxc.mount.entry: /mnt/samba mnt/samba none bind,create=dir 0 0
lxc.mount.entry: /dev/dri dev/dri none bind,optional,create=dir 0 0
lxc.mount.entry: /dev/sdb1 srv/disk ext4 defaults 0 0
lxc.mount.entry: tmpfs tmp tmpfs defaults 0 0
`
	const vm = `bios: seabios
efidisk0: local-lvm:vm-140-disk-0,size=4M
ide2: local:iso/debian.iso,media=cdrom
scsi0: local-lvm:vm-140-disk-1,size=32G
scsi1: tank:vm-140-disk-2,backup=0,size=1T
scsi2: none,media=cdrom
scsi3: local-lvm:vm-140-cloudinit,media=cdrom
`
	for _, c := range []struct {
		kind, text string
		want       []ExcludedVolume
		severities []Severity
	}{
		{"lxc", files, []ExcludedVolume{
			{"mp0", "tank:subvol-130-disk-1", Ptr(int64(500 << 30)), "a mount point without backup=1", false},
			{"mp2", "/tank/media", nil, "bound from the node: never in a backup", true},
			{"mp3", "tank:subvol-130-disk-3", Ptr(int64(20 << 30)), "backup=0", true},
			{"lxc.mount.entry", "/mnt/samba", nil, "a raw mount entry: never in a backup", true},
			{"lxc.mount.entry", "/dev/sdb1", nil, "a raw mount entry: never in a backup", true},
		}, []Severity{Warning, Info, Info, Info, Info}},
		{"qemu", vm, []ExcludedVolume{
			{"efidisk0", "local-lvm:vm-140-disk-0", Ptr(int64(4 << 20)), "an EFI disk without bios=ovmf", true},
			{"scsi1", "tank:vm-140-disk-2", Ptr(int64(1 << 40)), "backup=0", true},
		}, []Severity{Info, Info}},
	} {
		t.Run(c.kind, func(t *testing.T) {
			cfg, err := parse.GuestConfigFile(c.kind, "pve-a", 130, []byte(c.text))
			if err != nil {
				t.Fatal(err)
			}
			got := Excluded(c.kind, cfg.Current)
			if d := cmp.Diff(c.want, got); d != "" {
				t.Error(d)
			}
			var severities []Severity
			for _, f := range (Judge{}).ExcludedFindings("guest/130", got) {
				severities = append(severities, f.Severity)
			}
			if d := cmp.Diff(c.severities, severities); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestStaleBackup(t *testing.T) {
	job := func(schedule string) Cover { return Cover{Jobs: []parse.BackupJob{{Schedule: schedule}}} }
	own := Judge{Limits: map[string]Limit{"BACKUP_STALE": {Warning: Ptr(12.0)}}}
	for _, c := range []struct {
		name      string
		judge     Judge
		cover     Cover
		hours     float64
		severity  Severity
		threshold string
	}{
		{"fresh", Judge{}, Cover{}, 36, "", ""},
		{"old without a job", Judge{}, Cover{}, 158, Warning, "> 36 hours (default)"},
		{"very old without a job", Judge{}, Cover{}, 168.1, Critical, "> 168 hours (default)"},
		{"one week with a weekly job", Judge{}, job("sun 01:00"), 158, "", ""},
		{"eleven days with a weekly job", Judge{}, job("sun 01:00"), 264, Warning, "> 252 hours (from the backup job's interval of 7d)"},
		{"four days with a daily job", Judge{}, job("02:30"), 96, Critical, "> 72 hours (from the backup job's interval of 24h00m)"},
		{"the profile's own limit", own, job("sun 01:00"), 13, Warning, "> 12 hours (profile)"},
		{"a schedule that nobody can read", Judge{}, job("every full moon"), 37, Warning, "> 36 hours (default)"},
	} {
		t.Run(c.name, func(t *testing.T) {
			interval, known := c.cover.Interval()
			f := c.judge.staleAfter("guest/101", time.Duration(c.hours*float64(time.Hour)), interval, known)
			switch {
			case f == nil && c.severity != "":
				t.Error("no finding")
			case f != nil && (f.Severity != c.severity || f.Threshold != c.threshold):
				t.Errorf("got %s, %s", f.Severity, f.Threshold)
			}
		})
	}
}

func TestInterval(t *testing.T) {
	const day = 24 * time.Hour
	for in, want := range map[string]time.Duration{
		"02:30": day, "sat 03:15": 7 * day, "sun 01:00": 7 * day, "SAT,sun 2:00": 6 * day, "mon..fri 21:00": 3 * day, "fri..mon 21:00": 4 * day,
		"*/15": 15 * time.Minute, "0/30": 30 * time.Minute, "*:0/15": 15 * time.Minute, "22": time.Hour, "*:*": time.Minute,
		"8..17,22:0/15": 9*time.Hour + 15*time.Minute, "6,18:00": 12 * time.Hour, "mon": 7 * day, "*-*-1 04:00": 31 * day, "*-1..3-1 04:00": 306 * day,
		"daily": day, "hourly": time.Hour, "weekly": 7 * day, "monthly": 31 * day, "yearly": 366 * day, "quarterly": 92 * day,
		"02:30:00": day, "mon,tue,wed,thu,fri,sat,sun 02:30": day, "Monday 00:00": 7 * day, "*-*-29 01:00 UTC": 59 * day,
	} {
		if got, ok := Interval(in); !ok || got != want {
			t.Errorf("%s: got %s, %v, want %s", in, got, ok, want)
		}
	}
	for _, in := range []string{"", "never", "25:00", "02:60", "mo 02:30", "2026-1-1 00:00", "02:30 sat", "*/0", "1..", "5..1", "*-*-31/", "1:2:3:4", "02:30 03:30", "*-2-30 01:00"} {
		if got, ok := Interval(in); ok {
			t.Errorf("%q: got %s, want none", in, got)
		}
	}
}

func FuzzInterval(f *testing.F) {
	for _, s := range []string{"02:30", "sat 03:15", "*:0/15", "8..17,22:0/15", "*-*-1 04:00", "fri..mon", "weekly", "1/", "-", ":", "a-"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		d, ok := Interval(s)
		if ok != (d > 0) || d%time.Minute != 0 || d > 9*366*24*time.Hour {
			t.Errorf("%q: %s, %v", s, d, ok)
		}
		if again, ok2 := Interval("  " + s + " "); again != d || ok2 != ok {
			t.Errorf("%q: blanks around it change the answer", s)
		}
	})
}
