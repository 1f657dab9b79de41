package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// A room is one other node as a target: what it has left as the plan grows.
type room struct {
	row      EvacNode
	why      string // why it is no target; "" when it is one
	free     int64
	incoming int64
	guests   int
	copies   map[string]int64 // bytes that the plan copies onto its storages
	known    bool             // its memory is known
}

type rooms []*room

// rooms are all other nodes, by name.
func (v *EvacView) rooms() rooms {
	out := rooms{}
	for _, node := range NodeNames(v.Cluster.State) {
		if node == v.Node {
			continue
		}
		r := &room{row: EvacNode{Node: node, PVEVersion: Clean(v.Sites[node].Version)}, copies: map[string]int64{}}
		r.why = v.notATarget(node)
		total, cache, assumed := v.memoryOf(node)
		if total != nil && cache != nil {
			r.known = true
			r.row.MemoryTotalBytes, r.row.ZFSCacheMinBytes, r.row.ZFSCacheMinAssumed = total, cache, assumed
			r.row.ReservedBytes = Ptr(v.reserved[node] + *cache)
			r.free = *total - *r.row.ReservedBytes
		}
		switch {
		case r.why != "":
		case !r.known:
			r.why = "its memory is not known"
		case v.unsure[node] > 0:
			r.why = "the memory of " + many(v.unsure[node], "guest") + " there is not known"
		}
		r.row.Target = r.why == ""
		r.row.Reason = r.why
		out = append(out, r)
	}
	return out
}

// memoryOf is a node's memory and the least that its ZFS cache keeps. Where the
// minimum is not told, it is what OpenZFS takes by default, a thirty-second of
// the memory, unless the node is known to have no cache.
func (v *EvacView) memoryOf(node string) (total, cacheMin *int64, assumed bool) {
	r, reported := v.Cluster.State.RRD.Nodes[node]
	proc := v.Sites[node].Proc
	switch {
	case reported && positive(r.MemTotal) != nil:
		total = r.MemTotal
	case proc != nil && proc.Memory != nil:
		total = positive(proc.Memory.Total)
	}
	if total == nil {
		return nil, nil, false
	}
	switch {
	case proc != nil && (proc.ARC == nil || proc.ARC.Size == nil):
		return total, Ptr(int64(0)), false
	case proc != nil && proc.ARC.Min != nil:
		return total, proc.ARC.Min, false
	case proc == nil && reported && r.ARCSize != nil && *r.ARCSize == 0:
		return total, Ptr(int64(0)), false
	}
	return total, Ptr(*total / 32), true
}

// notATarget says why nothing may be moved to a node; "" when it may.
func (v *EvacView) notATarget(node string) string {
	st := v.Cluster.State
	online, _ := membership(st, node)
	switch {
	case online == nil:
		return "whether it is online is not known"
	case !*online:
		return "it is offline"
	case v.HA == nil:
		return "whether it is in maintenance is not known"
	}
	if _, ok := st.RRD.Nodes[node]; !ok {
		return "its pvestatd reports nothing"
	}
	if m := v.HA.Manager; m != nil {
		for _, n := range m.Nodes {
			if n.Name == node && (n.State == "maintenance" || n.State == "fence" || n.State == "gone") {
				return "HA says that it is in state " + n.State
			}
		}
	}
	for _, l := range v.HA.LRMs {
		if l.Node == node && (l.Mode == "maintenance" || l.Mode == "shutdown" || l.Mode == "restart") {
			return "it is in mode " + Clean(l.Mode)
		}
	}
	site := v.Sites[node]
	if v.Version != "" && site.Version != "" && olderPVE(site.Version, v.Version) {
		return fmt.Sprintf("it runs an older Proxmox VE (%s) than %s (%s)", Clean(site.Version), v.Node, Clean(v.Version))
	}
	return ""
}

