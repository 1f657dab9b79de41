package parse

import (
	"cmp"
	"slices"
	"strings"
	"time"
)

// SnapshotList is a guest's snapshots as the API lists them.
type SnapshotList struct {
	Snapshots []ListedSnapshot // by time, unknown times last, then by name
	Current   string           // the snapshot that the running state comes from; "" when none
	Running   *bool            // whether the guest runs; nil: not told
}

// A ListedSnapshot is one snapshot. The API's entry "current" is none: it marks
// where the running state stands.
type ListedSnapshot struct {
	Name          string
	Parent        string // "" for a root
	ParentMissing bool   // the parent is not in the list; treat it as a root
	Description   string // text by people
	Created       *time.Time
	WithRAM       bool
	State         string // prepare or delete while unfinished: not usable; normally ""
}

// Snapshots reads /nodes/N/{lxc,qemu}/ID/snapshot of pvesh (PVE 7 to 9), which
// lists in random order and always has an entry "current":
//
//	[{"description":"nach Update -> ok\n","name":"nach_update","parent":"vor_update","snaptime":1793318400},{"description":"You are here!","digest":"bc3d…","name":"current","parent":"nach_update","running":1}]
//
// A snaptime of 0 is an unknown time. An entry without a name is left out and noted.
func Snapshots(out []byte) (SnapshotList, []Note, error) {
	list := SnapshotList{Snapshots: []ListedSnapshot{}}
	entries, notes, err := jsonList("snapshots", out)
	if err != nil {
		return list, nil, err
	}
	for _, o := range entries {
		switch name := o.text("name"); name {
		case "":
			o.note("name", "a name")
		case "current":
			list.Current, list.Running = o.text("parent"), o.flag("running")
		default:
			list.Snapshots = append(list.Snapshots, ListedSnapshot{
				Name: name, Parent: o.text("parent"), Description: o.text("description"),
				Created: o.seconds("snaptime"), WithRAM: o.yes("vmstate"), State: o.text("snapstate"),
			})
		}
	}
	list.settle()
	return list, *notes, nil
}

func (l *SnapshotList) settle() {
	known := map[string]bool{"": true}
	for _, s := range l.Snapshots {
		known[s.Name] = true
	}
	for i, s := range l.Snapshots {
		l.Snapshots[i].ParentMissing = !known[s.Parent]
	}
	slices.SortFunc(l.Snapshots, func(a, b ListedSnapshot) int {
		return cmp.Or(compareTimes(a.Created, b.Created), strings.Compare(a.Name, b.Name))
	})
}
