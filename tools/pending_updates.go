package tools

import (
	"context"
	"slices"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type pendingUpdatesIn struct {
	Common
	Paged
	Node string `json:"node,omitempty" help:"only this node" pos:"true"`
}

var pendingUpdates = define("pending_updates", "List pending updates",
	"Tells per node which updates wait, security ones apart, how old the list is, whether a reboot is due, and which Proxmox repositories are enabled. Refreshes nothing. detail=detailed adds the packages.",
	func(_ context.Context, s *Session, in pendingUpdatesIn) (*report.UpdatesList, error) {
		inv, err := s.inventory(0)
		if err != nil {
			return nil, err
		}
		sites, err := inv.sitesOf(in.Node)
		if err != nil {
			return nil, err
		}
		s.offlineSites(inv, sites, in.Node)
		rows := make([]report.NodeUpdates, len(sites))
		findings := make([][]*report.Finding, len(sites))
		j := s.judge()
		parallel(sites, func(i int, at site) {
			rows[i], findings[i] = j.NodeUpdatesOf(s.updateFacts(inv, at))
		})
		out := &report.UpdatesList{Findings: report.Findings(slices.Concat(findings...)...)}
		if !s.Detailed {
			for i := range rows {
				rows[i].Brief()
			}
		}
		out.Items, out.Page = report.Cut(rows, in.Offset, in.Limit)
		s.fit(out, in.Limit,
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 6) },
			func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})

// updateFacts asks a node for its packages, all at once.
func (s *Session) updateFacts(inv *inventory, at site) report.UpdateFacts {
	v := report.UpdateFacts{Node: at.node, Now: s.judged}
	if len(inv.clusters) > 1 {
		v.Cluster = at.cluster.Name
	}
	e, err := at.cluster.at(at.node)
	if err != nil {
		if !report.Offline(at.cluster.State, at.node) {
			s.miss(at.node, err)
		}
		v.Reason = AsError(err).Message
		return v
	}
	parallel([]func(){
		func() {
			u := tell(s, e, "updates", parse.Updates)
			v.Updates, v.Listed = u.value, u.ok
		},
		func() { v.Stamps = tell(s, e, "stamps", parse.Stamps).value },
		func() { v.Packages = tell(s, e, "node-packages", parse.ParsePackages).value },
		func() { v.Proc = tell(s, e, "node-proc", parse.ParseNodeProc).value },
		func() {
			r := tell(s, e, "apt-repos", parse.AptRepositories)
			v.Repos, v.ReposRead = r.value, r.ok
		},
	}, func(_ int, f func()) { f() })
	return v
}
