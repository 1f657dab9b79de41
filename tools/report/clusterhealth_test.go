package report

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

var healthNow = time.Unix(1795971300, 0)

// members makes a state: the first node answers; a name with a - before it is
// off.
func members(quorate bool, names ...string) *parse.State {
	st := &parse.State{Members: parse.Members{Node: names[0], Cluster: &parse.ClusterInfo{Name: "c", Quorate: &quorate}}, RRD: parse.RRD{Nodes: map[string]parse.RRDNode{}}}
	for _, n := range names {
		on := n[0] != '-'
		if !on {
			n = n[1:]
		}
		st.Members.Nodes = append(st.Members.Nodes, parse.Member{Name: n, Online: &on})
	}
	return st
}

func corosyncOf(votes ...int64) *parse.Corosync {
	c := &parse.Corosync{ClusterName: "c"}
	for i, v := range votes {
		c.Nodes = append(c.Nodes, parse.CorosyncNode{Name: string(rune('a' + i)), Votes: Ptr(v)})
	}
	return c
}

func quorumOf(expected, total, needed int64, votes ...int64) *parse.Quorum {
	q := &parse.Quorum{Quorate: total >= needed, ExpectedVotes: &expected, TotalVotes: &total, Needed: &needed}
	for i, v := range votes {
		q.Members = append(q.Members, parse.QuorumMember{ID: int64(i + 1), Votes: &v})
	}
	return q
}

func TestOneMoreNode(t *testing.T) {
	device := func(c *parse.Corosync, algorithm string) *parse.Corosync {
		c.QDevice = &parse.CorosyncQDevice{Model: "net", Host: "q", Algorithm: algorithm}
		return c
	}
	two := corosyncOf(1, 1)
	two.TwoNode = Ptr(true)
	tie := corosyncOf(1, 1, 1, 1)
	tie.AutoTieBreaker = Ptr(true)
	voting := quorumOf(3, 3, 2, 1, 1)
	voting.QDevice = &parse.QuorumDevice{Votes: Ptr(int64(1)), Alive: true, Voting: true}
	dead := quorumOf(3, 2, 2, 1, 1)
	dead.QDevice = &parse.QuorumDevice{Votes: Ptr(int64(0))}
	for _, tt := range []struct {
		name     string
		state    *parse.State
		conf     *parse.Corosync
		quorum   *parse.Quorum
		want     string
		votes    *Votes
		findings []string
	}{
		{"three of three", members(true, "a", "b", "c"), corosyncOf(1, 1, 1), quorumOf(3, 3, 2, 1, 1, 1), "yes", &Votes{3, 3, 2, 1, "corosync"}, nil},
		{"three of three, files alone", members(true, "a", "b", "c"), corosyncOf(1, 1, 1), nil, "yes", &Votes{3, 3, 2, 1, "configuration"}, nil},
		{"two of three", members(true, "a", "b", "-c"), corosyncOf(1, 1, 1), quorumOf(3, 2, 2, 1, 1), "no", &Votes{3, 2, 2, 0, "corosync"}, []string{"NODE_OFFLINE", "CLUSTER_VOTE_MARGIN_ZERO"}},
		{"one of three", members(false, "a", "-b", "-c"), corosyncOf(1, 1, 1), nil, "no", &Votes{3, 1, 2, -1, "configuration"}, []string{"CLUSTER_NO_QUORUM"}},
		{"a heavy node", members(true, "a", "b", "c"), corosyncOf(3, 1, 1), quorumOf(5, 5, 3, 3, 1, 1), "no", &Votes{5, 5, 3, 2, "corosync"}, []string{"CLUSTER_VOTE_MARGIN_ZERO"}},
		{"two without a device", members(true, "a", "b"), corosyncOf(1, 1), quorumOf(2, 2, 2, 1, 1), "no", &Votes{2, 2, 2, 0, "corosync"}, []string{"CLUSTER_TWO_NODE_NO_QDEVICE"}},
		{"two without a device, one off", members(false, "a", "-b"), corosyncOf(1, 1), quorumOf(2, 1, 2, 1), "no", &Votes{2, 1, 2, -1, "corosync"}, []string{"CLUSTER_NO_QUORUM", "CLUSTER_TWO_NODE_NO_QDEVICE"}},
		{"two_node", members(true, "a", "b"), two, quorumOf(2, 2, 1, 1, 1), "yes", &Votes{2, 2, 1, 1, "corosync"}, nil},
		{"two and a device that votes", members(true, "a", "b"), device(corosyncOf(1, 1), "ffsplit"), voting, "yes", &Votes{3, 3, 2, 1, "corosync"}, nil},
		{"two and a device that does not", members(true, "a", "b"), device(corosyncOf(1, 1), "ffsplit"), dead, "no", &Votes{3, 2, 2, 0, "corosync"}, []string{"CLUSTER_VOTE_MARGIN_ZERO", "CLUSTER_QDEVICE_DOWN"}},
		{"two and a device nobody could ask", members(true, "a", "b"), device(corosyncOf(1, 1), "ffsplit"), nil, "unknown", &Votes{3, 2, 2, 0, "configuration"}, nil},
		{"last man standing device", members(true, "a", "b", "c"), device(corosyncOf(1, 1, 1), "lms"), nil, "unknown", &Votes{5, 3, 3, 0, "configuration"}, nil},
		{"a tie breaker", members(true, "a", "b", "-c", "d"), tie, quorumOf(4, 3, 3, 1, 1, 1), "unknown", &Votes{4, 3, 3, 0, "corosync"}, []string{"NODE_OFFLINE"}},
		{"nothing but the members", members(true, "a", "b", "c"), nil, nil, "unknown", nil, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h, findings := Judge{}.ClusterHealthOf(ClusterFacts{Display: "c", Cluster: ClusterView{State: tt.state}, Corosync: tt.conf, Quorum: tt.quorum, Facts: map[string]NodeFacts{}, Now: healthNow}, false)
			if h.OneMoreNodeMayFail != tt.want {
				t.Errorf("one more may fail: %s (%s), want %s", h.OneMoreNodeMayFail, h.OneMoreNodeReason, tt.want)
			}
			if d := cmp.Diff(tt.votes, h.Votes); d != "" {
				t.Errorf("votes (-want +got):\n%s", d)
			}
			var got []string
			for _, f := range findings {
				if f != nil {
					got = append(got, f.Code)
				}
			}
			want := map[string]int{}
			for _, c := range tt.findings {
				want[c]++
			}
			for _, c := range got {
				want[c]--
			}
			for c, n := range want {
				if n != 0 {
					t.Errorf("finding %s: %+d too few, got %v", c, n, got)
				}
			}
		})
	}
}

