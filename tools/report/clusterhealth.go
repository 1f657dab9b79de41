package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// The words of a health.
const (
	HealthOK       = "ok"
	HealthWarning  = "warning"
	HealthCritical = "critical"
)

// Votes are corosync's votes. Margin is how many may still be lost; it is
// negative by the votes that are missing. Source is corosync, or configuration
// where only the files could be read.
type Votes struct {
	Expected int64  `json:"expected"`
	Present  int64  `json:"present"`
	Needed   int64  `json:"needed"`
	Margin   int64  `json:"margin"`
	Source   string `json:"source"`
}

// A QDeviceState is the voter that is no node. Votes tells whether it votes now;
// absent where that is not known.
type QDeviceState struct {
	Host   string `json:"host,omitempty"`
	Votes  *int64 `json:"votes,omitempty"`
	Alive  *bool  `json:"alive,omitempty"`
	Voting *bool  `json:"voting,omitempty"`
}

// A HealthNode is one node of a cluster. ClockOffsetS is how far its clock is
// ahead of this host's, known to ClockErrorS. LRMAgeS is the age of its HA
// manager's last word. Reason says why it was not asked.
type HealthNode struct {
	Node         string   `json:"node"`
	Online       *bool    `json:"online,omitempty"`
	Maintenance  bool     `json:"maintenance,omitempty"`
	PVEVersion   string   `json:"pve_version,omitempty"`
	Kernel       string   `json:"kernel,omitempty"`
	TimeZone     string   `json:"time_zone,omitempty"`
	ClockOffsetS *float64 `json:"clock_offset_s,omitempty"`
	ClockErrorS  *float64 `json:"clock_error_s,omitempty"`
	LRM          string   `json:"lrm,omitempty"`
	LRMAgeS      *int64   `json:"lrm_age_s,omitempty"`
	Reason       string   `json:"reason,omitempty"`

	zone string
}

// HAHealth is how HA is: its master, how old its last word is, and how many of
// its services are in which state. Fencing names what is fenced now.
type HAHealth struct {
	Master     string         `json:"master,omitempty"`
	MasterAgeS *int64         `json:"master_age_s,omitempty"`
	Services   map[string]int `json:"services"`
	Fencing    []string       `json:"fencing"`
	FencedBy   string         `json:"fenced_by,omitempty"`
}

// ClusterHealth is one cluster, or one lone node. The sums count the nodes that
// told their numbers, as many as nodes_counted. MemoryUsedWithoutCacheBytes
// leaves out what of the ZFS cache the kernel gives back; it is absent unless
// every counted node told it.
type ClusterHealth struct {
	Cluster            string        `json:"cluster"`
	SingleNode         bool          `json:"single_node,omitempty"`
	Health             string        `json:"health"`
	Quorate            *bool         `json:"quorate,omitempty"`
	OneMoreNodeMayFail string        `json:"one_more_node_may_fail,omitempty"`
	OneMoreNodeReason  string        `json:"one_more_node_reason,omitempty"`
	Votes              *Votes        `json:"votes,omitempty"`
	QDevice            *QDeviceState `json:"qdevice,omitempty"`

	NodesTotal       int          `json:"nodes_total"`
	NodesOnline      int          `json:"nodes_online"`
	NodesOffline     int          `json:"nodes_offline"`
	NodesUnknown     int          `json:"nodes_unknown"`
	NodesMaintenance int          `json:"nodes_maintenance"`
	Nodes            []HealthNode `json:"nodes"`
	MoreNodes        int          `json:"more_nodes,omitempty"`
	HA               *HAHealth    `json:"ha,omitempty"`
	PVEVersions      []string     `json:"pve_versions"`

	NodesCounted                int      `json:"nodes_counted"`
	CPUCount                    *int64   `json:"cpu_count,omitempty"`
	CPURatio                    *float64 `json:"cpu_ratio,omitempty"`
	MemoryTotalBytes            *int64   `json:"memory_total_bytes,omitempty"`
	MemoryUsedBytes             *int64   `json:"memory_used_bytes,omitempty"`
	MemoryUsedWithoutCacheBytes *int64   `json:"memory_used_without_cache_bytes,omitempty"`
	ZFSCacheBytes               *int64   `json:"zfs_cache_bytes,omitempty"`
}

