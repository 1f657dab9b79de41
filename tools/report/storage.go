package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"pvelens/tools/parse"
)

// The states of a storage on a node.
const (
	StorageActive    = "active"
	StorageInactive  = "inactive"    // enabled and meant for the node, but pvestatd does not report it
	StorageDisabled  = "disabled"    // switched off for the whole cluster
	StorageElsewhere = "not-on-node" // limited to other nodes
)

// A Storage is one row of list_storage: a storage on a node, or a disabled one,
// which is on none. State is active, inactive, disabled, not-on-node or unknown.
// TotalBytes and UsedBytes are as pvestatd measured them at most five minutes
// ago; AvailableBytes is absent where nothing measures it, for it may be less
// than the difference. SharesSpaceWith names storages of this node whose free
// space is the same.
type Storage struct {
	Storage         string   `json:"storage"`
	Node            string   `json:"node,omitempty"`
	Cluster         string   `json:"cluster,omitempty"`
	Type            string   `json:"type"`
	Content         []string `json:"content"`
	Shared          bool     `json:"shared"`
	Enabled         bool     `json:"enabled"`
	Active          *bool    `json:"active,omitempty"`
	State           string   `json:"state"`
	TotalBytes      *int64   `json:"total_bytes,omitempty"`
	UsedBytes       *int64   `json:"used_bytes,omitempty"`
	AvailableBytes  *int64   `json:"available_bytes,omitempty"`
	UsedRatio       *float64 `json:"used_ratio,omitempty"`
	Reason          string   `json:"reason,omitempty"`
	LimitedTo       []string `json:"limited_to,omitempty"`
	SharesSpaceWith []string `json:"shares_space_with,omitempty"`
	Path            string   `json:"path,omitempty"`
	MountedAt       string   `json:"mounted_at,omitempty"`
	MeasuredAt      string   `json:"measured_at,omitempty"`

	config *parse.StorageConfig
	space  string // equal on storages that share their free space
	set    string // the ZFS dataset, where there is one
}

// StorageTotals sums the storages whose size is known: a shared one once, and
// storages with the same free space together once. NotCounted names those that
// are missing in the sum.
type StorageTotals struct {
	TotalBytes int64    `json:"total_bytes"`
	UsedBytes  int64    `json:"used_bytes"`
	Counted    int      `json:"counted"`
	NotCounted []string `json:"not_counted"`
}

// StorageList is the answer of list_storage. Totals is absent when nothing has a
// size.
type StorageList struct {
	Answer
	Items []Storage `json:"items"`
	Page
	Totals       *StorageTotals `json:"totals,omitempty"`
	Findings     []Finding      `json:"findings"`
	MoreFindings int            `json:"more_findings,omitempty"`
}

// A StorageSite is what one node tells about its mounts and storages; a part
// that was not read is nil.
type StorageSite struct {
	Mounts   []parse.Mount
	FS       []parse.NodeFilesystem
	Reasons  []parse.StorageReason
	NotAsked string // why the node could not be asked
}

// A StorageView is what the storages' rows of one cluster are made from.
type StorageView struct {
	Name     string // "" leaves the cluster out of the rows
	State    *parse.State
	Storages []parse.StorageConfig
	Jobs     []parse.BackupJob
	Configs  []parse.GuestConfig
	Sites    map[string]StorageSite
	// NumbersUnknown is set when .rrd has a family of storages that is not known
	// and nothing else told.
	NumbersUnknown bool
	// Silent holds the nodes whose pvestatd has reported nothing for minutes:
	// what it said last proves nothing.
	Silent map[string]bool
}

// InactiveOn lists the storages that should be active on a node and are not
// reported there.
func (v StorageView) InactiveOn(node string) []string {
	var out []string
	for _, s := range v.Storages {
		if state, _ := v.stateOf(s, node); state == StorageInactive {
			out = append(out, s.ID)
		}
	}
	return out
}

