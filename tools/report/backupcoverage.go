package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// The verdicts about the coverage of one guest; unknown is the fifth.
const (
	CoverFresh     = "fresh"     // the newest good archive is as young as the job's schedule promises
	CoverStale     = "stale"     // it is older
	CoverNever     = "never"     // a job takes the guest, but no storage has an archive to restore
	CoverUncovered = "uncovered" // no enabled job takes the guest
)

// coverOrder is the order of the rows: what needs a person first.
var coverOrder = []string{CoverNever, CoverUncovered, CoverStale, Unknown, CoverFresh}

// A Coverage is one guest's row of backup_coverage. Jobs are the enabled ones
// that take it; Passed come close and do not, each with the reason. NewestAt is
// the newest archive that can be restored, over all storages; IntervalS the time
// between two runs of the job that it is held against. Read and NotRead name the
// storages that a negative verdict rests on. ExcludedVolumes is absent where the
// guest's configuration was not read.
type Coverage struct {
	VMID            int               `json:"vmid"`
	Name            string            `json:"name,omitempty"`
	Cluster         string            `json:"cluster,omitempty"`
	Type            string            `json:"type"`
	Node            string            `json:"node"`
	Template        bool              `json:"template,omitempty"`
	Verdict         string            `json:"verdict"`
	Reason          string            `json:"reason,omitempty"`
	Jobs            []string          `json:"jobs"`
	Passed          []PassedJob       `json:"passed,omitempty"`
	IntervalS       *int64            `json:"interval_s,omitempty"`
	Archives        *int              `json:"archives,omitempty"`
	NewestAt        string            `json:"newest_at,omitempty"`
	NewestAgeS      *int64            `json:"newest_age_s,omitempty"`
	NewestStorage   string            `json:"newest_storage,omitempty"`
	NewestVolume    string            `json:"newest_volume,omitempty"`
	LastRun         *BackupRun        `json:"last_run,omitempty"`
	ExcludedVolumes *[]ExcludedVolume `json:"excluded_volumes,omitempty"`
	Read            []string          `json:"read,omitempty"`
	NotRead         []string          `json:"not_read,omitempty"`
}

// CoverageSummary counts all guests of the answer, before filters.
// LastRunFailed are guests whose last backup run failed, VolumesExcluded guests
// with a volume that no backup contains and nobody decided about.
type CoverageSummary struct {
	Guests          int `json:"guests"`
	Fresh           int `json:"fresh"`
	Stale           int `json:"stale"`
	Never           int `json:"never"`
	Uncovered       int `json:"uncovered"`
	Unknown         int `json:"unknown"`
	LastRunFailed   int `json:"last_run_failed"`
	VolumesExcluded int `json:"volumes_excluded"`
}

// CoverageList is the answer of backup_coverage: the counts, a row for each
// guest, the jobs, and the storages that were read or not.
type CoverageList struct {
	Answer
	Summary CoverageSummary `json:"summary"`
	Items   []Coverage      `json:"items"`
	Page
	Jobs         []CoverageJob `json:"jobs"`
	MoreJobs     int           `json:"more_jobs,omitempty"`
	Storages     []ReadStorage `json:"storages"`
	MoreStorages int           `json:"more_storages,omitempty"`
	Findings     []Finding     `json:"findings"`
	MoreFindings int           `json:"more_findings,omitempty"`
}

// A CoverageView is what the coverage of one cluster's guests is told from. A
// part that was not read says so; Asked is false when archives were not to be
// read. Defaults are the nodes' own defaults for backups, where they were read.
type CoverageView struct {
	BackupView
	State     *parse.State
	Storages  []parse.StorageConfig
	Disabled  []string // backup storages that are switched off
	Defaults  map[string]*parse.VzdumpDefaults
	JobsRead  bool
	PoolsRead bool
	Asked     bool

	calendars map[string]calendar // by job, of those that can be read
	longest   map[string]time.Duration
	over      map[string]bool // jobs whose schedule has no run any more
	configs   map[int]*parse.GuestConfig
	read, not []string
}

// A Namesake is a guest of another cluster whose archives lie in the same place.
type Namesake struct{ Cluster, Type string }

// StorePlace is where a storage's archives really are: the server and the place
// on it. "" is a place of the cluster's own.
func StorePlace(s parse.StorageConfig) string {
	if s.Server == "" || s.Disabled || !HoldsBackups(s) {
		return ""
	}
	return strings.Join([]string{s.Type, strings.ToLower(s.Server), s.Datastore, s.Namespace, s.Export, s.Share, s.Subdir, s.Volume}, "|")
}

