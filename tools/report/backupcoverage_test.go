package report

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

// coverStorages has a shared storage, a local one of a single node, a disabled
// one, one without backups and a backup server.
const coverStorages = `/etc/pve/storage.cfg:nfs: nas
/etc/pve/storage.cfg:	export /x
/etc/pve/storage.cfg:	path /mnt/pve/nas
/etc/pve/storage.cfg:	server 10.0.0.5
/etc/pve/storage.cfg:	content backup
/etc/pve/storage.cfg:pbs: pbs
/etc/pve/storage.cfg:	datastore main
/etc/pve/storage.cfg:	server 10.0.0.6
/etc/pve/storage.cfg:dir: local
/etc/pve/storage.cfg:	path /var/lib/vz
/etc/pve/storage.cfg:	content backup,iso
/etc/pve/storage.cfg:dir: usb
/etc/pve/storage.cfg:	path /mnt/usb
/etc/pve/storage.cfg:	content backup
/etc/pve/storage.cfg:	nodes pve-b
/etc/pve/storage.cfg:dir: old
/etc/pve/storage.cfg:	disable
/etc/pve/storage.cfg:	path /mnt/old
/etc/pve/storage.cfg:	content backup
/etc/pve/storage.cfg:dir: isos
/etc/pve/storage.cfg:	path /mnt/isos
/etc/pve/storage.cfg:	content iso
`

var coverNow = time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC) // a Sunday

// covering makes a view of a running container 101 on pve-a, in pool prod, with
// the jobs given (the lines of jobs.cfg) and archives of so many hours ago on
// nas. Every backup storage was read.
func covering(t *testing.T, jobs string, hours ...float64) CoverageView {
	t.Helper()
	file := coverStorages
	for line := range strings.Lines(jobs) {
		file += "/etc/pve/jobs.cfg:" + line
	}
	configs, err := parse.ParseClusterConfigs([]byte(file))
	if err != nil {
		t.Fatal(err)
	}
	content := &parse.StorageContent{}
	for _, h := range hours {
		at := coverNow.Add(-time.Duration(h * float64(time.Hour)))
		content.Archives = append(content.Archives, parse.Archive{Volume: "nas:backup/x" + at.Format("150405"), VMID: Ptr(101), Type: "lxc", Created: &at})
	}
	empty := &parse.StorageContent{}
	return CoverageView{
		BackupView: BackupView{
			Guests: []Guest{{VMID: 101, Type: "lxc", Node: "pve-a", Status: Running, Pool: "prod"}},
			Jobs:   configs.BackupJobs, Now: coverNow, Zone: time.UTC, Runs: map[int]*BackupRun{},
			Sources: []BackupSource{{Storage: "nas", Node: "pve-a", Shared: true, Content: content}, {Storage: "pbs", Node: "pve-a", Shared: true, Content: empty},
				{Storage: "local", Node: "pve-a", Content: empty}, {Storage: "local", Node: "pve-b", Content: empty}, {Storage: "usb", Node: "pve-b", Content: empty}},
		},
		State:    &parse.State{Members: parse.Members{Node: "pve-a", Nodes: []parse.Member{{Name: "pve-a"}, {Name: "pve-b"}}}},
		Storages: configs.Storages, Disabled: []string{"old"}, JobsRead: true, PoolsRead: true, Asked: true,
	}
}

func job(lines ...string) string {
	return "vzdump: j\n\t" + strings.Join(lines, "\n\t") + "\n"
}

