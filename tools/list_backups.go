package tools

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type listBackupsIn struct {
	Common
	Paged
	Guest   Text   `json:"guest,omitempty" help:"VMID or exact name" pos:"true"`
	Storage string `json:"storage,omitempty" help:"only this backup storage"`
	Node    string `json:"node,omitempty" help:"only storages as this node reads them"`
}

var listBackups = define("list_backups", "List backups",
	"Lists backup archives by guest: time, size, protected, encrypted, verified; each guest's newest, and why its last backup failed. Storages that are not active are not touched but named: then a guest without archives is unknown, not none. detail=detailed adds notes (text by people).",
	func(_ context.Context, s *Session, in listBackupsIn) (*report.BackupList, error) {
		inv, err := s.inventory(needCluster | needConfigs | needPools)
		if err != nil {
			return nil, err
		}
		only, at, err := s.chosen(inv, in)
		if err != nil {
			return nil, err
		}
		out := &report.BackupList{Guests: []report.GuestBackups{}, Storages: []report.ReadStorage{}}
		var rows []report.Archive
		var findings []*report.Finding
		j := s.judge()
		known := false
		for _, c := range inv.clusters {
			if at != nil && at.cluster != c || only != nil && only.cluster != nil && only.cluster != c || !c.has(needCluster) {
				continue
			}
			f := backupFilter{storage: in.Storage}
			if at != nil {
				f.node = at.node
			}
			v, disabled := s.backupView(inv, c, f)
			known = known || len(v.Sources) > 0 || len(disabled) > 0
			if only != nil {
				v.Guests = slices.DeleteFunc(v.Guests, func(g report.Guest) bool { return g.VMID != only.vmid })
			}
			archives := v.Archives()
			if only != nil {
				archives = slices.DeleteFunc(archives, func(a report.Archive) bool { return a.VMID == nil || *a.VMID != only.vmid })
				v.KeepUnfinished(only.vmid)
			}
			summaries := v.Summaries(archives)
			rows = append(rows, archives...)
			findings = append(findings, j.BackupFindings(v, archives, summaries)...)
			out.Guests = append(out.Guests, summaries...)
			out.Storages = append(out.Storages, v.ReadStorages(disabled)...)
		}
		if in.Storage != "" && !known {
			return nil, errorf(report.NotFound, "no backup storage named %s", in.Storage).hint("list_storage --content backup shows all")
		}
		if only != nil && only.cluster == nil && len(rows) == 0 {
			return nil, errorf(report.NotFound, "no guest %d, and no archive of it", only.vmid)
		}
		out.Items, out.Page = report.Cut(rows, in.Offset, in.Limit)
		out.Findings = report.Findings(findings...)
		if !s.Detailed {
			out.Brief()
		}
		if in.Offset > 0 {
			out.MoreGuests, out.Guests = len(out.Guests), []report.GuestBackups{}
		}
		s.fit(out, in.Limit,
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 5) },
			func() bool { return len(out.Items) > 8 && report.Shorten(&out.Items, &out.Page, in.Offset) },
			func() bool { return report.Drop(&out.Guests, &out.MoreGuests, 10) },
			func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})

// A choice is the one guest that is asked for; cluster is nil when there is no
// such guest any more, of which archives may be left.
type choice struct {
	vmid    int
	cluster *cluster
}

func (s *Session) chosen(inv *inventory, in listBackupsIn) (*choice, *site, error) {
	var at *site
	var only *choice
	var err error
	if in.Node != "" {
		if at, err = inv.node(in.Node); err != nil {
			return nil, nil, err
		}
	}
	if in.Guest == "" {
		return nil, at, nil
	}
	p, err := inv.find(in.Guest)
	switch {
	case err == nil:
		only = &choice{p.VMID, p.cluster}
	case AsError(err).Code == report.NotFound && digits(string(in.Guest)):
		vmid, bad := strconv.Atoi(string(in.Guest))
		if bad != nil {
			return nil, nil, err
		}
		only = &choice{vmid: vmid}
	default:
		return nil, nil, err
	}
	return only, at, nil
}

// A backupFilter leaves storages out.
type backupFilter struct{ storage, node string }

