package tools

import (
	"context"
	"sync"
	"time"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type clusterHealthIn struct {
	Common
}

var clusterHealth = define("cluster_health", "Tell a cluster's health",
	"Tells per cluster or lone node: quorum, votes, whether one more node may fail, QDevice, nodes online or in maintenance, HA and fencing, version skew, clock drift, CPU and memory in all, and findings. Works without quorum.",
	func(_ context.Context, s *Session, _ clusterHealthIn) (*report.ClusterHealthList, error) {
		inv, err := s.inventory(needHA | needCluster)
		if err != nil {
			return nil, err
		}
		out := &report.ClusterHealthList{Clusters: make([]report.ClusterHealth, len(inv.clusters))}
		findings := make([][]*report.Finding, len(inv.clusters))
		views := make([]report.ClusterFacts, len(inv.clusters))
		parallel(inv.clusters, func(i int, c *cluster) {
			s.offlineNodes(c, "")
			views[i] = s.healthView(inv, c)
		})
		incomplete := !s.isComplete() // asked when all have ended, whichever ended first
		for i, v := range views {
			out.Clusters[i], findings[i] = s.judge().ClusterHealthOf(v, incomplete)
		}
		var all []*report.Finding
		for _, f := range findings {
			all = append(all, f...)
		}
		out.Findings = report.Findings(all...)
		if !s.Detailed {
			out.Brief()
		}
		s.fit(out, 0, append([]func() bool{func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 10) }}, nodeCuts(out)...)...)
		return out, nil
	})

func nodeCuts(l *report.ClusterHealthList) []func() bool {
	var cuts []func() bool
	for i := range l.Clusters {
		c := &l.Clusters[i]
		cuts = append(cuts, func() bool { return report.Drop(&c.Nodes, &c.MoreNodes, 3) })
	}
	return cuts
}

// isComplete reports whether everything that was needed so far was read.
func (s *Session) isComplete() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.complete
}

// healthView reads what a cluster's health is told from, all at once: the votes
// from one member, and from each node its versions, memory and clock.
func (s *Session) healthView(inv *inventory, c *cluster) report.ClusterFacts {
	v := report.ClusterFacts{Display: c.Name, Cluster: c.view(inv), HA: c.ha, Facts: map[string]report.NodeFacts{}, Now: s.judged}
	if c.cluster != nil && c.has(needCluster) {
		n := len(c.cluster.HAResources)
		v.Resources = &n
	}
	var mu sync.Mutex
	jobs := []func(){func() {
		why := s.eachNode(c, func(node string, e *entry) {
			f := s.nodeFacts(c, node, e)
			mu.Lock()
			defer mu.Unlock()
			v.Facts[node] = f
		})
		for node, reason := range why {
			v.Facts[node] = report.NodeFacts{Reason: reason}
		}
	}}
	if !c.Lone {
		jobs = append(jobs, func() { v.Corosync, v.Quorum = s.quorumOf(c) }, func() {
			if d := tell(s, c.server, "datacenter", parse.ParseDatacenter); d.ok {
				v.Fencing = d.value.Fencing
			}
		})
	}
	parallel(jobs, func(_ int, f func()) { f() })
	return v
}

// quorumOf reads the votes: corosync's own word from the first member that gives
// it, and the configuration. Without root there is only the latter, which is
// enough unless a QDevice votes.
func (s *Session) quorumOf(c *cluster) (*parse.Corosync, *parse.Quorum) {
	conf := tell(s, c.server, "corosync", parse.ParseCorosync)
	var failed error
	for _, node := range s.serverFirst(c) {
		e, err := c.at(node)
		if err != nil {
			continue
		}
		q := told(s, e, "quorum", parse.ParseQuorum, func(_ string, err error) { failed = err })
		if q.ok {
			return conf.value, q.value
		}
		if AsError(failed).Code == report.PermissionDenied || s.ctx.Err() != nil {
			break
		}
	}
	if failed == nil {
		failed = errorf(report.HostUnreachable, "quorum: %s", errNoMember)
	}
	if conf.ok && conf.value != nil && conf.value.QDevice == nil {
		e := AsError(failed)
		s.note(c.server.name(), &Error{Code: e.Code, Message: e.Message, Hint: "the votes are counted from corosync.conf and the members instead"})
		return conf.value, nil
	}
	s.miss(c.server.name(), failed)
	return conf.value, nil
}

// nodeFacts asks a node. The clock comes last, when the connection stands, so
// that the way there and back is short.
func (s *Session) nodeFacts(c *cluster, node string, e *entry) report.NodeFacts {
	var f report.NodeFacts
	parallel([]func(){
		func() {
			if p, err := s.packages(c, node); err != nil {
				s.miss(node, err)
			} else {
				f.Version = p.PVEManager()
			}
		},
		func() { f.Proc = tell(s, e, "node-proc", parse.ParseNodeProc).value },
		func() {
			// It only softens a finding, so that it is missing takes nothing away.
			for _, st := range told(s, e, "stamps", parse.Stamps, func(string, error) {}).value {
				if st.Path == dpkgStatus {
					f.Upgraded = &st.Modified
				}
			}
		},
	}, func(_ int, job func()) { job() })
	f.Clock = s.clockReading(e)
	return f
}

// clockReading compares a node's clock with this host's: the node read it
// between the question and the answer, in the middle if both ways are alike.
func (s *Session) clockReading(e *entry) *report.ClockReading {
	before := s.Now()
	t := tell(s, e, "clock", noNotes(parse.Clock))
	after := s.Now()
	if !t.ok {
		return nil
	}
	half := after.Sub(before) / 2
	return &report.ClockReading{Ahead: t.value.Sub(before.Add(half)).Round(time.Millisecond), Error: half, Zone: t.value.Format("-07:00")}
}

const dpkgStatus = "/var/lib/dpkg/status"
