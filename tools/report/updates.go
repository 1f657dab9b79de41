package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// The states of a node's list of updates.
const (
	ListValid    = "valid"
	ListOutdated = "outdated" // packages were installed, or lists refreshed, after it was made
	ListMissing  = "missing"
)

// NodeUpdates is one row of pending_updates. Updates counts the packages of the
// list that Proxmox keeps; it is absent without a list. Security counts those
// whose origin says so, StableFixes those of Debian's stable release, which are
// security or point-release fixes. Reboot is yes, no or unknown.
type NodeUpdates struct {
	Node          string          `json:"node"`
	Cluster       string          `json:"cluster,omitempty"`
	PVEVersion    string          `json:"pve_version,omitempty"`
	Updates       *int            `json:"updates,omitempty"`
	Security      *int            `json:"security,omitempty"`
	StableFixes   *int            `json:"stable_fixes,omitempty"`
	List          string          `json:"list,omitempty"`
	ListedAt      string          `json:"listed_at,omitempty"`
	ListAgeS      *int64          `json:"list_age_s,omitempty"`
	Reboot        string          `json:"reboot"`
	RebootReason  string          `json:"reboot_reason,omitempty"`
	RunningKernel string          `json:"running_kernel,omitempty"`
	NewestKernel  string          `json:"newest_kernel,omitempty"`
	PinnedKernel  string          `json:"pinned_kernel,omitempty"`
	Repositories  []string        `json:"repositories"`
	Packages      []PendingUpdate `json:"packages,omitempty"`
	Reason        string          `json:"reason,omitempty"`
}

// A PendingUpdate is one package. Security is yes, likely or absent.
type PendingUpdate struct {
	Package  string `json:"package"`
	From     string `json:"from,omitempty"`
	To       string `json:"to"`
	Origin   string `json:"origin,omitempty"`
	Security string `json:"security,omitempty"`
}

// UpdatesList is the answer of pending_updates.
type UpdatesList struct {
	Answer
	Items []NodeUpdates `json:"items"`
	Page
	Findings     []Finding `json:"findings"`
	MoreFindings int       `json:"more_findings,omitempty"`
}

// UpdateFacts is what one node told of its packages; what it did not is nil.
type UpdateFacts struct {
	Node, Cluster string
	Listed        bool           // the list was asked for and its answer read
	Updates       []parse.Update // nil: there is no list
	Stamps        []parse.Stamp  // nil: not read
	Packages      *parse.Packages
	Proc          *parse.NodeProc
	Repos         []parse.AptRepository
	ReposRead     bool
	Reason        string
	Now           time.Time
}

const (
	pkgupdatesFile = "/var/lib/pve-manager/pkgupdates"
	pkgcacheFile   = "/var/cache/apt/pkgcache.bin"
	dpkgStatusFile = "/var/lib/dpkg/status"
)

func (v UpdateFacts) stamp(path string) *int64 {
	for i, s := range v.Stamps {
		if s.Path == path {
			return &v.Stamps[i].Modified
		}
	}
	return nil
}

// NodeUpdatesOf builds one node's row and judges it.
func (j Judge) NodeUpdatesOf(v UpdateFacts) (NodeUpdates, []*Finding) {
	r := NodeUpdates{Node: v.Node, Cluster: v.Cluster, Reboot: Unknown, Repositories: []string{}, Reason: v.Reason}
	if v.Reason != "" {
		r.RebootReason = v.Reason
		return r, nil
	}
	r.count(v)
	r.list(v)
	r.reboot(v)
	if v.Packages != nil {
		r.PVEVersion = Clean(v.Packages.PVEManager())
	}
	subject := "node/" + v.Node
	if v.Cluster != "" {
		subject = v.Cluster + "/" + subject
	}
	return r, slices.Concat(j.updates(subject, r), j.repositories(subject, &r, v))
}

func (r *NodeUpdates) count(v UpdateFacts) {
	if v.Updates == nil {
		return
	}
	security, stable := 0, 0
	for _, u := range v.Updates {
		p := PendingUpdate{Package: Clean(u.Package), From: Clean(u.OldVersion), To: Clean(u.NewVersion), Origin: Clean(u.Origin)}
		switch {
		case u.Security != nil && *u.Security:
			security++
			p.Security = "yes"
		case u.DebianUpdate:
			stable++
			p.Security = "likely"
		}
		r.Packages = append(r.Packages, p)
	}
	r.Updates, r.Security, r.StableFixes = Ptr(len(v.Updates)), &security, &stable
}

// list tells how old the list is, and whether it still holds: Proxmox makes it
// anew when packages were installed or the package cache was made after it.
func (r *NodeUpdates) list(v UpdateFacts) {
	at := v.stamp(pkgupdatesFile)
	switch {
	case v.Listed && v.Updates == nil:
		r.List = ListMissing
		return
	case at == nil:
		return
	}
	r.List, r.ListedAt, r.ListAgeS = ListValid, At(*at), Ptr(int64(age(v.Now, *at)/time.Second))
	for _, path := range []string{pkgcacheFile, dpkgStatusFile} {
		if newer := v.stamp(path); newer != nil && *newer > *at {
			r.List = ListOutdated
		}
	}
}