func TestVerdictOfEveryKindOfJob(t *testing.T) {
	const daily = "schedule 02:30"
	for _, c := range []struct {
		name, jobs    string
		hours         []float64
		change        func(v *CoverageView)
		verdict, why  string   // why: a part of the reason
		codes         []string // findings about the guest or the job, BACKUP_ left out
		interval      time.Duration
		ofNoJobsCover bool
	}{
		{name: "all, daily", jobs: job("all 1", daily, "storage nas"), hours: []float64{13.5}, verdict: "fresh", interval: 24 * time.Hour},
		{name: "all, daily, missed", jobs: job("all 1", daily, "storage nas"), hours: []float64{37.5}, verdict: "stale", why: "> 36 hours (from the backup job's interval of 24h00m)", codes: []string{"STALE"}},
		{name: "all, none yet", jobs: job("all 1", daily, "storage nas"), verdict: "never", why: "no archive on any backup storage", codes: []string{"NONE"}},
		{name: "without enabled is enabled", jobs: job("all", daily, "storage nas"), hours: []float64{1}, verdict: "fresh"},
		{name: "no job at all", hours: []float64{1}, verdict: "uncovered", why: "there is no backup job", codes: []string{"UNCOVERED"}},
		{name: "disabled", jobs: job("enabled 0", "all 1", daily, "storage nas"), hours: []float64{1}, verdict: "uncovered", why: "is disabled", codes: []string{"JOB_DISABLED", "UNCOVERED"}},
		{name: "no schedule", jobs: job("all 1", "storage nas"), hours: []float64{1}, verdict: "uncovered", why: "no schedule", codes: []string{"JOB_NO_SCHEDULE", "UNCOVERED"}},
		{name: "a schedule that nobody can read", jobs: job("all 1", "storage nas", "schedule every full moon"), hours: []float64{1}, verdict: "fresh", codes: []string{"JOB_NO_SCHEDULE"}},
		{name: "a schedule that is over", jobs: job("all 1", "storage nas", "schedule 2024-12-24 02:00"), hours: []float64{1}, verdict: "uncovered", why: "a schedule that is over", codes: []string{"UNCOVERED"}},
		{name: "excluded", jobs: job("all 1", "exclude 101", daily, "storage nas"), verdict: "uncovered", why: "excludes it", codes: []string{"UNCOVERED"}},
		{name: "exclude without all", jobs: job("exclude 102", daily, "storage nas"), hours: []float64{1}, verdict: "fresh"},
		{name: "its pool", jobs: job("pool prod", daily, "storage nas"), hours: []float64{1}, verdict: "fresh"},
		{name: "the pool above its pool", jobs: job("pool prod", daily, "storage nas"), change: pool("prod/db"), verdict: "uncovered", why: "not the pool prod/db inside it", codes: []string{"UNCOVERED"}},
		{name: "another pool", jobs: job("pool dev", daily, "storage nas"), verdict: "uncovered", why: "no backup job names it (1 job read)", codes: []string{"UNCOVERED"}},
		{name: "a pool job, pools not read", jobs: job("pool dev", daily, "storage nas"), change: func(v *CoverageView) { v.PoolsRead = false; pool("")(v) }, verdict: "unknown", why: "pools could not be read"},
		{name: "a list", jobs: job("vmid 100, 101;999", daily, "storage nas"), hours: []float64{1}, verdict: "fresh", codes: []string{"JOB_UNKNOWN_VMID", "JOB_UNKNOWN_VMID"}},
		{name: "its node", jobs: job("all 1", "node pve-a", daily, "storage nas"), hours: []float64{1}, verdict: "fresh"},
		{name: "another node", jobs: job("all 1", "node pve-b", daily, "storage nas"), verdict: "uncovered", why: "takes only what is on node pve-b", codes: []string{"UNCOVERED"}},
		{name: "a storage that does not exist", jobs: job("all 1", daily, "storage gone"), hours: []float64{1}, verdict: "uncovered", why: "gone, which does not exist", codes: []string{"JOB_BAD_STORAGE", "UNCOVERED"}},
		{name: "a disabled storage", jobs: job("all 1", daily, "storage old"), verdict: "uncovered", why: "old, which is disabled", codes: []string{"JOB_BAD_STORAGE", "UNCOVERED"}},
		{name: "a storage without backups", jobs: job("all 1", daily, "storage isos"), verdict: "uncovered", why: "isos, which may hold no backups", codes: []string{"JOB_BAD_STORAGE", "UNCOVERED"}},
		{name: "a storage of another node", jobs: job("all 1", daily, "storage usb"), verdict: "uncovered", why: "usb, which node pve-a does not have", codes: []string{"JOB_BAD_STORAGE", "UNCOVERED"}},
		{name: "the node's default storage", jobs: job("all 1", daily), hours: []float64{1}, change: func(v *CoverageView) {
			v.Defaults = map[string]*parse.VzdumpDefaults{"pve-a": {Storage: "nas"}}
		}, verdict: "fresh"},
		{name: "a bad default storage", jobs: job("all 1", daily), change: func(v *CoverageView) {
			v.Defaults = map[string]*parse.VzdumpDefaults{"pve-a": {Storage: "isos"}}
		}, verdict: "uncovered", why: "isos, which may hold no backups", codes: []string{"JOB_BAD_STORAGE", "UNCOVERED"}},
		{name: "no storage, default not read", jobs: job("all 1", daily), verdict: "unknown", why: "the node's own default could not be read"},
		{name: "into a folder", jobs: job("all 1", daily, "dumpdir /srv"), verdict: "unknown", why: "a folder that no storage names"},

		{name: "one storage not read, no archive", jobs: job("all 1", daily, "storage nas"), change: unread(1), verdict: "unknown", why: "could not be read: old (disabled), pbs"},
		{name: "one storage not read, fresh", jobs: job("all 1", daily, "storage nas"), hours: []float64{1}, change: unread(1), verdict: "fresh"},
		{name: "another storage not read, old", jobs: job("all 1", daily, "storage nas"), hours: []float64{100}, change: unread(1), verdict: "stale", codes: []string{"STALE"}},
		{name: "the job's storage not read, old", jobs: job("all 1", daily, "storage pbs"), hours: []float64{100}, change: unread(1), verdict: "unknown", why: "a newer one may be on"},
		{name: "jobs not read", change: func(v *CoverageView) { v.JobsRead = false }, verdict: "unknown", why: "jobs could not be read"},
		{name: "archives not asked for", jobs: job("all 1", daily, "storage nas"), change: func(v *CoverageView) { v.Asked, v.Sources = false, nil }, verdict: "unknown", why: "not asked for"},
		{name: "archives not asked for, uncovered", change: func(v *CoverageView) { v.Asked, v.Sources = false, nil }, verdict: "uncovered", codes: []string{"UNCOVERED"}},

		{name: "weekly, six days", jobs: job("all 1", "schedule sat 03:15", "storage nas"), hours: []float64{158}, verdict: "fresh", interval: 7 * 24 * time.Hour},
		{name: "weekly, eleven days", jobs: job("all 1", "schedule sun 01:00", "storage nas"), hours: []float64{264}, verdict: "stale", codes: []string{"STALE"}},
		{name: "working days, seen on Sunday", jobs: job("all 1", "schedule mon..fri 02:30", "storage nas"), hours: []float64{61.5}, verdict: "fresh", interval: 72 * time.Hour},
		{name: "working days, Friday's is missing", jobs: job("all 1", "schedule mon..fri 02:30", "storage nas"), hours: []float64{85.5}, verdict: "stale", why: "interval of 24h00m", codes: []string{"STALE"}},
		{name: "working days, the zone is not known", jobs: job("all 1", "schedule mon..fri 02:30", "storage nas"), hours: []float64{85.5}, change: func(v *CoverageView) { v.Zone = nil }, verdict: "fresh", interval: 72 * time.Hour},
		{name: "working days, far east", jobs: job("all 1", "schedule mon..fri 02:30", "storage nas"), hours: []float64{70.5}, change: func(v *CoverageView) { v.Zone = time.FixedZone("", 9*3600) }, verdict: "fresh", interval: 72 * time.Hour},
		{name: "every two hours", jobs: job("all 1", "schedule */2:00", "storage nas"), hours: []float64{2.9}, verdict: "fresh", interval: 2 * time.Hour},
		{name: "every two hours, missed", jobs: job("all 1", "schedule */2:00", "storage nas"), hours: []float64{3.1}, verdict: "stale", codes: []string{"STALE"}},
		{name: "monthly", jobs: job("all 1", "schedule *-*-1 22:00", "storage nas"), hours: []float64{27 * 24}, verdict: "fresh", interval: 30 * 24 * time.Hour},
		{name: "before 7.1, with a day", jobs: job("all 1", "dow sat", "starttime 23:30", "storage nas"), hours: []float64{40}, verdict: "fresh", interval: 7 * 24 * time.Hour},
		{name: "before 7.1, several days", jobs: job("all 1", "dow mon;wed, fri", "starttime 23:30", "storage nas"), hours: []float64{40}, verdict: "fresh", interval: 72 * time.Hour},
		{name: "before 7.1, every day", jobs: job("all 1", "starttime 01:00", "storage nas"), hours: []float64{40}, verdict: "stale", codes: []string{"STALE"}},
		{name: "two jobs, the shorter counts", jobs: job("all 1", daily, "storage nas") + "vzdump: k\n\tall 1\n\tschedule sat 03:00\n\tstorage pbs\n", hours: []float64{48}, verdict: "stale", codes: []string{"STALE"}},

		{name: "the newest could not be verified", jobs: job("all 1", daily, "storage nas"), hours: []float64{39, 15}, change: func(v *CoverageView) {
			v.Sources[0].Content.Archives[1].Verification = parse.VerifyFailed
		}, verdict: "stale", codes: []string{"STALE", "VERIFY_FAILED"}},
		{name: "the only one could not be verified", jobs: job("all 1", daily, "storage nas"), hours: []float64{15}, change: func(v *CoverageView) {
			v.Sources[0].Content.Archives[0].Verification = parse.VerifyFailed
		}, verdict: "never", why: "1 archive, but none", codes: []string{"NONE", "VERIFY_FAILED"}},
		{name: "of a VM that had the number", jobs: job("all 1", daily, "storage nas"), hours: []float64{15}, change: func(v *CoverageView) {
			v.Sources[0].Content.Archives[0].Type = "qemu"
		}, verdict: "never", codes: []string{"NONE", "ORPHAN"}},
		{name: "a template", jobs: job("all 1", daily, "storage nas"), hours: []float64{59 * 24}, change: template, verdict: "fresh"},
		{name: "a template without a job", change: template, verdict: "uncovered", codes: []string{"UNCOVERED"}},
		{name: "the last run failed", jobs: job("all 1", daily, "storage nas"), hours: []float64{15}, change: func(v *CoverageView) {
			v.Runs[101] = &BackupRun{Node: "pve-a", Result: "failed", Failure: "exit code 2"}
		}, verdict: "fresh", codes: []string{"JOB_FAILED"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := covering(t, c.jobs, c.hours...)
			if c.change != nil {
				c.change(&v)
			}
			rows, _, findings := Judge{}.Coverages(v)
			r := rows[0]
			if r.Verdict != c.verdict || !strings.Contains(r.Reason, c.why) || (r.Reason == "") != (r.Verdict == CoverFresh) {
				t.Errorf("got %s because %q, want %s because … %s …", r.Verdict, r.Reason, c.verdict, c.why)
			}
			if c.interval != 0 && (r.IntervalS == nil || *r.IntervalS != int64(c.interval/time.Second)) {
				t.Errorf("got the interval %v, want %s", Seconds(r.IntervalS), c.interval)
			}
			codes := []string{}
			for _, f := range Findings(findings...) {
				if f.Code != "BACKUP_NO_RETENTION" {
					codes = append(codes, strings.TrimPrefix(f.Code, "BACKUP_"))
				}
			}
			slices.Sort(codes)
			if c.codes == nil {
				c.codes = []string{}
			}
			if d := cmp.Diff(c.codes, codes); d != "" {
				t.Error(d)
			}
			if r.Verdict == CoverNever && (len(r.Read) == 0 || !slices.Equal(r.NotRead, []string{"old (disabled)"})) {
				t.Errorf("never rests on %v, without %v", r.Read, r.NotRead)
			}
			if (len(r.Jobs) == 0) != (r.Verdict == CoverUncovered || c.why == "pools could not be read" || !v.JobsRead) {
				t.Errorf("verdict %s with the jobs %v", r.Verdict, r.Jobs)
			}
		})
	}
}

