package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// What becomes of a guest when its node is emptied.
const (
	EvacLive    = "live"    // moved while it runs
	EvacRestart = "restart" // a container: stopped, moved, started on the target
	EvacOffline = "offline" // moved while it does not run; one that runs is shut down for it
	EvacHA      = "ha"      // left to HA, which moves it
	EvacStays   = "stays"   // nothing is lost when it stays, or there is nowhere to go
	EvacWait    = "wait"    // a task is busy with it
	EvacBlocked = "blocked" // cannot be moved as it is, or nothing proves that it can
)

var evacActions = []string{EvacBlocked, EvacWait, EvacLive, EvacRestart, EvacOffline, EvacHA, EvacStays}

// An EvacGuest is one guest of the node and what becomes of it. MemoryBytes is
// what is reserved for it on the target; CopyBytes the size of its local disks,
// which are copied.
type EvacGuest struct {
	VMID        int    `json:"vmid"`
	Name        string `json:"name,omitempty"`
	Type        string `json:"type"`
	Status      string `json:"status"`
	Action      string `json:"action"`
	Target      string `json:"target,omitempty"`
	Reason      string `json:"reason"`
	MemoryBytes *int64 `json:"memory_bytes,omitempty"`
	CopyBytes   *int64 `json:"copy_bytes,omitempty"`

	runs, noRoom, template bool
	with                   bool // local disks go along
	why                    []string
}

// An EvacStep is one thing for a person to do, in its order. On is the node to
// do it on. pvelens never runs the command.
type EvacStep struct {
	Step    int    `json:"step"`
	VMID    int    `json:"vmid,omitempty"`
	On      string `json:"on,omitempty"`
	Command string `json:"command,omitempty"`
	Note    string `json:"note,omitempty"`
}

// An EvacDown is a guest that does not work for a time, and for how long.
type EvacDown struct {
	VMID int    `json:"vmid"`
	Name string `json:"name,omitempty"`
	How  string `json:"how"`
}

// An EvacNode is another node of the cluster as a target. Reserved is the
// configured memory of what runs there and the least that the ZFS cache keeps;
// incoming is what the plan adds; FreeAfterBytes is below 0 on a node that has
// promised more than it has. The cache's minimum is assumed to be OpenZFS's own
// default where it is not told. Reason says why the node is no target.
type EvacNode struct {
	Node               string `json:"node"`
	Target             bool   `json:"target"`
	Reason             string `json:"reason,omitempty"`
	MemoryTotalBytes   *int64 `json:"memory_total_bytes,omitempty"`
	ZFSCacheMinBytes   *int64 `json:"zfs_cache_min_bytes,omitempty"`
	ZFSCacheMinAssumed bool   `json:"zfs_cache_min_assumed,omitempty"`
	ReservedBytes      *int64 `json:"reserved_bytes,omitempty"`
	IncomingBytes      *int64 `json:"incoming_bytes,omitempty"`
	FreeAfterBytes     *int64 `json:"free_after_bytes,omitempty"`
	IncomingGuests     int    `json:"incoming_guests"`
	PVEVersion         string `json:"pve_version,omitempty"`
}

// A NodeLoss says whether the guests that run on one node would fit on the
// others, were it lost: yes, no or unknown. Needed is their configured memory,
// room what the other nodes have left. LocalOnly counts guests that cannot start
// elsewhere at all, because their disks are on the node alone.
type NodeLoss struct {
	Node              string `json:"node"`
	Fits              string `json:"fits"`
	Reason            string `json:"reason"`
	Guests            int    `json:"guests"`
	NeededBytes       *int64 `json:"needed_bytes,omitempty"`
	RoomBytes         *int64 `json:"room_bytes,omitempty"`
	LargestGuestBytes *int64 `json:"largest_guest_bytes,omitempty"`
	LargestRoomBytes  *int64 `json:"largest_room_bytes,omitempty"`
	LocalOnly         int    `json:"local_only"`
	KeepsQuorum       *bool  `json:"keeps_quorum,omitempty"`
}

// EvacSummary counts the node's guests by action.
type EvacSummary struct {
	Guests  int `json:"guests"`
	Live    int `json:"live"`
	Restart int `json:"restart"`
	Offline int `json:"offline"`
	HA      int `json:"ha"`
	Stays   int `json:"stays"`
	Wait    int `json:"wait"`
	Blocked int `json:"blocked"`
}

