package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// A Snapshot is one row of list_snapshots. Depth is its place in the guest's
// tree, 0 for a root; ParentMissing is set when its parent is not there any
// more. State is set while it is half made or half removed. Current marks the
// snapshot that the guest's running state comes from. CreatedAt is absent when
// the time is not known. Description is text by people, with detail=detailed and
// a guest only.
type Snapshot struct {
	VMID          int    `json:"vmid"`
	Guest         string `json:"guest,omitempty"`
	Node          string `json:"node"`
	Cluster       string `json:"cluster,omitempty"`
	Name          string `json:"name"`
	Parent        string `json:"parent,omitempty"`
	ParentMissing bool   `json:"parent_missing,omitempty"`
	Depth         int    `json:"depth,omitempty"`
	CreatedAt     string `json:"created_at,omitempty"`
	AgeS          *int64 `json:"age_s,omitempty"`
	WithRAM       bool   `json:"with_ram"`
	State         string `json:"state,omitempty"`
	Current       bool   `json:"current,omitempty"`
	Description   string `json:"description,omitempty"`
}

// SnapshotList is the answer of list_snapshots. Guests is how many guests were
// looked at, whether they have snapshots or not. MoreFindings counts findings
// that were left out for want of room.
type SnapshotList struct {
	Answer
	Items []Snapshot `json:"items"`
	Page
	Guests       int       `json:"guests"`
	Findings     []Finding `json:"findings"`
	MoreFindings int       `json:"more_findings,omitempty"`
}

// SnapshotRows returns a guest's snapshots in the order of their tree: a parent
// before its children, brothers by time.
func SnapshotRows(g Guest, c parse.GuestConfig, now time.Time) []Snapshot {
	t := tree{children: map[string][]parse.GuestSnapshot{}, known: map[string]bool{}, seen: map[string]bool{}, now: now}
	for _, s := range c.Snapshots {
		t.known[s.Name] = true
	}
	for _, s := range c.Snapshots {
		parent := s.Settings.Parent
		if !t.known[parent] || parent == s.Name {
			parent = ""
		}
		t.children[parent] = append(t.children[parent], s)
	}
	for _, brothers := range t.children {
		slices.SortFunc(brothers, func(a, b parse.GuestSnapshot) int {
			return cmp.Or(cmp.Compare(timeOr(a.Time), timeOr(b.Time)), strings.Compare(a.Name, b.Name))
		})
	}
	t.guest, t.current = g, c.Current.Parent
	t.grow("", 0)
	for _, s := range c.Snapshots { // a ring of parents has no root
		if !t.seen[s.Name] {
			t.add(s, 0)
		}
	}
	return t.rows
}

// timeOr puts unknown times last.
func timeOr(t *int64) int64 {
	if t == nil {
		return 1 << 62
	}
	return *t
}

type tree struct {
	guest       Guest
	current     string
	now         time.Time
	children    map[string][]parse.GuestSnapshot
	known, seen map[string]bool
	rows        []Snapshot
}

func (t *tree) grow(parent string, depth int) {
	for _, s := range t.children[parent] {
		if !t.seen[s.Name] {
			t.add(s, depth)
			t.grow(s.Name, depth+1)
		}
	}
}

func (t *tree) add(s parse.GuestSnapshot, depth int) {
	t.seen[s.Name] = true
	row := Snapshot{
		VMID: t.guest.VMID, Guest: t.guest.Name, Node: t.guest.Node, Cluster: t.guest.Cluster, Name: Clean(s.Name), Depth: depth,
		Parent: Clean(s.Settings.Parent), ParentMissing: s.Settings.Parent != "" && !t.known[s.Settings.Parent],
		WithRAM: s.Settings.VMState != "", State: Clean(s.State), Current: s.Name == t.current,
	}
	if s.Time != nil {
		row.CreatedAt, row.AgeS = At(*s.Time), Ptr(int64(age(t.now, *s.Time)/time.Second))
	}
	t.rows = append(t.rows, row)
}

// SnapshotFindings judges one guest's snapshots. underWay says that a running
// task explains a snapshot that is half made or half removed. One that is has no
// age: it is no snapshot.
func (j Judge) SnapshotFindings(subject string, rows []Snapshot, underWay bool) []*Finding {
	var out []*Finding
	var oldest *Snapshot
	for i, r := range rows {
		switch {
		case r.Name == "vzdump" && r.State == "" && !underWay:
			out = append(out, j.Find("SNAPSHOT_STUCK", "", subject, "snapshot vzdump was left behind by a backup", Evidence{Name: "created_at", Value: cmp.Or(r.CreatedAt, Unknown)}))
		case r.State != "":
			severity := Warning
			message := fmt.Sprintf("snapshot %s is left in state %s", r.Name, r.State)
			if underWay {
				severity, message = Info, fmt.Sprintf("snapshot %s is in state %s, a task is at it", r.Name, r.State)
			}
			out = append(out, j.Find("SNAPSHOT_STUCK", severity, subject, message, Evidence{Name: "snapstate", Value: r.State}))
		case r.AgeS != nil && (oldest == nil || *r.AgeS > *oldest.AgeS):
			oldest = &rows[i]
		}
	}
	if oldest != nil {
		days := float64(*oldest.AgeS) / 86400
		out = append(out, j.Measure("SNAPSHOT_OLD", subject, fmt.Sprintf("snapshot %s is %s old", oldest.Name, Seconds(oldest.AgeS)), "age", days, Evidence{Name: "created_at", Value: oldest.CreatedAt}))
	}
	return append(out, j.Measure("SNAPSHOT_MANY", subject, fmt.Sprintf("%d snapshots", len(rows)), "snapshots", float64(len(rows))))
}

// Describe adds the descriptions that the node's own list tells.
func Describe(rows []Snapshot, list parse.SnapshotList) {
	for i := range rows {
		for _, s := range list.Snapshots {
			if Clean(s.Name) == rows[i].Name {
				rows[i].Description = CleanNote(s.Description)
			}
		}
	}
}

// Tables shows the snapshots to people.
func (l *SnapshotList) Tables() []Table {
	t := Table{Columns: []string{">vmid", "guest", "snapshot", "created", ">age", "ram", "notes"}}
	several := slices.ContainsFunc(l.Items, func(s Snapshot) bool { return s.Cluster != "" })
	if several {
		t.Columns = append(t.Columns, "cluster")
	}
	for _, s := range l.Items {
		var notes []string
		for _, n := range []struct {
			on   bool
			text string
		}{{s.Current, "current state comes from it"}, {s.ParentMissing, "parent " + s.Parent + " is missing"}, {s.State != "", "in state " + s.State}, {s.Description != "", strings.ReplaceAll(s.Description, "\n", " / ")}} {
			if n.on {
				notes = append(notes, n.text)
			}
		}
		name := s.Name
		if s.Depth > 0 {
			name = strings.Repeat("  ", s.Depth-1) + "└ " + name
		}
		row := []string{fmt.Sprint(s.VMID), s.Guest, name, s.CreatedAt, Seconds(s.AgeS), Yes(s.WithRAM), strings.Join(notes, "; ")}
		if several {
			row = append(row, s.Cluster)
		}
		t.Rows = append(t.Rows, row)
	}
	t.Notes = append(t.Notes, fmt.Sprintf("%s of %d guests", l.Page.note("snapshots"), l.Guests))
	return append([]Table{t}, findingTable(l.Findings, l.MoreFindings)...)
}
