package report

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// The kinds of a storage component.
const (
	ComponentZPool      = "zpool"
	ComponentThin       = "thin-pool"
	ComponentDisk       = "disk"
	ComponentFilesystem = "filesystem"
)

// A StorageComponent is one row of storage_health: a ZFS pool, a thin pool, a
// disk or a local filesystem of a node. State is critical, warning, unknown or
// ok; Reason says why. Says is the program's own word (ONLINE, passed). A pool's
// UsedRatio is of its data, MetadataRatio of a thin pool's metadata, which is no
// space. A disk's WearLeftRatio is the share of its rated life that is left.
type StorageComponent struct {
	Node    string `json:"node"`
	Cluster string `json:"cluster,omitempty"`
	Kind    string `json:"kind"`
	Name    string `json:"name"`
	State   string `json:"state"`
	Reason  string `json:"reason,omitempty"`
	Says    string `json:"says,omitempty"`

	SizeBytes          *int64   `json:"size_bytes,omitempty"`
	UsedBytes          *int64   `json:"used_bytes,omitempty"`
	UsedRatio          *float64 `json:"used_ratio,omitempty"`
	MetadataRatio      *float64 `json:"metadata_ratio,omitempty"`
	OvercommitRatio    *float64 `json:"overcommit_ratio,omitempty"`
	InodesRatio        *float64 `json:"inodes_ratio,omitempty"`
	FragmentationRatio *float64 `json:"fragmentation_ratio,omitempty"`

	DataErrors   *int64        `json:"data_errors,omitempty"`
	DeviceErrors []DeviceError `json:"device_errors,omitempty"`
	Scan         string        `json:"scan,omitempty"`
	ScanAt       string        `json:"scan_at,omitempty"`
	ScanAgeS     *int64        `json:"scan_age_s,omitempty"`
	ScanRatio    *float64      `json:"scan_progress_ratio,omitempty"`

	Model         string   `json:"model,omitempty"`
	WearLeftRatio *float64 `json:"wear_left_ratio,omitempty"`
	MediaErrors   *int64   `json:"media_errors,omitempty"`
	Reallocated   *int64   `json:"reallocated,omitempty"`
	TemperatureC  *int64   `json:"temperature_c,omitempty"`
	PowerOnS      *int64   `json:"power_on_s,omitempty"`
}

// A DeviceError is a device of a pool that is not well: its own state, or errors
// while it was read, written, or its checksums compared.
type DeviceError struct {
	Device   string `json:"device"`
	State    string `json:"state,omitempty"`
	Read     *int64 `json:"read,omitempty"`
	Write    *int64 `json:"write,omitempty"`
	Checksum *int64 `json:"checksum,omitempty"`
	Remark   string `json:"remark,omitempty"`
}

// StorageHealth is the answer of storage_health: the worst rows first. OK counts
// the rows that are well and were left out, which detail=detailed gives.
type StorageHealth struct {
	Answer
	Health string             `json:"health"`
	Items  []StorageComponent `json:"items"`
	Page
	OK           int       `json:"ok"`
	Findings     []Finding `json:"findings"`
	MoreFindings int       `json:"more_findings,omitempty"`
}

// A StorageFacts is what one node told about its pools, disks and filesystems.
// PoolsSkipped says why zpool was not run, ThinUnknown why lvs told nothing,
// DisksUnknown why the disks are not known; they are "" where there is nothing to
// say. Unread disks have only their reason.
type StorageFacts struct {
	Node    string
	Cluster string
	States  map[string]string // ZFS pools, by name, as the kernel says
	Pools   []parse.ZPool
	Sizes   []parse.ZPoolSize
	Skipped string
	LVM     *parse.LVM
	Disks   []DiskFacts
	FS      []parse.NodeFilesystem
	Unknown []StorageComponent // what could not be read, with the reason
	Now     time.Time
}

// DiskFacts is one disk and what it says of itself; SMART is nil where it was
// not asked or did not answer, for the reason given.
type DiskFacts struct {
	Disk   parse.PhysicalDisk
	SMART  *parse.SMART
	Reason string
}

