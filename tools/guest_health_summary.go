package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type guestHealthSummaryIn struct {
	Common
	GuestIn
}

var guestHealthSummary = define("guest_health_summary", "Summarise a guest's health",
	"Judges one guest in one call: state, lock, memory, CPU, disk, pressure, agent, storages, snapshots, backups, containers, failed tasks. checks says what came out of each, or that it is unknown; findings have evidence, limit and fix. detail=detailed adds the last day's trend.",
	func(_ context.Context, s *Session, in guestHealthSummaryIn) (*report.GuestHealth, error) {
		inv, p, err := s.guestNow(in.Guest)
		if err != nil {
			return nil, err
		}
		if _, err := s.configOf(p); err != nil {
			s.miss(p.Node, err)
		}
		out := report.BuildHealth(s.health(inv, p), s.judge())
		s.fit(out, defaultRows,
			func() bool { return report.Drop(&out.FailedTasks, &out.MoreFailedTasks, 3) },
			func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 5) })
		return out, nil
	})

// health reads everything about a guest at once.
func (s *Session) health(inv *inventory, p *place) report.HealthView {
	c := p.cluster
	v := report.HealthView{Quorate: quorate(c.State), Offline: report.Offline(c.State, p.Node), Now: s.judged, WantTrend: s.Detailed}
	if len(inv.clusters) > 1 {
		v.Cluster = c.Name
	}
	if p.config != nil {
		v.Snapshots = report.SnapshotRows(p.Guest, *p.config, s.judged)
	}
	e, away := c.at(p.Node)
	var mu sync.Mutex
	var jobs []func()
	job := func(work func() func()) {
		jobs = append(jobs, func() {
			write := work()
			mu.Lock()
			defer mu.Unlock()
			write()
		})
	}
	job(func() func() { l := s.look(p, true); return func() { v.Look = l } })
	if away == nil {
		s.nodeJobs(e, p, &v, job)
	}
	if c.has(needCluster) && c.cluster != nil {
		v.Jobs, v.JobsRead = c.cluster.BackupJobs, true
		job(func() func() {
			b, _ := s.backupView(inv, c, backupFilter{})
			b.Guests = slices.DeleteFunc(b.Guests, func(g report.Guest) bool { return g.VMID != p.VMID })
			return func() { v.Backup = &b }
		})
		job(func() func() {
			st := s.storageView(inv, c, func(node string) bool { return node == p.Node })
			return func() { v.Storage = &st }
		})
	}
	parallel(jobs, func(_ int, f func()) { f() })
	v.SnapshotBusy = report.RunningTask(v.Look.Tasks, p.VMID, v.Look.Boot(), snapshotTasks) != nil
	return v
}

// nodeJobs adds what only the guest's own node tells.
func (s *Session) nodeJobs(e *entry, p *place, v *report.HealthView, job func(func() func())) {
	if s.Detailed && !p.Template {
		job(func() func() {
			h := s.history(e, p)
			return func() { v.History = h }
		})
	}
	if p.Status != report.Running && p.Status != report.Unknown {
		return
	}
	if p.Type == "lxc" && hasVolumes(p.config) {
		job(func() func() {
			fs, why := s.diskFree(e, p)
			return func() { v.Filesystems, v.FSNotRead = fs, why }
		})
	}
	if _, reason := agentAllowed(p.config); p.Type == "qemu" && reason != "" {
		v.ContainersNotAsked = reason
		return
	}
	if p.Type == "qemu" && !s.Detailed && !hintsContainers(p.Guest) {
		v.ContainersNotAsked = "its agent is asked only once in ten seconds and nothing hints at containers; detail=detailed or list_guest_containers asks"
		return
	}
	job(func() func() {
		a := s.askDocker([]*dockerPlace{newDockerPlace(p)}, false, nil)
		return func() { v.Containers = &a[0] }
	})
}

// hasVolumes reports whether a container has mount points of its own beside its
// root.
func hasVolumes(cfg *parse.GuestConfig) bool {
	return cfg != nil && slices.ContainsFunc(cfg.Current.Disks, func(d parse.GuestDisk) bool { return d.Bus == "mp" && d.Kind == parse.DiskVolume })
}

// hintsContainers reports whether a guest's name or tags speak of containers.
func hintsContainers(g report.Guest) bool {
	return slices.ContainsFunc(append(slices.Clone(g.Tags), g.Name), func(word string) bool {
		return slices.ContainsFunc([]string{"docker", "podman", "compose", "container", "portainer"}, func(hint string) bool {
			return strings.Contains(strings.ToLower(word), hint)
		})
	})
}

// diskFree asks df inside a running container.
func (s *Session) diskFree(e *entry, p *place) ([]parse.GuestFilesystem, string) {
	out, err := s.ask(s.ctx, e, "lxc-df", fmt.Sprint(p.VMID))
	if err == nil {
		var fs []parse.GuestFilesystem
		var notes []parse.Note
		if fs, notes, err = parse.DiskFree(out); err == nil {
			s.notes(p.Node, "lxc-df", notes)
			return fs, ""
		}
		err = unread("lxc-df", err)
	}
	s.miss(p.Node, err)
	return nil, "its mount points were not measured: " + AsError(err).Message
}

// history reads the last day of a guest.
func (s *Session) history(e *entry, p *place) []parse.HistoryPoint {
	form := p.Type + "-history"
	out, err := s.ask(s.ctx, e, form, p.Node, fmt.Sprint(p.VMID))
	if err != nil {
		s.miss(p.Node, err)
		return nil
	}
	points, notes, err := parse.History(out)
	if err != nil {
		s.miss(p.Node, unread(form, err))
		return nil
	}
	s.notes(p.Node, form, notes)
	return points
}
