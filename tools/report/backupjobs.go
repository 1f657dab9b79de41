package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// A CoverageJob is one backup job: what it takes and what is wrong with it.
// Guests counts those that it chooses, also when it is disabled. IntervalS is
// the longest time between two runs, absent when the schedule cannot be read.
type CoverageJob struct {
	Job       string `json:"job"`
	Cluster   string `json:"cluster,omitempty"`
	Enabled   bool   `json:"enabled"`
	Schedule  string `json:"schedule,omitempty"`
	IntervalS *int64 `json:"interval_s,omitempty"`
	Storage   string `json:"storage,omitempty"`
	Node      string `json:"node,omitempty"`
	Chooses   string `json:"chooses"`
	Guests    int    `json:"guests"`
	Problem   string `json:"problem,omitempty"`
}

// jobs builds the jobs' rows and judges them; rows are all guests.
func (j Judge) jobs(v CoverageView, rows []Coverage) ([]CoverageJob, []*Finding) {
	covered := map[int]bool{}
	for _, r := range rows {
		covered[r.VMID] = len(r.Jobs) > 0
	}
	out := []CoverageJob{}
	var findings []*Finding
	for _, job := range v.Jobs {
		row, found := j.job(v, job, covered)
		out, findings = append(out, row), append(findings, found...)
	}
	return out, findings
}

func (j Judge) job(v CoverageView, job parse.BackupJob, covered map[int]bool) (CoverageJob, []*Finding) {
	id := Clean(job.ID)
	r := CoverageJob{Job: id, Cluster: v.Name, Enabled: job.Enabled, Schedule: Clean(ScheduleOf(job)), Storage: Clean(job.Storage), Node: Clean(job.Node), Chooses: choosing(job)}
	every, readable := JobInterval(job)
	if readable {
		r.IntervalS = Ptr(int64(every / time.Second))
	}
	bare, nodes := 0, map[string]bool{}
	for _, g := range v.Guests {
		chosen, _ := chooses(job, JobGuest{VMID: g.VMID, Node: g.Node, Pool: g.Pool})
		if !chosen || job.Node != "" && job.Node != g.Node {
			continue
		}
		r.Guests++
		nodes[g.Node] = true
		if !covered[g.VMID] {
			bare++
		}
	}
	var findings []*Finding
	find := func(code string, severity Severity, problem string, evidence ...Evidence) {
		r.Problem = join2(r.Problem, problem)
		findings = append(findings, j.Find(code, severity, v.jobSubject(id), "job "+id+" "+problem, evidence...))
	}
	count := Evidence{Name: "guests", Value: fmt.Sprint(r.Guests)}
	switch {
	case !job.Enabled && r.Guests > 0:
		severity := Info
		if bare > 0 {
			severity = Warning
		}
		find("BACKUP_JOB_DISABLED", severity, "is disabled", count, Evidence{Name: "guests without another job", Value: fmt.Sprint(bare)})
	case !job.Enabled:
		r.Problem = "is disabled"
	case !Scheduled(job):
		find("BACKUP_JOB_NO_SCHEDULE", "", "has no schedule, so it never runs by itself", count)
	case !Readable(ScheduleOf(job)):
		find("BACKUP_JOB_NO_SCHEDULE", "", "has a schedule that cannot be read", count, Evidence{Name: "schedule", Value: r.Schedule})
	}
	if job.Enabled {
		if why, bad := v.badStorage(job, nodes); why != "" {
			find("BACKUP_JOB_BAD_STORAGE", "", why, count, Evidence{Name: "storage", Value: r.Storage}, Evidence{Name: "nodes", Value: someOf(bad, "node")})
		}
		if v.keepsAll(job) {
			find("BACKUP_NO_RETENTION", "", "removes no old backups, and neither does its storage", Evidence{Name: "storage", Value: r.Storage})
		}
	}
	for _, vmid := range job.VMIDs {
		if _, exists := covered[vmid]; !exists && job.Pool == "" {
			find("BACKUP_JOB_UNKNOWN_VMID", "", fmt.Sprintf("names guest %d, which does not exist", vmid))
		}
	}
	return r, findings
}

