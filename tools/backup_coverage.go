package tools

import (
	"context"
	"slices"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type backupCoverageIn struct {
	Common
	Paged
	Guest    Text   `json:"guest,omitempty" help:"VMID or exact name" pos:"true"`
	Verdict  string `json:"verdict,omitempty" help:"only guests with this verdict" enum:"fresh,stale,never,uncovered,unknown"`
	Archives bool   `json:"archives,omitempty" help:"false: jobs only" default:"true"`
}

var backupCoverage = define("backup_coverage", "Check backup coverage",
	"Judges every guest's backups: which enabled job takes it, whether the newest archive over all storages is as young as that job's schedule promises (fresh, stale, never, uncovered, unknown), volumes in no backup, failed last runs, faulty jobs. archives=false reads files only.",
	func(_ context.Context, s *Session, in backupCoverageIn) (*report.CoverageList, error) {
		inv, err := s.inventory(needCluster | needConfigs | needPools)
		if err != nil {
			return nil, err
		}
		var only *place
		if in.Guest != "" {
			if only, err = inv.find(in.Guest); err != nil {
				return nil, err
			}
		}
		out := &report.CoverageList{Jobs: []report.CoverageJob{}, Storages: []report.ReadStorage{}}
		var rows []report.Coverage
		var findings []*report.Finding
		for _, c := range inv.clusters {
			if only != nil && only.cluster != c {
				continue
			}
			v := s.coverageView(inv, c, in.Archives)
			v.Namesakes = inv.namesakes(c)
			mine, jobs, found := s.judge().Coverages(v)
			rows, findings = append(rows, mine...), append(findings, found...)
			out.Jobs = append(out.Jobs, jobs...)
			out.Storages = append(out.Storages, v.ReadStorages(v.Disabled)...)
		}
		if only != nil {
			rows = slices.DeleteFunc(rows, func(r report.Coverage) bool { return r.VMID != only.VMID })
		}
		out.Summary.Summarise(rows)
		if in.Verdict != "" {
			rows = slices.DeleteFunc(rows, func(r report.Coverage) bool { return r.Verdict != in.Verdict })
		}
		report.SortCoverages(rows)
		out.Findings = report.CoverageFindings(rows, in.Guest != "", in.Guest != "" || in.Verdict != "", findings)
		out.Items, out.Page = report.Cut(rows, in.Offset, in.Limit)
		if !s.Detailed {
			out.Brief()
		}
		s.fit(out, in.Limit,
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 3) },
			func() bool { return report.Drop(&out.Storages, &out.MoreStorages, 8) },
			func() bool { return len(out.Items) > 8 && report.Shorten(&out.Items, &out.Page, in.Offset) },
			func() bool { return report.Drop(&out.Jobs, &out.MoreJobs, 5) },
			func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})

// coverageView reads what the coverage of a cluster's guests is told from. With
// archives it is what list_backups reads; without, files only.
func (s *Session) coverageView(inv *inventory, c *cluster, archives bool) report.CoverageView {
	v := report.CoverageView{State: c.State, JobsRead: c.has(needCluster) && c.cluster != nil, PoolsRead: c.has(needPools), Asked: archives}
	if !v.JobsRead {
		c.cluster = &parse.ClusterConfigs{}
	}
	v.Storages = c.cluster.Storages
	if v.JobsRead && archives {
		v.BackupView, v.Disabled = s.backupView(inv, c, backupFilter{})
	} else {
		view := c.view(inv)
		v.BackupView = report.BackupView{Name: view.Name, Guests: report.Guests(view, false), Configs: c.configs, Now: s.judged, Jobs: c.cluster.BackupJobs, Runs: s.lastRuns(c, "")}
	}
	storage, retention := report.NeedsDefaults(v.Jobs, v.Storages)
	if storage || retention {
		v.Defaults = s.backupDefaults(c, storage)
	}
	return v
}

// backupDefaults reads every node's own backup defaults. Where a job's storage
// depends on them, one that is missing leaves the answer incomplete.
func (s *Session) backupDefaults(c *cluster, needed bool) map[string]*parse.VzdumpDefaults {
	nodes := c.nodes()
	read := make([]*parse.VzdumpDefaults, len(nodes))
	parallel(nodes, func(i int, node string) {
		e, err := c.at(node)
		if err == nil {
			var text []byte
			if text, err = s.ask(s.ctx, e, "vzdump-defaults"); err == nil {
				var notes []parse.Note
				if read[i], notes, err = parse.ParseVzdumpDefaults(text); err == nil {
					s.notes(node, "vzdump-defaults", notes)
					return
				}
				err = unread("vzdump-defaults", err)
			}
		}
		if needed {
			s.miss(node, err)
		}
	})
	out := map[string]*parse.VzdumpDefaults{}
	for i, node := range nodes {
		if read[i] != nil {
			out[node] = read[i]
		}
	}
	return out
}

// namesakes finds the guests of the profile's other clusters whose archives lie
// in the same place as those of a cluster's storages, by storage and VMID.
func (inv *inventory) namesakes(c *cluster) map[string]map[int]report.Namesake {
	out := map[string]map[int]report.Namesake{}
	if c.cluster == nil {
		return out
	}
	for _, st := range c.cluster.Storages {
		place := report.StorePlace(st)
		for _, other := range inv.clusters {
			if place == "" || other == c || other.cluster == nil || !slices.ContainsFunc(other.cluster.Storages, func(o parse.StorageConfig) bool { return report.StorePlace(o) == place }) {
				continue
			}
			if out[st.ID] == nil {
				out[st.ID] = map[int]report.Namesake{}
			}
			for _, g := range other.State.Guests {
				out[st.ID][g.VMID] = report.Namesake{Cluster: other.Name, Type: g.Type}
			}
		}
	}
	return out
}