// ClusterHealthList is the answer of cluster_health.
type ClusterHealthList struct {
	Answer
	Clusters     []ClusterHealth `json:"clusters"`
	Findings     []Finding       `json:"findings"`
	MoreFindings int             `json:"more_findings,omitempty"`
}

// A ClockReading is a node's clock: how far it is ahead of this host's, how wrong
// that may be, and its offset from UTC.
type ClockReading struct {
	Ahead, Error time.Duration
	Zone         string
}

// NodeFacts are what one node told; what it did not is nil or empty. Upgraded is
// when its packages were last changed. Reason says why it was not asked.
type NodeFacts struct {
	Reason   string
	Version  string
	Proc     *parse.NodeProc
	Clock    *ClockReading
	Upgraded *int64
}

// A ClusterFacts is what a cluster's health is told from; what was not read is
// nil. Resources is the number of guests under HA.
type ClusterFacts struct {
	Display   string // the cluster's name for people
	Cluster   ClusterView
	Corosync  *parse.Corosync
	Quorum    *parse.Quorum
	HA        *parse.HAState
	Resources *int
	Fencing   string
	Facts     map[string]NodeFacts
	Now       time.Time
}

func (v ClusterFacts) subject(parts ...string) string {
	if v.Cluster.Name != "" {
		parts = append([]string{v.Cluster.Name}, parts...)
	}
	return strings.Join(parts, "/")
}

// ClusterHealthOf builds the health of a cluster and judges it. incomplete says that
// something that it rests on was not read, so that it is not known to be well.
func (j Judge) ClusterHealthOf(v ClusterFacts, incomplete bool) (ClusterHealth, []*Finding) {
	h := ClusterHealth{Cluster: v.Display, SingleNode: v.Cluster.State.Members.Cluster == nil, PVEVersions: []string{}}
	h.nodes(v)
	h.sums(v)
	h.ha(v)
	if !h.SingleNode {
		h.votes(v)
	}
	findings := slices.Concat(j.quorum(v, h), j.healthNodes(v, h), j.versions(v, h), j.clocks(v, h), j.haFindings(v, h))
	h.Health = worst(findings, incomplete)
	return h, findings
}

// worst is the health that findings leave: warnings and worse count.
func worst(findings []*Finding, incomplete bool) string {
	out := HealthOK
	for _, f := range findings {
		switch {
		case f == nil:
		case f.Severity == Critical:
			return HealthCritical
		case f.Severity == Warning:
			out = HealthWarning
		}
	}
	if out == HealthOK && incomplete {
		return Unknown
	}
	return out
}

func (h *ClusterHealth) nodes(v ClusterFacts) {
	for _, name := range NodeNames(v.Cluster.State) {
		n := HealthNode{Node: name, Maintenance: v.maintenance(name)}
		n.Online, _ = membership(v.Cluster.State, name)
		f := v.Facts[name]
		n.PVEVersion, n.Reason = Clean(f.Version), f.Reason
		if f.Proc != nil {
			n.Kernel, n.TimeZone = Clean(f.Proc.Kernel), Clean(f.Proc.TimeZone)
		}
		if c := f.Clock; c != nil {
			n.ClockOffsetS, n.ClockErrorS, n.zone = seconds(c.Ahead), seconds(c.Error), c.Zone
		}
		if l := v.lrm(name); l != nil {
			n.LRM = Clean(cmp.Or(l.Mode, l.State))
			if l.Timestamp != nil {
				n.LRMAgeS = Ptr(int64(age(v.Now.Add(v.ahead(name)), *l.Timestamp) / time.Second))
			}
		}
		if n.PVEVersion != "" && !slices.Contains(h.PVEVersions, n.PVEVersion) {
			h.PVEVersions = append(h.PVEVersions, n.PVEVersion)
		}
		h.NodesTotal++
		switch {
		case n.Online == nil:
			h.NodesUnknown++
		case *n.Online:
			h.NodesOnline++
		default:
			h.NodesOffline++
		}
		if n.Maintenance {
			h.NodesMaintenance++
		}
		h.Nodes = append(h.Nodes, n)
	}
	slices.SortFunc(h.PVEVersions, parse.CompareReleases)
}