// An EvacuationPlan is the answer of plan_node_evacuation. Possible is yes when
// no running guest is left behind, wait when only tasks are in the way, else no.
type EvacuationPlan struct {
	Answer
	Node     string      `json:"node"`
	Cluster  string      `json:"cluster,omitempty"`
	Online   *bool       `json:"online,omitempty"`
	Possible string      `json:"possible"`
	Summary  EvacSummary `json:"summary"`
	Guests   []EvacGuest `json:"guests"`
	Page
	Steps        []EvacStep `json:"steps"`
	MoreSteps    int        `json:"more_steps,omitempty"`
	Down         []EvacDown `json:"down"`
	MoreDown     int        `json:"more_down,omitempty"`
	Nodes        []EvacNode `json:"nodes"`
	MoreNodes    int        `json:"more_nodes,omitempty"`
	NMinus1      []NodeLoss `json:"n_minus_1"`
	MoreNMinus1  int        `json:"more_n_minus_1,omitempty"`
	Findings     []Finding  `json:"findings"`
	MoreFindings int        `json:"more_findings,omitempty"`
}

// An EvacSite is what was read on one of the other nodes. Links are the names of
// its interfaces, nil where they were not read, and NotAsked says why. Proc and
// Version may be missing.
type EvacSite struct {
	Links    map[string]bool
	NotAsked string
	Proc     *parse.NodeProc
	Version  string
}

// An EvacView is what a plan is made from. Configs and HA are nil where they were
// not read.
type EvacView struct {
	Cluster      ClusterView
	Node         string
	Version      string // of the node itself
	Lone         bool
	Configs      *parse.ClusterConfigs
	HA           *parse.HAState
	Corosync     *parse.Corosync
	Sites        map[string]EvacSite
	Tasks        []parse.Task
	TasksNotRead string // why
	StateAge     string // why the states of the node's guests are not known
	Now          time.Time

	guests   []Guest
	configs  map[int]*parse.GuestConfig
	storages map[string]*parse.StorageConfig
	rrd      map[[2]string]parse.RRDStorage
	mappings map[[2]string]*parse.ResourceMapping
	homes    map[int]string
	reserved map[string]int64 // configured memory of what runs, by node
	unsure   map[string]int   // guests whose memory is not known, by node
}

// PlanEvacuation says what becomes of every guest of a node, where it goes, in
// which steps, and whether the cluster bears the loss of any one node.
func (j Judge) PlanEvacuation(v EvacView) EvacuationPlan {
	v.prepare()
	p := EvacuationPlan{Node: v.Node, Cluster: v.Cluster.Name, Steps: []EvacStep{}, Down: []EvacDown{}}
	p.Online, _ = membership(v.Cluster.State, v.Node)
	rooms := v.rooms()
	p.Guests = v.place(rooms)
	p.Summary.count(p.Guests)
	p.Possible = possible(p.Guests)
	p.Steps = v.steps(p.Guests)
	p.Down = downs(p.Guests, v.offline())
	p.Nodes = rooms.rows(v)
	p.NMinus1 = v.losses(rooms)
	p.Findings = Findings(j.evacFindings(v, p)...)
	return p
}

// prepare makes the indexes that planning needs.
func (v *EvacView) prepare() {
	v.guests = Guests(v.Cluster, true)
	v.configs, v.storages, v.rrd = map[int]*parse.GuestConfig{}, map[string]*parse.StorageConfig{}, map[[2]string]parse.RRDStorage{}
	v.mappings, v.homes, v.reserved, v.unsure = map[[2]string]*parse.ResourceMapping{}, map[int]string{}, map[string]int64{}, map[string]int{}
	for i := range v.Cluster.Configs {
		v.configs[v.Cluster.Configs[i].VMID] = &v.Cluster.Configs[i]
	}
	if v.Configs != nil {
		for i := range v.Configs.Storages {
			v.storages[v.Configs.Storages[i].ID] = &v.Configs.Storages[i]
		}
		for i, m := range v.Configs.Mappings {
			v.mappings[[2]string{m.Kind, m.ID}] = &v.Configs.Mappings[i]
		}
	}
	for _, r := range v.Cluster.State.RRD.Storages {
		v.rrd[[2]string{r.Node, r.Storage}] = r
	}
	for _, g := range v.guests {
		v.homes[g.VMID] = g.Node
		if !v.mayRun(g) {
			continue
		}
		if m := v.memory(g); m != nil {
			v.reserved[g.Node] += *m
		} else {
			v.unsure[g.Node]++
		}
	}
}

