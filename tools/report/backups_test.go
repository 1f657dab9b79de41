package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

var backupsSeenAt = time.Date(2026, 11, 29, 16, 0, 0, 0, time.UTC)

func contentOfText(t *testing.T, text string) *parse.StorageContent {
	t.Helper()
	c, notes, err := parse.Content([]byte(text))
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	return &c
}

// judged returns the findings of a view as CODE severity subject.
func judged(v BackupView) []string {
	archives := v.Archives()
	out := []string{}
	for _, f := range Findings(Judge{}.BackupFindings(v, archives, v.Summaries(archives))...) {
		out = append(out, f.Code+" "+string(f.Severity)+" "+f.Subject)
	}
	return out
}

// The first storage is empty; the newest archives lie on the second.
const onTheNAS = `[{"content":"backup","ctime":1795399203,"format":"tar.zst","notes":"dns-1","size":912345678,"subtype":"lxc","vmid":101,"volid":"nas:backup/vzdump-lxc-101-2026_11_23-02_00_03.tar.zst"},
{"content":"backup","ctime":1795917603,"format":"vma.zst","protected":1,"size":5912345678,"subtype":"qemu","vmid":100,"volid":"nas:backup/vzdump-qemu-100-2026_11_29-02_00_03.vma.zst"}]`

func twoStorages(t *testing.T) BackupView {
	return BackupView{
		Guests: []Guest{{VMID: 100, Type: "qemu", Node: "pve-a"}, {VMID: 101, Type: "lxc", Node: "pve-a"}, {VMID: 102, Type: "lxc", Node: "pve-a"}},
		Sources: []BackupSource{
			{Storage: "local", Node: "pve-a", Content: contentOfText(t, `[]`)},
			{Storage: "nas", Node: "pve-a", Shared: true, Content: contentOfText(t, onTheNAS)},
		},
		Now: backupsSeenAt,
	}
}

