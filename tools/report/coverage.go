package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// A Cover says which backup jobs take a guest. Jobs are the enabled ones with a
// schedule; Passed are those that come close and do not, each with the reason.
type Cover struct {
	Jobs   []parse.BackupJob
	Passed []PassedJob
}

// A PassedJob is a backup job that does not take a guest although it looks as
// if it did.
type PassedJob struct {
	Job    string `json:"job"`
	Reason string `json:"reason"`
}

// A JobGuest is what a backup job chooses guests by. Pool is the one pool that
// the guest is a direct member of, or "".
type JobGuest struct {
	VMID int
	Node string
	Pool string
}

// CoverOf returns the jobs that take a guest, as vzdump chooses (VZDump.pm,
// get_included_guests, PVE 7 to 9): by pool, else by the list of VMIDs, else all
// but the excluded. A pool counts its direct members only, and a job with a
// node takes only what is on that node when it runs.
func CoverOf(jobs []parse.BackupJob, g JobGuest) Cover {
	c := Cover{Jobs: []parse.BackupJob{}, Passed: []PassedJob{}}
	for _, j := range jobs {
		chosen, why := chooses(j, g)
		switch {
		case !chosen:
		case !j.Enabled:
			why = "is disabled"
		case !Scheduled(j):
			why = "has no schedule, so it never runs by itself"
		case j.Node != "" && j.Node != g.Node:
			why = "takes only what is on node " + Clean(j.Node)
		default:
			c.Jobs = append(c.Jobs, j)
			continue
		}
		if why != "" {
			c.Passed = append(c.Passed, PassedJob{Clean(j.ID), why})
		}
	}
	return c
}

// chooses reports whether a job's selection holds the guest, and why not when
// that may surprise.
func chooses(j parse.BackupJob, g JobGuest) (bool, string) {
	switch {
	case j.Pool != "":
		if strings.HasPrefix(g.Pool, j.Pool+"/") {
			return false, fmt.Sprintf("takes pool %s, not the pool %s inside it", Clean(j.Pool), Clean(g.Pool))
		}
		return g.Pool == j.Pool, ""
	case len(j.VMIDs) > 0:
		return slices.Contains(j.VMIDs, g.VMID), ""
	case j.All || len(j.Exclude) > 0:
		if slices.Contains(j.Exclude, g.VMID) {
			return false, "excludes it"
		}
		return true, ""
	}
	return false, ""
}

// Scheduled reports whether a job has a time at which it runs by itself.
func Scheduled(j parse.BackupJob) bool { return j.Schedule != "" || j.StartTime != "" }

// JobInterval is the longest time between two runs of a job; ok is false when
// its schedule cannot be read.
func JobInterval(j parse.BackupJob) (time.Duration, bool) {
	return Interval(ScheduleOf(j))
}

// ScheduleOf is a job's schedule as a calendar event, the form before PVE 7.1
// (dow and starttime) too; "" when it has none.
func ScheduleOf(j parse.BackupJob) string {
	if j.Schedule != "" || j.StartTime == "" {
		return j.Schedule
	}
	days := strings.FieldsFunc(j.DOW, func(r rune) bool { return r == ',' || r == ';' || r == ' ' })
	return strings.TrimSpace(strings.Join(days, ",") + " " + j.StartTime)
}

// Interval is the shortest interval of the jobs that take the guest; ok is
// false when none is known.
func (c Cover) Interval() (d time.Duration, ok bool) {
	for _, j := range c.Jobs {
		if i, readable := JobInterval(j); readable && (!ok || i < d) {
			d, ok = i, true
		}
	}
	return d, ok
}

// An ExcludedVolume is a disk or mount point that the guest's backups do not
// contain. Decided is set where somebody chose so: it is switched off, or it is
// bound from the node and never part of a backup.
type ExcludedVolume struct {
	Key       string `json:"key"`
	Volume    string `json:"volume,omitempty"`
	SizeBytes *int64 `json:"size_bytes,omitempty"`
	Reason    string `json:"reason"`
	Decided   bool   `json:"decided,omitempty"`
}