func (v StorageFacts) subject(parts ...string) string {
	if v.Cluster != "" {
		parts = append([]string{v.Cluster}, parts...)
	}
	return strings.Join(parts, "/")
}

// StorageComponents builds the rows of one node and judges them.
func (j Judge) StorageComponents(v StorageFacts) ([]StorageComponent, []*Finding) {
	var rows []StorageComponent
	var all []*Finding
	add := func(r StorageComponent, findings []*Finding) {
		r.Node, r.Cluster = v.Node, v.Cluster
		r.settle(findings)
		rows = append(rows, r)
		all = append(all, findings...)
	}
	for _, name := range poolNames(v) {
		add(j.zpool(v, name))
	}
	if v.LVM != nil {
		for _, p := range v.LVM.Pools {
			add(j.thin(v, p))
		}
	}
	for _, d := range v.Disks {
		add(j.disk(v, d))
	}
	seen := map[string]bool{}
	for _, fs := range v.FS {
		if isRealFilesystem(fs) && !seen[fs.Source] {
			seen[fs.Source] = true
			add(j.filesystem(v, fs))
		}
	}
	for _, u := range v.Unknown {
		u.State = Unknown
		add(u, nil)
	}
	return rows, all
}

// settle gives a row the state of its worst finding. One that is not wholly
// known can still be known to be ill.
func (r *StorageComponent) settle(findings []*Finding) {
	state := HealthOK
	var why []string
	for _, f := range Findings(findings...) {
		if f.Severity == Info {
			continue
		}
		if state == HealthOK {
			state = string(f.Severity)
		}
		why = append(why, f.Message)
	}
	if state != HealthOK || r.State == "" {
		r.State = state
	}
	if r.Reason != "" {
		why = append(why, r.Reason)
	}
	r.Reason = strings.Join(why, "; ")
}