func seconds(d time.Duration) *float64 { return Ptr(math.Round(d.Seconds()*1000) / 1000) }

// ahead is how far a node's clock is ahead, 0 where it is not known.
func (v ClusterFacts) ahead(node string) time.Duration {
	if c := v.Facts[node].Clock; c != nil {
		return c.Ahead
	}
	return 0
}

func (v ClusterFacts) lrm(node string) *parse.LRM {
	if v.HA == nil {
		return nil
	}
	for i, l := range v.HA.LRMs {
		if l.Node == node {
			return &v.HA.LRMs[i]
		}
	}
	return nil
}

func (v ClusterFacts) maintenance(node string) bool {
	if l := v.lrm(node); l != nil && l.Mode == "maintenance" {
		return true
	}
	return v.haNode(node) == "maintenance"
}

// haNode is a node's state in the HA manager's words, "" without one.
func (v ClusterFacts) haNode(node string) string {
	if v.HA == nil || v.HA.Manager == nil {
		return ""
	}
	for _, n := range v.HA.Manager.Nodes {
		if n.Name == node {
			return n.State
		}
	}
	return ""
}

// sums adds up what the nodes have and use.
func (h *ClusterHealth) sums(v ClusterFacts) {
	var cpus, total, used, lean, cache int64
	busy, busyOf, leanNodes := 0.0, int64(0), 0
	for _, n := range h.Nodes {
		if n.Online != nil && !*n.Online {
			continue
		}
		c := Capacity{Node: n.Node}
		if r, ok := v.Cluster.State.RRD.Nodes[n.Node]; ok {
			c.reported(r)
		}
		c.measured(NodeView{Cluster: v.Cluster, Node: n.Node, Proc: v.Facts[n.Node].Proc})
		if c.MemoryTotalBytes == nil || c.MemoryUsedBytes == nil || c.CPUCount == nil {
			continue
		}
		h.NodesCounted++
		cpus, total, used = cpus+*c.CPUCount, total+*c.MemoryTotalBytes, used+*c.MemoryUsedBytes
		if c.CPURatio != nil {
			busy, busyOf = busy+*c.CPURatio*float64(*c.CPUCount), busyOf+*c.CPUCount
		}
		if c.MemoryUsedWithoutCacheBytes != nil {
			lean += *c.MemoryUsedWithoutCacheBytes
			leanNodes++
		}
		if c.ZFSCacheBytes != nil {
			cache += *c.ZFSCacheBytes
		}
	}
	if h.NodesCounted == 0 {
		return
	}
	h.CPUCount, h.MemoryTotalBytes, h.MemoryUsedBytes = &cpus, &total, &used
	if busyOf > 0 {
		h.CPURatio = Ptr(math.Round(busy/float64(busyOf)*1e4) / 1e4)
	}
	if leanNodes == h.NodesCounted {
		h.MemoryUsedWithoutCacheBytes, h.ZFSCacheBytes = &lean, &cache
	}
}

func (h *ClusterHealth) ha(v ClusterFacts) {
	if v.HA == nil || v.HA.Manager == nil {
		return
	}
	m := v.HA.Manager
	out := &HAHealth{Master: Clean(m.Master), Services: map[string]int{}, Fencing: []string{}, FencedBy: Clean(v.Fencing)}
	if m.Timestamp != nil {
		out.MasterAgeS = Ptr(int64(age(v.Now.Add(v.ahead(m.Master)), *m.Timestamp) / time.Second))
	}
	for _, s := range m.Services {
		out.Services[Clean(s.State)]++
		if fenced(s.State) {
			out.Fencing = append(out.Fencing, Clean(s.SID))
		}
	}
	for _, n := range m.Nodes {
		if fenced(n.State) {
			out.Fencing = append(out.Fencing, "node "+Clean(n.Name))
		}
	}
	h.HA = out
}

func fenced(state string) bool { return state == "fence" || state == "recovery" }