// namesake is a guest of another cluster to which an archive can belong as well.
func (v BackupView) namesake(a Archive) (Namesake, bool) {
	if a.VMID == nil {
		return Namesake{}, false
	}
	n, ok := v.Namesakes[a.Storage][*a.VMID]
	return n, ok && (a.Type == "" || a.Type == n.Type)
}

// prepare fills in what every row needs.
func (v *CoverageView) prepare() {
	v.calendars, v.configs = map[string]calendar{}, map[int]*parse.GuestConfig{}
	v.longest, v.over = map[string]time.Duration{}, map[string]bool{}
	for _, j := range v.Jobs {
		c, ok := parseSchedule(ScheduleOf(j))
		if !ok {
			continue
		}
		_, more := c.next(v.wall(v.Now))
		v.calendars[j.ID], v.over[j.ID] = c, !more
		if d, ok := c.longestGap(); ok {
			v.longest[j.ID] = d
		}
	}
	for i := range v.Configs {
		v.configs[v.Configs[i].VMID] = &v.Configs[i]
	}
	v.read, v.not = v.sources()
}

// sources names the storages that were read and those that were not; one that
// every node has by itself is named once.
func (v *CoverageView) sources() (read, not []string) {
	type group struct {
		read bool
		id   string
	}
	nodes := map[group][]string{}
	var order []group
	for _, src := range v.Sources {
		g := group{src.Content != nil, Clean(src.Storage)}
		if src.Shared {
			src.Node = ""
		}
		if nodes[g] == nil {
			order = append(order, g)
		}
		nodes[g] = append(nodes[g], src.Node)
	}
	for _, g := range order {
		name := g.id
		if on := nodes[g]; on[0] != "" {
			name += " on " + someOf(on, "node")
		}
		if g.read {
			read = append(read, name)
		} else {
			not = append(not, name)
		}
	}
	for _, id := range v.Disabled {
		not = append(not, Clean(id)+" (disabled)")
	}
	slices.Sort(read)
	slices.Sort(not)
	return read, not
}

// someOf lists a few names, or counts many.
func someOf(names []string, what string) string {
	if len(names) > 3 {
		return many(len(names), what)
	}
	return strings.Join(names, ", ")
}

// Coverages returns a row for each guest, those that need a person first, and
// the jobs.
func (j Judge) Coverages(v CoverageView) ([]Coverage, []CoverageJob, []*Finding) {
	v.prepare()
	archives := v.Archives()
	mine := byGuest(archives)
	rows := make([]Coverage, 0, len(v.Guests))
	findings := j.sharedPlaces(v)
	guests := map[int]Guest{}
	for _, g := range v.Guests {
		row, found := j.coverage(v, g, mine[g.VMID])
		rows, findings = append(rows, row), append(findings, found...)
		guests[g.VMID] = g
	}
	SortCoverages(rows)
	jobs, found := j.jobs(v, rows)
	findings = append(append(findings, found...), j.orphans(v.BackupView, archives, guests)...)
	return rows, jobs, append(findings, j.unfinished(v.BackupView)...)
}

// SortCoverages orders rows: what needs a person first, then by VMID.
func SortCoverages(rows []Coverage) {
	slices.SortStableFunc(rows, func(a, b Coverage) int {
		return cmp.Or(cmp.Compare(slices.Index(coverOrder, a.Verdict), slices.Index(coverOrder, b.Verdict)), cmp.Compare(a.VMID, b.VMID), cmp.Compare(a.Cluster, b.Cluster))
	})
}

// cover is CoverOf without the jobs that cannot write: a job whose storage the
// guest's node has not, or whose schedule is over, does not back it up.
func (v *CoverageView) cover(g Guest) Cover {
	c := CoverOf(v.Jobs, JobGuest{VMID: g.VMID, Node: g.Node, Pool: g.Pool})
	able := []parse.BackupJob{}
	for _, job := range c.Jobs {
		why := v.cannotWrite(job, g.Node)
		if why == "" && v.over[job.ID] {
			why = "has a schedule that is over"
		}
		if why != "" {
			c.Passed = append(c.Passed, PassedJob{Clean(job.ID), why})
			continue
		}
		able = append(able, job)
	}
	c.Jobs = able
	return c
}