func pool(name string) func(v *CoverageView) {
	return func(v *CoverageView) { v.Guests[0].Pool = name }
}

func unread(i int) func(v *CoverageView) {
	return func(v *CoverageView) { v.Sources[i].Content, v.Sources[i].Reason = nil, "it is not active there" }
}

func template(v *CoverageView) { v.Guests[0].Template, v.Guests[0].Status = true, Stopped }

// The jobs of a public report: what each takes, and who is left.
func TestWhoIsCovered(t *testing.T) {
	configs, err := parse.ParseClusterConfigs([]byte(jobsFile + coverStorages))
	if err != nil {
		t.Fatal(err)
	}
	v := covering(t, "")
	v.Jobs, v.Guests = configs.BackupJobs, nil
	for _, g := range []JobGuest{{101, "pve-a", "prod"}, {102, "pve-a", ""}, {103, "pve-b", "prod/db"}, {104, "pve-a", ""}, {105, "pve-b", ""}, {106, "pve-a", ""}} {
		v.Guests = append(v.Guests, Guest{VMID: g.VMID, Node: g.Node, Pool: g.Pool, Type: "lxc", Status: Running})
	}
	rows, jobs, findings := Judge{}.Coverages(v)
	got := map[int][]string{}
	for _, r := range rows {
		if len(r.Jobs) > 0 {
			got[r.VMID] = r.Jobs
		}
	}
	if d := cmp.Diff(map[int][]string{101: {"backup-3c4d"}, 105: {"backup-5e6f"}}, got); d != "" {
		t.Error(d)
	}
	counts := map[string]int{}
	for _, f := range Findings(findings...) {
		counts[f.Code+" "+string(f.Severity)]++
	}
	want := map[string]int{
		"BACKUP_UNCOVERED warning": 4, "BACKUP_NONE critical": 2, "BACKUP_JOB_DISABLED warning": 1, "BACKUP_JOB_NO_SCHEDULE warning": 1,
		"BACKUP_JOB_UNKNOWN_VMID info": 1,
	}
	if d := cmp.Diff(want, counts); d != "" {
		t.Error(d)
	}
	takes := map[string]int{}
	for _, j := range jobs {
		takes[j.Job] = j.Guests
	}
	if d := cmp.Diff(map[string]int{"backup-1a2b": 1, "backup-3c4d": 1, "backup-5e6f": 1, "backup-7788": 2}, takes); d != "" {
		t.Error(d)
	}
}

