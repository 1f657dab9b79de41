package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type configAuditIn struct {
	Common
	Paged
	MinSeverity string `json:"min_severity,omitempty" help:"leave out milder findings" enum:"critical,warning,info" default:"info"`
	Code        string `json:"code,omitempty" help:"only this finding" max:"60"`
	Subject     string `json:"subject,omitempty" help:"only this: guest/101, node/pve1, 101, pve1" pos:"true"`
}

var configAudit = define("config_audit", "Audit the whole cluster",
	"Makes every check of the catalogue over all clusters in one call: quorum, HA, nodes, storages, pools, disks, backups and jobs, snapshots, guests' settings, addresses and MACs twice, bridges, orphaned disks, replication, certificates, updates, tasks. A summary first, then the subjects, the worst first, each finding once. What could not be read stands in problems.",
	func(_ context.Context, s *Session, in configAuditIn) (*report.Audit, error) {
		if in.Code != "" && !slices.ContainsFunc(report.Catalogue, func(r report.Rule) bool { return strings.EqualFold(r.Code, in.Code) }) {
			return nil, errorf(report.InvalidArgument, "no finding has the code %s", in.Code).hint("pvelens docs, or the resource pvelens://findings, lists them")
		}
		inv, err := s.inventory(needConfigs | needPools | needCluster | needHA | needLive)
		if err != nil {
			return nil, err
		}
		found := make([][]*report.Finding, len(inv.clusters))
		a := &auditing{total: 6 * len(inv.clusters)}
		for _, c := range inv.clusters {
			a.total += len(c.nodes())
		}
		parallel(inv.clusters, func(i int, c *cluster) { found[i] = s.auditCluster(inv, c, a) })
		names, nodes := map[string]string{}, map[string]string{}
		summary := report.AuditSummary{Clusters: len(inv.clusters)}
		for _, c := range inv.clusters {
			v := c.view(inv)
			for _, g := range report.Guests(v, false) {
				names[subject(g)], nodes[subject(g)] = g.Name, g.Node
				summary.Guests++
			}
			summary.Nodes += len(c.nodes())
			if c.cluster != nil {
				summary.Storages += len(c.cluster.Storages)
			}
		}
		out := report.Group(report.Findings(slices.Concat(found...)...), report.AuditFilter{Min: report.Severity(in.MinSeverity), Code: in.Code, Subject: in.Subject}, names, nodes)
		summary.Critical, summary.Warning, summary.Info, summary.Subjects = out.Summary.Critical, out.Summary.Warning, out.Summary.Info, out.Summary.Subjects
		out.Summary = summary
		out.Say(s.isComplete(), s.problemCount())
		out.Show(in.Offset, in.Limit, s.Detailed)
		s.fit(out, in.Limit,
			func() bool { return out.Trim(6) },
			func() bool { return len(out.Items) > 12 && report.Shorten(&out.Items, &out.Page, in.Offset) },
			func() bool { return out.Trim(3) },
			func() bool { return report.Shorten(&out.Items, &out.Page, in.Offset) })
		return out, nil
	})

// problemCount is how many different problems the call has met so far.
func (s *Session) problemCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := report.Answer{Problems: slices.Clone(s.problems)}
	a.Sort()
	return len(a.Problems)
}

// auditing counts the parts of an audit for its progress.
type auditing struct {
	mu          sync.Mutex
	done, total int
}

func (a *auditing) step(s *Session, what string) {
	a.mu.Lock()
	a.done++
	n := a.done
	a.mu.Unlock()
	s.progress(n, a.total, "audit: %s", what)
}