// wall is a moment on the nodes' wall clock.
func (v *CoverageView) wall(t time.Time) time.Time {
	if v.Zone != nil {
		t = t.In(v.Zone)
	}
	return t
}

// target is the storage that a job writes to from a node; known is false where
// the node's own default decides and was not read. "" with known is a folder
// that no storage names.
func (v *CoverageView) target(job parse.BackupJob, node string) (storage string, known bool) {
	switch d := v.Defaults[node]; {
	case job.Storage != "":
		return job.Storage, true
	case job.DumpDir != "":
		return "", true
	case d != nil:
		return cmp.Or(d.Storage, "local"), true
	}
	return "", false
}

// cannotWrite says why a job cannot write its archives from a node; "" when
// nothing speaks against it.
func (v *CoverageView) cannotWrite(job parse.BackupJob, node string) string {
	id, known := v.target(job, node)
	if id == "" || !known {
		return ""
	}
	i := slices.IndexFunc(v.Storages, func(s parse.StorageConfig) bool { return s.ID == id })
	switch {
	case i < 0:
		return "writes to storage " + Clean(id) + ", which does not exist"
	case v.Storages[i].Disabled:
		return "writes to storage " + Clean(id) + ", which is disabled"
	case !HoldsBackups(v.Storages[i]):
		return "writes to storage " + Clean(id) + ", which may hold no backups"
	case !OnNode(v.Storages[i], node):
		return "writes to storage " + Clean(id) + ", which node " + node + " does not have"
	}
	return ""
}

// interval is the shortest time between two runs of the jobs that take a guest,
// around the moment of its newest archive: a job of the working days promises
// nothing for a Sunday. Without a time zone it is the longest one.
func (v *CoverageView) interval(c Cover, newest *time.Time) (d time.Duration, ok bool) {
	if newest == nil || v.Zone == nil {
		return v.longestOf(c)
	}
	// A job runs one guest after the other, so an archive is never older than its
	// run; the hour is for summer time.
	const change = 61 * time.Minute
	at := v.wall(*newest).Add(change)
	for _, job := range c.Jobs {
		cal, readable := v.calendars[job.ID]
		if !readable {
			continue
		}
		if gap, found := cal.gapAt(at); found && (!ok || gap < d) {
			d, ok = gap, true
		}
	}
	if !ok {
		return v.longestOf(c)
	}
	return d, ok
}

// longestOf is Cover.Interval from what was worked out once.
func (v *CoverageView) longestOf(c Cover) (d time.Duration, ok bool) {
	for _, job := range c.Jobs {
		if i := v.longest[job.ID]; i > 0 && (!ok || i < d) {
			d, ok = i, true
		}
	}
	return d, ok
}

// coverage builds one guest's row and its findings.
func (j Judge) coverage(v CoverageView, g Guest, archives []Archive) (Coverage, []*Finding) {
	r := Coverage{VMID: g.VMID, Name: g.Name, Cluster: v.Name, Type: g.Type, Node: g.Node, Template: g.Template, Jobs: []string{}, LastRun: v.Runs[g.VMID]}
	cover := v.cover(g)
	for _, job := range cover.Jobs {
		r.Jobs = append(r.Jobs, Clean(job.ID))
	}
	if cfg := v.configs[g.VMID]; cfg != nil {
		r.ExcludedVolumes = Ptr(Excluded(g.Type, cfg.Current))
	}
	good := newestGood(archives)
	var gap time.Duration
	var known bool
	if good != nil {
		gap, known = v.interval(cover, good.created)
		r.NewestAt, r.NewestAgeS, r.NewestStorage, r.NewestVolume = good.CreatedAt, good.AgeS, good.Storage, good.Volume
	} else {
		gap, known = v.longestOf(cover)
	}
	if known {
		r.IntervalS = Ptr(int64(gap / time.Second))
	}
	if v.Asked && (good != nil || v.whole()) {
		r.Archives = Ptr(len(archives))
	}
	var stale *Finding
	if good != nil && !g.Template {
		stale = Judge{Limits: j.Limits}.staleAfter(v.subject(g.VMID), time.Duration(*good.AgeS)*time.Second, gap, known)
	}
	r.Verdict, r.Reason = v.verdict(g, cover, good, archives, stale)
	if r.Verdict != CoverFresh {
		r.Passed = cover.Passed
		if r.Verdict != CoverUncovered {
			r.Read, r.NotRead = v.read, v.not
		}
	}
	return r, j.coverFindings(v, g, r, good, archives, gap, known)
}

