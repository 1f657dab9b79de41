package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"pvelens/tools/parse"
)

// A SnapshotGuest is one row of snapshot_audit: a guest with snapshots, or one of
// which none can be made. Unfinished names those that are half made or half
// removed; they count in Snapshots, but not for the oldest. Impossible says why
// no snapshot can be made.
type SnapshotGuest struct {
	VMID       int      `json:"vmid"`
	Guest      string   `json:"guest,omitempty"`
	Type       string   `json:"type"`
	Node       string   `json:"node"`
	Cluster    string   `json:"cluster,omitempty"`
	Status     string   `json:"status"`
	State      string   `json:"state"`
	Snapshots  int      `json:"snapshots"`
	WithRAM    int      `json:"with_ram,omitempty"`
	Oldest     string   `json:"oldest,omitempty"`
	OldestAt   string   `json:"oldest_at,omitempty"`
	OldestAgeS *int64   `json:"oldest_age_s,omitempty"`
	NewestAgeS *int64   `json:"newest_age_s,omitempty"`
	Unfinished []string `json:"unfinished,omitempty"`
	TimeUnsure int      `json:"time_unknown,omitempty"`
	Impossible string   `json:"impossible,omitempty"`
}

// SnapshotAudit is the answer of snapshot_audit, the worst guests first. Guests
// is how many were looked at, Snapshots how many snapshots they have in all.
type SnapshotAudit struct {
	Answer
	Guests     int             `json:"guests"`
	Snapshots  int             `json:"snapshots"`
	Without    int             `json:"guests_without"`
	Impossible int             `json:"guests_impossible"`
	Items      []SnapshotGuest `json:"items"`
	Page
	Findings     []Finding `json:"findings"`
	MoreFindings int       `json:"more_findings,omitempty"`
}

// SnapshotGuestOf sums up a guest's snapshots and judges them. storages is
// storage.cfg, nil where it was not read.
func (j Judge) SnapshotGuestOf(subject string, g Guest, c parse.GuestConfig, rows []Snapshot, busy bool, storages []parse.StorageConfig) (SnapshotGuest, []*Finding) {
	s := SnapshotGuest{VMID: g.VMID, Guest: g.Name, Type: g.Type, Node: g.Node, Cluster: g.Cluster, Status: g.Status, Snapshots: len(rows)}
	for _, r := range rows {
		switch {
		case r.State != "" || r.Name == "vzdump":
			s.Unfinished = append(s.Unfinished, r.Name)
			continue
		case r.AgeS == nil:
			s.TimeUnsure++
		default:
			if s.OldestAgeS == nil || *r.AgeS > *s.OldestAgeS {
				s.Oldest, s.OldestAt, s.OldestAgeS = r.Name, r.CreatedAt, r.AgeS
			}
			if s.NewestAgeS == nil || *r.AgeS < *s.NewestAgeS {
				s.NewestAgeS = r.AgeS
			}
		}
		if r.WithRAM {
			s.WithRAM++
		}
	}
	findings := j.SnapshotFindings(subject, rows, busy)
	s.State = worst(findings, false)
	made := len(rows) > len(s.Unfinished) // then it was possible at least once
	if !g.Template && storages != nil && !made {
		key, why := noSnapshot(g.Type, c.Current, storages)
		if why != "" {
			s.Impossible = key + ": " + why
			findings = append(findings, j.Find("SNAPSHOT_IMPOSSIBLE", "", subject, "no snapshot can be made: "+s.Impossible))
		}
	}
	return s, findings
}

// noSnapshot finds the first disk that cannot be snapshotted, as Proxmox decides
// (volume_has_feature of PVE 7 to 9); "" when all can, or it is not known.
func noSnapshot(kind string, s parse.GuestSettings, storages []parse.StorageConfig) (key, why string) {
	for _, d := range s.Disks {
		switch {
		case d.Kind == parse.DiskCDROM || d.Kind == parse.DiskCloudInit || d.Kind == parse.DiskUnused:
			continue
		case d.Kind == parse.DiskBind || d.Kind == parse.DiskDevice:
			what := "a device of the node"
			if d.Kind == parse.DiskBind {
				what = "bound from the node"
			}
			return Clean(d.Key), what
		}
		i := slices.IndexFunc(storages, func(c parse.StorageConfig) bool { return c.ID == d.Storage })
		if i < 0 {
			continue
		}
		if why = storageLacks(kind, storages[i], d); why != "" {
			return Clean(d.Key), why
		}
	}
	return "", ""
}

func storageLacks(kind string, c parse.StorageConfig, d parse.GuestDisk) string {
	where := fmt.Sprintf("storage %s (%s)", Clean(c.ID), Clean(c.Type))
	format := d.Format
	if i := strings.LastIndexByte(d.Volume, '.'); i >= 0 && format == "" {
		format = d.Volume[i+1:]
	}
	switch c.Type {
	case "iscsi", "iscsidirect":
		return where + " has no snapshots"
	case "lvm":
		if c.SnapshotAsVolumes && kind == "qemu" && format == "qcow2" {
			return ""
		}
		return where + " has no snapshots"
	case "dir", "nfs", "cifs", "glusterfs":
		switch {
		case kind == "lxc":
			return where + " has no snapshots of containers"
		case format != "qcow2" && format != "qed" && format != "":
			return fmt.Sprintf("%s has no snapshots of a %s image", where, Clean(format))
		}
	}
	return ""
}

// SortSnapshotGuests puts the worst first, then the oldest.
func SortSnapshotGuests(rows []SnapshotGuest) {
	rank := func(state string) int {
		return slices.Index([]string{HealthCritical, HealthWarning, HealthOK}, state)
	}
	ageOf := func(s SnapshotGuest) int64 { return valueOr(s.OldestAgeS, 0) }
	slices.SortStableFunc(rows, func(a, b SnapshotGuest) int {
		return cmp.Or(cmp.Compare(rank(a.State), rank(b.State)), cmp.Compare(ageOf(b), ageOf(a)), cmp.Compare(a.Cluster, b.Cluster), cmp.Compare(a.VMID, b.VMID))
	})
}

// Tables shows the guests to people.
func (l *SnapshotAudit) Tables() []Table {
	t := Table{Columns: []string{"state", ">vmid", "guest", "node", ">snapshots", ">ram", "oldest", ">age", "notes"}}
	for _, s := range l.Items {
		var notes []string
		if len(s.Unfinished) > 0 {
			notes = append(notes, "unfinished: "+few(s.Unfinished))
		}
		if s.TimeUnsure > 0 {
			notes = append(notes, fmt.Sprintf("%d of unknown time", s.TimeUnsure))
		}
		if s.Impossible != "" {
			notes = append(notes, "cannot be snapshotted: "+s.Impossible)
		}
		ram := ""
		if s.WithRAM > 0 {
			ram = fmt.Sprint(s.WithRAM)
		}
		t.Rows = append(t.Rows, []string{s.State, fmt.Sprint(s.VMID), s.Guest, s.Node, fmt.Sprint(s.Snapshots), ram, s.Oldest, Seconds(s.OldestAgeS), strings.Join(notes, "; ")})
	}
	t.Notes = append(t.Notes, l.Page.note("guests"), fmt.Sprintf("%d guests looked at, %d without a snapshot, %d that cannot have one; %d snapshots in all", l.Guests, l.Without, l.Impossible, l.Snapshots))
	return append([]Table{t}, findingTable(l.Findings, l.MoreFindings)...)
}