func TestClockDriftNamesTheOddOne(t *testing.T) {
	clock := func(ahead, err time.Duration) NodeFacts {
		return NodeFacts{Clock: &ClockReading{Ahead: ahead, Error: err}}
	}
	for _, tt := range []struct {
		name  string
		facts map[string]NodeFacts
		want  []string
	}{
		{"all alike", map[string]NodeFacts{"a": clock(0, 0), "b": clock(time.Second, 0), "c": clock(0, 0)}, nil},
		{"this host is wrong", map[string]NodeFacts{"a": clock(time.Hour, 0), "b": clock(time.Hour, 0), "c": clock(time.Hour, 0)}, nil},
		{"one of three", map[string]NodeFacts{"a": clock(0, 0), "b": clock(-5*time.Second, 0), "c": clock(time.Second/10, 0)}, []string{"node/b"}},
		{"one of two", map[string]NodeFacts{"a": clock(9*time.Second, 0), "b": clock(0, 0)}, []string{"node/a"}},
		{"a slow way proves nothing", map[string]NodeFacts{"a": clock(3*time.Second, 2*time.Second), "b": clock(0, 0), "c": clock(0, 0)}, nil},
		{"one clock alone", map[string]NodeFacts{"a": clock(time.Hour, 0)}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, findings := Judge{}.ClusterHealthOf(ClusterFacts{Cluster: ClusterView{State: members(true, "a", "b", "c")}, Facts: tt.facts, Now: healthNow}, false)
			var got []string
			for _, f := range findings {
				if f != nil && f.Code == "NODE_TIME_DRIFT" {
					got = append(got, f.Subject)
				}
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Errorf("(-want +got):\n%s", d)
			}
		})
	}
}