// olderPVE compares major and minor versions.
func olderPVE(a, b string) bool {
	cut := func(s string) string {
		f := strings.SplitN(s, ".", 3)
		return strings.Join(f[:min(len(f), 2)], ".")
	}
	return parse.CompareReleases(cut(a), cut(b)) < 0
}

// place decides what becomes of every guest of the node: first those that need
// most memory. Afterwards the limits are checked once more, from the result.
func (v *EvacView) place(all rooms) []EvacGuest {
	var mine []Guest
	for _, g := range v.guests {
		if g.Node == v.Node {
			mine = append(mine, g)
		}
	}
	size := func(g Guest) int64 {
		if m := v.memory(g); m != nil && v.mayRun(g) {
			return *m
		}
		return 0
	}
	slices.SortStableFunc(mine, func(a, b Guest) int { return cmp.Or(cmp.Compare(size(b), size(a)), cmp.Compare(a.VMID, b.VMID)) })
	out := []EvacGuest{}
	for _, g := range mine {
		out = append(out, v.decide(g, all))
	}
	v.checkAgain(out, all)
	sortEvac(out)
	return out
}

// decide says what becomes of one guest, and takes its room.
func (v *EvacView) decide(g Guest, all rooms) EvacGuest {
	r := EvacGuest{VMID: g.VMID, Name: g.Name, Type: g.Type, Status: g.Status, runs: v.mayRun(g), template: g.Template}
	blocked := func(why ...string) EvacGuest {
		r.Action, r.why, r.Target, r.CopyBytes = EvacBlocked, why, "", nil
		r.Reason = joinReasons(why)
		return r
	}
	if v.Lone {
		r.Action, r.Reason = EvacStays, "a lone node: there is no other node to go to"
		return r
	}
	if !Quorate(v.Cluster.State) {
		return blocked("the cluster has no quorum: nothing can be moved")
	}
	cfg := v.configs[g.VMID]
	needs := v.needsOf(g.Type, cfg)
	if r.runs {
		if r.MemoryBytes = v.memory(g); r.MemoryBytes == nil {
			needs.block("its memory is not known")
		}
	}
	r.CopyBytes, r.with = needs.copies(), needs.with
	if v.offline() {
		return v.decideOffline(r, g, needs, all)
	}
	if wait, why := v.busy(g); wait != "" || why != "" {
		if wait != "" && len(needs.hard) == 0 {
			return v.waiting(r, g, wait, needs, all)
		}
		if wait != "" {
			why = "a task runs (" + Clean(wait) + ")"
		}
		return blocked(append([]string{why}, needs.hard...)...)
	}
	if g.Template && len(needs.local) > 0 {
		r.Action, r.Reason, r.CopyBytes = EvacStays, "a template on local storage: nothing of it runs; it cannot be cloned while the node is down", nil
		return r
	}
	if why := v.unclear(g); why != "" {
		return blocked(append([]string{why}, needs.hard...)...)
	}
	ha := v.haOf(g)
	if len(needs.hard) > 0 {
		if ha != nil {
			return blocked(append(needs.hard, "it is under HA, which would try all the same")...)
		}
		return blocked(needs.hard...)
	}
	if ha != nil {
		return v.decideHA(r, g, ha, needs, all)
	}
	to, why := v.target(r, g, needs, all, nil)
	if to == nil {
		r.noRoom = strings.HasPrefix(why, noRoomText)
		return blocked(why)
	}
	r.Target = to.row.Node
	r.Action, r.Reason = v.actionOf(g, r, needs)
	v.take(to, r, needs)
	return r
}

// waiting keeps room for a guest that a task is busy with.
func (v *EvacView) waiting(r EvacGuest, g Guest, task string, n evacNeeds, all rooms) EvacGuest {
	r.Action, r.Reason, r.CopyBytes = EvacWait, "a task runs ("+Clean(task)+"); plan again when it has ended", nil
	if strings.HasSuffix(task, "migrate") || v.haOf(g) != nil {
		return r
	}
	to, why := v.target(r, g, n, all, nil)
	if to == nil {
		r.Reason += "; as things are: " + why
		return r
	}
	r.Target = to.row.Node
	v.take(to, r, n)
	return r
}

