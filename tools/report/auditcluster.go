package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// auditJobs judges the backup jobs and which guests they leave out.
func (j Judge) auditJobs(v AuditFacts) []*Finding {
	if !v.JobsRead {
		return nil
	}
	exists := map[int]bool{}
	for _, g := range v.Guests {
		exists[g.VMID] = true
	}
	var out []*Finding
	for _, job := range v.Jobs {
		out = append(out, j.auditJob(v, job, exists)...)
	}
	for _, g := range v.Guests {
		cover := CoverOf(v.Jobs, JobGuest{g.VMID, g.Node, g.Pool})
		if len(cover.Jobs) > 0 {
			continue
		}
		severity := Info
		if g.Status == Running {
			severity = Warning
		}
		var evidence []Evidence
		for _, p := range cover.Passed {
			evidence = append(evidence, Evidence{Name: p.Job, Value: p.Reason})
		}
		out = append(out, j.Find("BACKUP_UNCOVERED", severity, v.guest(g.VMID), "no enabled backup job takes the guest", evidence...))
	}
	return out
}

func (j Judge) auditJob(v AuditFacts, job parse.BackupJob, exists map[int]bool) []*Finding {
	var out []*Finding
	subject, id := v.subject("job", Clean(job.ID)), Clean(job.ID)
	takes := 0
	always := job
	always.Enabled = true
	if !Scheduled(always) {
		always.Schedule = "daily"
	}
	for _, g := range v.Guests {
		if len(CoverOf([]parse.BackupJob{always}, JobGuest{g.VMID, g.Node, g.Pool}).Jobs) > 0 {
			takes++
		}
	}
	guests := Evidence{"guests", fmt.Sprint(takes), "guests"}
	switch _, readable := JobInterval(job); {
	case !job.Enabled:
		if takes > 0 {
			out = append(out, j.Find("BACKUP_JOB_DISABLED", "", subject, fmt.Sprintf("backup job %s, which would take %s, is disabled", id, many(takes, "guest")), guests))
		}
		return out
	case !Scheduled(job):
		out = append(out, j.Find("BACKUP_JOB_NO_SCHEDULE", "", subject, "backup job "+id+" has no schedule", guests))
	case !readable:
		out = append(out, j.Find("BACKUP_JOB_NO_SCHEDULE", Info, subject, "the schedule of backup job "+id+" cannot be read by pvelens", Evidence{Name: "schedule", Value: Clean(cmp.Or(job.Schedule, job.StartTime))}))
	}
	storage := Evidence{Name: "storage", Value: Clean(job.Storage)}
	if why := v.badStorage(job); why != "" {
		out = append(out, j.Find("BACKUP_JOB_BAD_STORAGE", "", subject, fmt.Sprintf("backup job %s writes to %s, which %s", id, Clean(job.Storage), why), storage))
	}
	for _, vmid := range job.VMIDs {
		if v.Whole && !exists[vmid] && job.Pool == "" {
			out = append(out, j.Find("BACKUP_JOB_UNKNOWN_VMID", "", subject, fmt.Sprintf("backup job %s names guest %d, which does not exist", id, vmid), Evidence{Name: "vmid", Value: fmt.Sprint(vmid)}))
		}
	}
	if v.keepsAll(job) {
		out = append(out, j.Find("BACKUP_NO_RETENTION", "", subject, "neither backup job "+id+" nor storage "+Clean(job.Storage)+" removes old backups", storage))
	}
	return out
}

// badStorage says what is wrong with a job's storage. A job without one uses the
// node's default, which is not judged.
func (v AuditFacts) badStorage(job parse.BackupJob) string {
	if job.Storage == "" {
		return ""
	}
	i := slices.IndexFunc(v.Storages, func(c parse.StorageConfig) bool { return c.ID == job.Storage })
	switch {
	case i < 0:
		return "does not exist"
	case v.Storages[i].Disabled:
		return "is disabled"
	case !HoldsBackups(v.Storages[i]):
		return "may not hold backups"
	case job.Node != "" && !OnNode(v.Storages[i], job.Node):
		return "is not available on node " + Clean(job.Node)
	}
	return ""
}

// keepsAll reports whether nothing removes the archives of a job. A backup server
// may prune by itself, which cannot be seen.
func (v AuditFacts) keepsAll(job parse.BackupJob) bool {
	i := slices.IndexFunc(v.Storages, func(c parse.StorageConfig) bool { return c.ID == job.Storage })
	if i < 0 || v.Storages[i].Type == "pbs" {
		return false
	}
	c := v.Storages[i]
	removes := func(prune []parse.Option, max *int64) bool {
		return max != nil && *max > 0 || slices.ContainsFunc(prune, func(o parse.Option) bool { return o.Key != "keep-all" && o.Value != "0" })
	}
	if len(job.Prune) > 0 || job.MaxFiles != nil {
		return !removes(job.Prune, job.MaxFiles)
	}
	return !removes(c.Prune, c.MaxFiles)
}

// Proxmox's own schedule of a replication job that names none.
const replicationSchedule = "*/15"