func TestHATooOld(t *testing.T) {
	ha := &parse.HAState{
		Manager: &parse.HAManager{Master: "a", Timestamp: Ptr(healthNow.Unix() - 5), Services: []parse.HAService{{SID: "vm:1", State: "started", Node: "a"}}},
		LRMs:    []parse.LRM{{Node: "a", Mode: "active", Timestamp: Ptr(healthNow.Unix() - 5)}, {Node: "b", Mode: "active", Timestamp: Ptr(healthNow.Unix() - 121)}, {Node: "c", Mode: "maintenance", Timestamp: Ptr(healthNow.Unix())}},
	}
	codes := func(v ClusterFacts) map[string]string {
		v.Facts, v.Now = cmpOr(v.Facts), healthNow
		_, findings := Judge{}.ClusterHealthOf(v, false)
		out := map[string]string{}
		for _, f := range findings {
			if f != nil {
				out[f.Code] = f.Subject
			}
		}
		return out
	}
	got := codes(ClusterFacts{Cluster: ClusterView{State: members(true, "a", "b", "c")}, HA: ha})
	if got["HA_LRM_DEAD"] != "node/b" || got["HA_NODE_MAINTENANCE"] != "node/c" || got["HA_MANAGER_DEAD"] != "" {
		t.Errorf("got %v", got)
	}
	// b's clock is two minutes behind: its word is not old.
	if got := codes(ClusterFacts{Cluster: ClusterView{State: members(true, "a", "b", "c")}, HA: ha, Facts: map[string]NodeFacts{"b": {Clock: &ClockReading{Ahead: -2 * time.Minute}}}}); got["HA_LRM_DEAD"] != "" {
		t.Errorf("an LRM is dead although only its clock is late: %v", got)
	}
	if got := codes(ClusterFacts{Cluster: ClusterView{State: members(false, "a", "b", "c")}, HA: ha}); got["HA_LRM_DEAD"] != "" {
		t.Errorf("without quorum nobody can report, got %v", got)
	}
	if got := codes(ClusterFacts{Cluster: ClusterView{State: members(true, "a", "b", "c")}, HA: &parse.HAState{}, Resources: Ptr(2)}); got["HA_MANAGER_DEAD"] == "" {
		t.Error("two guests under HA and no manager: want HA_MANAGER_DEAD")
	}
	if got := codes(ClusterFacts{Cluster: ClusterView{State: members(true, "a", "b", "c")}, HA: &parse.HAState{}, Resources: Ptr(0)}); got["HA_MANAGER_DEAD"] != "" {
		t.Error("nothing is under HA: want no HA_MANAGER_DEAD")
	}
	if got := codes(ClusterFacts{Cluster: ClusterView{State: members(true, "a", "b", "c")}, HA: ha, Resources: Ptr(0)}); got["HA_LRM_DEAD"] != "" {
		t.Errorf("nothing is under HA, got %v", got)
	}
}

func cmpOr(m map[string]NodeFacts) map[string]NodeFacts {
	if m == nil {
		return map[string]NodeFacts{}
	}
	return m
}

func TestVersionSkew(t *testing.T) {
	facts := func(a, b string, days int64) map[string]NodeFacts {
		return map[string]NodeFacts{"a": {Version: a}, "b": {Version: b, Upgraded: Ptr(healthNow.Unix() - days*86400)}}
	}
	for _, tt := range []struct {
		name  string
		facts map[string]NodeFacts
		want  Severity
	}{
		{"alike", facts("9.1.2", "9.1.2", 100), ""},
		{"minor", facts("9.0.11", "9.1.2", 100), Warning},
		{"major, an upgrade is under way", facts("8.4.14", "9.1.2", 1), Warning},
		{"major, for long", facts("8.4.14", "9.1.2", 100), Critical},
		{"major, since when is not known", map[string]NodeFacts{"a": {Version: "8.4.14"}, "b": {Version: "9.1.2"}}, Warning},
		{"ten is after nine", facts("8.4.9", "8.4.10", 100), Warning},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, findings := Judge{}.ClusterHealthOf(ClusterFacts{Cluster: ClusterView{State: members(true, "a", "b")}, Facts: tt.facts, Now: healthNow}, false)
			got := Severity("")
			for _, f := range findings {
				if f != nil && f.Code == "NODE_VERSION_SKEW" {
					got = f.Severity
				}
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}
