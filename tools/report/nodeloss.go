package report

import (
	"fmt"
	"slices"

	"pvelens/tools/parse"
)

// losses says for every node that is online whether the cluster bears its loss.
func (v *EvacView) losses(all rooms) []NodeLoss {
	out := []NodeLoss{}
	free, unknown := v.freeRooms()
	byNode := map[string][]Guest{}
	for _, g := range v.guests {
		byNode[g.Node] = append(byNode[g.Node], g)
	}
	for _, node := range NodeNames(v.Cluster.State) {
		out = append(out, v.loss(node, byNode[node], free, unknown))
	}
	return out
}

// freeRooms is the memory that each node has left for others' guests, of those
// that could take some; unknown are nodes of which it is not known.
func (v *EvacView) freeRooms() (free map[string]int64, unknown map[string]bool) {
	free, unknown = map[string]int64{}, map[string]bool{}
	for _, node := range NodeNames(v.Cluster.State) {
		online, _ := membership(v.Cluster.State, node)
		total, cache, _ := v.memoryOf(node)
		switch {
		case online != nil && !*online, v.away(node):
		case online == nil || total == nil || v.unsure[node] > 0:
			unknown[node] = true
		default:
			free[node] = max(*total-*cache-v.reserved[node], 0)
		}
	}
	return free, unknown
}

// away reports whether a node takes nothing because it is in maintenance or on
// its way down.
func (v *EvacView) away(node string) bool {
	if v.HA == nil {
		return false
	}
	if m := v.HA.Manager; m != nil && slices.ContainsFunc(m.Nodes, func(n parse.HANodeState) bool { return n.Name == node && n.State == "maintenance" }) {
		return true
	}
	return slices.ContainsFunc(v.HA.LRMs, func(l parse.LRM) bool { return l.Node == node && l.Mode == "maintenance" })
}

func (v *EvacView) loss(node string, guests []Guest, free map[string]int64, unknown map[string]bool) NodeLoss {
	l := NodeLoss{Node: node, Fits: Unknown, KeepsQuorum: v.keepsQuorum(node)}
	if Offline(v.Cluster.State, node) {
		l.Reason = "it is offline already; what runs there is not known"
		return l
	}
	var sizes []int64
	sum := int64(0)
	for _, g := range guests {
		if !v.mayRun(g) {
			continue
		}
		l.Guests++
		if v.tied(g) {
			l.LocalOnly++
		}
		if m := v.memory(g); m != nil {
			sizes, sum = append(sizes, *m), sum+*m
		}
	}
	slices.Sort(sizes)
	slices.Reverse(sizes)
	var rooms []int64
	total, unsure := int64(0), 0
	for other := range unknown {
		if other != node {
			unsure++
		}
	}
	for other, n := range free {
		if other != node {
			rooms, total = append(rooms, n), total+n
		}
	}
	l.NeededBytes, l.RoomBytes = &sum, &total
	if len(sizes) > 0 {
		l.LargestGuestBytes = &sizes[0]
	}
	if len(rooms) > 0 {
		l.LargestRoomBytes = Ptr(slices.Max(rooms))
	}
	l.Fits, l.Reason = fits(l, sizes, rooms, unsure, v.unsure[node])
	switch {
	case l.KeepsQuorum != nil && !*l.KeepsQuorum:
		l.Reason += "; but without it the cluster has no quorum, so nothing could be started"
	case l.KeepsQuorum == nil && v.Corosync != nil && v.Corosync.QDevice != nil:
		l.Reason += "; it keeps its quorum only if the QDevice votes, which cluster_health tells"
	}
	if l.LocalOnly > 0 {
		l.Reason += fmt.Sprintf("; %d of its guests cannot start elsewhere, their disks are on it alone", l.LocalOnly)
	}
	return l
}

// fits packs guests into rooms, the largest first.
func fits(l NodeLoss, sizes, rooms []int64, unsureRooms, unsureGuests int) (answer, reason string) {
	packed := pack(sizes, rooms)
	numbers := fmt.Sprintf("its %s need %s, the others have %s", many(l.Guests, "guest"), Bytes(l.NeededBytes), Bytes(l.RoomBytes))
	switch {
	case l.Guests == 0:
		return BackupYes, "nothing runs there"
	case unsureGuests > 0:
		return Unknown, "the memory of " + many(unsureGuests, "guest") + " is not known"
	case packed:
		return BackupYes, numbers
	case unsureRooms > 0:
		return Unknown, numbers + "; the memory of " + many(unsureRooms, "node") + " is not known"
	case len(rooms) == 0:
		return BackupNo, "there is no other node that could take its guests"
	case *l.NeededBytes > *l.RoomBytes:
		return BackupNo, numbers
	case *l.LargestGuestBytes > *l.LargestRoomBytes:
		return BackupNo, fmt.Sprintf("its largest guest needs %s, the largest room is %s", Bytes(l.LargestGuestBytes), Bytes(l.LargestRoomBytes))
	}
	return Unknown, numbers + ", but in pieces that may not suit"
}

// pack puts sizes, the largest first, each into the largest room that is left.
func pack(sizes, rooms []int64) bool {
	rooms = slices.Clone(rooms)
	for _, s := range sizes {
		if len(rooms) == 0 {
			return false
		}
		i := 0
		for k, r := range rooms {
			if r > rooms[i] {
				i = k
			}
		}
		if rooms[i] < s {
			return false
		}
		rooms[i] -= s
	}
	return true
}

// tied reports whether a guest has a disk that is on its node alone, without a
// replica elsewhere.
func (v *EvacView) tied(g Guest) bool {
	cfg := v.configs[g.VMID]
	if cfg == nil {
		return false
	}
	if v.Configs != nil && slices.ContainsFunc(v.Configs.ReplicationJobs, func(j parse.ReplicationJob) bool { return j.VMID == g.VMID && !j.Disabled }) {
		return false
	}
	for _, d := range cfg.Current.Disks {
		local := d.Kind == parse.DiskVolume || d.Kind == parse.DiskEFI || d.Kind == parse.DiskTPM
		st := v.storages[d.Storage]
		if (local && st != nil && !st.Shared || d.Kind == parse.DiskBind || d.Kind == parse.DiskDevice) && (d.Shared == nil || !*d.Shared) {
			return true
		}
	}
	return slices.ContainsFunc(cfg.Current.Devices, func(d parse.PassedDevice) bool {
		return d.Mapping == "" && (d.Kind == "pci" || d.Kind == "dev" || d.Kind == "usb" && !slices.Contains(d.Hosts, "spice"))
	})
}

// keepsQuorum reports whether the votes that are there suffice without a node;
// nil when that is not known, as when it depends on a QDevice, of which is not
// read whether it votes at this moment.
func (v *EvacView) keepsQuorum(node string) *bool {
	if v.Lone || v.Corosync == nil {
		return nil
	}
	votes := int64(-1)
	for _, n := range v.Corosync.Nodes {
		online, _ := membership(v.Cluster.State, n.Name)
		switch {
		case online == nil:
			return nil
		case n.Name == node && *online:
			votes = valueOr(n.Votes, 1)
		case n.Name == node:
			votes = 0
		}
	}
	c := ClusterFacts{Cluster: v.Cluster, Corosync: v.Corosync}.count()
	switch left := c.present - votes; {
	case votes < 0 || c.expected == 0:
		return nil
	case left >= c.needed && (left > 0 || c.unsure > 0):
		return Ptr(true)
	case left+c.unsure >= c.needed || c.tieBreaker && 2*left >= c.expected:
		return nil
	}
	return Ptr(false)
}
