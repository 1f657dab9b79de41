package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// An Archive is one row of list_backups. CreatedAt is when the backup began.
// Verified is ok or failed where a backup server looked, absent where nobody
// has. Orphan is set when the guest does not exist any more, or is of another
// kind now. Notes are text by people, with detail=detailed only.
type Archive struct {
	VMID      *int   `json:"vmid,omitempty"`
	Guest     string `json:"guest,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Type      string `json:"type,omitempty"`
	Storage   string `json:"storage"`
	Node      string `json:"node"`
	Volume    string `json:"volume"`
	CreatedAt string `json:"created_at,omitempty"`
	AgeS      *int64 `json:"age_s,omitempty"`
	SizeBytes *int64 `json:"size_bytes,omitempty"`
	Format    string `json:"format,omitempty"`
	Protected bool   `json:"protected"`
	Encrypted bool   `json:"encrypted,omitempty"`
	Verified  string `json:"verified,omitempty"`
	Orphan    bool   `json:"orphan,omitempty"`
	Notes     string `json:"notes,omitempty"`

	created *time.Time
	strange string // why it cannot be the guest's own; "" when it can
	mixed   string // the other cluster whose guest it may be as well
}

// The verdicts about one guest's backups.
const (
	BackedUp = "backed-up"
	Damaged  = "damaged" // there are archives, and each failed its verification
	NoBackup = "none"    // or only archives that cannot be the guest's own
)

// GuestBackups is what is known of one guest's backups. Newest is the newest
// archive that did not fail its verification; if all did, the newest of them.
// NewestUnsure is set when a storage that may hold a newer archive was not read.
type GuestBackups struct {
	VMID          int        `json:"vmid"`
	Name          string     `json:"name,omitempty"`
	Cluster       string     `json:"cluster,omitempty"`
	Template      bool       `json:"template,omitempty"`
	Verdict       string     `json:"verdict"`
	Archives      int        `json:"archives"`
	NewestAt      string     `json:"newest_at,omitempty"`
	NewestAgeS    *int64     `json:"newest_age_s,omitempty"`
	NewestStorage string     `json:"newest_storage,omitempty"`
	NewestUnsure  bool       `json:"newest_unsure,omitempty"`
	LastRun       *BackupRun `json:"last_run,omitempty"`
}

// A BackupRun is the last run that a node's log tells of a guest. Result is ok,
// failed, running or unfinished. StartedLocal is in the node's own time, without
// a zone, as the log has it.
type BackupRun struct {
	Node         string `json:"node"`
	Result       string `json:"result"`
	StartedLocal string `json:"started_local,omitempty"`
	Failure      string `json:"failure,omitempty"`
}

// A BackupSource is one backup storage as one node reads it: what it holds, or
// why it was not read.
type BackupSource struct {
	Storage string
	Node    string // "" for a shared one that no node could read
	Shared  bool
	Content *parse.StorageContent
	Reason  string
}

// A ReadStorage says whether a backup storage was read. A disabled one is not,
// and takes nothing from the answer.
type ReadStorage struct {
	Storage     string `json:"storage"`
	Node        string `json:"node,omitempty"`
	Cluster     string `json:"cluster,omitempty"`
	Read        bool   `json:"read"`
	Disabled    bool   `json:"disabled,omitempty"`
	Reason      string `json:"reason,omitempty"`
	Archives    int    `json:"archives,omitempty"`
	Unfinished  int    `json:"unfinished,omitempty"`
	HostBackups int    `json:"host_backups,omitempty"`
}

// BackupList is the answer of list_backups: archives by guest, the newest first;
// every guest with its newest archive; and the storages, read or not.
type BackupList struct {
	Answer
	Items []Archive `json:"items"`
	Page
	Guests       []GuestBackups `json:"guests"`
	MoreGuests   int            `json:"more_guests,omitempty"`
	Storages     []ReadStorage  `json:"storages"`
	Findings     []Finding      `json:"findings"`
	MoreFindings int            `json:"more_findings,omitempty"`
}

// A BackupView is what the backups of one cluster are told from.
type BackupView struct {
	Name    string // "" leaves the cluster out of the rows
	Guests  []Guest
	Configs []parse.GuestConfig
	Jobs    []parse.BackupJob
	Sources []BackupSource
	// Partial is set when storages were left out on purpose.
	Partial bool
	Runs    map[int]*BackupRun // by VMID
	Now     time.Time
	Zone    *time.Location // of the node that was asked; nil when unknown
	// Namesakes are guests of other clusters that keep their archives in the same
	// place, by storage and VMID: cluster and kind.
	Namesakes map[string]map[int]Namesake
}

// Archives returns every archive of the sources, by guest, the newest first.
func (v BackupView) Archives() []Archive {
	kinds, names := map[int]string{}, map[int]string{}
	for _, g := range v.Guests {
		kinds[g.VMID], names[g.VMID] = g.Type, g.Name
	}
	made := map[int]*int64{}
	for _, c := range v.Configs {
		made[c.VMID] = c.Current.CreatedAt
	}
	rows := []Archive{}
	for _, src := range v.Sources {
		if src.Content == nil {
			continue
		}
		for _, a := range src.Content.Archives {
			r := v.archive(src, a)
			if a.VMID != nil {
				kind, exists := kinds[*a.VMID]
				other, shared := v.namesake(r)
				switch mine := exists && (a.Type == "" || a.Type == kind); {
				case mine:
					r.Guest = names[*a.VMID]
					if shared {
						r.mixed = other.Cluster
					}
				case shared:
					r.strange = foreign
				default:
					r.Orphan = true
				}
				if at := made[*a.VMID]; r.strange == "" && a.Created != nil && at != nil && a.Created.Unix() < *at {
					r.strange = "older than the guest"
				}
				if a.Created != nil && a.Created.After(v.Now.Add(time.Hour)) {
					r.strange = "of the future"
				}
			}
			rows = append(rows, r)
		}
	}
	slices.SortStableFunc(rows, func(a, b Archive) int {
		return cmp.Or(cmp.Compare(vmidOr(a.VMID), vmidOr(b.VMID)), newerFirst(a.created, b.created), cmp.Compare(a.Volume, b.Volume), cmp.Compare(a.Node, b.Node))
	})
	return rows
}

func (v BackupView) archive(src BackupSource, a parse.Archive) Archive {
	r := Archive{
		VMID: a.VMID, Cluster: v.Name, Type: a.Type, Storage: Clean(src.Storage), Node: src.Node, Volume: Clean(a.Volume), SizeBytes: a.Size,
		Format: Clean(a.Format), Protected: a.Protected, Encrypted: a.Encrypted, Verified: string(a.Verification), Notes: CleanNote(a.Notes), created: a.Created,
	}
	if a.Created != nil {
		r.CreatedAt, r.AgeS = At(a.Created.Unix()), Ptr(int64(age(v.Now, a.Created.Unix())/time.Second))
	}
	return r
}

func vmidOr(n *int) int {
	if n == nil {
		return 1 << 40
	}
	return *n
}

func newerFirst(a, b *time.Time) int {
	switch {
	case a == nil || b == nil:
		return cmp.Compare(boolInt(a == nil), boolInt(b == nil))
	}
	return b.Compare(*a)
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// whole reports whether every backup storage was read.
func (v BackupView) whole() bool {
	return !v.Partial && !slices.ContainsFunc(v.Sources, func(src BackupSource) bool { return src.Content == nil || src.Content.Unread > 0 })
}

const foreign = "of another cluster"

// byGuest groups archives by their guest, without those of no guest.
func byGuest(archives []Archive) map[int][]Archive {
	out := map[int][]Archive{}
	for _, a := range archives {
		if a.VMID != nil && !a.Orphan && a.strange != foreign {
			out[*a.VMID] = append(out[*a.VMID], a)
		}
	}
	return out
}

// Summaries returns what is known of every guest's backups, by VMID. Archives of
// another kind of guest under the same VMID do not count.
func (v BackupView) Summaries(archives []Archive) []GuestBackups {
	incomplete, mine := !v.whole(), byGuest(archives)
	out := []GuestBackups{}
	for _, g := range v.Guests {
		s := GuestBackups{VMID: g.VMID, Name: g.Name, Cluster: v.Name, Template: g.Template, Verdict: NoBackup, LastRun: v.Runs[g.VMID]}
		if mine := mine[g.VMID]; len(mine) > 0 {
			newest := &mine[0]
			s.Verdict, s.Archives = withoutGood(mine), len(mine)
			if good := newestGood(mine); good != nil {
				s.Verdict, newest = BackedUp, good
			}
			if s.Verdict != NoBackup {
				s.NewestAt, s.NewestAgeS, s.NewestStorage = newest.CreatedAt, newest.AgeS, newest.Storage
			}
		}
		s.NewestUnsure = s.Archives > 0 && incomplete
		if s.Verdict != BackedUp && incomplete {
			s.Verdict = Unknown // a good archive may be where nobody looked
		}
		out = append(out, s)
	}
	return out
}

// ReadStorages says of every backup storage whether it was read.
func (v BackupView) ReadStorages(disabled []string) []ReadStorage {
	out := []ReadStorage{}
	for _, src := range v.Sources {
		r := ReadStorage{Storage: Clean(src.Storage), Node: src.Node, Cluster: v.Name, Read: src.Content != nil, Reason: src.Reason}
		if c := src.Content; c != nil {
			r.Archives, r.Unfinished, r.HostBackups = len(c.Archives), len(c.Unfinished), c.HostBackups
		}
		out = append(out, r)
	}
	for _, id := range disabled {
		out = append(out, ReadStorage{Storage: Clean(id), Cluster: v.Name, Disabled: true, Reason: "disabled in storage.cfg"})
	}
	slices.SortStableFunc(out, func(a, b ReadStorage) int {
		return cmp.Or(cmp.Compare(a.Storage, b.Storage), cmp.Compare(a.Node, b.Node))
	})
	return out
}

// BackupFindings judges the backups of a cluster's guests. pool tells the pool of
// a guest, for the jobs that choose by it.
func (j Judge) BackupFindings(v BackupView, archives []Archive, summaries []GuestBackups) []*Finding {
	var out []*Finding
	guests := map[int]Guest{}
	for _, g := range v.Guests {
		guests[g.VMID] = g
	}
	mine := byGuest(archives)
	schedules := CoverageView{BackupView: v}
	schedules.prepare()
	for _, s := range summaries {
		out = append(out, j.guestBackup(&schedules, guests[s.VMID], s, mine[s.VMID])...)
	}
	return append(append(out, j.orphans(v, archives, guests)...), j.unfinished(v)...)
}

func (v BackupView) subject(vmid int) string {
	if v.Name != "" {
		return fmt.Sprintf("%s/guest/%d", v.Name, vmid)
	}
	return fmt.Sprintf("guest/%d", vmid)
}

// guestBackup judges one guest; mine are its archives, the newest first.
func (j Judge) guestBackup(c *CoverageView, g Guest, s GuestBackups, mine []Archive) []*Finding {
	v, subject := c.BackupView, c.subject(s.VMID)
	var out []*Finding
	if r := s.LastRun; r != nil && r.Result == "failed" {
		out = append(out, j.Find("BACKUP_JOB_FAILED", "", subject, "the last backup failed: "+cmp.Or(r.Failure, "the log names no reason"),
			Evidence{Name: "started (local time)", Value: cmp.Or(r.StartedLocal, Unknown)}, Evidence{Name: "node", Value: r.Node}))
	}
	if s.Verdict == NoBackup && !g.Template {
		out = append(out, j.noBackup(v, subject, s))
	}
	if len(mine) == 0 {
		return out
	}
	out = append(out, j.verified(v, subject, mine)...)
	cover := CoverOf(v.Jobs, JobGuest{VMID: g.VMID, Node: g.Node, Pool: g.Pool})
	if good := newestGood(mine); good != nil && good.AgeS != nil && !g.Template && v.certain(cover, g.Node) {
		gap, known := c.interval(cover, good.created)
		out = append(out, j.staleAfter(subject, time.Duration(*good.AgeS)*time.Second, gap, known, Evidence{Name: "newest", Value: good.CreatedAt}, Evidence{Name: "storage", Value: good.Storage}))
	}
	return out
}

// noBackup is milder for a guest that was made a moment ago.
func (j Judge) noBackup(v BackupView, subject string, s GuestBackups) *Finding {
	for _, c := range v.Configs {
		if c.VMID == s.VMID && c.Current.CreatedAt != nil && v.Now.Sub(time.Unix(*c.Current.CreatedAt, 0)) < 36*time.Hour {
			return j.Find("BACKUP_NONE", Info, subject, "no backup yet: the guest is new", Evidence{Name: "created_at", Value: At(*c.Current.CreatedAt)})
		}
	}
	message := "no backup on any backup storage"
	if s.Archives > 0 {
		message = many(s.Archives, "archive") + ", but none that is this guest's and can be restored"
	}
	return j.Find("BACKUP_NONE", "", subject, message, Evidence{Name: "storages read", Value: fmt.Sprint(len(v.Sources))})
}

// certain reports whether every storage that may hold the guest's newest archive
// was read: all of them, or at least those that its jobs write to from its node.
func (v BackupView) certain(cover Cover, node string) bool {
	unread := slices.DeleteFunc(slices.Clone(v.Sources), func(src BackupSource) bool { return src.Content != nil })
	if v.Partial || len(unread) == 0 {
		return !v.Partial
	}
	return len(cover.Jobs) > 0 && !slices.ContainsFunc(cover.Jobs, func(job parse.BackupJob) bool {
		return job.Storage == "" || slices.ContainsFunc(unread, func(src BackupSource) bool {
			return src.Storage == job.Storage && (src.Node == "" || src.Node == node)
		})
	})
}

// newestGood is the newest archive that is the guest's own and can be restored.
// One that is older than the guest is of a guest that had the number before.
func newestGood(archives []Archive) *Archive {
	for i, a := range archives {
		if a.created != nil && a.Verified != string(parse.VerifyFailed) && a.strange == "" && a.mixed == "" {
			return &archives[i]
		}
	}
	return nil
}

// withoutGood is the verdict about archives of which none is good.
func withoutGood(archives []Archive) string {
	verdict := NoBackup
	for _, a := range archives {
		switch {
		case a.mixed != "", a.created == nil && a.strange == "" && a.Verified != string(parse.VerifyFailed):
			return Unknown
		case a.strange == "":
			verdict = Damaged
		}
	}
	return verdict
}

// mistakable names the guest of another cluster whose archives are mixed with
// this guest's, and the storage; "" when there is none.
func mistakable(archives []Archive) string {
	for _, a := range archives {
		if a.mixed != "" {
			return fmt.Sprintf("archives on %s can be those of guest %d of cluster %s, which uses the same place", a.Storage, *a.VMID, Clean(a.mixed))
		}
	}
	return ""
}

// verified judges what a backup server found; archives are the newest first.
func (j Judge) verified(v BackupView, subject string, archives []Archive) []*Finding {
	var out []*Finding
	for i, a := range archives {
		if a.Verified != string(parse.VerifyFailed) {
			continue
		}
		severity, which := Warning, "an older backup"
		if i == 0 {
			severity, which = Critical, "the newest backup"
		}
		evidence := []Evidence{{Name: "volume", Value: a.Volume}, {Name: "created_at", Value: a.CreatedAt}}
		if good := newestGood(archives); good != nil {
			evidence = append(evidence, Evidence{Name: "newest good", Value: good.CreatedAt})
		}
		out = append(out, j.Find("BACKUP_VERIFY_FAILED", severity, subject, which+" could not be verified", evidence...))
		break
	}
	if a := archives[0]; strings.HasPrefix(a.Format, "pbs-") && a.Verified == "" && a.AgeS != nil {
		out = append(out, j.Measure("BACKUP_UNVERIFIED", subject, "the newest backup was never verified", "age", float64(*a.AgeS)/86400, Evidence{Name: "volume", Value: a.Volume}))
	}
	return out
}

// orphans makes one finding for each VMID whose archives belong to no guest.
func (j Judge) orphans(v BackupView, archives []Archive, guests map[int]Guest) []*Finding {
	var out []*Finding
	for i := 0; i < len(archives); {
		a, n := archives[i], 0
		for i < len(archives) && vmidOr(archives[i].VMID) == vmidOr(a.VMID) {
			if archives[i].Orphan {
				if n++; n == 1 {
					a = archives[i]
				}
			}
			i++
		}
		if n == 0 {
			continue
		}
		message := many(n, "archive") + " of a guest that does not exist any more"
		if g, ok := guests[*a.VMID]; ok {
			message = fmt.Sprintf("%s of another kind of guest (%s) under the VMID of %s", many(n, "archive"), a.Type, cmp.Or(g.Name, "a guest"))
		}
		evidence := []Evidence{{Name: "newest", Value: cmp.Or(a.CreatedAt, Unknown)}, {Name: "storage", Value: a.Storage}}
		if a.Protected {
			evidence = append(evidence, Evidence{Name: "protected", Value: "yes"})
		}
		out = append(out, j.Find("BACKUP_ORPHAN", "", v.subject(*a.VMID), message, evidence...))
	}
	return out
}

func (j Judge) unfinished(v BackupView) []*Finding {
	var out []*Finding
	for _, src := range v.Sources {
		if src.Content == nil {
			continue
		}
		for _, a := range src.Content.Unfinished {
			subject := "storage/" + Clean(src.Storage)
			if a.VMID != nil {
				subject = v.subject(*a.VMID)
			}
			begun := Unknown
			if a.Created != nil {
				begun = At(a.Created.Unix())
			}
			out = append(out, j.Find("BACKUP_INCOMPLETE", "", subject, "a backup is running or was cut off; nothing can be restored from it", Evidence{Name: "volume", Value: Clean(a.Volume)}, Evidence{Name: "begun", Value: begun}))
		}
	}
	return out
}

// RunOf renders the last run of a guest's backup; underWay says that a backup
// task runs on the node.
func RunOf(node string, l parse.BackupLog, underWay bool) *BackupRun {
	r := &BackupRun{Node: node, Result: "unfinished", StartedLocal: Clean(l.Started)}
	switch {
	case l.Failed:
		r.Result, r.Failure = "failed", Clean(l.Failure)
	case l.Finished:
		r.Result = "ok"
	case underWay:
		r.Result = "running"
	case len(l.Errors) > 0:
		r.Failure = Clean(l.Errors[len(l.Errors)-1])
	}
	return r
}

// Brief takes away what a concise list does not need.
func (l *BackupList) Brief() {
	for i := range l.Items {
		l.Items[i].Notes, l.Items[i].Type, l.Items[i].AgeS = "", "", nil
	}
	for i := range l.Guests {
		if r := l.Guests[i].LastRun; r != nil && r.Result == "ok" {
			l.Guests[i].LastRun = nil
		}
	}
}

// Tables shows the backups to people.
func (l *BackupList) Tables() []Table {
	guests := Table{Title: "Guests", Columns: []string{">vmid", "name", "backup", ">archives", "newest", ">age", "on", "last run"}}
	for _, g := range l.Guests {
		run := ""
		if r := g.LastRun; r != nil {
			run = strings.TrimSuffix(r.Result+": "+r.Failure, ": ")
		}
		verdict := g.Verdict
		if g.NewestUnsure {
			verdict += " (a storage was not read)"
		}
		guests.Rows = append(guests.Rows, []string{fmt.Sprint(g.VMID), g.Name, verdict, fmt.Sprint(g.Archives), g.NewestAt, Seconds(g.NewestAgeS), g.NewestStorage, run})
	}
	if l.MoreGuests > 0 {
		guests.Notes = []string{fmt.Sprintf("and %d more guests; --limit 500 shows all", l.MoreGuests)}
	}
	t := Table{Title: "Archives", Columns: []string{">vmid", "created", ">size", "format", "protected", "verified", "volume", "notes"}}
	for _, a := range l.Items {
		var notes []string
		for _, n := range []struct {
			on   bool
			text string
		}{{a.Orphan, "no such guest"}, {a.Encrypted, "encrypted"}, {a.Notes != "", strings.ReplaceAll(a.Notes, "\n", " / ")}} {
			if n.on {
				notes = append(notes, n.text)
			}
		}
		vmid := ""
		if a.VMID != nil {
			vmid = fmt.Sprint(*a.VMID)
		}
		t.Rows = append(t.Rows, []string{vmid, a.CreatedAt, Bytes(a.SizeBytes), a.Format, Yes(a.Protected), a.Verified, a.Volume, strings.Join(notes, "; ")})
	}
	t.Notes = append(t.Notes, l.Page.note("archives"))
	storages := Table{Title: "Storages", Columns: []string{"storage", "node", "read", ">archives", "why not"}}
	for _, s := range l.Storages {
		storages.Rows = append(storages.Rows, []string{s.Storage, s.Node, YesNo(&s.Read), fmt.Sprint(s.Archives), s.Reason})
	}
	return append([]Table{guests, t, storages}, findingTable(l.Findings, l.MoreFindings)...)
}

// KeepUnfinished drops the unfinished backups of other guests.
func (v BackupView) KeepUnfinished(vmid int) {
	for _, src := range v.Sources {
		if src.Content != nil {
			src.Content.Unfinished = slices.DeleteFunc(src.Content.Unfinished, func(a parse.Archive) bool { return a.VMID == nil || *a.VMID != vmid })
		}
	}
}