// verdict judges one guest; stale is the finding that the newest archive makes.
func (v *CoverageView) verdict(g Guest, c Cover, good *Archive, archives []Archive, stale *Finding) (verdict, reason string) {
	switch {
	case !v.JobsRead:
		return Unknown, "the backup jobs could not be read"
	case len(c.Jobs) == 0 && !v.PoolsRead && v.poolJob():
		return Unknown, "pools could not be read, and a job chooses by pool"
	case len(c.Jobs) == 0:
		return CoverUncovered, uncoveredBecause(c, len(v.Jobs))
	case !v.Asked:
		return Unknown, "a job takes it; archives were not asked for"
	case good != nil && stale == nil: // of a template, any archive is good enough
		return CoverFresh, ""
	case mistakable(archives) != "":
		return Unknown, mistakable(archives)
	case good != nil && !v.certain(c, g.Node):
		return Unknown, "the newest archive that was seen is " + Seconds(good.AgeS) + " old; a newer one may be on " + few(v.not)
	case good != nil:
		return CoverStale, fmt.Sprintf("the newest archive is %s old (limit %s)", Seconds(good.AgeS), stale.Threshold)
	}
	if folder := v.foldersOnly(c, g.Node); folder != "" {
		return Unknown, folder
	}
	if !v.whole() {
		return Unknown, "no archive was seen, but these storages could not be read: " + few(v.not)
	}
	if len(archives) > 0 {
		return CoverNever, many(len(archives), "archive") + ", but none that is this guest's and can be restored"
	}
	return CoverNever, "no archive on any backup storage"
}

func (v *CoverageView) poolJob() bool {
	return slices.ContainsFunc(v.Jobs, func(j parse.BackupJob) bool { return j.Enabled && j.Pool != "" && Scheduled(j) })
}

// foldersOnly says that jobs write where no storage shows their archives.
func (v *CoverageView) foldersOnly(c Cover, node string) string {
	for _, job := range c.Jobs {
		id, known := v.target(job, node)
		switch {
		case !known:
			return "job " + Clean(job.ID) + " names no storage, and the node's own default could not be read"
		case id == "":
			return "job " + Clean(job.ID) + " writes into a folder that no storage names, so its archives cannot be seen"
		}
	}
	return ""
}

func uncoveredBecause(c Cover, jobs int) string {
	if jobs == 0 {
		return "there is no backup job in jobs.cfg (jobs from before PVE 7.1 stand in vzdump.cron, which is not read)"
	}
	if len(c.Passed) == 0 {
		return "no backup job names it (" + many(jobs, "job") + " read)"
	}
	var why []string
	for _, p := range c.Passed {
		why = append(why, "job "+p.Job+" "+p.Reason)
	}
	const most = 4
	if len(why) > most {
		why = append(why[:most], fmt.Sprintf("and %d more jobs", len(why)-most))
	}
	return strings.Join(why, "; ")
}

// coverFindings judges one guest.
func (j Judge) coverFindings(v CoverageView, g Guest, r Coverage, good *Archive, archives []Archive, gap time.Duration, known bool) []*Finding {
	subject := v.subject(g.VMID)
	var out []*Finding
	if run := r.LastRun; run != nil && run.Result == "failed" {
		out = append(out, j.Find("BACKUP_JOB_FAILED", "", subject, "the last backup failed: "+cmp.Or(run.Failure, "the log names no reason"),
			Evidence{Name: "started (local time)", Value: cmp.Or(run.StartedLocal, Unknown)}, Evidence{Name: "node", Value: run.Node}))
	}
	switch r.Verdict {
	case CoverUncovered:
		out = append(out, j.uncovered(subject, g, r))
	case CoverNever:
		out = append(out, j.never(v, g, r))
	case CoverStale:
		out = append(out, j.staleAfter(subject, time.Duration(*good.AgeS)*time.Second, gap, known,
			Evidence{Name: "newest", Value: good.CreatedAt}, Evidence{Name: "storage", Value: good.Storage}, Evidence{Name: "read", Value: strings.Join(v.read, ", ")}))
	}
	if len(archives) > 0 {
		out = append(out, j.verified(v.BackupView, subject, archives)...)
	}
	if good != nil {
		out = append(out, j.samePool(v, g, *good))
	}
	if r.ExcludedVolumes != nil && !g.Template {
		out = append(out, j.ExcludedFindings(subject, *r.ExcludedVolumes)...)
	}
	return out
}

