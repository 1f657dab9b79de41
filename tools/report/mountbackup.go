package report

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// The answers to "is it in a backup?".
const (
	BackupYes     = "yes"
	BackupNo      = "no"
	BackupUnknown = "unknown"
)

// A BackupState is what is known of one guest's backups: the jobs that take it,
// its archives, and the storages that could not be read. Problem says why nothing
// is known at all.
type BackupState struct {
	Cover        Cover
	Archives     []parse.Archive   // of this guest's VMID
	Unread       []string          // storages that may hold archives and were not read
	Disabled     []string          // storages that are switched off, and may hold archives
	Others       []parse.BackupJob // that choose the guest and do not take it now: disabled, without a schedule
	ExcludePaths []string          // from the node's defaults
	StdExcludes  bool              // the node's default list is in force
	Problem      string
}

// A GuestFiles is what is known of the guest around its containers. Mounts is
// nil where the guest's mount table was not read.
type GuestFiles struct {
	Host   bool // a docker host that is no guest, as far as is known
	Kind   string
	Config *parse.GuestConfig
	Mounts []parse.GuestMount
	Backup BackupState
	Judged time.Time
}

// A MountBackup says where a mount's data lies and whether a backup contains it.
// GuestVolume is the guest's mount point or disk (rootfs, mp0); GuestSource the
// volume or path behind it. Assumes is what yes rests on and cannot be seen.
type MountBackup struct {
	GuestVolume string `json:"guest_volume,omitempty"`
	GuestSource string `json:"guest_source,omitempty"`
	InBackup    string `json:"in_backup"`
	Reason      string `json:"reason"`
	Assumes     string `json:"assumes,omitempty"`
	Archive     string `json:"archive,omitempty"`
	ArchiveAt   string `json:"archive_at,omitempty"`
	ArchiveAgeS *int64 `json:"archive_age_s,omitempty"`
	noData      bool   // nothing that a backup should hold
}

// BackupOf judges one mount of a container; inUse says that a container which
// has it runs, made when the oldest of them was made. It says yes only if the path lies on a part of the guest that
// backups contain, and an archive of the guest is there.
func BackupOf(m parse.ContainerMount, inUse bool, made *time.Time, g GuestFiles) MountBackup {
	b, ok := withoutGuest(m)
	switch {
	case ok:
		return b
	case g.Host:
		return MountBackup{InBackup: BackupUnknown, Reason: "this docker host is no guest of the clusters in the profile, as far as is known: look at its own backup"}
	case g.Config == nil:
		return MountBackup{InBackup: BackupUnknown, Reason: "the guest's configuration could not be read"}
	case g.Kind == "lxc":
		b = onContainer(m, inUse, g)
	default:
		b = onVM(m, g)
	}
	if b.InBackup != "" {
		return b
	}
	return g.archived(b, cleanPath(m.Source), made)
}

// withoutGuest judges what no guest's disk holds, or what only a driver knows.
func withoutGuest(m parse.ContainerMount) (MountBackup, bool) {
	no := func(reason string) (MountBackup, bool) {
		return MountBackup{InBackup: BackupNo, Reason: reason, noData: true}, true
	}
	src := cleanPath(m.Source)
	switch {
	case m.Type == "tmpfs":
		return no("a tmpfs: it lives in memory and is gone when the container stops")
	case m.Type == "image":
		return no("an image that is mounted: nothing to back up")
	case m.Type != "volume" && m.Type != "bind":
		return MountBackup{InBackup: BackupUnknown, Reason: "where a mount of type " + Clean(m.Type) + " lies is not known"}, true
	case m.Type == "volume" && m.Driver != "" && m.Driver != "local":
		return MountBackup{InBackup: BackupUnknown, Reason: "the volume's driver " + Clean(m.Driver) + " decides where the data lies"}, true
	case !strings.HasPrefix(m.Source, "/"):
		return MountBackup{InBackup: BackupUnknown, Reason: "the runtime names no path for it"}, true
	}
	for _, dir := range []string{"/run", "/var/run", "/proc", "/sys", "/dev"} {
		if below(src, dir) {
			return no("a part of the running system: nothing to back up")
		}
	}
	return MountBackup{}, false
}