// auditCluster makes every check of one cluster; what they need is read at once.
func (s *Session) auditCluster(inv *inventory, c *cluster, a *auditing) []*report.Finding {
	s.offlineNodes(c, "")
	j := s.judge()
	places := s.placesOf(inv, c)
	var mu sync.Mutex
	var found []*report.Finding
	add := func(fs ...*report.Finding) {
		mu.Lock()
		defer mu.Unlock()
		found = append(found, fs...)
	}
	v := s.auditFacts(inv, c, places)
	jobs := []struct {
		what string
		run  func()
	}{
		{"health", func() {
			_, fs := j.ClusterHealthOf(s.healthView(inv, c), false)
			add(fs...)
		}},
		{"storages", func() {
			if c.has(needCluster) {
				sv := s.storageView(inv, c, func(string) bool { return true })
				add(j.StorageFindings(sv, report.StorageRows(sv, false, false))...)
			}
		}},
		{"backups", func() {
			if c.has(needCluster) && c.cluster != nil {
				cv := s.coverageView(inv, c, true)
				cv.Namesakes = inv.namesakes(c)
				_, _, fs := j.Coverages(cv)
				add(fs...)
			}
		}},
		{"snapshots", func() {
			_, fs := s.snapshotGuests(places)
			add(fs...)
		}},
		{"networks", func() {
			// The file is read for its names alone: without it a bridge that is
			// missing is still missing.
			if sdn := told(s, c.server, "sdn", noNotes(parse.ParseSDN), s.note); sdn.ok && sdn.value != nil {
				for _, n := range sdn.value.VNets {
					v.VNets = append(v.VNets, n.ID)
				}
			}
		}},
		{"volumes", func() {
			if c.has(needCluster) && v.Whole {
				v.Volumes = s.volumes(c)
			}
		}},
	}
	work := []func(){}
	for _, job := range jobs {
		work = append(work, func() { job.run(); a.step(s, job.what) })
	}
	for _, node := range c.nodes() {
		work = append(work, func() {
			n, fs := s.auditNode(inv, c, node)
			add(fs...)
			mu.Lock()
			v.Nodes[node] = n
			mu.Unlock()
			a.step(s, node)
		})
	}
	parallel(work, func(_ int, f func()) { f() })
	s.observeGuests(c, places, v)
	found = append(found, j.Audit(*v)...)
	return report.OncePerBackup(found)
}

// An audit asks guests for their addresses only where that is quick: Proxmox
// needs a second for each. On a node with more of them, addresses count as they
// are configured.
const (
	auditedGuests = 16
	auditedTime   = 8 * time.Second
)

// observeGuests asks the running guests whose addresses are not all in their
// configuration, when everything else is read and there is time left. What they
// do not tell takes nothing from the audit.
func (s *Session) observeGuests(c *cluster, places []*place, v *report.AuditFacts) {
	if end, ok := s.ctx.Deadline(); ok && time.Until(end) < auditedTime {
		return
	}
	asked := map[string][]int{}
	for i, p := range places {
		if p.Status == report.Running && p.Lock == "" && !p.Template && addressesOpen(p) {
			asked[p.Node] = append(asked[p.Node], i)
		}
	}
	var all []int
	for node, of := range asked {
		if _, err := c.at(node); err == nil && len(of) <= auditedGuests {
			all = append(all, of...)
		}
	}
	parallel(all, func(_, i int) {
		seen, err := s.observed(places[i])
		v.Guests[i].Seen = seen
		v.Guests[i].Silent = err != nil && strings.HasPrefix(AsError(err).Message, "the guest agent does not answer")
	})
}

// addressesOpen reports whether a guest may have addresses that its
// configuration does not tell, and can be asked for them.
func addressesOpen(p *place) bool {
	if p.Type == "qemu" {
		_, reason := agentAllowed(p.config)
		return reason == ""
	}
	return slices.ContainsFunc(p.config.Current.NICs, func(n parse.GuestNIC) bool { return n.IPv4.Mode != parse.AddressStatic })
}

// auditFacts is what the inventory tells of a cluster's configuration.
func (s *Session) auditFacts(inv *inventory, c *cluster, places []*place) *report.AuditFacts {
	v := &report.AuditFacts{Name: c.view(inv).Name, Nodes: map[string]report.AuditNode{}, Now: s.judged, Whole: c.has(needConfigs) && quorate(c.State) && len(places) == len(c.State.Guests)}
	pools := c.view(inv).Pools
	for _, p := range places {
		g := p.Guest
		g.Pool = pools[g.VMID]
		v.Guests = append(v.Guests, report.AuditGuest{Guest: g, Config: p.config})
		v.Whole = v.Whole && len(p.config.BadLines) == 0
	}
	if c.cluster != nil && c.has(needCluster) {
		v.Storages, v.Replication, v.HA = c.cluster.Storages, c.cluster.ReplicationJobs, c.cluster.HAResources
	}
	return v
}