// Excluded returns what the backups of a guest leave out. Of a container the
// root filesystem is always in, a mount point only with backup=1 and only if it
// is a volume; of a VM every disk is in unless backup=0. CD drives, cloud-init
// and detached disks are no data of the guest. What raw keys mount is never in.
func Excluded(kind string, s parse.GuestSettings) []ExcludedVolume {
	out := []ExcludedVolume{}
	for _, d := range s.Disks {
		reason, decided := "", true
		off := d.Backup != nil && !*d.Backup
		switch {
		case d.Kind == parse.DiskCDROM || d.Kind == parse.DiskCloudInit || d.Kind == parse.DiskUnused || d.Bus == "rootfs":
		case kind == "lxc" && d.Kind == parse.DiskBind:
			reason = "bound from the node: never in a backup"
		case kind == "lxc" && d.Kind == parse.DiskDevice:
			reason = "a device of the node: never in a backup"
		case off:
			reason = "backup=0"
		case kind == "lxc" && d.Backup == nil:
			reason, decided = "a mount point without backup=1", false
		case kind == "qemu" && d.Kind == parse.DiskEFI && s.BIOS != "ovmf":
			reason = "an EFI disk without bios=ovmf"
		}
		if reason != "" {
			volume := d.Volume
			if volume == "" {
				volume = d.Source
			}
			out = append(out, ExcludedVolume{Clean(d.Key), Clean(volume), d.SizeBytes, reason, decided})
		}
	}
	for _, m := range s.Raw.Mounts {
		if holdsData(m) {
			out = append(out, ExcludedVolume{Key: "lxc.mount.entry", Volume: Clean(m.Source), Reason: "a raw mount entry: never in a backup", Decided: true})
		}
	}
	return out
}

// holdsData tells folders and disks of the node from device files and what the
// kernel makes up.
func holdsData(m parse.RawMount) bool {
	switch {
	case !strings.HasPrefix(m.Source, "/") || belowAny(m.Source, []string{"/proc", "/sys", "/run"}):
		return false
	case belowAny(m.Source, []string{"/dev"}):
		return m.Type != "none"
	}
	return true
}

// ExcludedFindings makes a finding for every volume that backups leave out.
func (j Judge) ExcludedFindings(subject string, volumes []ExcludedVolume) []*Finding {
	var out []*Finding
	for _, v := range volumes {
		severity := Warning
		if v.Decided {
			severity = Info
		}
		evidence := []Evidence{{Name: v.Key, Value: v.Volume}}
		if v.SizeBytes != nil {
			evidence = append(evidence, Evidence{Name: "size_bytes", Value: fmt.Sprint(*v.SizeBytes), Unit: "bytes"})
		}
		out = append(out, j.Find("BACKUP_DISK_EXCLUDED", severity, subject, fmt.Sprintf("%s is in no backup: %s", v.Key, v.Reason), evidence...))
	}
	return out
}

// staleAfter holds the age of a guest's newest archive against the catalogue's
// limits or, where a job's interval is known and the profile has no limit of
// its own, against 1.5 and 3 times that interval.
func (j Judge) staleAfter(subject string, age, interval time.Duration, known bool, evidence ...Evidence) *Finding {
	const code = "BACKUP_STALE"
	message := fmt.Sprintf("the newest backup is %s old", Seconds(Ptr(int64(age/time.Second))))
	if _, own := j.Limits[code]; own || !known {
		return j.Measure(code, subject, message, "age", age.Hours(), evidence...)
	}
	with := Judge{Ignore: j.Ignore, Limits: map[string]Limit{code: {Warning: Ptr(1.5 * interval.Hours()), Critical: Ptr(3 * interval.Hours())}}}
	f := with.Measure(code, subject, message, "age", age.Hours(), evidence...)
	if f != nil {
		f.Threshold = strings.Replace(f.Threshold, "(profile)", fmt.Sprintf("(from the backup job's interval of %s)", Seconds(Ptr(int64(interval/time.Second)))), 1)
	}
	return f
}