// onContainer finds the part of an LXC guest that a mount lies on. InBackup is
// left open where backups contain that part.
func onContainer(m parse.ContainerMount, inUse bool, g GuestFiles) MountBackup {
	all := areas(g.Config.Current)
	src := cleanPath(m.Source)
	a, foreign, problem := areaOf(src, all, g.Mounts)
	switch {
	case problem != "":
		return MountBackup{InBackup: BackupUnknown, Reason: problem}
	case foreign != "":
		return MountBackup{InBackup: BackupNo, Reason: "it lies on a filesystem that is mounted inside the guest at " + foreign + "; a backup of the guest leaves that out"}
	}
	b := MountBackup{GuestVolume: Clean(a.key), GuestSource: Clean(a.source)}
	if a.excluded != "" {
		b.InBackup, b.Reason = BackupNo, fmt.Sprintf("it lies on %s: %s", b.GuestVolume, a.excluded)
		return b
	}
	others := elsewhere(all, g.Mounts)
	part := partElsewhere(src, all, g.Mounts)
	unknown := func(reason string) MountBackup {
		b.InBackup, b.Reason = BackupUnknown, reason
		return b
	}
	switch {
	case g.Mounts == nil:
		return unknown("the guest's mount table could not be read, so the data may lie elsewhere (NFS, a bind mount)")
	case part != "":
		return unknown("a part of it lies elsewhere, at " + part + ", and backups may not contain that")
	case m.Type == "volume" && !inUse:
		return unknown("no container that uses the volume runs, so it cannot be seen whether it is mounted from elsewhere (NFS, a bind mount)")
	case m.Type == "bind" && !inUse && oftenMounted(src):
		return unknown("no container that has it runs, and the path may be a filesystem that is mounted only then")
	case m.Type == "volume" && below(src, "/var/snap"):
		return unknown("docker from snap mounts volumes out of sight")
	case m.Type == "bind" && len(others) > 0:
		b.Assumes = "no part of the path is a symbolic link to " + few(others)
	}
	return b
}

// onVM judges by all disks at once: which of them a path lies on is not known.
func onVM(m parse.ContainerMount, g GuestFiles) MountBackup {
	s := g.Config.Current
	var in, out []string
	excluded := Excluded("qemu", s)
	for _, d := range s.Disks {
		if d.Kind != parse.DiskVolume && d.Kind != parse.DiskDevice && d.Kind != parse.DiskBind {
			continue
		}
		if slices.ContainsFunc(excluded, func(v ExcludedVolume) bool { return v.Key == d.Key }) {
			out = append(out, Clean(d.Key))
		} else {
			in = append(in, Clean(d.Key))
		}
	}
	switch {
	case len(in)+len(out) == 0:
		return MountBackup{InBackup: BackupUnknown, Reason: "the VM's configuration names no disk"}
	case len(in) == 0:
		return MountBackup{InBackup: BackupNo, Reason: "no disk of the VM is in its backups (" + strings.Join(out, ", ") + ": backup=0)"}
	case len(out) > 0:
		return MountBackup{InBackup: BackupUnknown, Reason: fmt.Sprintf("which disk it lies on is not known, and %s of the VM is in no backup", strings.Join(out, ", "))}
	case m.Type == "bind" && slices.ContainsFunc(s.Devices, func(d parse.PassedDevice) bool { return strings.HasPrefix(d.Key, "virtiofs") }):
		return MountBackup{InBackup: BackupUnknown, Reason: "directories of the node are shared into the VM (virtiofs), and no backup contains them; where is not known"}
	case m.Type == "bind" && oftenMounted(cleanPath(m.Source)):
		return MountBackup{InBackup: BackupUnknown, Reason: "the path may be a network filesystem or a USB disk mounted inside the VM, which no backup contains"}
	}
	b := MountBackup{GuestVolume: strings.Join(in, ","), Assumes: "it lies on the VM's own disks, not on a network filesystem mounted inside"}
	if slices.ContainsFunc(s.Devices, func(d parse.PassedDevice) bool {
		return strings.HasPrefix(d.Key, "hostpci") || strings.HasPrefix(d.Key, "usb")
	}) {
		b.Assumes += " or a device passed through"
	}
	if len(in) == 1 {
		for _, d := range s.Disks {
			if Clean(d.Key) == in[0] {
				b.GuestSource = Clean(cmp.Or(d.Volume, d.Source))
			}
		}
	}
	return b
}