// unclear says why a guest's state forbids to plan; "" when it does not.
func (v *EvacView) unclear(g Guest) string {
	switch {
	case v.StateAge != "":
		return "its state is not known: " + v.StateAge
	case g.Status == Running || g.Status == Stopped:
		return ""
	case g.Status == Unknown:
		return "its state is not known"
	}
	return "the VM is in state " + g.Status + ": resume or stop it first"
}

// busy returns the type of a running task of the guest, or why its lock forbids
// a move.
func (v *EvacView) busy(g Guest) (task, why string) {
	boot := int64(0)
	if n, ok := v.Cluster.State.RRD.Nodes[v.Node]; ok && n.Time != nil && n.Uptime != nil {
		boot = *n.Time - *n.Uptime
	}
	if t := RunningTask(v.Tasks, g.VMID, boot, lockTasks[g.Lock]); t != nil {
		return t.Type, ""
	}
	switch {
	case g.Lock == "":
		return "", ""
	case g.Lock == "suspended":
		return "", "it is suspended to disk: resume it and stop it, or discard its state"
	case v.TasksNotRead != "":
		return "", "it is locked (" + g.Lock + "), and tasks could not be read: " + v.TasksNotRead
	}
	return "", "it is locked (" + g.Lock + ") and no task runs that would end it"
}

// actionOf names the way in which a guest that can be moved moves.
func (v *EvacView) actionOf(g Guest, r EvacGuest, n evacNeeds) (action, reason string) {
	var why []string
	switch {
	case g.Template:
		action, why = EvacOffline, []string{"a template on shared storage: only its configuration moves"}
	case !r.runs:
		action, why = EvacOffline, []string{"it does not run"}
	case g.Type == "lxc":
		action, why = EvacRestart, []string{"a running container moves by a restart"}
	case len(n.noLive) > 0:
		action, why = EvacOffline, n.noLive
	default:
		action = EvacLive
	}
	if n.with && len(n.local) > 0 {
		why = append(why, "its local disks are copied")
	} else if action == EvacLive {
		why = append([]string{"its disks are on shared storage"}, why...)
	}
	return action, joinReasons(append(why, n.caveats...))
}

const noRoomText = "no room: "

// target chooses the node with the most room among those that have what the
// guest needs; one that has a replica of its disks comes first. forbid adds a
// reason of the caller's. Without one it says why each is none.
func (v *EvacView) target(r EvacGuest, g Guest, n evacNeeds, all rooms, forbid func(node string) string) (*room, string) {
	need := int64(0)
	if r.MemoryBytes != nil && r.runs {
		need = *r.MemoryBytes
	}
	var best *room
	why := map[string][]string{}
	short, most := 0, int64(-1)
	for _, to := range all {
		reason := to.why
		if reason == "" && forbid != nil {
			reason = forbid(to.row.Node)
		}
		if reason == "" {
			reason = v.lacks(to, g, n)
		}
		if reason == "" && to.free-to.incoming < need {
			short++
			most = max(most, to.free-to.incoming)
			continue
		}
		if reason != "" {
			why[reason] = append(why[reason], to.row.Node)
			continue
		}
		if best == nil || v.better(to, best, g, n) {
			best = to
		}
	}
	if best != nil {
		return best, ""
	}
	others := perReason(why)
	if short > 0 {
		return nil, joinReasons(append([]string{fmt.Sprintf("%sit needs %s of memory, the most that a node has left is %s", noRoomText, Bytes(&need), Bytes(Ptr(max(most, 0))))}, others...))
	}
	if len(all) == 0 {
		return nil, "there is no other node"
	}
	return nil, joinReasons(others)
}