// votes counts: corosync's own numbers where they could be read, else those of
// the configuration and the members that the cluster sees.
func (h *ClusterHealth) votes(v ClusterFacts) {
	h.Quorate = v.Cluster.State.Members.Cluster.Quorate
	if v.Quorum != nil {
		h.Quorate = &v.Quorum.Quorate
	}
	c := v.count()
	h.QDevice = c.device
	if c.known {
		h.Votes = &Votes{c.expected, c.present, c.needed, c.present - c.needed, c.source}
	}
	h.OneMoreNodeMayFail, h.OneMoreNodeReason = c.oneMore(h.Quorate)
}

// A tally is what the verdict about one more node rests on.
type tally struct {
	known                     bool
	source                    string
	expected, present, needed int64
	largest                   int64 // votes of the strongest node that is there
	nodes                     int   // nodes that are there
	unsure                    int64 // votes of a QDevice of which nobody knows whether it votes
	twoNode, tieBreaker       bool
	device                    *QDeviceState
}

func (v ClusterFacts) count() tally {
	c := tally{}
	if v.Corosync != nil {
		c.configured(v)
	}
	if q := v.Quorum; q != nil {
		c.counted(q)
	}
	return c
}

func (c *tally) configured(v ClusterFacts) {
	conf := v.Corosync
	for _, n := range conf.Nodes {
		votes := valueOr(n.Votes, 1)
		c.expected += votes
		if v.isThere(n) {
			c.present += votes
			c.largest = max(c.largest, votes)
			c.nodes++
		}
	}
	if d := conf.QDevice; d != nil {
		votes := int64(1)
		if d.Algorithm == "lms" {
			votes = int64(max(len(conf.Nodes)-1, 1))
		}
		votes = valueOr(d.Votes, votes)
		c.device = &QDeviceState{Host: Clean(d.Host)}
		c.expected += votes
		c.unsure = votes
	}
	c.expected = valueOr(conf.ExpectedVotes, c.expected)
	c.twoNode = conf.TwoNode != nil && *conf.TwoNode && len(conf.Nodes) == 2
	c.tieBreaker = conf.AutoTieBreaker != nil && *conf.AutoTieBreaker
	c.needed = c.expected/2 + 1
	if c.twoNode {
		c.needed = 1
	}
	c.known, c.source = len(conf.Nodes) > 0, "configuration"
}

// isThere reports whether the cluster sees a node of the vote configuration.
func (v ClusterFacts) isThere(n parse.CorosyncNode) bool {
	return slices.ContainsFunc(v.Cluster.State.Members.Nodes, func(m parse.Member) bool {
		same := m.Name == n.Name || n.Name == "" && m.ID != nil && n.ID != nil && *m.ID == *n.ID
		return same && (m.Name == v.Cluster.State.Members.Node || m.Online != nil && *m.Online)
	})
}

// counted puts corosync's own numbers in the place of the computed ones.
func (c *tally) counted(q *parse.Quorum) {
	if d := q.QDevice; d != nil {
		if c.device == nil {
			c.device = &QDeviceState{}
		}
		c.device.Votes, c.device.Alive, c.device.Voting = d.Votes, &d.Alive, &d.Voting
	} else if c.device != nil {
		c.device.Alive, c.device.Voting = Ptr(false), Ptr(false)
	}
	if q.ExpectedVotes == nil || q.TotalVotes == nil || q.Needed == nil {
		return
	}
	c.known, c.source, c.unsure = true, "corosync", 0
	c.expected, c.present, c.needed = *q.ExpectedVotes, *q.TotalVotes, *q.Needed
	c.twoNode = c.twoNode || slices.Contains(q.Flags, "2Node")
	c.tieBreaker = c.tieBreaker || slices.Contains(q.Flags, "AutoTieBreaker")
	if len(q.Members) > 0 {
		c.largest, c.nodes = 0, len(q.Members)
		for _, m := range q.Members {
			c.largest = max(c.largest, valueOr(m.Votes, 1))
		}
	}
}

func valueOr(n *int64, or int64) int64 {
	if n == nil {
		return or
	}
	return *n
}