// How far back an audit looks for failed tasks.
const auditTasks = 48 * time.Hour

// auditNode asks one node everything that an audit needs of it.
func (s *Session) auditNode(inv *inventory, c *cluster, node string) (report.AuditNode, []*report.Finding) {
	var n report.AuditNode
	at := site{c, node}
	e, err := c.at(node)
	if err != nil {
		if !report.Offline(c.State, node) {
			s.miss(node, err)
		}
		return n, s.judge().NodeFindings(report.NodeView{Cluster: c.view(inv), Node: node})
	}
	j := s.judge()
	found := make([][]*report.Finding, 5)
	tasks := report.TaskFacts{Node: node, Cluster: c.view(inv).Name, Boot: c.boot(node)}
	parallel([]func(){
		func() { found[0] = j.NodeFindings(s.nodeView(inv, at)) },
		func() { _, found[1] = j.StorageComponents(s.storageFacts(inv, at, "")) },
		func() { _, found[2] = j.NodeUpdatesOf(s.updateFacts(inv, at)) },
		func() {
			since := s.judged.Add(-auditTasks)
			if err := s.taskFacts(e, &tasks, since); err != nil {
				s.miss(node, err)
				return
			}
			rows := report.TaskRows(tasks, since)
			report.SortTasks(rows)
			n.Tasks, n.TasksRead, found[3] = tasks.Tasks, true, j.TaskFindings(rows)
		},
		func() { n.Links = tell(s, e, "addresses", parse.Links).value },
		func() {
			if c.cluster != nil && len(c.cluster.ReplicationJobs) > 0 {
				r := tell(s, e, "replication", parse.ReplicationStates)
				n.Replication, n.ReplRead = r.value, r.ok
			}
		},
		func() { n.Certs = tell(s, e, "certificates", parse.Certificates, node).value },
	}, func(_ int, f func()) { f() })
	n.Boot = tasks.Boot
	return n, slices.Concat(found...)
}

// volumes lists what the storages of a cluster hold for guests. A storage that
// pvestatd does not report fresh is not touched.
func (s *Session) volumes(c *cluster) []report.VolumeSource {
	type job struct {
		storage    parse.StorageConfig
		node, form string
	}
	var jobs []job
	for _, st := range c.cluster.Storages {
		if st.Disabled {
			continue
		}
		reasons := []string{}
		for _, node := range c.nodes() {
			if !report.OnNode(st, node) {
				continue
			}
			if _, why := s.readable(c, st, node); why != "" {
				reasons = append(reasons, node+": "+why)
				continue
			}
			for form, kind := range map[string]string{"images": "images", "rootdirs": "rootdir"} {
				if report.Holds(st, kind) {
					jobs = append(jobs, job{st, node, form})
				}
			}
			if st.Shared {
				reasons = nil
				break
			}
		}
		if (report.Holds(st, "images") || report.Holds(st, "rootdir")) && len(reasons) > 0 {
			if n := len(reasons) - 4; n > 0 {
				reasons = append(reasons[:4], fmt.Sprintf("and %d more nodes", n))
			}
			s.miss("", errorf(report.HostUnreachable, "orphaned disks on storage %s are unknown where it was not listed: %s", report.Clean(st.ID), strings.Join(reasons, "; ")))
		}
	}
	slices.SortFunc(jobs, func(a, b job) int {
		return strings.Compare(fmt.Sprint(a.storage.ID, a.node, a.form), fmt.Sprint(b.storage.ID, b.node, b.form))
	})
	out := make([]report.VolumeSource, len(jobs))
	parallel(jobs, func(i int, j job) {
		e, err := c.at(j.node)
		if err != nil {
			s.miss(j.node, err)
			return
		}
		content, err := s.content(e, j.form, j.node, j.storage.ID)
		if err != nil {
			s.miss(j.node, err)
			return
		}
		out[i] = report.VolumeSource{Storage: j.storage, Node: j.node, Content: content}
	})
	return slices.DeleteFunc(out, func(v report.VolumeSource) bool { return v.Storage.ID == "" })
}