// mayRun reports whether a guest takes memory, or may: a state that is not known
// counts as running.
func (v *EvacView) mayRun(g Guest) bool {
	if g.Template || g.Status == Stopped {
		return false
	}
	return g.Status != Unknown || g.LastStatus != Stopped
}

// memory is what a guest is configured for, the higher one where a change waits
// for its next start; nil when it is not known.
func (v *EvacView) memory(g Guest) *int64 {
	var most *int64
	take := func(n *int64) {
		if n != nil && (most == nil || *n > *most) {
			most = n
		}
	}
	if cfg := v.configs[g.VMID]; cfg != nil {
		take(cfg.Current.MemoryBytes)
		if cfg.Pending != nil {
			take(cfg.Pending.Settings.MemoryBytes)
		}
		if most == nil {
			most = Ptr(int64(512 << 20)) // Proxmox's own default
		}
	}
	if r, ok := v.Cluster.State.RRD.Guests[g.VMID]; ok {
		take(positive(r.MemMax))
	}
	return most
}

func (v *EvacView) offline() bool { return Offline(v.Cluster.State, v.Node) }

func (s *EvacSummary) count(guests []EvacGuest) {
	to := map[string]*int{EvacLive: &s.Live, EvacRestart: &s.Restart, EvacOffline: &s.Offline, EvacHA: &s.HA, EvacStays: &s.Stays, EvacWait: &s.Wait, EvacBlocked: &s.Blocked}
	for _, g := range guests {
		s.Guests++
		*to[g.Action]++
	}
}

// possible reports whether nothing that runs is left behind.
func possible(guests []EvacGuest) string {
	out := BackupYes
	for _, g := range guests {
		switch {
		case g.Action == EvacBlocked && g.runs, g.Action == EvacStays && g.runs:
			return BackupNo
		case g.Action == EvacWait:
			out = EvacWait
		}
	}
	return out
}

// downs lists what does not work meanwhile.
func downs(guests []EvacGuest, off bool) []EvacDown {
	out := []EvacDown{}
	for _, g := range guests {
		how := ""
		switch {
		case !g.runs:
			continue
		case off:
			how = "since the node is off"
		case g.Action == EvacRestart:
			how = "for its restart on the target"
		case g.Action == EvacHA && g.Type == "lxc":
			how = "for its restart on the node that HA chooses"
		case g.Action == EvacOffline:
			how = "from its shutdown until it is started on the target"
		case g.Action == EvacBlocked || g.Action == EvacStays:
			how = "as long as the node is down"
		case g.Action == EvacWait && g.Type == "lxc":
			how = "for its restart, once the task has ended"
		}
		if how != "" && g.CopyBytes != nil && (g.Action == EvacRestart || g.Action == EvacOffline) && !off {
			how += ", with the time to copy " + Bytes(g.CopyBytes)
		}
		if how != "" {
			out = append(out, EvacDown{g.VMID, g.Name, how})
		}
	}
	return out
}

func (j Judge) evacFindings(v EvacView, p EvacuationPlan) []*Finding {
	var out []*Finding
	prefix := ""
	if v.Cluster.Name != "" {
		prefix = v.Cluster.Name + "/"
	}
	needed, short := int64(0), 0
	for _, g := range p.Guests {
		if g.Action != EvacBlocked {
			continue
		}
		severity := Severity("")
		if !g.runs {
			severity = Info
		}
		evidence := []Evidence{{Name: "status", Value: g.Status}, {Name: "node", Value: v.Node}}
		for _, w := range g.why[:min(len(g.why), 6)] {
			evidence = append(evidence, Evidence{Name: "blocker", Value: w})
		}
		out = append(out, j.Find("EVAC_BLOCKED", severity, fmt.Sprintf("%sguest/%d", prefix, g.VMID), "cannot be moved off "+v.Node+": "+g.Reason, evidence...))
		if g.noRoom {
			short++
			if g.MemoryBytes != nil {
				needed += *g.MemoryBytes
			}
		}
	}
	if short > 0 {
		out = append(out, j.Find("EVAC_NO_ROOM", "", prefix+"node/"+v.Node, "no node has room for "+many(short, "guest")+" of "+v.Node,
			Evidence{Name: "memory without a place", Value: fmt.Sprint(needed), Unit: "bytes"}, Evidence{Name: "guests", Value: fmt.Sprint(short)}))
	}
	return out
}

