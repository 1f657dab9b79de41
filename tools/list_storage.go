package tools

import (
	"bytes"
	"context"
	"slices"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type listStorageIn struct {
	Common
	Paged
	Storage string `json:"storage,omitempty" help:"only this storage"`
	Node    string `json:"node,omitempty" help:"only on this node"`
	Content string `json:"content,omitempty" help:"only storages that may hold this" enum:"backup,images,rootdir,iso,vztmpl,snippets,import"`
}

var listStorage = define("list_storage", "List storages",
	"Lists storages per node: active, inactive and why, disabled; size, use, free space where it is measured, which share one pool. Totals count a shared storage once. Activates no storage.",
	func(_ context.Context, s *Session, in listStorageIn) (*report.StorageList, error) {
		inv, err := s.inventory(needCluster | needConfigs)
		if err != nil {
			return nil, err
		}
		var at *site
		if in.Node != "" {
			if at, err = inv.node(in.Node); err != nil {
				return nil, err
			}
		}
		out := &report.StorageList{}
		var rows []report.Storage
		var findings []*report.Finding
		j := s.judge()
		for _, c := range inv.clusters {
			if at != nil && at.cluster != c || !c.has(needCluster) {
				continue
			}
			s.offlineStorages(c, in.Node == "")
			v := s.storageView(inv, c, func(node string) bool { return at == nil || at.node == node })
			mine := slices.DeleteFunc(report.StorageRows(v, at != nil || in.Storage != "", s.Detailed), func(r report.Storage) bool {
				return in.Storage != "" && r.Storage != in.Storage || at != nil && r.Node != at.node && r.Node != "" ||
					in.Content != "" && !slices.Contains(r.Content, in.Content)
			})
			rows = append(rows, mine...)
			findings = append(findings, j.StorageFindings(v, mine)...)
		}
		if len(inv.clusters) == 1 || at != nil {
			out.Totals = report.TotalsOf(rows)
		}
		if in.Storage != "" && len(rows) == 0 {
			return nil, errorf(report.NotFound, "no storage named %s", in.Storage).hint("list_storage without arguments shows all")
		}
		out.Items, out.Page = report.Cut(rows, in.Offset, in.Limit)
		out.Findings = report.Findings(findings...)
		s.fit(out, in.Limit,
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 6) },
			func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})

// offlineStorages says that a part is unknown because nodes are not seen.
func (s *Session) offlineStorages(c *cluster, all bool) {
	if !quorate(c.State) {
		s.offlineNodes(c, "")
		return
	}
	for _, n := range c.nodes() {
		if all && report.Offline(c.State, n) {
			s.miss(n, errorf(report.HostUnreachable, "the cluster says that node %s is offline; its storages are unknown", n))
		}
	}
}

// storageView reads what the nodes that are wanted tell about mounts and
// storages, all at once. No storage is activated and no Perl is started, unless
// .rrd is in a form that is not known.
func (s *Session) storageView(inv *inventory, c *cluster, wanted func(node string) bool) report.StorageView {
	s.otherNumbers(c)
	v := report.StorageView{State: c.State, Configs: c.configs, Sites: map[string]report.StorageSite{}}
	if c.cluster != nil {
		v.Storages, v.Jobs = c.cluster.Storages, c.cluster.BackupJobs
	}
	if len(inv.clusters) > 1 {
		v.Name = c.Name
	}
	if v.NumbersUnknown = len(c.State.RRD.UnknownFamilies) > 0 && len(c.State.RRD.Storages) == 0; v.NumbersUnknown {
		s.incomplete()
	}
	v.Silent = s.silentNodes(c, wanted)
	nodes := c.nodes()
	sites := make([]report.StorageSite, len(nodes))
	parallel(nodes, func(i int, node string) {
		if wanted(node) && !report.Offline(c.State, node) {
			sites[i] = s.storageSite(c, node, len(v.InactiveOn(node)) > 0)
		}
	})
	for i, node := range nodes {
		v.Sites[node] = sites[i]
	}
	return v
}

// silentNodes are the nodes that are wanted and whose pvestatd stopped to report.
func (s *Session) silentNodes(c *cluster, wanted func(node string) bool) map[string]bool {
	out := map[string]bool{}
	for _, node := range c.nodes() {
		if !wanted(node) || report.Offline(c.State, node) {
			continue
		}
		if _, ok := c.State.RRD.Nodes[node]; !ok && len(c.State.RRD.UnknownFamilies) > 0 {
			continue // it reports, in a form that is not known
		}
		if s.unreported(c, node) != nil {
			out[node] = true
			s.miss(node, errorf(report.Internal, "pvestatd on %s has reported nothing for minutes: its storages are unknown", node).hint("on the node: systemctl restart pvestatd"))
		}
	}
	return out
}

// storageSite reads a node's mounts and local filesystems, and pvestatd's log
// where a storage is inactive.
func (s *Session) storageSite(c *cluster, node string, inactive bool) report.StorageSite {
	var site report.StorageSite
	e, err := c.at(node)
	if err != nil {
		site.NotAsked = AsError(err).Message
		s.miss(node, err)
		return site
	}
	jobs := []func(){
		func() { site.Mounts = read(s, e, "mounts", parse.Mounts) },
		func() { site.FS = read(s, e, "node-df", parse.DF) },
	}
	if inactive {
		jobs = append(jobs, func() { site.Reasons = s.reasons(e) })
	}
	parallel(jobs, func(_ int, f func()) { f() })
	if inactive && site.Reasons == nil {
		site.NotAsked = "pvestatd's log could not be read"
	}
	return site
}

// reasons reads what pvestatd said lately; nil when its log cannot be read. To a
// user without rights journalctl shows nothing, or only the user's own messages,
// and says so on stderr.
func (s *Session) reasons(e *entry) []parse.StorageReason {
	const form = "storage-reasons"
	out, err := s.exec(s.ctx, e, form)
	if err == nil {
		if bad := failure(out); bad != nil {
			err = bad
		} else if text := bytes.ToLower(out.Stderr); bytes.Contains(text, []byte("insufficient permission")) || bytes.Contains(text, []byte("not seeing messages")) {
			err = errorf(report.PermissionDenied, "%s needs root on the node, or the group systemd-journal", form)
		}
	}
	if err != nil {
		s.miss(e.name(), err)
		return nil
	}
	items, notes, err := parse.StorageReasons(out.Stdout)
	if err != nil {
		s.miss(e.name(), unread(form, err))
		return nil
	}
	s.notes(e.name(), form, notes)
	return items
}

// read runs a form without slots and parses what it prints; nil when either
// fails, which leaves the answer incomplete.
func read[T any](s *Session, e *entry, form string, parser func([]byte) ([]T, []parse.Note, error)) []T {
	text, err := s.ask(s.ctx, e, form)
	if err != nil {
		s.miss(e.name(), err)
		return nil
	}
	items, notes, err := parser(text)
	if err != nil {
		s.miss(e.name(), unread(form, err))
		return nil
	}
	s.notes(e.name(), form, notes)
	return items
}