// oneMore answers whether one more node may fail, the one with the most votes.
func (c tally) oneMore(quorate *bool) (verdict, why string) {
	left := c.present - c.largest
	switch {
	case quorate != nil && !*quorate:
		return BackupNo, "there is no quorum already"
	case !c.known:
		return Unknown, "neither corosync nor its configuration could be read"
	case c.nodes <= 1:
		return BackupNo, "only one node is there"
	case left >= c.needed && c.twoNode:
		return BackupYes, "two_node: the other node goes on alone, but after a power cut both must come back"
	case left >= c.needed:
		return BackupYes, fmt.Sprintf("%d of %d votes would be left, %d are needed", left, c.expected, c.needed)
	case left+c.unsure >= c.needed:
		return Unknown, "it depends on the QDevice, and whether that votes could not be read"
	case c.tieBreaker && 2*left >= c.expected:
		return Unknown, "auto_tie_breaker decides which half goes on"
	}
	return BackupNo, fmt.Sprintf("%d of %d votes would be left, %d are needed", left, c.expected, c.needed)
}

func (j Judge) quorum(v ClusterFacts, h ClusterHealth) []*Finding {
	if h.SingleNode {
		return nil
	}
	var out []*Finding
	subject := v.subject("cluster")
	var evidence []Evidence
	if n := h.Votes; n != nil {
		evidence = []Evidence{{"votes present", fmt.Sprint(n.Present), "votes"}, {"votes needed", fmt.Sprint(n.Needed), "votes"}, {"votes expected", fmt.Sprint(n.Expected), "votes"}, {"source", n.Source, ""}}
	}
	two := len(v.Cluster.State.Members.Nodes) == 2 && h.QDevice == nil && v.Corosync != nil && !v.count().twoNode
	switch {
	case h.Quorate != nil && !*h.Quorate:
		out = append(out, j.Find("CLUSTER_NO_QUORUM", "", subject, "the cluster has no quorum, as "+v.Cluster.State.Members.Node+" sees it", evidence...))
	case h.OneMoreNodeMayFail == BackupNo && !two:
		out = append(out, j.Find("CLUSTER_VOTE_MARGIN_ZERO", "", subject, "no further node may fail: "+h.OneMoreNodeReason, evidence...))
	}
	if two {
		out = append(out, j.Find("CLUSTER_TWO_NODE_NO_QDEVICE", "", subject, "two nodes and no QDevice: neither goes on alone", evidence...))
	}
	if d := h.QDevice; d != nil && d.Voting != nil && !*d.Voting {
		out = append(out, j.Find("CLUSTER_QDEVICE_DOWN", "", subject, "the QDevice does not vote", Evidence{Name: "alive", Value: YesNo(d.Alive)}, Evidence{Name: "host", Value: cmp.Or(d.Host, Unknown)}))
	}
	return out
}

func (j Judge) healthNodes(v ClusterFacts, h ClusterHealth) []*Finding {
	var out []*Finding
	for _, n := range h.Nodes {
		if n.Online != nil && !*n.Online {
			out = append(out, j.Find("NODE_OFFLINE", "", v.subject("node", n.Node), "the cluster says that the node is offline"))
		}
		if n.Maintenance {
			out = append(out, j.Find("HA_NODE_MAINTENANCE", "", v.subject("node", n.Node), "the node is in maintenance", Evidence{Name: "lrm", Value: cmp.Or(n.LRM, Unknown)}))
		}
	}
	return out
}

// While a node of the newer version was upgraded within this time, a difference
// of major versions is an upgrade under way.
const upgradeTime = 7 * 24 * time.Hour

func (j Judge) versions(v ClusterFacts, h ClusterHealth) []*Finding {
	if len(h.PVEVersions) < 2 {
		return nil
	}
	var evidence []Evidence
	newest := h.PVEVersions[len(h.PVEVersions)-1]
	underWay := false
	for _, n := range h.Nodes {
		if n.PVEVersion == "" {
			continue
		}
		evidence = append(evidence, Evidence{Name: n.Node, Value: n.PVEVersion})
		if up := v.Facts[n.Node].Upgraded; major(n.PVEVersion) == major(newest) && (up == nil || age(v.Now, *up) < upgradeTime) {
			underWay = true // or nobody knows
		}
	}
	severity, message := Warning, "the nodes run different versions: "+strings.Join(h.PVEVersions, ", ")
	if major(h.PVEVersions[0]) != major(newest) {
		if !underWay {
			severity = Critical
		}
		message = "the nodes run different major versions: " + strings.Join(h.PVEVersions, ", ")
	}
	if len(evidence) > 12 {
		evidence = evidence[:12]
	}
	return []*Finding{j.Find("NODE_VERSION_SKEW", severity, v.subject("cluster"), message, evidence...)}
}