// stateOf tells the state of a storage on a node, and why it is unknown.
func (v StorageView) stateOf(s parse.StorageConfig, node string) (state, reason string) {
	_, reported := v.State.RRD.Nodes[node]
	switch {
	case s.Disabled:
		return StorageDisabled, "disabled in storage.cfg"
	case !OnNode(s, node):
		return StorageElsewhere, "limited to " + strings.Join(cleaned(s.Nodes), ", ")
	case Offline(v.State, node) && Quorate(v.State):
		return Unknown, "node " + node + " is offline"
	case Offline(v.State, node):
		return Unknown, "node " + node + " is not seen from here: there is no quorum"
	case v.Silent[node]:
		return Unknown, "pvestatd on " + node + " has reported nothing for minutes"
	case v.row(s.ID, node) != nil:
		return StorageActive, ""
	case v.NumbersUnknown:
		return Unknown, "pvestatd's numbers are in a form that is not known"
	case !reported:
		return Unknown, "pvestatd on " + node + " reports nothing"
	}
	return StorageInactive, ""
}

// OnNode reports whether a storage is meant for a node.
func OnNode(s parse.StorageConfig, node string) bool {
	return len(s.Nodes) == 0 || slices.Contains(s.Nodes, node)
}

func (v StorageView) row(storage, node string) *parse.RRDStorage {
	for i, r := range v.State.RRD.Storages {
		if r.Storage == storage && r.Node == node {
			return &v.State.RRD.Storages[i]
		}
	}
	return nil
}

// StorageRows returns a row for every storage on every node it is meant for, one
// for a disabled storage, and with elsewhere also those for other nodes; by
// storage and node.
func StorageRows(v StorageView, elsewhere, detailed bool) []Storage {
	rows := []Storage{}
	for i := range v.Storages {
		s := &v.Storages[i]
		if s.Disabled {
			rows = append(rows, v.build(s, "", detailed))
			continue
		}
		for _, node := range NodeNames(v.State) {
			if elsewhere || OnNode(*s, node) {
				rows = append(rows, v.build(s, node, detailed))
			}
		}
	}
	slices.SortStableFunc(rows, func(a, b Storage) int {
		return cmp.Or(cmp.Compare(a.Storage, b.Storage), cmp.Compare(a.Node, b.Node))
	})
	shareSpace(rows)
	return rows
}

func (v StorageView) build(s *parse.StorageConfig, node string, detailed bool) Storage {
	r := Storage{
		Storage: Clean(s.ID), Node: node, Cluster: v.Name, Type: Clean(s.Type), Content: contentOf(*s), Shared: s.Shared, Enabled: !s.Disabled,
		LimitedTo: cleaned(s.Nodes), config: s,
	}
	r.State, r.Reason = v.stateOf(*s, node)
	switch r.State {
	case StorageActive:
		r.Active = Ptr(true)
		r.measure(v.row(s.ID, node))
	case StorageInactive:
		r.Active = Ptr(false)
		r.Reason = v.why(*s, node)
	}
	if node == "" || r.State == StorageElsewhere {
		return r
	}
	site := v.Sites[node]
	m := mountOf(site.Mounts, s.Path)
	r.space, r.set = spaceOf(*s, m)
	r.available(site, m)
	if detailed {
		r.Path = Clean(s.Path)
		if m != nil {
			r.MountedAt = Clean(m.Target)
		}
	} else {
		r.MeasuredAt, r.LimitedTo = "", nil
	}
	return r
}

// AllStorages are the storages that Proxmox makes of storage.cfg (pve-storage,
// parse_config): there is always the folder storage local, on every node,
// whether the file names it or not.
func AllStorages(written []parse.StorageConfig) []parse.StorageConfig {
	const path = "/var/lib/vz"
	out := slices.Clone(written)
	i := slices.IndexFunc(out, func(s parse.StorageConfig) bool { return s.ID == "local" })
	if i >= 0 && out[i].Type == "dir" && (out[i].Path == "" || out[i].Path == path) {
		out[i].Path, out[i].Nodes = path, nil
		return out
	}
	if i >= 0 {
		out = slices.Delete(out, i, i+1)
	}
	return slices.Insert(out, 0, parse.StorageConfig{
		ID: "local", Type: "dir", Path: path, Prune: []parse.Option{{Key: "keep-all", Value: "1"}},
		Content: []string{"backup", "images", "iso", "rootdir", "snippets", "vztmpl"},
	})
}