func (j Judge) uncovered(subject string, g Guest, r Coverage) *Finding {
	severity := Info
	if !g.Template && (g.Status == Running || g.LastStatus == Running) {
		severity = Warning
	}
	evidence := []Evidence{{Name: "status", Value: g.Status}}
	for _, p := range r.Passed {
		evidence = append(evidence, Evidence{Name: "job " + p.Job, Value: p.Reason})
	}
	return j.Find("BACKUP_UNCOVERED", severity, subject, "no enabled backup job takes the guest: "+r.Reason, evidence...)
}

// never is milder for a template and for a guest that was made a moment ago.
func (j Judge) never(v CoverageView, g Guest, r Coverage) *Finding {
	severity, message := Severity(""), r.Reason
	evidence := []Evidence{{Name: "read", Value: strings.Join(v.read, ", ")}, {Name: "jobs", Value: strings.Join(r.Jobs, ", ")}}
	cfg := v.configs[g.VMID]
	switch {
	case g.Template:
		severity = Info
	case cfg != nil && cfg.Current.CreatedAt != nil && v.Now.Sub(time.Unix(*cfg.Current.CreatedAt, 0)) < v.grace(r):
		severity, message = Info, "no backup yet: the guest is new"
		evidence = append(evidence, Evidence{Name: "created_at", Value: At(*cfg.Current.CreatedAt)})
	}
	return j.Find("BACKUP_NONE", severity, v.subject(g.VMID), message, evidence...)
}

// grace is how long a new guest may be without a backup.
func (v *CoverageView) grace(r Coverage) time.Duration {
	d := 36 * time.Hour
	if r.IntervalS != nil {
		d = max(d, time.Duration(*r.IntervalS)*time.Second*3/2)
	}
	return d
}

// samePool finds an archive that lies where the guest's own disks are. Only one
// storage for both is proof; two storages on one pool are not seen here.
func (j Judge) samePool(v CoverageView, g Guest, good Archive) *Finding {
	cfg := v.configs[g.VMID]
	if cfg == nil {
		return nil
	}
	for _, d := range cfg.Current.Disks {
		if d.Kind == parse.DiskVolume && Clean(d.Storage) == good.Storage {
			return j.Find("BACKUP_SAME_POOL", "", v.subject(g.VMID), "the newest archive is on the storage of the guest's own disk "+Clean(d.Key),
				Evidence{Name: "storage", Value: good.Storage}, Evidence{Name: "newest", Value: good.CreatedAt})
		}
	}
	return nil
}

// Summarise counts rows.
func (s *CoverageSummary) Summarise(rows []Coverage) {
	for _, r := range rows {
		s.Guests++
		switch r.Verdict {
		case CoverFresh:
			s.Fresh++
		case CoverStale:
			s.Stale++
		case CoverNever:
			s.Never++
		case CoverUncovered:
			s.Uncovered++
		default:
			s.Unknown++
		}
		if r.LastRun != nil && r.LastRun.Result == "failed" {
			s.LastRunFailed++
		}
		if r.ExcludedVolumes != nil && slices.ContainsFunc(*r.ExcludedVolumes, func(v ExcludedVolume) bool { return !v.Decided }) {
			s.VolumesExcluded++
		}
	}
}

// Brief takes away what a concise answer does not need.
func (l *CoverageList) Brief() {
	for i := range l.Items {
		r := &l.Items[i]
		r.NewestVolume = ""
		if r.LastRun != nil && r.LastRun.Result == "ok" && r.NewestAt != "" {
			r.LastRun = nil
		}
		switch r.Verdict {
		case CoverUncovered:
			r.Passed = nil // the reason says it
		case CoverStale:
			r.NotRead = nil // nothing that could hold a newer one
		case Unknown:
			r.Read = nil
		}
	}
}