func major(version string) string {
	m, _, _ := strings.Cut(version, ".")
	return m
}

// clocks compares every clock with the middle one; of two clocks the one that is
// further from this host's is named.
func (j Judge) clocks(v ClusterFacts, h ClusterHealth) []*Finding {
	var all []HealthNode
	zones := map[string][]string{}
	for _, n := range h.Nodes {
		if n.ClockOffsetS != nil {
			all = append(all, n)
		}
		if z := cmp.Or(n.TimeZone, n.zone); z != "" {
			zones[z] = append(zones[z], n.Node)
		}
	}
	var out []*Finding
	if len(all) > 1 {
		slices.SortStableFunc(all, func(a, b HealthNode) int { return cmp.Compare(*a.ClockOffsetS, *b.ClockOffsetS) })
		middle := all[len(all)/2]
		if len(all) == 2 && math.Abs(*all[0].ClockOffsetS) < math.Abs(*middle.ClockOffsetS) {
			middle = all[0]
		}
		for _, n := range all {
			drift := *n.ClockOffsetS - *middle.ClockOffsetS
			sure := math.Max(0, math.Abs(drift)-*n.ClockErrorS-*middle.ClockErrorS)
			way := "ahead of"
			if drift < 0 {
				way = "behind"
			}
			out = append(out, j.Measure("NODE_TIME_DRIFT", v.subject("node", n.Node), fmt.Sprintf("its clock is %s s %s that of %s", Number(math.Abs(drift)), way, middle.Node), "drift", sure))
		}
	}
	if len(zones) > 1 {
		var evidence []Evidence
		for z, nodes := range zones {
			evidence = append(evidence, Evidence{Name: z, Value: few(nodes)})
		}
		slices.SortFunc(evidence, func(a, b Evidence) int { return cmp.Compare(a.Name, b.Name) })
		out = append(out, j.Find("NODE_TZ_MIXED", "", v.subject("cluster"), "the nodes are in different time zones", evidence...))
	}
	return out
}

func (j Judge) haFindings(v ClusterFacts, h ClusterHealth) []*Finding {
	if v.HA == nil {
		return nil
	}
	var out []*Finding
	services := 0
	if m := v.HA.Manager; m != nil {
		services = len(m.Services)
		for _, s := range m.Services {
			out = append(out, j.service(v, s))
		}
		for _, n := range m.Nodes {
			if fenced(n.State) {
				out = append(out, j.Find("HA_FENCE", "", v.subject("node", Clean(n.Name)), "HA fences the node", Evidence{Name: "state", Value: Clean(n.State)}))
			}
		}
	}
	if v.Resources != nil {
		services = *v.Resources
	}
	if services == 0 || h.Quorate != nil && !*h.Quorate {
		return out // without quorum nobody can write down that he lives
	}
	if v.HA.Manager == nil && !h.SingleNode {
		out = append(out, j.Find("HA_MANAGER_DEAD", "", v.subject("cluster"), many(services, "guest")+" under HA, but no HA manager has ever reported"))
	}
	if h.HA != nil && h.HA.MasterAgeS != nil {
		out = append(out, j.Measure("HA_MANAGER_DEAD", v.subject("cluster"), "the HA manager on "+h.HA.Master+" has said nothing for "+Seconds(h.HA.MasterAgeS), "age", float64(*h.HA.MasterAgeS)))
	}
	for _, n := range h.Nodes {
		if n.LRMAgeS != nil && n.Online != nil && *n.Online {
			out = append(out, j.Measure("HA_LRM_DEAD", v.subject("node", n.Node), "its local resource manager has said nothing for "+Seconds(n.LRMAgeS), "age", float64(*n.LRMAgeS)))
		}
	}
	return out
}

func (j Judge) service(v ClusterFacts, s parse.HAService) *Finding {
	_, id, _ := strings.Cut(s.SID, ":")
	subject := v.subject("guest", Clean(id))
	evidence := []Evidence{{Name: "state", Value: Clean(s.State)}, {Name: "node", Value: Clean(s.Node)}}
	switch {
	case fenced(s.State):
		return j.Find("HA_FENCE", "", subject, "HA waits until its node is fenced, then starts it elsewhere", evidence...)
	case s.State == "error":
		return j.Find("HA_RESOURCE_ERROR", "", subject, "HA has given it up: it is in the error state", evidence...)
	}
	return nil
}