func poolNames(v StorageFacts) []string {
	var out []string
	for name := range v.States {
		out = append(out, name)
	}
	for _, p := range v.Pools {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func (j Judge) zpool(v StorageFacts, name string) (StorageComponent, []*Finding) {
	r := StorageComponent{Kind: ComponentZPool, Name: Clean(name), Says: Clean(v.States[name])}
	subject := v.subject("storage", v.Node, r.Name)
	var out []*Finding
	for _, s := range v.Sizes {
		if s.Name == name {
			r.SizeBytes, r.UsedBytes, r.UsedRatio, r.FragmentationRatio = s.Size, s.Allocated, Ratio(s.Allocated, s.Size), s.Fragmentation
			r.Says = cmp.Or(r.Says, Clean(s.Health))
		}
	}
	if r.UsedRatio != nil {
		out = append(out, j.Measure("ZFS_POOL_FULL", subject, "pool "+r.Name+" is "+Percent(r.UsedRatio)+" full", "allocated", *r.UsedRatio*100))
	}
	if r.FragmentationRatio != nil {
		out = append(out, j.Measure("ZFS_FRAGMENTED", subject, "the free space of pool "+r.Name+" is fragmented", "fragmentation", *r.FragmentationRatio*100))
	}
	i := slices.IndexFunc(v.Pools, func(p parse.ZPool) bool { return p.Name == name })
	if r.Says == "SUSPENDED" {
		return r, append(out, j.Find("ZFS_POOL_SUSPENDED", "", subject, "pool "+r.Name+" is suspended", Evidence{Name: "state", Value: r.Says}))
	}
	if i < 0 {
		if v.Skipped != "" {
			r.State, r.Reason = Unknown, v.Skipped
		}
		return r, append(out, j.poolState(subject, r, parse.ZPool{State: r.Says})...)
	}
	p := v.Pools[i]
	r.Says = cmp.Or(Clean(p.State), r.Says)
	r.DataErrors = p.DataErrors
	for _, d := range p.Devices {
		if deviceTrouble(d) {
			r.DeviceErrors = append(r.DeviceErrors, DeviceError{Clean(d.Name), Clean(d.State), d.Read, d.Write, d.Cksum, Clean(d.Remark)})
		}
	}
	r.scanned(p.Scan, v.Now)
	out = append(out, j.poolState(subject, r, p)...)
	return r, append(out, j.poolErrors(subject, r, p)...)
}

func deviceTrouble(d parse.ZPoolDevice) bool {
	return d.Leaf && !goodDevice(d) || d.Errors() > 0
}

func goodDevice(d parse.ZPoolDevice) bool {
	return d.State == "ONLINE" || d.State == "" || d.State == "AVAIL" || d.State == "INUSE"
}

func (r *StorageComponent) scanned(s parse.ZPoolScan, now time.Time) {
	if s.Kind == "" {
		r.Scan = "none"
		return
	}
	r.Scan, r.ScanRatio = strings.TrimSpace(s.Kind+" "+s.State), s.Progress
	if s.At != nil {
		r.ScanAt, r.ScanAgeS = At(s.At.Unix()), Ptr(int64(age(now, s.At.Unix())/time.Second))
	}
}

// poolState judges the pool's own word.
func (j Judge) poolState(subject string, r StorageComponent, p parse.ZPool) []*Finding {
	if p.State == "" || p.State == "ONLINE" {
		return nil
	}
	message := fmt.Sprintf("pool %s is %s", r.Name, Clean(p.State))
	evidence := []Evidence{{Name: "state", Value: Clean(p.State)}}
	if p.Scan.Kind == "resilver" && p.Scan.State == "running" {
		message += ", it is resilvering"
		if p.Scan.Progress != nil {
			message += " (" + Percent(p.Scan.Progress) + " done)"
		}
	}
	for _, d := range r.DeviceErrors {
		if d.State != "" && d.State != "ONLINE" && len(evidence) < 6 {
			evidence = append(evidence, Evidence{Name: d.Device, Value: strings.TrimSpace(d.State + " " + d.Remark)})
		}
	}
	return []*Finding{j.Find("ZFS_POOL_DEGRADED", "", subject, message, evidence...)}
}

func (j Judge) poolErrors(subject string, r StorageComponent, p parse.ZPool) []*Finding {
	var out []*Finding
	if p.DataErrors != nil && *p.DataErrors > 0 {
		out = append(out, j.Find("ZFS_DATA_ERRORS", "", subject, fmt.Sprintf("pool %s has lost data: %s", r.Name, many(int(min(*p.DataErrors, math.MaxInt32)), "data error")), Evidence{"data errors", fmt.Sprint(*p.DataErrors), "errors"}))
	}
	worst, devices := deviceErrors(p.Devices, true)
	if worst == 0 { // ZFS cannot always tell which disk of a mirror or raidz it was
		worst, devices = deviceErrors(p.Devices, false)
	}
	if lost := idleDevices(p); len(lost) > 0 {
		out = append(out, j.Find("ZFS_DEVICE_LOST", "", subject, fmt.Sprintf("%s of pool %s cannot be used; its data is not at risk by that", many(len(lost), "cache or spare device"), r.Name), lost[:min(len(lost), 6)]...))
	}
	if worst > 0 {
		n := len(devices)
		out = append(out, j.Measure("ZFS_DEVICE_ERRORS", subject, fmt.Sprintf("%s of pool %s had errors", many(n, "device"), r.Name), "errors of the worst", float64(worst), devices[:min(n, 6)]...))
	}
	switch {
	case r.Scan == "none":
		out = append(out, j.Find("ZFS_SCRUB_OVERDUE", Info, subject, "pool "+r.Name+" was never scrubbed"))
	case p.Scan.Kind == "resilver" && p.Scan.State == "finished" && r.ScanAgeS != nil: // a later scrub would stand there instead
		out = append(out, j.Measure("ZFS_SCRUB_OVERDUE", subject, fmt.Sprintf("pool %s was not scrubbed since its resilver %s ago", r.Name, Seconds(r.ScanAgeS)), "age", float64(*r.ScanAgeS)/86400, Evidence{Name: "resilver", Value: r.ScanAt}))
	case p.Scan.Kind == "scrub" && r.ScanAgeS != nil && p.Scan.State != "running":
		message := fmt.Sprintf("pool %s was last scrubbed %s ago", r.Name, Seconds(r.ScanAgeS))
		if p.Scan.State != "finished" {
			message = fmt.Sprintf("the last scrub of pool %s was %s %s ago", r.Name, cmp.Or(Clean(p.Scan.State), "not finished"), Seconds(r.ScanAgeS))
		}
		out = append(out, j.Measure("ZFS_SCRUB_OVERDUE", subject, message, "age", float64(*r.ScanAgeS)/86400, Evidence{Name: "scrub", Value: r.ScanAt}))
	}
	return out
}

// deviceErrors are the errors of the worst device, and all that had some.
func deviceErrors(devices []parse.ZPoolDevice, leaves bool) (worst int64, had []Evidence) {
	for _, d := range devices {
		if n := d.Errors(); n > 0 && d.Leaf == leaves {
			worst = max(worst, n)
			had = append(had, Evidence{Name: Clean(d.Name), Value: fmt.Sprintf("read %d, write %d, checksum %d", valueOr(d.Read, 0), valueOr(d.Write, 0), valueOr(d.Cksum, 0))})
		}
	}
	return worst, had
}

// idleDevices are the caches and spares that are gone: the pool stays ONLINE
// without them and says nothing.
func idleDevices(p parse.ZPool) []Evidence {
	var out []Evidence
	for _, d := range p.Devices {
		if (d.Class == "cache" || d.Class == "spares") && d.Leaf && !goodDevice(d) {
			out = append(out, Evidence{Name: Clean(d.Name), Value: strings.TrimSpace(Clean(d.State) + " " + Clean(d.Remark))})
		}
	}
	return out
}

// Thin volumes may be larger than their pool; it is a worry from this share of
// written data on.
const thinWorry = 0.70

func (j Judge) thin(v StorageFacts, p parse.ThinPool) (StorageComponent, []*Finding) {
	name := Clean(p.Group + "/" + p.Name)
	r := StorageComponent{Kind: ComponentThin, Name: name, Says: string(p.Trouble), SizeBytes: p.Size, UsedRatio: p.DataUsed, MetadataRatio: p.MetadataUsed}
	subject := v.subject("storage", v.Node, name)
	if p.Size != nil && p.DataUsed != nil {
		r.UsedBytes = Ptr(int64(float64(*p.Size) * *p.DataUsed))
	}
	if p.Size != nil && *p.Size > 0 {
		r.OvercommitRatio = Ptr(round(float64(p.VirtualBytes) / float64(*p.Size)))
	}
	if p.DataUsed == nil {
		r.State, r.Reason = Unknown, "lvs tells no use: the pool is not active"
	}
	return r, j.thinFindings(subject, r, p)
}

func (j Judge) thinFindings(subject string, r StorageComponent, p parse.ThinPool) []*Finding {
	var out []*Finding
	flagged := Evidence{Name: "flagged by LVM", Value: string(p.Trouble)}
	switch p.Trouble {
	case parse.PoolOutOfData:
		out = append(out, j.Find("THIN_DATA_FULL", Critical, subject, "thin pool "+r.Name+" is out of data space", flagged))
	case parse.PoolMetadataReadOnly:
		out = append(out, j.Find("THIN_METADATA_FULL", Critical, subject, "the metadata of thin pool "+r.Name+" is read-only", flagged))
	case parse.PoolFailed, parse.PoolPartial:
		out = append(out, j.Find("THIN_POOL_FAILED", "", subject, "thin pool "+r.Name+": "+string(p.Trouble), flagged))
	}
	if p.DataUsed != nil && p.Trouble != parse.PoolOutOfData {
		out = append(out, j.Measure("THIN_DATA_FULL", subject, "thin pool "+r.Name+" is "+Percent(p.DataUsed)+" full", "data", *p.DataUsed*100))
	}
	if p.MetadataUsed != nil && p.Trouble != parse.PoolMetadataReadOnly {
		out = append(out, j.Measure("THIN_METADATA_FULL", subject, "the metadata of thin pool "+r.Name+" is "+Percent(p.MetadataUsed)+" full", "metadata", *p.MetadataUsed*100))
	}
	if r.OvercommitRatio != nil {
		calm := j
		if p.DataUsed == nil || *p.DataUsed < thinWorry {
			calm.Limits = maps.Clone(j.Limits)
			if calm.Limits == nil {
				calm.Limits = map[string]Limit{}
			}
			calm.Limits["THIN_OVERCOMMIT"] = Limit{Warning: Ptr(math.Inf(1))}
		}
		out = append(out, calm.Measure("THIN_OVERCOMMIT", subject, "the disks on thin pool "+r.Name+" are larger than it", "disks / pool", *r.OvercommitRatio, Evidence{"virtual_bytes", fmt.Sprint(p.VirtualBytes), "bytes"}))
	}
	return out
}

func (j Judge) disk(v StorageFacts, d DiskFacts) (StorageComponent, []*Finding) {
	name := cmp.Or(d.Disk.Name, strings.TrimPrefix(d.Disk.Path, "/dev/"))
	r := StorageComponent{Kind: ComponentDisk, Name: Clean(name), Model: Clean(d.Disk.Model), SizeBytes: d.Disk.Size, Says: string(parse.DiskUnknown)}
	s := d.SMART
	switch {
	case s == nil:
		r.State, r.Reason = Unknown, d.Reason
		return r, nil
	case s.Asleep:
		r.State, r.Says, r.Reason = Unknown, "asleep", "it sleeps and was not woken"
		return r, nil
	case s.Unreadable:
		r.State, r.Reason = Unknown, "smartctl cannot read it"
		return r, nil
	}
	r.Model = cmp.Or(Clean(s.Model), r.Model)
	r.Says, r.MediaErrors, r.Reallocated, r.TemperatureC = string(s.Health), s.MediaErrors, s.Reallocated, s.Temperature
	if s.PowerOnHours != nil {
		r.PowerOnS = Ptr(*s.PowerOnHours * 3600)
	}
	if s.WearLeft != nil {
		r.WearLeftRatio = Ptr(float64(*s.WearLeft) / 100)
	}
	if s.Health == parse.DiskUnknown {
		r.State, r.Reason = Unknown, "it says nothing of its health"
	}
	return r, j.smart(v.subject("node", v.Node, r.Name), r, *s)
}

func (j Judge) smart(subject string, r StorageComponent, s parse.SMART) []*Finding {
	var out []*Finding
	var model []Evidence
	if r.Model != "" {
		model = []Evidence{{Name: "model", Value: r.Model}}
	}
	if s.Health == parse.DiskFailed {
		reason := strings.Join(s.Reasons, "; ")
		message := fmt.Sprintf("disk %s says that it fails: %s", r.Name, cmp.Or(Clean(reason), "it names no reason"))
		if s.OnlyWear {
			message += "; nothing else is wrong: plan its replacement"
		}
		out = append(out, j.Find("SMART_FAILED", "", subject, message, append(model, smartEvidence(s)...)...))
	}
	if s.WearLeft != nil {
		out = append(out, j.Measure("SMART_WEAR", subject, fmt.Sprintf("disk %s has %d %% of its rated life left", r.Name, *s.WearLeft), "life left", float64(*s.WearLeft), model...))
	}
	if bad := valueOr(s.MediaErrors, 0) + valueOr(s.Reallocated, 0); bad > 0 {
		worst := max(valueOr(s.MediaErrors, 0), valueOr(s.Reallocated, 0))
		message := fmt.Sprintf("disk %s: %d media errors, %d replaced sectors", r.Name, valueOr(s.MediaErrors, 0), valueOr(s.Reallocated, 0))
		out = append(out, j.Measure("SMART_MEDIA_ERRORS", subject, message, "errors", float64(worst), model...))
	}
	return out
}

func smartEvidence(s parse.SMART) []Evidence {
	var out []Evidence
	add := func(name string, n *int64, unit string) {
		if n != nil {
			out = append(out, Evidence{name, fmt.Sprint(*n), unit})
		}
	}
	wide := func(n *int) *int64 {
		if n == nil {
			return nil
		}
		return Ptr(int64(*n))
	}
	add("critical warning bits", s.CriticalBits, "")
	add("rated life used", wide(s.PercentageUsed), "percent")
	add("spare left", wide(s.Spare), "percent")
	add("media errors", s.MediaErrors, "errors")
	add("replaced sectors", s.Reallocated, "sectors")
	return out
}

// isRealFilesystem leaves out what lives in memory or is read-only by nature,
// and the datasets of a ZFS pool, which is judged itself.
func isRealFilesystem(fs parse.NodeFilesystem) bool {
	switch fs.Type {
	case "ext2", "ext3", "ext4", "xfs", "btrfs", "vfat", "jfs", "f2fs", "reiserfs", "ntfs", "ntfs3", "exfat":
		return true
	case "zfs":
		return fs.Target == "/"
	}
	return false
}

func (j Judge) filesystem(v StorageFacts, fs parse.NodeFilesystem) (StorageComponent, []*Finding) {
	r := StorageComponent{Kind: ComponentFilesystem, Name: Clean(fs.Target), Says: Clean(fs.Type), SizeBytes: fs.Size, UsedBytes: fs.Used, InodesRatio: Ratio(fs.InodesUsed, fs.Inodes)}
	if fs.Used != nil && fs.Available != nil {
		r.UsedRatio = Ratio(fs.Used, Ptr(*fs.Used+*fs.Available)) // what only root may write counts as used
	}
	code, subject := "NODE_FS_FULL", v.subject("node", v.Node)
	if fs.Target == "/" {
		code = "NODE_ROOTFS_FULL"
	}
	var out []*Finding
	if r.UsedRatio != nil {
		message := "filesystem " + r.Name + " is " + Percent(r.UsedRatio) + " full"
		if fs.Target == "/" {
			message = "the root filesystem is nearly full"
		}
		out = append(out, j.Measure(code, subject, message, "used", *r.UsedRatio*100))
	}
	if r.InodesRatio != nil && fs.Type != "btrfs" && fs.Type != "vfat" {
		out = append(out, j.Measure("NODE_INODES_FULL", subject, "filesystem "+r.Name+" has few inodes left", "inodes", *r.InodesRatio*100))
	}
	return r, out
}

// SortComponents puts the worst first, then by node, kind and name.
func SortComponents(rows []StorageComponent) {
	rank := func(state string) int {
		return slices.Index([]string{HealthCritical, HealthWarning, Unknown, HealthOK}, state)
	}
	slices.SortStableFunc(rows, func(a, b StorageComponent) int {
		return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Node, b.Node), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Name, b.Name))
	})
}

