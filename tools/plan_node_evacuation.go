package tools

import (
	"context"
	"sync"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type planNodeEvacuationIn struct {
	Common
	Paged
	Node string `json:"node" help:"the node to empty: PVE name, SSH destination or FQDN" required:"true" pos:"true"`
}

var planNodeEvacuation = define("plan_node_evacuation", "Plan to empty a node",
	"Says for each guest of a node how it can leave (live, restart, offline, ha), or that it is blocked, waits or stays, with the reason and a target that has its bridges, storages, mappings and room for its configured memory; the steps as commands for a person, what is down meanwhile, and whether the cluster bears the loss of any one node. What is not proven movable is blocked. Files only.",
	func(_ context.Context, s *Session, in planNodeEvacuationIn) (*report.EvacuationPlan, error) {
		inv, err := s.inventory(needConfigs | needCluster | needHA)
		if err != nil {
			return nil, err
		}
		at, err := inv.node(in.Node)
		if err != nil {
			return nil, err
		}
		out := report.Ptr(s.judge().PlanEvacuation(s.evacView(inv, *at)))
		out.Guests, out.Page = report.Cut(out.Guests, in.Offset, in.Limit)
		s.fit(out, in.Limit,
			func() bool { return report.Drop(&out.Nodes, &out.MoreNodes, 8) },
			func() bool { return report.Drop(&out.NMinus1, &out.MoreNMinus1, 8) },
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 3) },
			func() bool { return report.Drop(&out.Steps, &out.MoreSteps, 10) },
			func() bool { return report.Drop(&out.Down, &out.MoreDown, 5) },
			func() bool { return report.Shorten(&out.Guests, &out.Page, in.Offset) })
		return out, nil
	})

// evacView reads what a plan is made from: files of the cluster, the tasks of
// the node, and of every other node its interfaces, memory and version.
func (s *Session) evacView(inv *inventory, at site) report.EvacView {
	c := at.cluster
	v := report.EvacView{
		Cluster: c.view(inv), Node: at.node, Lone: c.Lone, Configs: c.cluster, HA: c.ha, Now: s.judged,
		Sites: map[string]report.EvacSite{},
	}
	if c.cluster != nil && len(c.cluster.BadLines) > 0 {
		s.miss(c.server.name(), errorf(report.Internal, "cluster-configs: %d lines could not be read, so a storage or a rule may be seen wrongly", len(c.cluster.BadLines)))
	}
	s.offlineNodes(c, "")
	v.StateAge = s.unreportedNodes(c, at.node)
	var mu sync.Mutex
	jobs := []func(){func() {
		if c.Lone {
			return
		}
		votes := tell(s, c.server, "corosync", parse.ParseCorosync)
		mu.Lock()
		defer mu.Unlock()
		v.Corosync = votes.value
	}}
	for _, node := range c.nodes() {
		if report.Offline(c.State, node) || c.Lone {
			continue
		}
		jobs = append(jobs, func() {
			if node == at.node {
				tasks, own, why := s.evacSource(c, node)
				mu.Lock()
				defer mu.Unlock()
				v.Tasks, v.Version, v.TasksNotRead, v.Sites[node] = tasks, own.Version, why, own
				return
			}
			site := s.evacSite(c, node)
			mu.Lock()
			defer mu.Unlock()
			v.Sites[node] = site
		})
	}
	parallel(jobs, func(_ int, f func()) { f() })
	return v
}

// evacSource reads the tasks, the memory and the version of the node that is to
// be emptied; why says why there are no tasks.
func (s *Session) evacSource(c *cluster, node string) (tasks []parse.Task, site report.EvacSite, why string) {
	e, err := c.at(node)
	if err != nil {
		s.miss(node, err)
		return nil, site, AsError(err).Message
	}
	var list heard[[]parse.Task]
	parallel([]func(){
		func() { list = tell(s, e, "node-tasks", parse.Tasks) },
		func() { site.Proc = tell(s, e, "node-proc", parse.ParseNodeProc).value },
		func() { site.Version = s.pveVersion(e) },
	}, func(_ int, f func()) { f() })
	return list.value, site, list.why
}

// evacSite reads a node as a target. What is missing makes it none where a guest
// needs it, so that the answer is incomplete.
func (s *Session) evacSite(c *cluster, node string) report.EvacSite {
	var site report.EvacSite
	e, err := c.at(node)
	if err != nil {
		s.miss(node, err)
		site.NotAsked = AsError(err).Message
		return site
	}
	parallel([]func(){
		func() {
			links := tell(s, e, "addresses", parse.Links)
			if !links.ok {
				site.NotAsked = links.why
				return
			}
			site.Links = map[string]bool{}
			for _, l := range links.value {
				site.Links[l.Name] = true
			}
		},
		func() { site.Proc = tell(s, e, "node-proc", parse.ParseNodeProc).value },
		func() { site.Version = s.pveVersion(e) },
	}, func(_ int, f func()) { f() })
	return site
}

// pveVersion reads a node's Proxmox version; "" when it is not known, which
// takes nothing from the answer.
func (s *Session) pveVersion(e *entry) string {
	p := told(s, e, "node-packages", parse.ParsePackages, s.note)
	if p.value == nil {
		return ""
	}
	return p.value.PVEManager()
}

// unreportedNodes says of which nodes nothing, or nothing new, is reported, and why
// the states of the guests of one are therefore not known. To ask the nodes
// themselves would start Perl.
func (s *Session) unreportedNodes(c *cluster, node string) (why string) {
	for _, n := range c.nodes() {
		if report.Offline(c.State, n) {
			continue
		}
		row, ok := c.State.RRD.Nodes[n]
		old := ok && row.Time != nil && s.older(c, n, *row.Time, silentAfter)
		if ok && !old {
			continue
		}
		err := errorf(report.Internal, "pvestatd on %s reports nothing, or nothing new", n).hint("on the node: systemctl restart pvestatd")
		s.miss(n, err)
		if n == node {
			why = err.Message
		}
	}
	return why
}