func (j Judge) auditReplication(v AuditFacts) []*Finding {
	nodes := map[int]string{}
	for _, g := range v.Guests {
		nodes[g.VMID] = g.Node
	}
	var out []*Finding
	for _, job := range v.Replication {
		subject := v.guest(job.VMID)
		what := fmt.Sprintf("replication %s to %s", Clean(job.ID), Clean(job.Target))
		node := cmp.Or(nodes[job.VMID], job.Source)
		switch {
		case job.Disabled:
			out = append(out, j.Find("REPL_DISABLED", "", subject, what+" is disabled", Evidence{Name: "job", Value: Clean(job.ID)}))
		case v.Nodes[node].ReplRead && job.RemoveJob == "":
			out = append(out, j.replicated(v, subject, what, job, v.Nodes[node].Replication))
		}
	}
	return out
}

func (j Judge) replicated(v AuditFacts, subject, what string, job parse.ReplicationJob, states []parse.ReplicationState) *Finding {
	i := slices.IndexFunc(states, func(s parse.ReplicationState) bool { return s.VMID == job.VMID && s.Target == job.Target })
	if i < 0 {
		return j.Find("REPL_NEVER", "", subject, what+" has never run", Evidence{Name: "job", Value: Clean(job.ID)})
	}
	s := states[i]
	last := Evidence{Name: "last sync", Value: "never"}
	if s.LastSync != nil {
		last.Value = At(*s.LastSync)
	}
	schedule := cmp.Or(job.Schedule, replicationSchedule)
	interval, readable := Interval(schedule)
	switch {
	case s.FailCount != nil && *s.FailCount > 0:
		return j.Measure("REPL_FAILED", subject, fmt.Sprintf("%s failed: %s", what, cmp.Or(Clean(s.Error), "no reason is told")), "failures", float64(*s.FailCount), last)
	case s.LastSync == nil:
		return j.Find("REPL_NEVER", "", subject, what+" has never run", Evidence{Name: "job", Value: Clean(job.ID)})
	case readable && interval > 0:
		ratio := float64(age(v.Now, *s.LastSync)) / float64(interval)
		return j.Measure("REPL_LAG", subject, what+" is late", "age", ratio, last, Evidence{Name: "schedule", Value: Clean(schedule)})
	case age(v.Now, *s.LastSync) > time.Hour:
		return j.Find("REPL_LAG", Info, subject, what+" last ran more than an hour ago; its schedule cannot be read", last, Evidence{Name: "schedule", Value: Clean(schedule)})
	}
	return nil
}

func (j Judge) auditCertificates(v AuditFacts) []*Finding {
	var out []*Finding
	for node, n := range v.Nodes {
		for _, c := range n.Certs {
			if c.NotAfter == nil {
				continue
			}
			days := c.NotAfter.Sub(v.Now).Hours() / 24
			message := fmt.Sprintf("certificate %s ends on %s", Clean(c.File), c.NotAfter.Format(time.DateOnly))
			if days < 0 {
				message = fmt.Sprintf("certificate %s ended on %s", Clean(c.File), c.NotAfter.Format(time.DateOnly))
			}
			out = append(out, j.Measure("CERT_EXPIRING", v.subject("node", node), message, "days left", days, Evidence{Name: "file", Value: Clean(c.File)}))
		}
	}
	return out
}

// A reference is a volume that a configuration names: by its storage, and of a
// storage that is not shared by the guest's node.
type reference struct{ where, node, name string }

// where tells storages apart by what they lie on, for two may show one volume.
func whereOf(c parse.StorageConfig) string {
	switch c.Type {
	case "zfspool", "rbd":
		return c.Type + " " + c.Pool
	case "lvmthin", "lvm":
		return "vg " + c.VGName
	case "dir", "btrfs":
		return "dir " + c.Path
	case "nfs":
		return "nfs " + c.Server + " " + c.Export
	case "cifs":
		return "cifs " + c.Server + " " + c.Share
	}
	return c.ID
}

func (v AuditFacts) references() map[reference]bool {
	storages := map[string]parse.StorageConfig{}
	for _, c := range v.Storages {
		storages[c.ID] = c
	}
	out := map[reference]bool{}
	add := func(g AuditGuest, volume string) {
		id, path, ok := strings.Cut(volume, ":")
		c, known := storages[id]
		if !ok || !known {
			return
		}
		r := reference{where: whereOf(c), name: path[strings.LastIndexByte(path, '/')+1:]}
		if !c.Shared {
			r.node = g.Node
		}
		out[r] = true
		if i := strings.IndexByte(path, '/'); i > 0 { // a linked clone names its base first
			r.name = path[:i]
			out[r] = true
		}
	}
	section := func(g AuditGuest, s parse.GuestSettings) {
		add(g, s.VMState)
		for _, d := range s.Disks {
			add(g, d.Volume)
		}
	}
	for _, g := range v.Guests {
		section(g, g.Config.Current)
		if g.Config.Pending != nil {
			section(g, g.Config.Pending.Settings)
		}
		for _, snap := range g.Config.Snapshots {
			section(g, snap.Settings)
		}
		for _, image := range g.Config.FleecingImages {
			add(g, image)
		}
	}
	return out
}