func (r *NodeUpdates) reboot(v UpdateFacts) {
	if v.Proc != nil {
		r.RunningKernel, r.PinnedKernel = Clean(v.Proc.Kernel), Clean(v.Proc.PinnedKernel)
	}
	if v.Packages != nil {
		r.NewestKernel = Clean(v.Packages.NewestKernel())
	}
	next, whose := r.NewestKernel, "the newest installed kernel"
	if r.PinnedKernel != "" {
		next, whose = r.PinnedKernel, "the pinned kernel"
	}
	switch {
	case r.RunningKernel == "" || next == "":
		r.RebootReason = "the running or the installed kernel could not be read"
	case r.RunningKernel == next:
		r.Reboot = BackupNo
	case r.PinnedKernel == "" && parse.CompareReleases(r.RunningKernel, next) > 0:
		r.Reboot, r.RebootReason = Unknown, "the running kernel "+r.RunningKernel+" is newer than "+whose+" "+next
	default:
		r.Reboot, r.RebootReason = BackupYes, fmt.Sprintf("%s is %s, %s runs", whose, next, r.RunningKernel)
	}
}

func (j Judge) updates(subject string, r NodeUpdates) []*Finding {
	var out []*Finding
	if n := r.Updates; n != nil {
		count := Evidence{"updates", fmt.Sprint(*n), "packages"}
		made := Evidence{Name: "list of", Value: cmp.Or(r.ListedAt, Unknown)}
		switch {
		case *r.Security > 0:
			out = append(out, j.Find("UPDATES_SECURITY", "", subject, many(*r.Security, "security update")+waits(*r.Security), count, made))
		case *r.StableFixes > 0:
			out = append(out, j.Find("UPDATES_SECURITY", "", subject, many(*r.StableFixes, "update")+" of Debian's stable release"+waits(*r.StableFixes)+": security or point-release fixes", count, made))
		case *n > 0:
			out = append(out, j.Find("UPDATES_PENDING", "", subject, many(*n, "update")+waits(*n), count, made))
		}
	}
	switch {
	case r.List == ListMissing:
		out = append(out, j.Find("UPDATES_STALE", Warning, subject, "there is no list of updates: it was never made"))
	case r.ListAgeS != nil:
		state := Evidence{Name: "list", Value: r.List}
		f := j.Measure("UPDATES_STALE", subject, "the list of updates is "+Seconds(r.ListAgeS)+" old", "age", float64(*r.ListAgeS)/86400, state)
		if f == nil && r.List == ListOutdated {
			f = j.Find("UPDATES_STALE", Info, subject, "packages were changed after the list of updates was made", state, Evidence{Name: "list of", Value: r.ListedAt})
		}
		out = append(out, f)
	}
	if r.Reboot == BackupYes {
		out = append(out, j.Find("REBOOT_PENDING", "", subject, r.RebootReason, Evidence{Name: "running", Value: r.RunningKernel}, Evidence{Name: "next", Value: cmp.Or(r.PinnedKernel, r.NewestKernel)}))
	}
	return out
}

func waits(n int) string {
	if n == 1 {
		return " waits"
	}
	return " wait"
}

// A repository of Proxmox VE itself; those of Ceph and of the backup server are
// others.
func repoKind(r parse.AptRepository) string {
	switch {
	case slices.Contains(r.Components, "pve-enterprise"):
		return "enterprise"
	case slices.Contains(r.Components, "pve-no-subscription"):
		return "no-subscription"
	case slices.Contains(r.Components, "pvetest"), slices.Contains(r.Components, "pve-test"):
		return "test"
	}
	return ""
}

func (j Judge) repositories(subject string, r *NodeUpdates, v UpdateFacts) []*Finding {
	if !v.ReposRead {
		return nil
	}
	var files []Evidence
	for _, repo := range v.Repos {
		kind := repoKind(repo)
		if kind == "" || !repo.Enabled || slices.Contains(r.Repositories, kind) {
			continue
		}
		r.Repositories = append(r.Repositories, kind)
		files = append(files, Evidence{Name: kind, Value: Clean(repo.File)})
	}
	slices.Sort(r.Repositories)
	var out []*Finding
	if slices.Contains(r.Repositories, "enterprise") {
		out = append(out, j.Find("REPO_ENTERPRISE_NO_SUB", "", subject, "the enterprise repository is enabled; whether the node has a subscription is not known", files...))
	}
	switch {
	case len(r.Repositories) == 0:
		out = append(out, j.Find("REPO_NONE", "", subject, "no repository of Proxmox VE is enabled"))
	case len(r.Repositories) > 1:
		out = append(out, j.Find("REPO_SEVERAL", "", subject, "several repositories of Proxmox VE are enabled: "+strings.Join(r.Repositories, ", "), files...))
	}
	return out
}

// Brief takes away what a concise answer does not need.
func (r *NodeUpdates) Brief() {
	r.Packages = nil
	if r.Reboot == BackupNo {
		r.NewestKernel = ""
	}
}

// Tables shows the updates to people.
func (l *UpdatesList) Tables() []Table {
	t := Table{Columns: []string{"node", "pve", ">updates", ">security", ">fixes", "list", ">age", "reboot", "kernel", "repositories", "notes"}}
	count := func(n *int) string {
		if n == nil {
			return ""
		}
		return fmt.Sprint(*n)
	}
	for _, r := range l.Items {
		t.Rows = append(t.Rows, []string{r.Node, r.PVEVersion, count(r.Updates), count(r.Security), count(r.StableFixes), r.List, Seconds(r.ListAgeS), r.Reboot, r.RunningKernel, strings.Join(r.Repositories, ", "), cmp.Or(r.Reason, r.RebootReason)})
		for _, p := range r.Packages {
			t.Rows = append(t.Rows, []string{"", "", "", p.Security, "", p.Origin, "", "", "", p.Package, p.From + " → " + p.To})
		}
	}
	t.Notes = append(t.Notes, l.Page.note("nodes"))
	return append([]Table{t}, findingTable(l.Findings, l.MoreFindings)...)
}