// contentOf is what a storage may hold; where storage.cfg does not say, the
// type's default, which is much less than what the type could hold (pve-storage,
// plugindata, PVE 7 to 9).
func contentOf(s parse.StorageConfig) []string {
	if len(s.Content) > 0 {
		return cleaned(s.Content)
	}
	switch s.Type {
	case "pbs", "cephfs":
		return []string{"backup"}
	case "dir", "btrfs", "zfspool", "lvmthin":
		return []string{"images", "rootdir"}
	case "esxi":
		return []string{"import"}
	}
	return []string{"images"}
}

// HoldsBackups reports whether a storage may hold backups.
func HoldsBackups(s parse.StorageConfig) bool { return slices.Contains(contentOf(s), "backup") }

func cleaned(in []string) []string {
	out := clean2(in)
	slices.Sort(out)
	return out
}

func (r *Storage) measure(row *parse.RRDStorage) {
	if row.Time != nil {
		r.MeasuredAt = At(*row.Time)
	}
	if r.TotalBytes = positive(row.Total); r.TotalBytes == nil {
		r.Reason = "pvestatd reported no size"
		if r.Type == "iscsi" || r.Type == "iscsidirect" || r.Type == "esxi" {
			r.Reason = "storages of type " + r.Type + " have no size"
		}
		return
	}
	r.UsedBytes, r.UsedRatio = row.Used, Ratio(row.Used, row.Total)
}

// available fills in the free space where it is measured: by df for a folder on
// a local filesystem; where Proxmox itself makes the total of used and free (ZFS,
// LVM, RBD), as the difference.
func (r *Storage) available(site StorageSite, m *parse.Mount) {
	if r.TotalBytes == nil || r.UsedBytes == nil {
		return
	}
	switch r.Type {
	case "zfspool", "lvmthin", "lvm", "rbd":
		r.AvailableBytes = Ptr(max(*r.TotalBytes-*r.UsedBytes, 0))
	case "dir", "btrfs":
		if m == nil {
			return
		}
		for _, fs := range site.FS {
			if fs.Target == m.Target {
				r.AvailableBytes = fs.Available
			}
		}
	}
}

// mountOf is the mount that a path lies on: the longest mount point above it,
// and of several at one place the last, which is on top. nil when the mounts
// were not read.
func mountOf(mounts []parse.Mount, path string) *parse.Mount {
	var found *parse.Mount
	if path == "" {
		return nil
	}
	path = "/" + strings.Trim(path, "/")
	for i, m := range mounts {
		above := m.Target == path || m.Target == "/" || strings.HasPrefix(path, m.Target+"/")
		if above && (found == nil || len(m.Target) >= len(found.Target)) {
			found = &mounts[i]
		}
	}
	return found
}

// spaceOf is what a storage takes its space from, and its ZFS dataset.
func spaceOf(s parse.StorageConfig, m *parse.Mount) (space, set string) {
	switch s.Type {
	case "zfspool":
		return "zpool " + firstSegment(s.Pool), s.Pool
	case "lvmthin":
		return "thin " + s.VGName + "/" + s.ThinPool, ""
	case "lvm":
		return "vg " + s.VGName, ""
	case "nfs":
		return "nfs " + s.Server + ":" + s.Export, ""
	case "cifs":
		return "cifs " + s.Server + "/" + s.Share, ""
	case "pbs":
		return "pbs " + s.Server + "/" + s.Datastore, ""
	case "dir", "btrfs":
		switch {
		case m == nil:
			return "", ""
		case m.Type == "zfs":
			return "zpool " + firstSegment(m.Source), m.Source
		}
		return "fs " + m.Source, ""
	}
	return "", ""
}