// Tables shows the coverage to people: the counts, the guests, the jobs.
func (l *CoverageList) Tables() []Table {
	s := l.Summary
	head := Table{Columns: []string{">guests", ">fresh", ">stale", ">never", ">uncovered", ">unknown", ">last run failed", ">with excluded volumes"}}
	var counts []string
	for _, n := range []int{s.Guests, s.Fresh, s.Stale, s.Never, s.Uncovered, s.Unknown, s.LastRunFailed, s.VolumesExcluded} {
		counts = append(counts, fmt.Sprint(n))
	}
	head.Rows = [][]string{counts}
	rows := Table{Title: "Guests", Columns: []string{">vmid", "name", "node", "verdict", ">age", "newest on", "jobs", "why", "last run", "not in backups"}}
	for _, r := range l.Items {
		run := ""
		if r.LastRun != nil && r.LastRun.Result != "ok" {
			run = strings.TrimSuffix(r.LastRun.Result+": "+r.LastRun.Failure, ": ")
		}
		var out []string
		if r.ExcludedVolumes != nil {
			for _, x := range *r.ExcludedVolumes {
				out = append(out, x.Key)
			}
		}
		rows.Rows = append(rows.Rows, []string{fmt.Sprint(r.VMID), r.Name, r.Node, r.Verdict, Seconds(r.NewestAgeS), r.NewestStorage, strings.Join(r.Jobs, ", "), r.Reason, run, strings.Join(out, ", ")})
	}
	rows.Notes = []string{l.Page.note("guests")}
	return append(append([]Table{head, rows}, jobTable(l.Jobs, l.MoreJobs), storageTable(l.Storages, l.MoreStorages)), findingTable(l.Findings, l.MoreFindings)...)
}

func storageTable(storages []ReadStorage, more int) Table {
	t := Table{Title: "Backup storages", Columns: []string{"storage", "node", "read", ">archives", "why not"}}
	for _, s := range storages {
		t.Rows = append(t.Rows, []string{s.Storage, s.Node, YesNo(&s.Read), fmt.Sprint(s.Archives), s.Reason})
	}
	if more > 0 {
		t.Notes = []string{fmt.Sprintf("and %d more", more)}
	}
	return t
}

// CoverageFindings collects findings; where rows were chosen, only those of the
// rows' guests, and of one guest not those of jobs.
func CoverageFindings(rows []Coverage, one, chosen bool, all []*Finding) []Finding {
	out := Findings(all...)
	if !chosen {
		return out
	}
	keep := map[string]bool{}
	for _, r := range rows {
		subject := fmt.Sprintf("guest/%d", r.VMID)
		if r.Cluster != "" {
			subject = r.Cluster + "/" + subject
		}
		keep[subject] = true
	}
	return slices.DeleteFunc(out, func(f Finding) bool {
		if strings.HasPrefix(f.Code, "BACKUP_JOB_") && f.Code != "BACKUP_JOB_FAILED" || f.Code == "BACKUP_NO_RETENTION" || strings.Contains(f.Subject, "storage/") {
			return one // about a job or a storage
		}
		return !keep[f.Subject]
	})
}

// sharedPlaces makes a finding for each storage in whose place another cluster
// keeps archives too.
func (j Judge) sharedPlaces(v CoverageView) []*Finding {
	var out []*Finding
	kinds := map[int]string{}
	for _, g := range v.Guests {
		kinds[g.VMID] = g.Type
	}
	for _, st := range v.Storages {
		others, same := []string{}, []int{}
		for vmid, n := range v.Namesakes[st.ID] {
			others = appendOnce(others, Clean(n.Cluster))
			if kinds[vmid] == n.Type {
				same = append(same, vmid)
			}
		}
		if len(others) == 0 {
			continue
		}
		slices.Sort(others)
		slices.Sort(same)
		subject := "storage/" + Clean(st.ID)
		if v.Name != "" {
			subject = v.Name + "/" + subject
		}
		code := "BACKUP_STORAGE_SHARED"
		if st.Type == "pbs" {
			code = "PBS_SHARED_NO_NAMESPACE"
		}
		out = append(out, j.Find(code, "", subject, "cluster "+strings.Join(others, ", ")+" keeps its archives in the same place",
			Evidence{Name: "place", Value: place(st)}, Evidence{Name: "guests with the same VMID", Value: cmp.Or(someIDs(same), "none now")}))
	}
	return out
}

func place(s parse.StorageConfig) string {
	return Clean(strings.Join(slices.DeleteFunc([]string{s.Server, s.Datastore, s.Namespace, s.Export, s.Share, s.Subdir, s.Volume}, func(x string) bool { return x == "" }), " "))
}