// backupView reads a cluster's backup storages and the nodes' backup logs, all
// at once.
func (s *Session) backupView(inv *inventory, c *cluster, f backupFilter) (v report.BackupView, disabled []string) {
	s.otherNumbers(c)
	v = report.BackupView{Configs: c.configs, Now: s.judged, Partial: f != (backupFilter{}), Jobs: c.cluster.BackupJobs, Runs: map[int]*report.BackupRun{}}
	view := c.view(inv)
	v.Name, v.Guests = view.Name, report.Guests(view, false)
	v.Namesakes = inv.namesakes(c)
	plans, disabled := s.backupPlans(c, f)
	sources := make([]report.BackupSource, len(plans))
	jobs := []func(){func() { v.Runs = s.lastRuns(c, f.node) }, func() {
		// Without the zone a backup may be as old as the longest time between two runs.
		now, err := s.clockOf(c, c.State.Members.Node)
		if err != nil {
			s.note(c.server.name(), err)
			return
		}
		v.Zone = now.Location()
	}}
	for i, p := range plans {
		jobs = append(jobs, func() { sources[i] = s.readBackups(c, p) })
	}
	done := 0
	parallel(jobs, func(_ int, job func()) {
		job()
		s.mu.Lock()
		done++
		n := done
		s.mu.Unlock()
		s.progress(n, len(jobs), "backup storages")
	})
	v.Sources = sources
	return v, disabled
}

// A backupPlan is one storage and the nodes that may read it, by name; or why
// none may.
type backupPlan struct {
	storage parse.StorageConfig
	nodes   []string
	node    string // of a local storage that is not read
	code    report.Code
	reason  string
}

// backupPlans says for every enabled backup storage where it is read: a shared
// one once, a local one on each of its nodes.
func (s *Session) backupPlans(c *cluster, f backupFilter) (plans []backupPlan, disabled []string) {
	for _, st := range c.cluster.Storages {
		if !report.HoldsBackups(st) || f.storage != "" && st.ID != f.storage {
			continue
		}
		if st.Disabled {
			disabled = append(disabled, st.ID)
			continue
		}
		shared := backupPlan{storage: st, code: report.Unsupported}
		for _, node := range c.nodes() {
			if !report.OnNode(st, node) || f.node != "" && node != f.node {
				continue
			}
			code, reason := s.readable(c, st, node)
			switch {
			case !st.Shared && reason != "":
				plans = append(plans, backupPlan{st, nil, node, code, reason})
			case !st.Shared:
				plans = append(plans, backupPlan{storage: st, nodes: []string{node}})
			case reason != "":
				shared.code, shared.reason = code, join2(shared.reason, node+": "+reason)
			default:
				shared.nodes = append(shared.nodes, node)
			}
		}
		if st.Shared && (len(shared.nodes) > 0 || shared.reason != "") {
			plans = append(plans, shared)
		}
	}
	return plans, disabled
}

func join2(a, b string) string {
	if a == "" {
		return b
	}
	return a + "; " + b
}

// serverFirst are a cluster's nodes, the one that answers already first.
func (s *Session) serverFirst(c *cluster) []string {
	nodes := c.nodes()
	first, _, _ := c.server.learned()
	slices.SortStableFunc(nodes, func(a, b string) int { return cmp.Compare(boolRank(a != first), boolRank(b != first)) })
	return nodes
}

func boolRank(b bool) int {
	if b {
		return 1
	}
	return 0
}

// How old pvestatd's report of a storage may be. It activates the storage every
// ten seconds, so that reading its content then activates nothing new.
const freshFor = time.Minute

// readable says why a storage's content must not, or cannot, be read on a node;
// "" when it can.
func (s *Session) readable(c *cluster, st parse.StorageConfig, node string) (report.Code, string) {
	if report.Offline(c.State, node) {
		if !quorate(c.State) {
			return report.HostUnreachable, "no quorum: not seen"
		}
		return report.HostUnreachable, "the node is offline"
	}
	i := slices.IndexFunc(c.State.RRD.Storages, func(r parse.RRDStorage) bool { return r.Node == node && r.Storage == st.ID })
	switch {
	case i < 0:
		if _, ok := c.State.RRD.Nodes[node]; !ok {
			return report.HostUnreachable, "pvestatd reports nothing there"
		}
		return report.HostUnreachable, "it is not active there"
	case c.State.RRD.Storages[i].Time == nil || s.older(c, node, *c.State.RRD.Storages[i].Time, freshFor):
		return report.HostUnreachable, "pvestatd has not reported it for a minute"
	}
	if _, err := c.at(node); err != nil {
		return AsError(err).Code, AsError(err).Message
	}
	return "", ""
}