// oftenMounted reports whether a path lies where people mount other machines'
// disks.
func oftenMounted(src string) bool {
	first := strings.SplitN(strings.TrimPrefix(src, "/"), "/", 2)[0]
	return slices.Contains([]string{"mnt", "media", "net", "nfs", "smb", "cifs", "nas", "remote", "share", "shares", "Volumes", "storage", "volume1", "volume2", "export", "exports", "autofs", "misc"}, first)
}

// archived ends the chain: what vzdump leaves out, the jobs, the newest archive.
func (g GuestFiles) archived(b MountBackup, src string, made *time.Time) MountBackup {
	if g.Backup.Problem != "" {
		b.InBackup, b.Reason, b.Assumes = BackupUnknown, g.Backup.Problem, ""
		return b
	}
	if g.Kind == "lxc" {
		if verdict, reason := g.Backup.leftOut(src); verdict != "" {
			b.InBackup, b.Reason, b.Assumes = verdict, reason, ""
			return b
		}
	}
	jobs := jobNames(g.Backup.Cover)
	a := g.newest()
	switch {
	case a == nil && len(g.Backup.Unread) > 0:
		b.InBackup, b.Assumes = BackupUnknown, ""
		b.Reason = "no archive of the guest on the storages that could be read; not read: " + few(g.Backup.Unread)
	case a == nil && len(g.Backup.Disabled) > 0:
		b.InBackup, b.Assumes = BackupUnknown, ""
		b.Reason = "no archive of the guest on the storages that could be read; disabled: " + few(g.Backup.Disabled)
	case a == nil && g.Backup.folder() != "":
		b.InBackup, b.Assumes = BackupUnknown, ""
		b.Reason = "job " + g.Backup.folder() + " writes into a folder that no storage names, so its archives cannot be seen"
	case a == nil && len(g.Backup.Archives) > 0:
		b.InBackup, b.Assumes = BackupNo, ""
		b.Reason = "no archive that is this guest's and can be restored, of " + several(len(g.Backup.Archives), "archive", "archives") + " under its number"
	case a == nil && jobs == "":
		b.InBackup, b.Assumes = BackupNo, ""
		b.Reason = "no enabled backup job takes the guest, and there is no archive of it"
	case a == nil:
		b.InBackup, b.Assumes = BackupNo, ""
		b.Reason = "job " + jobs + " takes the guest, but there is no archive of it yet"
	default:
		age := int64(g.Judged.Sub(*a.Created) / time.Second)
		b.InBackup, b.Archive, b.ArchiveAt, b.ArchiveAgeS = BackupYes, Clean(a.Volume), moment(a.Created), &age
		b.Reason = g.why(b, jobs, age)
		if made != nil && made.After(*a.Created) {
			b.assume("the data is older than its containers, which were made after the archive")
		}
	}
	return b
}

func (b *MountBackup) assume(what string) {
	if b.Assumes != "" {
		b.Assumes += "; and "
	}
	b.Assumes += what
}

func (g GuestFiles) why(b MountBackup, jobs string, age int64) string {
	where := b.GuestVolume + " is in the guest's backups"
	if strings.Contains(b.GuestVolume, ",") {
		where = "every disk of the VM is in its backups"
	}
	s := fmt.Sprintf("%s; the newest one is %s old", where, Seconds(&age))
	switch {
	case jobs == "":
		s += "; no enabled job takes the guest, so it will not be renewed"
	default:
		s += "; job " + jobs
	}
	if len(g.Backup.Unread) > 0 {
		s += "; a newer one may be on " + few(g.Backup.Unread)
	}
	return s
}

// folder names a job whose archives no storage shows; "" when there is none.
func (b BackupState) folder() string {
	for _, j := range b.Cover.Jobs {
		if j.Storage == "" && j.DumpDir != "" {
			return Clean(j.ID)
		}
	}
	return ""
}

// Able moves the jobs that cannot write from a node, for want of their storage,
// to others.
func (b *BackupState) Able(storages []parse.StorageConfig, node string) {
	v := &CoverageView{Storages: storages}
	jobs := []parse.BackupJob{}
	for _, j := range b.Cover.Jobs {
		if why := v.cannotWrite(j, node); why != "" {
			b.Cover.Passed, b.Others = append(b.Cover.Passed, PassedJob{Clean(j.ID), why}), append(b.Others, j)
			continue
		}
		jobs = append(jobs, j)
	}
	b.Cover.Jobs = jobs
}