// Tables shows the plan to people.
func (p *EvacuationPlan) Tables() []Table {
	title := "Node " + p.Node
	if p.Online != nil && !*p.Online {
		title += " (offline)"
	}
	s := p.Summary
	head := Table{Title: title, Columns: []string{"can be emptied", ">guests", ">blocked", ">wait", ">live", ">restart", ">offline", ">ha", ">stays"}}
	row := []string{p.Possible}
	for _, n := range []int{s.Guests, s.Blocked, s.Wait, s.Live, s.Restart, s.Offline, s.HA, s.Stays} {
		row = append(row, fmt.Sprint(n))
	}
	head.Rows = [][]string{row}
	guests := Table{Title: "Guests", Columns: []string{">vmid", "name", "type", "status", "action", "target", ">memory", ">copies", "why"}, Notes: []string{p.Page.note("guests")}}
	for _, g := range p.Guests {
		guests.Rows = append(guests.Rows, []string{fmt.Sprint(g.VMID), g.Name, g.Type, g.Status, g.Action, g.Target, Bytes(g.MemoryBytes), Bytes(g.CopyBytes), g.Reason})
	}
	out := []Table{head, guests}
	steps := Table{Title: "Steps, for a person", Columns: []string{">step", "on", "command", "note"}}
	for _, x := range p.Steps {
		steps.Rows = append(steps.Rows, []string{fmt.Sprint(x.Step), x.On, x.Command, x.Note})
	}
	down := Table{Title: "Down meanwhile", Columns: []string{">vmid", "name", "how long"}}
	for _, d := range p.Down {
		down.Rows = append(down.Rows, []string{fmt.Sprint(d.VMID), d.Name, d.How})
	}
	nodes := Table{Title: "Targets", Columns: []string{"node", "target", ">memory", ">reserved", ">zfs cache", ">incoming", ">free after", "why not"}}
	for _, n := range p.Nodes {
		nodes.Rows = append(nodes.Rows, []string{n.Node, YesNo(&n.Target), Bytes(n.MemoryTotalBytes), Bytes(n.ReservedBytes), Bytes(n.ZFSCacheMinBytes), Bytes(n.IncomingBytes), signed(n.FreeAfterBytes), n.Reason})
	}
	loss := Table{Title: "If one node is lost", Columns: []string{"node", "fits", ">guests", ">needed", ">room", ">local only", "keeps quorum", "why"}}
	for _, l := range p.NMinus1 {
		loss.Rows = append(loss.Rows, []string{l.Node, l.Fits, fmt.Sprint(l.Guests), Bytes(l.NeededBytes), Bytes(l.RoomBytes), fmt.Sprint(l.LocalOnly), YesNo(l.KeepsQuorum), l.Reason})
	}
	for _, t := range []struct {
		table Table
		more  int
	}{{steps, p.MoreSteps}, {down, p.MoreDown}, {nodes, p.MoreNodes}, {loss, p.MoreNMinus1}} {
		if t.more > 0 {
			t.table.Notes = append(t.table.Notes, fmt.Sprintf("and %d more", t.more))
		}
		if len(t.table.Rows)+t.more > 0 {
			out = append(out, t.table)
		}
	}
	return append(out, findingTable(p.Findings, p.MoreFindings)...)
}

// signed is Bytes for a size that may be below zero.
func signed(n *int64) string {
	if n == nil || *n >= 0 {
		return Bytes(n)
	}
	return "-" + Bytes(Ptr(-*n))
}

// sortEvac orders guests: what needs a person first, then by VMID.
func sortEvac(guests []EvacGuest) {
	slices.SortStableFunc(guests, func(a, b EvacGuest) int {
		if x, y := slices.Index(evacActions, a.Action), slices.Index(evacActions, b.Action); x != y {
			return x - y
		}
		return a.VMID - b.VMID
	})
}

func joinReasons(why []string) string {
	const most = 4
	if len(why) > most {
		why = append(slices.Clone(why[:most]), "and "+many(len(why)-most, "more reason"))
	}
	return strings.Join(why, "; ")
}