// orphanDisks finds volumes that nobody names. A guest that is being moved or
// made, a copy that replication keeps, and a backup's own image are none.
func (j Judge) orphanDisks(v AuditFacts) []*Finding {
	if !v.Whole || len(v.Volumes) == 0 {
		return nil
	}
	named := v.references()
	busy, copies := map[int]bool{}, map[string]bool{}
	for _, g := range v.Guests {
		busy[g.VMID] = g.Lock != "" && g.Lock != "suspended"
	}
	for _, r := range v.Replication {
		copies[fmt.Sprint(r.VMID, " ", r.Target)] = true
	}
	var out []*Finding
	seen := map[reference]bool{}
	for _, src := range v.Volumes {
		for _, vol := range src.Content.Volumes {
			r := reference{where: whereOf(src.Storage), name: vol.Name}
			if !src.Storage.Shared {
				r.node = src.Node
			}
			switch {
			case vol.VMID == nil || named[r] || seen[r] || busy[*vol.VMID] || strings.Contains(vol.Name, "-fleece-"):
				continue
			case !src.Storage.Shared && copies[fmt.Sprint(*vol.VMID, " ", src.Node)]:
				continue
			case vol.Created != nil && v.Now.Sub(*vol.Created) < time.Hour:
				continue
			}
			seen[r] = true
			out = append(out, j.orphanDisk(v, src, vol))
		}
	}
	return out
}

func (j Judge) orphanDisk(v AuditFacts, src VolumeSource, vol parse.Volume) *Finding {
	parts := []string{"storage", src.Node, Clean(src.Storage.ID)}
	if src.Storage.Shared {
		parts = []string{"storage", Clean(src.Storage.ID)}
	}
	evidence := []Evidence{{Name: "volume", Value: Clean(vol.Volume)}, {Name: "named for guest", Value: fmt.Sprint(*vol.VMID)}}
	if vol.Size != nil {
		evidence = append(evidence, Evidence{"size_bytes", fmt.Sprint(*vol.Size), "bytes"})
	}
	message := fmt.Sprintf("volume %s belongs to no guest of the cluster", Clean(vol.Volume))
	if src.Storage.Shared {
		message += " (another cluster that uses the storage may own it)"
	}
	return j.Find("DISK_ORPHAN", "", v.subject(parts...), message, evidence...)
}

// AuditBackups is BackupFindings for many guests: it looks at each archive once.
func (j Judge) AuditBackups(v BackupView) []*Finding {
	archives := v.Archives()
	mine, guests, configs := map[int][]Archive{}, map[int]Guest{}, map[int]parse.GuestConfig{}
	for _, a := range archives {
		if a.VMID != nil {
			mine[*a.VMID] = append(mine[*a.VMID], a)
		}
	}
	for _, c := range v.Configs {
		configs[c.VMID] = c
	}
	var out []*Finding
	for _, g := range v.Guests {
		guests[g.VMID] = g
		one := v
		one.Guests, one.Configs = []Guest{g}, nil
		if c, ok := configs[g.VMID]; ok {
			one.Configs = []parse.GuestConfig{c}
		}
		for _, s := range one.Summaries(mine[g.VMID]) {
			out = append(out, j.guestBackup(one, g, s, mine[g.VMID])...)
		}
	}
	return slices.Concat(out, j.orphans(v, archives, guests), j.unfinished(v))
}

// NodeFindings are a node's own findings, of its capacity.
func (j Judge) NodeFindings(v NodeView) []*Finding {
	st := *v.Cluster.State
	st.Guests = slices.DeleteFunc(slices.Clone(st.Guests), func(g parse.GuestRef) bool { return g.Node != v.Node })
	v.Cluster.State, v.Cluster.Configs = &st, nil
	var out []*Finding
	for _, f := range NodeCapacity(v, j).Findings {
		if v.Cluster.Name != "" {
			f.Subject = v.Cluster.Name + "/" + f.Subject
		}
		out = append(out, &f)
	}
	return out
}

// OncePerBackup drops a node's finding about a failed backup where the guests'
// own findings of that node say which failed and why.
func OncePerBackup(all []*Finding) []*Finding {
	const code = "BACKUP_JOB_FAILED"
	told := map[string]bool{}
	for _, f := range all {
		if f != nil && f.Code == code && strings.Contains("/"+f.Subject, "/guest/") {
			for _, e := range f.Evidence {
				if e.Name == "node" {
					told[e.Value] = true
				}
			}
		}
	}
	return slices.DeleteFunc(all, func(f *Finding) bool {
		if f == nil || f.Code != code {
			return f == nil
		}
		i := strings.LastIndex("/"+f.Subject, "/node/")
		return i >= 0 && told[f.Subject[i+len("node/"):]]
	})
}

// Holds reports whether a storage may hold a kind of content.
func Holds(s parse.StorageConfig, kind string) bool { return slices.Contains(contentOf(s), kind) }