// perReason renders reasons with the nodes that they hold for.
func perReason(why map[string][]string) []string {
	var out []string
	for reason, nodes := range why {
		out = append(out, someOf(nodes, "node")+": "+reason)
	}
	slices.Sort(out)
	return out
}

func (v *EvacView) better(a, b *room, g Guest, n evacNeeds) bool {
	x, y := v.replicated(g.VMID, a.row.Node), v.replicated(g.VMID, b.row.Node)
	if len(n.local) > 0 && x != y {
		return x
	}
	return a.free-a.incoming > b.free-b.incoming
}

// replicated reports whether a replication job copies the guest's disks to node.
func (v *EvacView) replicated(vmid int, node string) bool {
	return v.Configs != nil && slices.ContainsFunc(v.Configs.ReplicationJobs, func(j parse.ReplicationJob) bool {
		return j.VMID == vmid && j.Target == node && !j.Disabled && j.RemoveJob == ""
	})
}

// lacks says what a node has not that the guest needs; "" when it has all.
func (v *EvacView) lacks(to *room, g Guest, n evacNeeds) string {
	node := to.row.Node
	var out []string
	site := v.Sites[node]
	if r := v.Cluster.State.RRD.Nodes[node]; r.CPUs != nil && n.vcpus > *r.CPUs {
		out = append(out, fmt.Sprintf("it has %d CPUs, and a VM with %d starts only where there are as many", *r.CPUs, n.vcpus))
	}
	for _, b := range n.bridges {
		switch {
		case site.Links == nil:
			out = appendOnce(out, "bridge "+Clean(b)+" not proven: "+cmp.Or(site.NotAsked, "the node could not be asked"))
		case !site.Links[b]:
			out = append(out, "no bridge "+Clean(b))
		}
	}
	for _, id := range n.storages {
		out = append(out, v.lacksStorage(to, id, g, n)...)
	}
	for _, d := range n.mappings {
		m := v.mappings[[2]string{map[bool]string{true: "directory", false: d.Kind}[d.Kind == "virtiofs"], d.Mapping}]
		if m == nil || !slices.ContainsFunc(m.Entries, func(e parse.MappingEntry) bool { return e.Node == node }) {
			out = append(out, "mapping "+Clean(d.Mapping)+" has nothing there")
		}
	}
	return strings.Join(out, ", ")
}

func (v *EvacView) lacksStorage(to *room, id string, g Guest, n evacNeeds) []string {
	node := to.row.Node
	st := v.storages[id]
	row, active := v.rrd[[2]string{node, id}]
	copied := n.local[id]
	switch {
	case st == nil:
		return []string{"no storage " + Clean(id)}
	case !OnNode(*st, node):
		return []string{"storage " + Clean(id) + " is not for it"}
	case !active:
		return []string{"storage " + Clean(id) + " is not active there"}
	case copied == 0 || v.replicated(g.VMID, node):
		return nil
	case row.Total == nil || row.Used == nil || *row.Total == 0:
		return []string{"the free space of storage " + Clean(id) + " is not known"}
	}
	if left := *row.Total - *row.Used - to.copies[id]; left < copied {
		return []string{fmt.Sprintf("storage %s has %s left for %s", Clean(id), Bytes(Ptr(max(left, 0))), Bytes(&copied))}
	}
	return nil
}

// take reserves a guest's memory and disk space on its target.
func (v *EvacView) take(to *room, r EvacGuest, n evacNeeds) {
	if r.runs && r.MemoryBytes != nil {
		to.incoming += *r.MemoryBytes
	}
	to.guests++
	if v.replicated(r.VMID, to.row.Node) {
		return
	}
	for id, b := range n.local {
		to.copies[id] += b
	}
}

