package tools

import (
	"context"
	"fmt"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type listSnapshotsIn struct {
	Common
	Paged
	Guest Text   `json:"guest,omitempty" help:"VMID or exact name" pos:"true"`
	Node  string `json:"node,omitempty" help:"only guests of this node"`
}

var listSnapshots = define("list_snapshots", "List snapshots",
	"Lists the snapshots of one guest or of all: tree, time, with RAM or not, left half made. Guests of offline nodes too. detail=detailed with guest adds descriptions (text by people).",
	func(_ context.Context, s *Session, in listSnapshotsIn) (*report.SnapshotList, error) {
		inv, err := s.inventory(needConfigs)
		if err != nil {
			return nil, err
		}
		places, err := s.places(inv, in.Guest, in.Node)
		if err != nil {
			return nil, err
		}
		out := &report.SnapshotList{Guests: len(places), Findings: []report.Finding{}}
		var rows []report.Snapshot
		byGuest := make([][]report.Snapshot, len(places))
		busy := make([]bool, len(places))
		for i, p := range places {
			byGuest[i] = report.SnapshotRows(p.Guest, *p.config, s.judged)
		}
		parallel(places, func(i int, p *place) {
			busy[i] = s.snapshotTask(p, byGuest[i])
			if s.Detailed && in.Guest != "" {
				s.describe(p, byGuest[i])
			}
		})
		var findings []*report.Finding
		j := s.judge()
		for i, p := range places {
			rows = append(rows, byGuest[i]...)
			findings = append(findings, j.SnapshotFindings(subject(p.Guest), byGuest[i], busy[i])...)
		}
		if s.Detailed && in.Guest == "" && len(rows) > 0 {
			s.note("", errorf(report.Unsupported, "descriptions are told for one guest at a time: each guest costs its node a second").hint("give guest"))
		}
		out.Items, out.Page = report.Cut(rows, in.Offset, in.Limit)
		out.Findings = report.Findings(findings...)
		s.fit(out, in.Limit,
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 8) },
			func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})

// places are the guests that the arguments choose, each with its configuration,
// by cluster and VMID.
func (s *Session) places(inv *inventory, guest Text, node string) ([]*place, error) {
	if guest != "" {
		p, err := inv.find(guest)
		if err != nil {
			return nil, err
		}
		s.oldFiles(p.cluster)
		if _, err := s.configOf(p); err != nil {
			return nil, err
		}
		return []*place{p}, nil
	}
	var at *site
	if node != "" {
		var err error
		if at, err = inv.node(node); err != nil {
			return nil, err
		}
	}
	places := []*place{}
	for _, c := range inv.clusters {
		if at != nil && at.cluster != c {
			continue
		}
		s.oldFiles(c)
		configs := map[int]*parse.GuestConfig{}
		for i := range c.configs {
			configs[c.configs[i].VMID] = &c.configs[i]
		}
		for _, g := range report.Guests(c.view(inv), false) {
			cfg := configs[g.VMID]
			if at != nil && g.Node != at.node || cfg == nil && !c.has(needConfigs) {
				continue
			}
			if cfg == nil {
				s.miss(c.server.name(), errorf(report.NotFound, "the configuration of guest %d was not among those read", g.VMID))
				continue
			}
			s.badLines(cfg)
			places = append(places, &place{Guest: g, cluster: c, config: cfg})
		}
	}
	return places, nil
}

// oldFiles says that a member without quorum may have files of yesterday.
func (s *Session) oldFiles(c *cluster) {
	if !quorate(c.State) {
		s.miss(c.State.Members.Node, errorf(report.HostUnreachable, "cluster %s has no quorum on %s: its configuration files may be older than those of other nodes", c.Name, c.State.Members.Node))
	}
}

// snapshotTask reports whether a running task explains a snapshot that is half
// made. It reads the node's tasks only when there is one.
func (s *Session) snapshotTask(p *place, rows []report.Snapshot) bool {
	stuck := false
	for _, r := range rows {
		stuck = stuck || r.State != "" || r.Name == "vzdump"
	}
	if !stuck {
		return false
	}
	e, err := p.cluster.at(p.Node)
	if err != nil {
		s.miss(p.Node, errorf(AsError(err).Code, "whether a task is at the snapshots of guest %d is unknown: %s", p.VMID, AsError(err).Message))
		return false
	}
	l := p.filed()
	return report.RunningTask(s.tasks(e), p.VMID, l.Boot(), snapshotTasks) != nil
}

// snapshotTasks are the tasks that make or remove snapshots.
var snapshotTasks = []string{"qmsnapshot", "vzsnapshot", "qmdelsnapshot", "vzdelsnapshot", "qmrollback", "vzrollback", "vzdump"}

// describe adds the descriptions, which only the node's own list tells.
func (s *Session) describe(p *place, rows []report.Snapshot) {
	if len(rows) == 0 {
		return
	}
	e, err := p.cluster.at(p.Node)
	if err != nil {
		s.miss(p.Node, err)
		return
	}
	form := p.Type + "-snapshots"
	text, err := s.ask(s.ctx, e, form, p.Node, fmt.Sprint(p.VMID))
	if err != nil {
		s.miss(p.Node, err)
		return
	}
	list, notes, err := parse.Snapshots(text)
	if err != nil {
		s.miss(p.Node, unread(form, err))
		return
	}
	s.notes(p.Node, form, notes)
	report.Describe(rows, list)
}

// subject is how findings name a guest.
func subject(g report.Guest) string {
	if g.Cluster != "" {
		return fmt.Sprintf("%s/guest/%d", g.Cluster, g.VMID)
	}
	return fmt.Sprintf("guest/%d", g.VMID)
}