func firstSegment(s string) string {
	s, _, _ = strings.Cut(s, "/")
	return s
}

// why is the reason that pvestatd gave for a storage last, or what is known
// instead.
func (v StorageView) why(s parse.StorageConfig, node string) string {
	site := v.Sites[node]
	for _, r := range site.Reasons {
		if r.Storage == s.ID || r.Storage == "" && names(r.Text, s) {
			return "pvestatd: " + Clean(r.Text)
		}
	}
	if s.MustBeMounted != "" && site.Mounts != nil {
		if m := mountOf(site.Mounts, s.MustBeMounted); m == nil || m.Target != "/"+strings.Trim(s.MustBeMounted, "/") {
			return "nothing is mounted at " + Clean(s.MustBeMounted) + ", which is_mountpoint demands"
		}
	}
	if site.NotAsked != "" {
		return "pvestatd does not report it; its log was not read"
	}
	return "pvestatd does not report it"
}

// names reports whether a message that names no storage speaks of this one: of
// its path, pool, export or share.
func names(text string, s parse.StorageConfig) bool {
	for _, part := range []string{s.Path, s.MustBeMounted, s.Pool, s.Export, s.Server, pathOf(s.VGName, s.ThinPool)} {
		if len(part) > 3 && strings.Contains(text, part) {
			return true
		}
	}
	return false
}

func pathOf(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "/" + b
}

// shareSpace names on every row the other storages of its node with the same
// free space. Folders whose mounts could not be read share it when their totals
// are the same to the byte.
func shareSpace(rows []Storage) {
	for i := range rows {
		a := &rows[i]
		for _, b := range rows {
			if a.Storage == b.Storage || a.Node != b.Node || a.Node == "" || a.State != StorageActive || b.State != StorageActive {
				continue
			}
			same := a.space != "" && a.space == b.space
			guess := a.space == "" && b.space == "" && a.Type == "dir" && b.Type == "dir" && a.TotalBytes != nil && b.TotalBytes != nil && *a.TotalBytes == *b.TotalBytes
			if same || guess {
				a.SharesSpaceWith = append(a.SharesSpaceWith, b.Storage)
			}
		}
	}
}

// TotalsOf sums rows of one cluster: a shared storage once, storages with the
// same free space once. nil when no row has a size.
func TotalsOf(rows []Storage) *StorageTotals {
	t := &StorageTotals{NotCounted: []string{}}
	groups := map[string][]Storage{}
	counted, missing := map[string]bool{}, map[string]bool{}
	for _, r := range rows {
		name := r.Storage
		if !r.Shared && r.Node != "" {
			name = r.Node + "/" + r.Storage
		}
		switch {
		case r.State == StorageDisabled || r.State == StorageElsewhere:
		case r.TotalBytes == nil || r.UsedBytes == nil:
			missing[name] = true
		case !counted[name]:
			counted[name] = true
			key := r.Node + " " + cmp.Or(r.space, r.Storage)
			if r.Shared {
				key = cmp.Or(r.space, r.Storage)
			} else if r.space == "" && len(r.SharesSpaceWith) > 0 {
				key = fmt.Sprintf("%s %d", r.Node, *r.TotalBytes)
			}
			groups[key] = append(groups[key], r)
		}
	}
	for _, g := range groups {
		total, used := together(g)
		t.TotalBytes, t.UsedBytes, t.Counted = t.TotalBytes+total, t.UsedBytes+used, t.Counted+len(g)
	}
	for _, name := range slices.Sorted(maps.Keys(missing)) {
		if !counted[name] {
			t.NotCounted = append(t.NotCounted, name)
		}
	}
	if t.Counted == 0 {
		return nil
	}
	return t
}