// join2 joins two texts, either of which may be empty.
func join2(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

func (v *CoverageView) jobSubject(id string) string {
	if v.Name != "" {
		return v.Name + "/job/" + id
	}
	return "job/" + id
}

// choosing says how a job chooses its guests.
func choosing(job parse.BackupJob) string {
	switch {
	case job.Pool != "":
		return "pool " + Clean(job.Pool)
	case len(job.VMIDs) > 0:
		return "guests " + someIDs(job.VMIDs)
	case len(job.Exclude) > 0:
		return "all but " + someIDs(job.Exclude)
	case job.All:
		return "all"
	}
	return "nothing"
}

func someIDs(ids []int) string {
	const most = 10
	var out []string
	for _, id := range ids[:min(len(ids), most)] {
		out = append(out, fmt.Sprint(id))
	}
	if len(ids) > most {
		out = append(out, fmt.Sprintf("and %d more", len(ids)-most))
	}
	return strings.Join(out, ", ")
}

// badStorage says why a job cannot write, and on which nodes of the guests that
// it chooses; of a job without guests the storage alone counts.
func (v *CoverageView) badStorage(job parse.BackupJob, nodes map[string]bool) (why string, on []string) {
	names := NodeNames(v.State)
	for _, node := range names {
		if !nodes[node] {
			continue
		}
		if w := v.cannotWrite(job, node); w != "" {
			why, on = w, append(on, node)
		}
	}
	if last := len(on) - 1; last > 0 {
		why = strings.Replace(why, "which node "+on[last]+" does not have", "which "+someOf(on, "node")+" do not have", 1)
	}
	if len(nodes) == 0 && job.Storage != "" {
		i := slices.IndexFunc(v.Storages, func(s parse.StorageConfig) bool { return s.ID == job.Storage })
		if i < 0 || v.Storages[i].Disabled || !HoldsBackups(v.Storages[i]) {
			return v.cannotWrite(job, job.Node), []string{}
		}
	}
	return why, on
}

// keepsAll reports whether nothing removes a job's old archives. A backup server
// prunes by itself, so that is not known; nor is it where a node's default
// decides and was not read.
func (v *CoverageView) keepsAll(job parse.BackupJob) bool {
	if job.Remove != nil && !*job.Remove {
		return true
	}
	i := slices.IndexFunc(v.Storages, func(s parse.StorageConfig) bool { return s.ID == job.Storage })
	if i < 0 || v.Storages[i].Type == "pbs" {
		return false
	}
	for _, p := range []struct {
		prune []parse.Option
		files *int64
	}{{job.Prune, job.MaxFiles}, {v.Storages[i].Prune, v.Storages[i].MaxFiles}} {
		if len(p.prune) > 0 || p.files != nil {
			return !prunes(p.prune, p.files)
		}
	}
	defaults := 0
	for _, d := range v.Defaults {
		if len(d.Prune) > 0 || d.MaxFiles != nil {
			return !prunes(d.Prune, d.MaxFiles)
		}
		defaults++
	}
	return defaults > 0
}

// prunes reports whether a retention removes anything.
func prunes(options []parse.Option, files *int64) bool {
	keeps := false
	for _, o := range options {
		if o.Key == "keep-all" && o.Value != "0" && o.Value != "false" && o.Value != "no" {
			return false
		}
		keeps = keeps || strings.HasPrefix(o.Key, "keep-") && o.Key != "keep-all" && o.Value != "0"
	}
	return keeps || len(options) == 0 && files != nil && *files > 0
}

func jobTable(jobs []CoverageJob, more int) Table {
	t := Table{Title: "Jobs", Columns: []string{"job", "enabled", "schedule", ">every", "storage", "node", "chooses", ">guests", "problem"}}
	for _, j := range jobs {
		t.Rows = append(t.Rows, []string{j.Job, YesNo(&j.Enabled), j.Schedule, Seconds(j.IntervalS), j.Storage, j.Node, j.Chooses, fmt.Sprint(j.Guests), j.Problem})
	}
	if more > 0 {
		t.Notes = []string{fmt.Sprintf("and %d more jobs", more)}
	}
	if len(jobs) == 0 {
		t.Notes = []string{"no backup job in jobs.cfg"}
	}
	return t
}

// NeedsDefaults reports whether a node's own backup defaults decide anything: a
// job without a storage, or one that nothing else gives a retention.
func NeedsDefaults(jobs []parse.BackupJob, storages []parse.StorageConfig) (storage, retention bool) {
	for _, j := range jobs {
		if !j.Enabled {
			continue
		}
		if j.Storage == "" && j.DumpDir == "" {
			storage = true
		}
		i := slices.IndexFunc(storages, func(s parse.StorageConfig) bool { return s.ID == j.Storage })
		if i >= 0 && storages[i].Type != "pbs" && len(j.Prune)+len(storages[i].Prune) == 0 && j.MaxFiles == nil && storages[i].MaxFiles == nil {
			retention = true
		}
	}
	return storage, retention
}
