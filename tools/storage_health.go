package tools

import (
	"context"
	"slices"
	"time"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type storageHealthIn struct {
	Common
	Paged
	Node string `json:"node,omitempty" help:"only this node" pos:"true"`
	Kind string `json:"kind,omitempty" help:"only these" enum:"zpool,thin-pool,disk,filesystem"`
}

var storageHealth = define("storage_health", "Tell pools', disks' and filesystems' health",
	"Tells per node the health of ZFS pools, LVM thin pools, disks (SMART, wear) and local filesystems, the worst first, with the reason. A suspended pool is not asked further, a sleeping disk not woken: unknown.",
	func(_ context.Context, s *Session, in storageHealthIn) (*report.StorageHealth, error) {
		inv, err := s.inventory(needCluster)
		if err != nil {
			return nil, err
		}
		sites, err := inv.sitesOf(in.Node)
		if err != nil {
			return nil, err
		}
		s.offlineSites(inv, sites, in.Node)
		j := s.judge()
		rows := make([][]report.StorageComponent, len(sites))
		findings := make([][]*report.Finding, len(sites))
		parallel(sites, func(i int, at site) {
			rows[i], findings[i] = j.StorageComponents(s.storageFacts(inv, at, in.Kind))
		})
		out := &report.StorageHealth{}
		all := slices.Concat(rows...)
		report.SortComponents(all)
		out.Health = report.ComponentsHealth(all)
		if out.Health == report.HealthOK && !s.isComplete() {
			out.Health = report.Unknown
		}
		if !s.Detailed {
			well := slices.IndexFunc(all, func(r report.StorageComponent) bool { return r.State == report.HealthOK })
			if well >= 0 && in.Kind == "" && in.Node == "" {
				out.OK, all = len(all)-well, all[:well]
			}
			for i := range all {
				all[i].Brief()
			}
		}
		out.Items, out.Page = report.Cut(all, in.Offset, in.Limit)
		out.Findings = report.Findings(slices.Concat(findings...)...)
		s.fit(out, in.Limit,
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 6) },
			func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})

// storageFacts asks a node about the kinds that are wanted, "" for all.
func (s *Session) storageFacts(inv *inventory, at site, kind string) report.StorageFacts {
	v := report.StorageFacts{Node: at.node, Now: s.judged}
	if len(inv.clusters) > 1 {
		v.Cluster = at.cluster.Name
	}
	e, err := at.cluster.at(at.node)
	if err != nil {
		if !report.Offline(at.cluster.State, at.node) {
			s.miss(at.node, err)
		}
		v.Unknown = []report.StorageComponent{{Kind: "node", Name: at.node, Reason: AsError(err).Message}}
		return v
	}
	unknown := make([][]report.StorageComponent, 4)
	jobs := map[string]func(){
		report.ComponentZPool: func() { unknown[0] = s.zpools(e, &v) },
		report.ComponentThin: func() {
			if thinOn(at) {
				l := tell(s, e, "lvs", parse.LVs)
				if v.LVM = &l.value; !l.ok {
					v.LVM, unknown[1] = nil, unread1(report.ComponentThin, l.why)
				}
			}
		},
		report.ComponentDisk:       func() { v.Disks, unknown[2] = s.diskFacts(e, at.node) },
		report.ComponentFilesystem: func() { v.FS = read(s, e, "node-df", parse.DF) },
	}
	var run []func()
	for _, k := range []string{report.ComponentZPool, report.ComponentThin, report.ComponentDisk, report.ComponentFilesystem} {
		if kind == "" || kind == k {
			run = append(run, jobs[k])
		}
	}
	parallel(run, func(_ int, f func()) { f() })
	v.Unknown = slices.Concat(unknown...)
	return v
}

func unread1(kind, why string) []report.StorageComponent {
	return []report.StorageComponent{{Kind: kind, Name: "all", Reason: why}}
}

// thinOn reports whether storage.cfg has LVM on a node; elsewhere lvs would only
// read the labels of disks for nothing.
func thinOn(at site) bool {
	c := at.cluster.cluster
	return c != nil && slices.ContainsFunc(c.Storages, func(st parse.StorageConfig) bool {
		return (st.Type == "lvm" || st.Type == "lvmthin") && !st.Disabled && report.OnNode(st, at.node)
	})
}

// zpools asks the kernel for the pools' states first: where one is suspended,
// zpool may hang so that nothing ends it, so it is not run.
func (s *Session) zpools(e *entry, v *report.StorageFacts) []report.StorageComponent {
	var err error
	if v.States, err = s.poolStates(e); err != nil {
		s.miss(e.name(), err)
		return unread1(report.ComponentZPool, AsError(err).Message)
	}
	if len(v.States) == 0 {
		return nil
	}
	for name, state := range v.States {
		if state == "SUSPENDED" {
			v.Skipped = "zpool was not asked: pool " + report.Clean(name) + " is suspended, and zpool might hang"
			s.miss(v.Node, errorf(report.Unsupported, "pool %s on %s is suspended: zpool was not asked, so errors and space of the node's pools are unknown", report.Clean(name), v.Node))
			return nil
		}
	}
	where := time.UTC
	if t := tell(s, e, "clock", noNotes(parse.Clock)); t.ok {
		where = t.value.Location()
	}
	parallel([]func(){
		func() {
			p := tell(s, e, "zpool-status", func(b []byte) ([]parse.ZPool, []parse.Note, error) { return parse.ZPoolStatus(b, where) })
			if v.Pools = p.value; !p.ok {
				v.Skipped = p.why
			}
		},
		func() { v.Sizes = tell(s, e, "zpool-list", noNotes(parse.ZPoolList)).value },
	}, func(_ int, f func()) { f() })
	return nil
}

// poolStates reads the states of the imported pools. grep fails where the kernel
// has no ZFS at all: there is no folder, and so no pool.
func (s *Session) poolStates(e *entry) (map[string]string, error) {
	out, err := s.exec(s.ctx, e, "zpool-state")
	if err != nil {
		return nil, err
	}
	if bad := failure(out); bad != nil && (out.Exit != 2 || bad.Code != report.NotFound) {
		return nil, bad
	}
	states, err := parse.ZPoolStates(out.Stdout)
	if err != nil {
		return nil, unread("zpool-state", err)
	}
	return states, nil
}

// diskFacts lists a node's disks without waking one, then asks each for its
// health.
func (s *Session) diskFacts(e *entry, node string) ([]report.DiskFacts, []report.StorageComponent) {
	list := tell(s, e, "disks", parse.Disks, node)
	if !list.ok {
		return nil, unread1(report.ComponentDisk, list.why)
	}
	out := make([]report.DiskFacts, len(list.value))
	parallel(list.value, func(i int, d parse.PhysicalDisk) {
		out[i] = report.DiskFacts{Disk: d, Reason: "smartctl is asked only for disks named sdX and nvmeXnY"}
		if d.Name == "" {
			return
		}
		smart := tell(s, e, "smart", parse.Smart, d.Name)
		if out[i].Reason = smart.why; smart.ok {
			out[i].SMART = &smart.value
		}
	})
	return out, nil
}