func TestRetention(t *testing.T) {
	for _, c := range []struct {
		name, lines string
		defaults    string
		want        bool
	}{
		{"nothing anywhere", "storage nas", "", true},
		{"the job keeps some", "storage nas\n\tprune-backups keep-last=3", "", false},
		{"the job keeps all", "storage nas\n\tprune-backups keep-all=1", "", true},
		{"keep-all wins over a number", "storage nas\n\tprune-backups keep-all=1,keep-last=2", "", true},
		{"keep-all=0 and a number", "storage nas\n\tprune-backups keep-all=0,keep-last=2", "", false},
		{"the old form", "storage nas\n\tmaxfiles 3", "", false},
		{"the old form without a limit", "storage nas\n\tmaxfiles 0", "", true},
		{"removing is off", "storage nas\n\tprune-backups keep-last=3\n\tremove 0", "", true},
		{"the backup server prunes", "storage pbs", "", false},
		{"the node's default", "storage nas", "prune-backups: keep-daily=7\n", false},
		{"the node's default keeps all", "storage nas", "prune-backups: keep-all=1\n", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := covering(t, "vzdump: j\n\tall 1\n\tschedule 02:30\n\t"+c.lines+"\n", 1)
			d, _, err := parse.ParseVzdumpDefaults([]byte(c.defaults))
			if err != nil {
				t.Fatal(err)
			}
			v.Defaults = map[string]*parse.VzdumpDefaults{"pve-a": d}
			_, _, findings := Judge{}.Coverages(v)
			got := slices.ContainsFunc(Findings(findings...), func(f Finding) bool { return f.Code == "BACKUP_NO_RETENTION" })
			if got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}

// intervalAt and nextRun ask a schedule as it is written.
func intervalAt(schedule string, at time.Time) (time.Duration, bool) {
	c, ok := parseSchedule(schedule)
	if !ok {
		return 0, false
	}
	return c.gapAt(at)
}

func nextRun(schedule string, after time.Time) (time.Time, bool) {
	c, ok := parseSchedule(schedule)
	if !ok {
		return time.Time{}, false
	}
	return c.next(after)
}

func TestIntervalAt(t *testing.T) {
	at := func(s string) time.Time {
		m, err := time.Parse("2006-01-02 15:04", s)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	const day = 24 * time.Hour
	for _, c := range []struct {
		schedule, at string
		want         time.Duration
		next         string
	}{
		{"02:30", "2026-11-27 02:30", day, "2026-11-28 02:30"},
		{"mon..fri 02:30", "2026-11-27 02:30", 3 * day, "2026-11-30 02:30"},
		{"mon..fri 02:30", "2026-11-27 02:29", day, "2026-11-27 02:30"},
		{"sat 03:15", "2026-11-29 16:00", 7 * day, "2026-12-05 03:15"},
		{"*/2:00", "2026-11-29 23:10", 2 * time.Hour, "2026-11-30 00:00"},
		{"21..23/2:00", "2026-11-29 22:00", 2 * time.Hour, "2026-11-29 23:00"},
		{"21..23/2:00", "2026-11-29 23:00", 22 * time.Hour, "2026-11-30 21:00"},
		{"0/4:00", "2026-11-29 23:00", 4 * time.Hour, "2026-11-30 00:00"},
		{"mon,wed,fri", "2026-11-28 12:00", 3 * day, "2026-11-30 00:00"},
		{"*-*-1 22:00", "2027-02-10 00:00", 28 * day, "2027-03-01 22:00"},
		{"sat *-1..7 18:00", "2026-11-29 00:00", 28 * day, "2026-12-05 18:00"},
		{"*-2-29 00:00", "2026-11-29 00:00", 1461 * day, "2028-02-29 00:00"},
		{"weekly", "2026-11-29 00:00", 7 * day, "2026-11-30 00:00"},
		{"2026..2027-*-1 04:00", "2026-11-29 00:00", 30 * day, "2026-12-01 04:00"},
		{"8..17,22:0/15", "2026-11-29 17:50", 4*time.Hour + 15*time.Minute, "2026-11-29 22:00"},
	} {
		d, ok := intervalAt(c.schedule, at(c.at))
		next, ok2 := nextRun(c.schedule, at(c.at))
		if !ok || !ok2 || d != c.want || !next.Equal(at(c.next)) {
			t.Errorf("%s at %s: got %s, %v and %s, want %s and %s", c.schedule, c.at, d, ok, next, c.want, c.next)
		}
	}
	if run, ok := nextRun("2024-12-24 02:00", coverNow); ok {
		t.Errorf("a schedule of 2024 runs again at %s", run)
	}
	if _, ok := nextRun("*-2-30 01:00", coverNow); ok {
		t.Error("the 30th of February exists")
	}
}