// checkAgain sums what the plan brings to each node anew. A guest that does not
// fit after all is blocked; that would be a mistake of the planning before.
func (v *EvacView) checkAgain(guests []EvacGuest, all rooms) {
	limits := map[string]int64{}
	for _, to := range all {
		limits[to.row.Node] = to.free
	}
	for i := range guests {
		g := &guests[i]
		if g.Target == "" || !g.runs || g.MemoryBytes == nil {
			continue
		}
		if limits[g.Target] -= *g.MemoryBytes; limits[g.Target] < 0 {
			limits[g.Target] += *g.MemoryBytes
			g.why = []string{noRoomText + g.Target + " is full"}
			g.Action, g.Reason, g.Target, g.noRoom = EvacBlocked, g.why[0], "", true
		}
	}
}

// rows renders the nodes with what the plan brings.
func (all rooms) rows(v EvacView) []EvacNode {
	out := []EvacNode{}
	for _, to := range all {
		r := to.row
		r.IncomingGuests = to.guests
		if to.known {
			r.IncomingBytes, r.FreeAfterBytes = Ptr(to.incoming), Ptr(to.free-to.incoming)
		}
		out = append(out, r)
	}
	return out
}

// decideOffline plans for a node that is off: its configurations can be taken
// over by hand, where no disk is on the node alone.
func (v *EvacView) decideOffline(r EvacGuest, g Guest, n evacNeeds, all rooms) EvacGuest {
	blocked := func(why ...string) EvacGuest {
		r.Action, r.why, r.Reason, r.Target = EvacBlocked, why, joinReasons(why), ""
		return r
	}
	r.CopyBytes, r.runs = nil, !g.Template && g.LastStatus != Stopped && (g.LastStatus != "" || r.runs)
	for id := range n.local {
		n.hard = append(n.hard, "its disks on "+Clean(id)+" are on the node, which is off"+v.replicas(g.VMID))
	}
	slices.Sort(n.hard)
	if g.Template {
		r.Action, r.Reason = EvacStays, "a template: nothing of it runs"
		return r
	}
	if len(n.hard) > 0 {
		return blocked(n.hard...)
	}
	if ha := v.haOf(g); ha != nil {
		return v.decideHA(r, g, ha, n, all)
	}
	to, why := v.target(r, g, n, all, nil)
	if to == nil {
		r.noRoom = strings.HasPrefix(why, noRoomText)
		return blocked(why)
	}
	r.Action, r.Target = EvacOffline, to.row.Node
	r.Reason = joinReasons(append([]string{"the node is off and its disks are on shared storage: its configuration can be taken over once the node is surely without power"}, n.caveats...))
	v.take(to, r, n)
	return r
}

// replicas names the nodes that have a copy of a guest's disks, as of the last
// replication.
func (v *EvacView) replicas(vmid int) string {
	var on []string
	for _, node := range NodeNames(v.Cluster.State) {
		if v.replicated(vmid, node) {
			on = append(on, node)
		}
	}
	if on == nil {
		return ""
	}
	return " (" + strings.Join(on, ", ") + " has a replica of its last synchronisation)"
}

// haOf is the HA resource of a guest that HA really moves; an ignored one is as
// if it were none.
func (v *EvacView) haOf(g Guest) *parse.HAResource {
	if v.Configs == nil {
		return nil
	}
	for i, r := range v.Configs.HAResources {
		if r.SID == haID(parse.GuestRef{VMID: g.VMID, Type: g.Type}) && r.State != "ignored" {
			return &v.Configs.HAResources[i]
		}
	}
	return nil
}

// lrmSilentAfter is when a node's HA manager counts as dead, as in HA itself.
const lrmSilentAfter = 120 * time.Second