func TestNewestBackupOverAllStorages(t *testing.T) {
	v := twoStorages(t)
	got := v.Summaries(v.Archives())
	want := []GuestBackups{
		{VMID: 100, Verdict: BackedUp, Archives: 1, NewestAt: "2026-11-29T02:00:03Z", NewestAgeS: Ptr(int64(50397)), NewestStorage: "nas"},
		{VMID: 101, Verdict: BackedUp, Archives: 1, NewestAt: "2026-11-23T02:00:03Z", NewestAgeS: Ptr(int64(568797)), NewestStorage: "nas"},
		{VMID: 102, Verdict: NoBackup},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if d := cmp.Diff([]string{"BACKUP_NONE critical guest/102", "BACKUP_STALE warning guest/101"}, judged(v)); d != "" {
		t.Error(d)
	}
	v.Jobs = []parse.BackupJob{{ID: "weekly", Enabled: true, Schedule: "mon 02:00", All: true, Storage: "nas"}}
	if d := cmp.Diff([]string{"BACKUP_NONE critical guest/102"}, judged(v)); d != "" {
		t.Errorf("with a weekly job: %s", d)
	}
}

// A storage that was not read turns none into unknown, and old into unsure.
func TestUnreadStorageMakesNoneUnknown(t *testing.T) {
	v := twoStorages(t)
	v.Sources = append(v.Sources, BackupSource{Storage: "pbs", Shared: true, Reason: "it is not active there"})
	got := v.Summaries(v.Archives())
	if got[2].Verdict != Unknown || !got[1].NewestUnsure || got[1].Verdict != BackedUp {
		t.Errorf("got %+v", got)
	}
	if d := cmp.Diff([]string{}, judged(v)); d != "" {
		t.Error(d)
	}
	v.Jobs = []parse.BackupJob{{ID: "nightly", Enabled: true, Schedule: "02:00", All: true, Storage: "nas"}}
	if d := cmp.Diff([]string{"BACKUP_STALE critical guest/101"}, judged(v)); d != "" {
		t.Errorf("with a job to a storage that was read: %s", d)
	}
	v.Jobs[0].Storage = "pbs"
	if d := cmp.Diff([]string{}, judged(v)); d != "" {
		t.Errorf("with a job to the unread storage: %s", d)
	}
	whole := twoStorages(t)
	whole.Partial = true
	if d := cmp.Diff([]string{}, judged(whole)); d != "" {
		t.Errorf("of one storage that was chosen: %s", d)
	}
}

// A template of another node, a guest that was deleted and whose backup is kept,
// and a newest backup that failed its verification.
const onThePBS = `[{"content":"backup","ctime":1790816400,"format":"pbs-vm","size":3221225472,"subtype":"qemu","verification":{"state":"ok","upid":"x"},"vmid":9000,"volid":"pbs:backup/vm/9000/2026-10-01T01:00:00Z"},
{"content":"backup","ctime":1768336200,"format":"pbs-ct","notes":"dc2\nparked, keep","protected":1,"size":1073741824,"subtype":"lxc","vmid":140,"volid":"pbs:backup/ct/140/2026-01-13T20:30:00Z"},
{"content":"backup","ctime":1795914005,"encrypted":"1","format":"pbs-ct","size":1073741824,"subtype":"lxc","verification":{"state":"failed","upid":"x"},"vmid":101,"volid":"pbs:backup/ct/101/2026-11-29T01:00:05Z"},
{"content":"backup","ctime":1795827605,"format":"pbs-ct","size":1073741824,"subtype":"lxc","verification":{"state":"ok","upid":"x"},"vmid":101,"volid":"pbs:backup/ct/101/2026-11-28T01:00:05Z"},
{"content":"backup","ctime":1795917605,"format":"pbs-ct","size":1,"subtype":"lxc","vmid":101,"volid":"pbs:backup/ct/101/2026-11-29T02:00:05Z"}]`

func TestOrphansTemplatesAndVerification(t *testing.T) {
	v := BackupView{
		Guests:  []Guest{{VMID: 101, Name: "dns-1", Type: "lxc", Node: "pve-b"}, {VMID: 9000, Type: "qemu", Node: "pve-a", Template: true}},
		Sources: []BackupSource{{Storage: "pbs", Node: "pve-b", Shared: true, Content: contentOfText(t, onThePBS)}},
		Now:     backupsSeenAt,
	}
	rows := v.Archives()
	if len(rows) != 4 {
		t.Fatalf("got %d archives; an unfinished one is none", len(rows))
	}
	kept := rows[2]
	if *kept.VMID != 140 || !kept.Orphan || !kept.Protected || kept.Notes != "dc2\nparked, keep" || kept.Verified != "" {
		t.Errorf("got %+v", kept)
	}
	if a := rows[0]; *a.VMID != 101 || !a.Encrypted || a.Verified != "failed" || a.Guest != "dns-1" || a.Orphan {
		t.Errorf("got %+v", a)
	}
	want := []string{"BACKUP_VERIFY_FAILED critical guest/101", "BACKUP_INCOMPLETE warning guest/101", "BACKUP_STALE warning guest/101", "BACKUP_ORPHAN info guest/140"}
	if d := cmp.Diff(want, judged(v)); d != "" {
		t.Error(d)
	}
}

// A backup that failed its verification is none to rely on.
func TestDamagedBackups(t *testing.T) {
	one := func(state string, sources ...BackupSource) GuestBackups {
		content := contentOfText(t, `[{"content":"backup","ctime":1795914005,"format":"pbs-ct","size":5,"verification":{"state":"failed"},"volid":"pbs:backup/ct/101/2026-11-29T01:00:05Z"},
			{"content":"backup","ctime":1795827605,"format":"pbs-ct","size":5,"verification":{"state":"`+state+`"},"volid":"pbs:backup/ct/101/2026-11-28T01:00:05Z"}]`)
		v := BackupView{Guests: []Guest{{VMID: 101, Type: "lxc"}}, Now: backupsSeenAt, Sources: append(sources, BackupSource{Storage: "pbs", Content: content})}
		return v.Summaries(v.Archives())[0]
	}
	for _, tt := range []struct {
		name, state string
		unread      []BackupSource
		want        GuestBackups
	}{
		{"an older one is good", "ok", nil, GuestBackups{Verdict: BackedUp, NewestAt: "2026-11-28T01:00:05Z"}},
		{"all failed", "failed", nil, GuestBackups{Verdict: Damaged, NewestAt: "2026-11-29T01:00:05Z"}},
		{"all failed that were read", "failed", []BackupSource{{Storage: "nas", Reason: "x"}}, GuestBackups{Verdict: Unknown, NewestAt: "2026-11-29T01:00:05Z", NewestUnsure: true}},
	} {
		got := one(tt.state, tt.unread...)
		if got.Verdict != tt.want.Verdict || got.NewestAt != tt.want.NewestAt || got.NewestUnsure != tt.want.NewestUnsure || got.Archives != 2 {
			t.Errorf("%s: got %+v", tt.name, got)
		}
	}
}

// An entry that cannot be read may be the archive of any guest.
func TestNoBackupIsUnsureWhereAnEntryWasNotRead(t *testing.T) {
	content, _, err := parse.Content([]byte(`[{"content":"backup"}]`))
	if err != nil {
		t.Fatal(err)
	}
	v := BackupView{Guests: []Guest{{VMID: 101, Type: "lxc"}}, Now: backupsSeenAt, Sources: []BackupSource{{Storage: "nas", Content: &content}}}
	if got := v.Summaries(v.Archives())[0]; got.Verdict != Unknown {
		t.Errorf("got %+v", got)
	}
}

// A VMID that was given to another kind of guest: the old archives are not its.
func TestArchivesOfAnotherKindOfGuest(t *testing.T) {
	v := twoStorages(t)
	v.Guests[1].Type = "qemu"
	got := v.Summaries(v.Archives())
	if got[1].Verdict != NoBackup || got[1].Archives != 0 {
		t.Errorf("got %+v, want no backup of the VM", got[1])
	}
	if d := cmp.Diff([]string{"BACKUP_NONE critical guest/101", "BACKUP_NONE critical guest/102", "BACKUP_ORPHAN info guest/101"}, judged(v)); d != "" {
		t.Error(d)
	}
}

// What cannot be the guest's own is no backup of it, here as in coverage.
func TestArchivesThatAreNotTheGuests(t *testing.T) {
	var newest time.Time
	for _, tt := range []struct {
		name     string
		change   func(v *BackupView)
		verdict  string
		coverage string
		findings []string
	}{
		{"its own", func(*BackupView) {}, BackedUp, CoverFresh, []string{}},
		{"not of the last working day", func(v *BackupView) {
			v.Zone, v.Jobs[0].Schedule, newest = time.UTC, "mon..fri 02:30", time.Date(2026, 11, 26, 2, 31, 0, 0, time.UTC)
		}, BackedUp, CoverStale, []string{"BACKUP_STALE critical guest/101"}},
		{"of the last working day", func(v *BackupView) {
			v.Zone, v.Jobs[0].Schedule, newest = time.UTC, "mon..fri 02:30", time.Date(2026, 11, 27, 2, 31, 0, 0, time.UTC)
		}, BackedUp, CoverFresh, []string{}},
		{"older than the guest", func(v *BackupView) {
			v.Configs = []parse.GuestConfig{{VMID: 101, Current: parse.GuestSettings{CreatedAt: Ptr(newest.Unix() + 1)}}}
		}, NoBackup, CoverNever, []string{"BACKUP_NONE info guest/101"}},
		{"of the future", func(v *BackupView) { v.Now = newest.Add(-2 * time.Hour) }, NoBackup, CoverNever, []string{"BACKUP_NONE critical guest/101"}},
		{"of another cluster as well", func(v *BackupView) {
			v.Namesakes = map[string]map[int]Namesake{"pbs": {101: {Cluster: "east", Type: "lxc"}}}
		}, Unknown, Unknown, []string{}},
		{"another cluster's VM has the number", func(v *BackupView) {
			v.Namesakes = map[string]map[int]Namesake{"pbs": {101: {Cluster: "east", Type: "qemu"}}}
		}, BackedUp, CoverFresh, []string{}},
		{"of another cluster's container", func(v *BackupView) {
			v.Guests[0].Type = "qemu"
			v.Namesakes = map[string]map[int]Namesake{"pbs": {101: {Cluster: "east", Type: "lxc"}}}
		}, NoBackup, CoverNever, []string{"BACKUP_NONE critical guest/101"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			newest = backupsSeenAt.Add(-20 * time.Hour)
			v := BackupView{
				Guests: []Guest{{VMID: 101, Type: "lxc", Node: "a", Status: Running}}, Now: backupsSeenAt, Jobs: []parse.BackupJob{{ID: "j", Enabled: true, Schedule: "02:00", All: true, Storage: "pbs"}},
				Sources: []BackupSource{{Storage: "pbs", Shared: true, Content: &parse.StorageContent{Archives: []parse.Archive{{VMID: Ptr(101), Type: "lxc", Created: &newest}}}}},
			}
			tt.change(&v)
			got := v.Summaries(v.Archives())[0]
			if got.Verdict != tt.verdict {
				t.Errorf("verdict %s, want %s", got.Verdict, tt.verdict)
			}
			if d := cmp.Diff(tt.findings, judged(v)); d != "" {
				t.Error(d)
			}
			rows, _, _ := Judge{}.Coverages(CoverageView{BackupView: v, State: &parse.State{}, JobsRead: true, PoolsRead: true, Asked: true, Storages: []parse.StorageConfig{{ID: "pbs", Type: "pbs", Shared: true}}})
			if rows[0].Verdict != tt.coverage {
				t.Errorf("coverage %s (%s), want %s", rows[0].Verdict, rows[0].Reason, tt.coverage)
			}
		})
	}
}

func TestNewGuestHasNoBackupYet(t *testing.T) {
	v := twoStorages(t)
	v.Configs = []parse.GuestConfig{{VMID: 102, Current: parse.GuestSettings{CreatedAt: Ptr(backupsSeenAt.Add(-3 * time.Hour).Unix())}}}
	if d := cmp.Diff([]string{"BACKUP_STALE warning guest/101", "BACKUP_NONE info guest/102"}, judged(v)); d != "" {
		t.Error(d)
	}
}

func TestRunOf(t *testing.T) {
	for _, c := range []struct {
		name     string
		log      parse.BackupLog
		underWay bool
		want     BackupRun
	}{
		{"finished", parse.BackupLog{Started: "2026-11-28 02:30:02", Finished: true}, true, BackupRun{"a", "ok", "2026-11-28 02:30:02", ""}},
		{"failed", parse.BackupLog{Failed: true, Failure: "no \x1b[31mspace"}, false, BackupRun{"a", "failed", "", "no space"}},
		{"under way", parse.BackupLog{}, true, BackupRun{"a", "running", "", ""}},
		{"cut off", parse.BackupLog{Errors: []string{"first", "unexpected end"}}, false, BackupRun{"a", "unfinished", "", "unexpected end"}},
	} {
		if got := RunOf("a", c.log, c.underWay); *got != c.want {
			t.Errorf("%s: got %+v, want %+v", c.name, *got, c.want)
		}
	}
}

func TestFailedBackupSaysWhy(t *testing.T) {
	v := twoStorages(t)
	v.Runs = map[int]*BackupRun{100: {Node: "pve-a", Result: "failed", Failure: "command 'mount' failed"}}
	archives := v.Archives()
	for _, f := range (Judge{}).BackupFindings(v, archives, v.Summaries(archives)) {
		if f != nil && f.Code == "BACKUP_JOB_FAILED" {
			if f.Subject != "guest/100" || f.Message != "the last backup failed: command 'mount' failed" {
				t.Errorf("got %+v", f)
			}
			return
		}
	}
	t.Error("no finding")
}

func TestUnverifiedForLong(t *testing.T) {
	v := BackupView{Guests: []Guest{{VMID: 101, Type: "lxc", Template: true}}, Now: backupsSeenAt, Sources: []BackupSource{{Storage: "pbs", Content: contentOfText(t,
		`[{"content":"backup","ctime":1790816400,"format":"pbs-ct","size":3221,"vmid":101,"volid":"pbs:backup/ct/101/2026-10-01T01:00:00Z"}]`)}}}
	if d := cmp.Diff([]string{"BACKUP_UNVERIFIED info guest/101"}, judged(v)); d != "" {
		t.Error(d)
	}
}