// ComponentsHealth is the worst state of the rows.
func ComponentsHealth(rows []StorageComponent) string {
	for _, state := range []string{HealthCritical, HealthWarning, Unknown} {
		if slices.ContainsFunc(rows, func(r StorageComponent) bool { return r.State == state }) {
			return state
		}
	}
	return HealthOK
}

// Brief leaves a row what one needs to know first.
func (r *StorageComponent) Brief() {
	r.TemperatureC, r.PowerOnS, r.UsedBytes = nil, nil, nil
	if r.ScanAgeS != nil {
		r.ScanAt = ""
	}
	if r.State == HealthOK {
		r.Model, r.MediaErrors, r.Reallocated = "", nil, nil
	}
	if n := len(r.DeviceErrors); n > 4 {
		r.DeviceErrors = r.DeviceErrors[:4]
	}
}

// Tables shows the components to people.
func (l *StorageHealth) Tables() []Table {
	t := Table{Title: "Storage: " + l.Health, Columns: []string{"state", "node", "kind", "name", "says", ">used", ">of", ">meta", ">inodes", ">frag", ">life", "scan", ">ago", "why"}}
	for _, r := range l.Items {
		scan := r.Scan
		if r.ScanRatio != nil {
			scan += " " + Percent(r.ScanRatio)
		}
		t.Rows = append(t.Rows, []string{r.State, r.Node, r.Kind, r.Name, r.Says, Percent(r.UsedRatio), Bytes(r.SizeBytes), Percent(r.MetadataRatio), Percent(r.InodesRatio), Percent(r.FragmentationRatio), Percent(r.WearLeftRatio), scan, Seconds(r.ScanAgeS), r.Reason})
	}
	t.Notes = append(t.Notes, l.Page.note("rows"))
	if l.OK > 0 {
		t.Notes = append(t.Notes, fmt.Sprintf("%d more are well; --detail detailed shows them", l.OK))
	}
	return append([]Table{t}, findingTable(l.Findings, l.MoreFindings)...)
}