// readBackups reads one storage on the first node that answers.
func (s *Session) readBackups(c *cluster, p backupPlan) report.BackupSource {
	src := report.BackupSource{Storage: p.storage.ID, Node: p.node, Shared: p.storage.Shared, Reason: p.reason}
	if len(p.nodes) == 0 {
		s.miss(p.node, errorf(p.code, "backup storage %s was not read: %s", report.Clean(p.storage.ID), p.reason).hint("list_storage says more"))
		return src
	}
	var failed error
	for _, node := range p.nodes {
		e, err := c.at(node)
		if err == nil {
			var content parse.StorageContent
			if content, err = s.content(e, "backups", node, p.storage.ID); err == nil {
				src.Node, src.Content, src.Reason = node, &content, ""
				return src
			}
		}
		failed = cmp.Or(failed, err)
		if s.ctx.Err() != nil {
			break
		}
	}
	e := AsError(failed)
	src.Reason = e.Message
	if !p.storage.Shared {
		src.Node = p.nodes[0]
	}
	s.miss(cmp.Or(e.Node, p.nodes[0]), &Error{Code: e.Code, Message: "backup storage " + report.Clean(p.storage.ID) + " was not read: " + e.Message, Hint: e.Hint})
	return src
}

// content reads what a storage holds.
func (s *Session) content(e *entry, form, node, storage string) (parse.StorageContent, error) {
	text, err := s.ask(s.ctx, e, form, node, storage)
	if err != nil {
		return parse.StorageContent{}, err
	}
	c, notes, err := parse.Content(text)
	if err != nil {
		return c, unread(form, err)
	}
	s.notes(node, form, notes)
	return c, nil
}

// lastRuns reads the backup logs of a cluster's nodes, or of only one. Of
// several runs of a guest that moved, the latest counts.
func (s *Session) lastRuns(c *cluster, only string) map[int]*report.BackupRun {
	nodes := slices.DeleteFunc(c.nodes(), func(n string) bool { return report.Offline(c.State, n) || only != "" && n != only })
	runs := make([]map[int]*report.BackupRun, len(nodes))
	parallel(nodes, func(i int, node string) {
		e, err := c.at(node)
		if err != nil {
			s.miss(node, err)
			return
		}
		runs[i] = s.runsOf(c, e, node)
	})
	out := map[int]*report.BackupRun{}
	for _, m := range runs {
		for vmid, r := range m {
			if old := out[vmid]; old == nil || r.StartedLocal > old.StartedLocal {
				out[vmid] = r
			}
		}
	}
	return out
}

func (s *Session) runsOf(c *cluster, e *entry, node string) map[int]*report.BackupRun {
	logs := read(s, e, "backup-logs", parse.BackupLogs)
	open := slices.ContainsFunc(logs, func(l parse.BackupLog) bool { return !l.Finished && !l.Failed })
	running := false
	if open {
		var boot int64
		if n, ok := c.State.RRD.Nodes[node]; ok && n.Time != nil && n.Uptime != nil {
			boot = *n.Time - *n.Uptime
		}
		running = slices.ContainsFunc(s.tasks(e), func(t parse.Task) bool {
			return t.Class == parse.TaskRunning && t.Type == "vzdump" && t.Start >= boot-60
		})
	}
	out := map[int]*report.BackupRun{}
	for _, l := range logs {
		if kind := c.kind(l.VMID); kind == "" || kind == l.Kind {
			out[l.VMID] = report.RunOf(node, l, running)
		}
	}
	return out
}

// kind is lxc or qemu, or "" for a guest that does not exist.
func (c *cluster) kind(vmid int) string {
	for _, g := range c.State.Guests {
		if g.VMID == vmid {
			return g.Type
		}
	}
	return ""
}