// together is the size of storages with the same free space. On a ZFS pool each
// one's total is its own use and the pool's free space, so uses are added; a
// dataset inside another one is in that one's use.
func together(g []Storage) (total, used int64) {
	if len(g) == 1 || g[0].set == "" {
		for _, r := range g {
			if *r.TotalBytes > total {
				total, used = *r.TotalBytes, *r.UsedBytes
			}
		}
		return total, used
	}
	free := int64(0)
	for i, r := range g {
		inside := slices.ContainsFunc(g[:i], func(o Storage) bool { return o.set == r.set }) ||
			slices.ContainsFunc(g, func(o Storage) bool { return o.set != r.set && strings.HasPrefix(r.set, o.set+"/") })
		if !inside {
			used += *r.UsedBytes
		}
		free = max(free, *r.TotalBytes-*r.UsedBytes)
	}
	return used + free, used
}

// StorageFindings judges rows of one cluster. prefix stands before the subject,
// as the name of one of several clusters.
func (j Judge) StorageFindings(v StorageView, rows []Storage) []*Finding {
	var out []*Finding
	once := map[string]bool{}
	for _, r := range rows {
		switch {
		case r.State == StorageActive:
			if !r.Shared || !once[r.Storage] {
				out = append(out, j.full(v, r))
			}
			once[r.Storage] = once[r.Storage] || r.Shared
			out = append(out, j.notMounted(v, r))
		case r.State == StorageInactive:
			out = append(out, j.inactive(v, r, rows, once))
		}
	}
	return out
}

func (v StorageView) subject(r Storage, shared bool) string {
	parts := []string{"storage", r.Node, r.Storage}
	if shared {
		parts = []string{"storage", r.Storage}
	}
	if v.Name != "" {
		parts = append([]string{v.Name}, parts...)
	}
	return strings.Join(parts, "/")
}

func (j Judge) full(v StorageView, r Storage) *Finding {
	if r.UsedRatio == nil {
		return nil
	}
	return j.Measure("STORAGE_FULL", v.subject(r, r.Shared), fmt.Sprintf("%s is %s full", r.Storage, Percent(r.UsedRatio)), "used", *r.UsedRatio*100,
		Evidence{"used_bytes", fmt.Sprint(*r.UsedBytes), "bytes"}, Evidence{"total_bytes", fmt.Sprint(*r.TotalBytes), "bytes"})
}

// inactive: one finding for a shared storage that is active nowhere, else one a
// node.
func (j Judge) inactive(v StorageView, r Storage, rows []Storage, once map[string]bool) *Finding {
	var nodes []string
	somewhere := false
	for _, o := range rows {
		if o.Storage == r.Storage {
			somewhere = somewhere || o.State == StorageActive
			if o.State == StorageInactive {
				nodes = append(nodes, o.Node)
			}
		}
	}
	whole := r.Shared && !somewhere && len(nodes) > 1
	if whole && once["inactive "+r.Storage] {
		return nil
	}
	once["inactive "+r.Storage] = true
	if !whole {
		nodes = []string{r.Node}
	}
	severity := Warning
	evidence := []Evidence{{Name: "reason", Value: r.Reason}}
	for _, need := range v.needed(r, nodes) {
		severity = Critical
		evidence = append(evidence, need)
	}
	return j.Find("STORAGE_INACTIVE", severity, v.subject(r, whole), fmt.Sprintf("%s is not active on %s", r.Storage, strings.Join(nodes, ", ")), evidence...)
}

// needed tells who needs a storage on nodes: enabled backup jobs, running guests.
func (v StorageView) needed(r Storage, nodes []string) []Evidence {
	var out []Evidence
	for _, job := range v.Jobs {
		if job.Enabled && Scheduled(job) && job.Storage == r.config.ID && (job.Node == "" || slices.Contains(nodes, job.Node)) {
			out = append(out, Evidence{Name: "backup job", Value: Clean(job.ID)})
		}
	}
	for _, g := range v.Configs {
		rrd := v.State.RRD.Guests[g.VMID]
		if rrd.Status == "" || rrd.Status == Stopped || !slices.Contains(nodes, g.Node) || len(out) >= 5 {
			continue
		}
		if slices.ContainsFunc(g.Current.Disks, func(d parse.GuestDisk) bool { return d.Storage == r.config.ID && d.Kind != parse.DiskUnused }) {
			out = append(out, Evidence{Name: "running guest", Value: fmt.Sprint(g.VMID)})
		}
	}
	return out
}

