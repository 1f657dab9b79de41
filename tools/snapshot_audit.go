package tools

import (
	"context"
	"slices"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type snapshotAuditIn struct {
	Common
	Paged
	Node       string `json:"node,omitempty" help:"only guests of this node" pos:"true"`
	Impossible bool   `json:"impossible,omitempty" help:"also guests without snapshots that cannot have one"`
}

var snapshotAudit = define("snapshot_audit", "Find forgotten snapshots",
	"Sums up the snapshots of every guest, the worst first: how many, the oldest, with RAM, those left half made or removed, and guests that cannot be snapshotted, with the reason. Files only.",
	func(_ context.Context, s *Session, in snapshotAuditIn) (*report.SnapshotAudit, error) {
		inv, err := s.inventory(needConfigs | needCluster)
		if err != nil {
			return nil, err
		}
		var at *site
		if in.Node != "" {
			if at, err = inv.node(in.Node); err != nil {
				return nil, err
			}
		}
		var places []*place
		for _, c := range inv.clusters {
			if at == nil || at.cluster == c {
				places = append(places, s.placesOf(inv, c)...)
			}
		}
		places = slices.DeleteFunc(places, func(p *place) bool { return at != nil && p.Node != at.node })
		out := &report.SnapshotAudit{Guests: len(places)}
		all, findings := s.snapshotGuests(places)
		rows := slices.DeleteFunc(all, func(g report.SnapshotGuest) bool {
			out.Snapshots += g.Snapshots
			if g.Impossible != "" {
				out.Impossible++
			}
			if g.Snapshots == 0 {
				out.Without++
			}
			return g.Snapshots == 0 && (!in.Impossible || g.Impossible == "")
		})
		if !s.Detailed && !in.Impossible {
			for i := range rows {
				rows[i].Impossible = ""
			}
			findings = slices.DeleteFunc(findings, func(f *report.Finding) bool { return f != nil && f.Code == "SNAPSHOT_IMPOSSIBLE" })
		}
		report.SortSnapshotGuests(rows)
		out.Items, out.Page = report.Cut(rows, in.Offset, in.Limit)
		out.Findings = report.Findings(findings...)
		s.fit(out, in.Limit,
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 8) },
			func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})

// placesOf are a cluster's guests with their configurations, by VMID. A guest
// whose configuration was not sent is left out.
func (s *Session) placesOf(inv *inventory, c *cluster) []*place {
	s.oldFiles(c)
	configs := make(map[int]*parse.GuestConfig, len(c.configs))
	for i := range c.configs {
		configs[c.configs[i].VMID] = &c.configs[i]
	}
	var out []*place
	for _, g := range report.Guests(c.view(inv), false) {
		if cfg := configs[g.VMID]; cfg != nil {
			s.badLines(cfg)
			out = append(out, &place{Guest: g, cluster: c, config: cfg})
		}
	}
	return out
}

// snapshotGuests sums up the snapshots of guests. A node's tasks are read only
// where a snapshot is half made.
func (s *Session) snapshotGuests(places []*place) ([]report.SnapshotGuest, []*report.Finding) {
	rows := make([][]report.Snapshot, len(places))
	busy := make([]bool, len(places))
	var unfinished []int
	for i, p := range places {
		rows[i] = report.SnapshotRows(p.Guest, *p.config, s.judged)
		if slices.ContainsFunc(rows[i], func(r report.Snapshot) bool { return r.State != "" || r.Name == "vzdump" }) {
			unfinished = append(unfinished, i)
		}
	}
	parallel(unfinished, func(_ int, i int) { busy[i] = s.snapshotTask(places[i], rows[i]) })
	j := s.judge()
	var out []report.SnapshotGuest
	var findings []*report.Finding
	for i, p := range places {
		var storages []parse.StorageConfig
		if c := p.cluster; c.cluster != nil && c.has(needCluster) {
			storages = c.cluster.Storages
		}
		g, f := j.SnapshotGuestOf(subject(p.Guest), p.Guest, *p.config, rows[i], busy[i], storages)
		out, findings = append(out, g), append(findings, f...)
	}
	return out, findings
}