// decideHA leaves a guest to HA if HA can move it; where it goes HA decides, so
// that room is only reserved.
func (v *EvacView) decideHA(r EvacGuest, g Guest, ha *parse.HAResource, n evacNeeds, all rooms) EvacGuest {
	blocked := func(why ...string) EvacGuest {
		r.Action, r.why, r.Reason, r.CopyBytes = EvacBlocked, why, joinReasons(why), nil
		return r
	}
	if v.HA == nil {
		return blocked("it is under HA, whose state could not be read")
	}
	if why := v.haTrouble(ha.SID); why != "" {
		return blocked(why)
	}
	if !v.offline() && v.lrmSilent(v.Node) {
		return blocked("it is under HA, but the local HA manager of " + v.Node + " does not report, so nothing moves it")
	}
	to, why := v.target(r, g, n, all, func(node string) string { return v.haForbids(ha, node) })
	if to == nil {
		r.noRoom = strings.HasPrefix(why, noRoomText)
		return blocked("HA has no node for it: " + why)
	}
	r.Action = EvacHA
	v.take(to, r, n)
	why = "HA moves it, to a node of its choice"
	switch {
	case v.offline():
		why = "HA starts it on another node once this one is fenced"
	case ha.State == "stopped" || ha.State == "disabled":
		why = "it is under HA and stopped: HA moves it when it is told"
	case len(n.noLive) > 0:
		why += ", live if it can (" + joinReasons(n.noLive) + ")"
	}
	r.Reason = joinReasons(append([]string{why}, n.caveats...))
	return r
}

// haTrouble says why HA moves nothing, or not this service.
func (v *EvacView) haTrouble(sid string) string {
	m := v.HA.Manager
	if m == nil || m.Timestamp == nil || v.Now.Sub(time.Unix(*m.Timestamp, 0)) > lrmSilentAfter {
		return "it is under HA, but the HA manager does not report"
	}
	for _, s := range m.Services {
		if s.SID == sid && slices.Contains([]string{"error", "fence", "recovery"}, s.State) {
			return "HA has it in state " + s.State
		}
	}
	return ""
}

// lrmSilent reports whether nothing was heard of a node's local HA manager.
func (v *EvacView) lrmSilent(node string) bool {
	i := slices.IndexFunc(v.HA.LRMs, func(l parse.LRM) bool { return l.Node == node })
	return i < 0 || v.HA.LRMs[i].Timestamp == nil || v.Now.Sub(time.Unix(*v.HA.LRMs[i].Timestamp, 0)) > lrmSilentAfter
}

// haForbids says why HA would not use a node for a resource; "" when it may.
func (v *EvacView) haForbids(ha *parse.HAResource, node string) string {
	if v.lrmSilent(node) {
		return "its HA manager does not report"
	}
	has := func(nodes []parse.HANode) bool {
		return slices.ContainsFunc(nodes, func(n parse.HANode) bool { return n.Name == node })
	}
	for _, g := range v.Configs.HAGroups {
		if g.ID == ha.Group && g.Restricted && !has(g.Nodes) {
			return "it is not in the HA group " + Clean(g.ID)
		}
	}
	for _, r := range v.Configs.HARules {
		if r.Disabled || !slices.Contains(r.Resources, ha.SID) {
			continue
		}
		if r.Type == "node-affinity" && r.Strict && !has(r.Nodes) {
			return "it is not in the strict HA rule " + Clean(r.ID)
		}
		if r.Type == "resource-affinity" {
			if why := v.affinity(r, ha.SID, node); why != "" {
				return why
			}
		}
	}
	return ""
}

// affinity holds a node against a rule that ties resources to each other; those
// that leave the same node are not looked at.
func (v *EvacView) affinity(r parse.HARule, sid, node string) string {
	for _, other := range r.Resources {
		_, id, _ := strings.Cut(other, ":")
		home := ""
		for vmid, at := range v.homes {
			if fmt.Sprint(vmid) == id {
				home = at
			}
		}
		if other == sid || home == "" || home == v.Node {
			continue
		}
		if r.Affinity == "negative" && home == node {
			return "HA rule " + Clean(r.ID) + " keeps it apart from " + Clean(other)
		}
		if r.Affinity == "positive" && home != node {
			return "HA rule " + Clean(r.ID) + " keeps it with " + Clean(other)
		}
	}
	return ""
}