// Paths that are part of the root filesystem on a plain installation, and those
// below which other disks are mounted by habit.
var (
	rootPaths  = []string{"/var", "/root", "/home", "/opt", "/usr", "/tmp", "/etc"}
	mountPaths = []string{"/mnt", "/media", "/srv", "/run/media"}
)

// notMounted finds a folder storage that lies on the root filesystem although
// its path looks like a mount point.
func (j Judge) notMounted(v StorageView, r Storage) *Finding {
	c := r.config
	path := "/" + strings.Trim(c.Path, "/")
	if c.Type != "dir" && c.Type != "btrfs" || c.Path == "" || c.MustBeMounted != "" || belowAny(path, rootPaths) {
		return nil
	}
	site := v.Sites[r.Node]
	evidence := []Evidence{{Name: "path", Value: Clean(c.Path)}}
	switch m := mountOf(site.Mounts, c.Path); {
	case m != nil && m.Target != "/":
		return nil
	case m != nil:
		evidence = append(evidence, Evidence{Name: "filesystem", Value: Clean(m.Source) + " mounted at /"})
	default:
		root := v.State.RRD.Nodes[r.Node].RootTotal
		if root == nil || r.TotalBytes == nil || *root != *r.TotalBytes {
			return nil
		}
		evidence = append(evidence, Evidence{"total_bytes", fmt.Sprint(*root), "bytes, as the root filesystem"})
	}
	evidence = append(evidence, Evidence{Name: "is_mountpoint", Value: "not set"})
	severity := Info
	if belowAny(path, mountPaths) || strings.Count(path, "/") == 1 {
		severity = Warning
	}
	return j.Find("STORAGE_DIR_NOT_MOUNTED", severity, v.subject(r, false), fmt.Sprintf("%s on %s lies on the root filesystem: nothing is mounted at %s", r.Storage, r.Node, Clean(c.Path)), evidence...)
}

func belowAny(path string, folders []string) bool {
	return slices.ContainsFunc(folders, func(f string) bool { return path == f || strings.HasPrefix(path, f+"/") })
}

// Tables shows the storages to people.
func (l *StorageList) Tables() []Table {
	t := Table{Columns: []string{"storage", "node", "type", "state", ">used", ">of", ">use", ">free", "shared", "notes"}}
	several := slices.ContainsFunc(l.Items, func(s Storage) bool { return s.Cluster != "" })
	if several {
		t.Columns = append(t.Columns, "cluster")
	}
	for _, s := range l.Items {
		notes := []string{}
		if s.Reason != "" {
			notes = append(notes, s.Reason)
		}
		if len(s.SharesSpaceWith) > 0 {
			notes = append(notes, "same space as "+strings.Join(s.SharesSpaceWith, ", "))
		}
		row := []string{s.Storage, s.Node, s.Type, s.State, Bytes(s.UsedBytes), Bytes(s.TotalBytes), Percent(s.UsedRatio), Bytes(s.AvailableBytes), Yes(s.Shared), strings.Join(notes, "; ")}
		if several {
			row = append(row, s.Cluster)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, l.Page.note("rows"))
	if c := l.Totals; c != nil {
		note := fmt.Sprintf("%s of %s used on %d storages; what shares its space counts once", Bytes(&c.UsedBytes), Bytes(&c.TotalBytes), c.Counted)
		if len(c.NotCounted) > 0 {
			note += "; without " + strings.Join(c.NotCounted, ", ")
		}
		t.Notes = append(t.Notes, note)
	}
	return append([]Table{t}, findingTable(l.Findings, l.MoreFindings)...)
}