// OtherJobs are the jobs that choose a guest and do not take it as they are now:
// they may have made its archives before.
func OtherJobs(jobs []parse.BackupJob, g JobGuest) []parse.BackupJob {
	takes := CoverOf(jobs, g)
	var out []parse.BackupJob
	for _, j := range jobs {
		if chosen, _ := chooses(j, g); chosen && !slices.ContainsFunc(takes.Jobs, func(t parse.BackupJob) bool { return t.ID == j.ID }) {
			out = append(out, j)
		}
	}
	return out
}

func jobNames(c Cover) string {
	var out []string
	for _, j := range c.Jobs {
		out = append(out, Clean(j.ID))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// newest returns the newest archive that can be this guest's and can be restored.
// One of the other kind, or older than the guest, is of a guest that had the
// number before.
func (g GuestFiles) newest() *parse.Archive {
	var best *parse.Archive
	for i, a := range g.Backup.Archives {
		made := g.Config.Current.CreatedAt
		switch {
		case a.Created == nil || a.Created.After(g.Judged.Add(time.Hour)):
		case a.Type != "" && a.Type != g.Kind:
		case a.Verification == parse.VerifyFailed:
		case made != nil && a.Created.Unix() < *made:
		case best == nil || a.Created.After(*best.Created):
			best = &g.Backup.Archives[i]
		}
	}
	return best
}

// leftOut holds a path of a container against what vzdump is told to leave out,
// by its jobs and by the node's defaults.
func (b BackupState) leftOut(src string) (verdict, reason string) {
	if b.StdExcludes && (below(src, "/tmp") || below(src, "/var/tmp")) {
		return BackupNo, "backups leave out what lies below /tmp and /var/tmp"
	}
	if verdict, reason := leftOutBy(b.ExcludePaths, "the node's vzdump.conf", src); verdict != "" {
		return verdict, reason
	}
	var verdicts []string
	for _, j := range b.Cover.Jobs {
		v, r := leftOutBy(j.ExcludePath, "job "+Clean(j.ID), src)
		verdicts = append(verdicts, v)
		reason = cmp.Or(reason, r)
	}
	for _, j := range b.Others {
		if v, r := leftOutBy(j.ExcludePath, "job "+Clean(j.ID)+", which does not take it now", src); v != "" && reason == "" {
			verdicts, reason = append(verdicts, BackupUnknown), r
		}
	}
	switch {
	case reason == "":
		return "", ""
	case slices.Contains(verdicts, "") || slices.Contains(verdicts, BackupUnknown):
		return BackupUnknown, reason + ", which job made the newest archive is not known"
	}
	return BackupNo, reason
}

// leftOutBy judges one list of patterns. A pattern for something below the path
// leaves out a part of it; one that cannot be read may be any of both.
func leftOutBy(patterns []string, whose, src string) (verdict, reason string) {
	for _, p := range patterns {
		said := fmt.Sprintf("exclude-path %s of %s", Clean(p), whose)
		switch covers(p, src) {
		case BackupNo:
			return BackupNo, said + " leaves it out"
		case BackupUnknown:
			verdict, reason = BackupUnknown, said+" may leave it out, or a part of it"
		}
	}
	return verdict, reason
}

// covers reports no if the pattern leaves out the path or a directory above it,
// unknown if it may, and "" if it does not touch it.
func covers(pattern, src string) string {
	if !strings.HasPrefix(pattern, "/") || strings.Contains(pattern, "**") {
		return BackupUnknown
	}
	pattern = strings.TrimSuffix(cleanPath(pattern), "/*")
	if pattern == "" {
		return BackupNo
	}
	for dir := src; dir != "/"; dir = path.Dir(dir) {
		ok, err := path.Match(pattern, dir)
		if err != nil {
			return BackupUnknown
		}
		if ok {
			return BackupNo
		}
	}
	if depth := strings.Count(src, "/"); strings.Count(pattern, "/") > depth {
		head := strings.Join(strings.Split(pattern, "/")[:depth+1], "/")
		if ok, err := path.Match(head, src); ok || err != nil {
			return BackupUnknown
		}
	}
	return ""
}