// Brief takes away what a concise answer does not need.
func (l *ClusterHealthList) Brief() {
	for i := range l.Clusters {
		for k := range l.Clusters[i].Nodes {
			n := &l.Clusters[i].Nodes[k]
			n.Kernel, n.ClockErrorS, n.TimeZone = "", nil, ""
			if n.ClockOffsetS != nil && math.Abs(*n.ClockOffsetS) < 1 {
				n.ClockOffsetS = nil
			}
			if n.LRM == "active" && n.LRMAgeS != nil && *n.LRMAgeS < 60 {
				n.LRM, n.LRMAgeS = "", nil
			}
		}
	}
}

// Tables shows the health to people.
func (l *ClusterHealthList) Tables() []Table {
	var out []Table
	for _, c := range l.Clusters {
		out = append(out, c.table())
		t := Table{Title: "Nodes", Columns: []string{"node", "online", "pve", ">clock", "lrm", ">said", "notes"}}
		for _, n := range c.Nodes {
			notes := n.Reason
			if n.Maintenance {
				notes = strings.TrimSuffix("maintenance; "+notes, "; ")
			}
			clock := ""
			if n.ClockOffsetS != nil {
				clock = fmt.Sprintf("%+.1f s", *n.ClockOffsetS)
			}
			t.Rows = append(t.Rows, []string{n.Node, YesNo(n.Online), n.PVEVersion, clock, n.LRM, Seconds(n.LRMAgeS), notes})
		}
		if c.MoreNodes > 0 {
			t.Notes = []string{fmt.Sprintf("and %d more nodes; --detail detailed shows all", c.MoreNodes)}
		}
		out = append(out, t)
	}
	return append(out, findingTable(l.Findings, l.MoreFindings)...)
}

func (c ClusterHealth) table() Table {
	t := Table{Title: c.Cluster + ": " + c.Health, Columns: []string{"what", "is"}}
	row := func(what, is string) {
		if is != "" {
			t.Rows = append(t.Rows, []string{what, is})
		}
	}
	if !c.SingleNode {
		row("quorate", YesNo(c.Quorate))
		row("one more node may fail", c.OneMoreNodeMayFail+": "+c.OneMoreNodeReason)
		if v := c.Votes; v != nil {
			row("votes", fmt.Sprintf("%d of %d, %d needed (%s)", v.Present, v.Expected, v.Needed, v.Source))
		}
		if d := c.QDevice; d != nil {
			row("QDevice", "votes: "+YesNo(d.Voting))
		}
	}
	row("nodes", fmt.Sprintf("%d online, %d offline, %d unknown, %d in maintenance", c.NodesOnline, c.NodesOffline, c.NodesUnknown, c.NodesMaintenance))
	if h := c.HA; h != nil {
		var states []string
		for s, n := range h.Services {
			states = append(states, fmt.Sprintf("%d %s", n, s))
		}
		slices.Sort(states)
		row("HA", fmt.Sprintf("master %s, %s ago; %s", h.Master, Seconds(h.MasterAgeS), strings.Join(states, ", ")))
		row("fencing", strings.Join(h.Fencing, ", "))
	}
	row("PVE", strings.Join(c.PVEVersions, ", "))
	row("cpu", strings.TrimSpace(Percent(c.CPURatio)+" of "+num(c.CPUCount, "cores")))
	row("memory", Bytes(c.MemoryUsedBytes)+" of "+Bytes(c.MemoryTotalBytes))
	if c.ZFSCacheBytes != nil && *c.ZFSCacheBytes > 0 {
		row("  without ZFS cache", Bytes(c.MemoryUsedWithoutCacheBytes)+", cache "+Bytes(c.ZFSCacheBytes))
	}
	if c.NodesCounted < c.NodesTotal {
		t.Notes = []string{fmt.Sprintf("cpu and memory of %d of %d nodes", c.NodesCounted, c.NodesTotal)}
	}
	return t
}
