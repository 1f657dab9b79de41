package tools

import (
	"context"
	"fmt"
	"strconv"
	"sync"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type getGuestStatusIn struct {
	Common
	GuestIn
}

var getGuestStatus = define("get_guest_status", "Show a guest's live state",
	"One guest now: exact state (paused, io-error, hibernated, unknown and why, …), uptime, CPU share of its cores, memory and what the figure means, disk, I/O, pressure, OOM kills, HA, whether a running task explains a lock. A VM's used disk is known only from its agent.",
	func(_ context.Context, s *Session, in getGuestStatusIn) (*report.GuestStatus, error) {
		_, p, err := s.guestNow(in.Guest)
		if err != nil {
			return nil, err
		}
		return report.BuildGuestStatus(s.look(p, p.Lock != "")), nil
	})

// guestNow finds a guest with everything that files say of it, and its state
// from its node where pvestatd reports none.
func (s *Session) guestNow(guest Text) (*inventory, *place, error) {
	inv, err := s.inventory(needConfigs | needPools | needCluster | needHA)
	if err != nil {
		return nil, nil, err
	}
	p, err := inv.find(guest)
	if err != nil {
		return nil, nil, err
	}
	s.offlineNodes(p.cluster, p.Node)
	s.liveOf(inv, p)
	return inv, p, nil
}

// look reads what its node tells about a guest, all at once; the node's tasks
// only when they are wanted.
func (s *Session) look(p *place, tasks bool) report.GuestLook {
	l := p.filed()
	e, err := p.cluster.at(p.Node)
	if err != nil {
		l.NotAsked = AsError(err).Message
		if !quorate(p.cluster.State) && report.Offline(p.cluster.State, p.Node) {
			l.NotAsked = "there is no quorum, so nobody here knows what node " + p.Node + " does"
		}
		if !report.Offline(p.cluster.State, p.Node) {
			s.miss(p.Node, err)
		}
		return l
	}
	var jobs []func()
	var mu sync.Mutex
	write := func(f func()) { mu.Lock(); defer mu.Unlock(); f() }
	if tasks {
		jobs = append(jobs, func() { t := s.tasks(e); write(func() { l.Tasks = t }) })
	}
	if !p.Template {
		jobs = append(jobs, func() {
			st, why := s.statusOf(e, p)
			write(func() { l.Status, l.NotAsked = st, why })
		})
	}
	if p.Status != report.Stopped && !p.Template {
		jobs = append(jobs, func() { c := s.cgroup(e, p); write(func() { l.Cgroup = c }) })
	}
	if p.Type == "qemu" && p.Status == report.Running {
		jobs = append(jobs, func() {
			fs, trouble := s.agentDisks(e, p)
			write(func() { l.Agent, l.AgentState = fs, trouble })
		})
	}
	parallel(jobs, func(_ int, f func()) { f() })
	return l
}

// filed is what the cluster's files tell about a guest.
func (p *place) filed() report.GuestLook {
	c := p.cluster
	l := report.GuestLook{Row: p.Guest, Config: p.config, Live: c.live[p.VMID] != ""}
	if r, ok := c.State.RRD.Guests[p.VMID]; ok && !l.Live { // a list was read because .rrd is old
		l.RRD = &r
	}
	if n, ok := c.State.RRD.Nodes[p.Node]; ok {
		l.Node = &n
	}
	if c.cluster != nil {
		for i, r := range c.cluster.HAResources {
			if r.VMID == p.VMID {
				l.HAWanted = &c.cluster.HAResources[i]
			}
		}
	}
	if c.ha != nil && c.ha.Manager != nil {
		sid := map[string]string{"lxc": "ct:", "qemu": "vm:"}[p.Type] + strconv.Itoa(p.VMID)
		for i, svc := range c.ha.Manager.Services {
			if svc.SID == sid {
				l.HA = &c.ha.Manager.Services[i]
			}
		}
	}
	return l
}

func (s *Session) tasks(e *entry) []parse.Task {
	out, err := s.ask(s.ctx, e, "node-tasks")
	if err != nil {
		s.miss(e.name(), err)
		return nil
	}
	tasks, notes, err := parse.Tasks(out)
	if err != nil {
		s.miss(e.name(), unread("node-tasks", err))
		return nil
	}
	s.notes(e.name(), "node-tasks", notes)
	return tasks
}

// statusOf asks a guest's node for its state; why is "" or the reason why there
// is none.
func (s *Session) statusOf(e *entry, p *place) (st *parse.GuestStatus, why string) {
	form := p.Type + "-status"
	out, err := s.ask(s.ctx, e, form, p.Node, fmt.Sprint(p.VMID))
	if err != nil {
		s.miss(p.Node, err)
		return nil, AsError(err).Message
	}
	g, notes, err := parse.StatusCurrent(out)
	if err != nil {
		s.miss(p.Node, unread(form, err))
		return nil, AsError(unread(form, err)).Message
	}
	s.notes(p.Node, form, notes)
	return &g, ""
}

// cgroup reads what the kernel counts for a guest. A node with cgroup v1 has
// none of the files, which is no problem: pvestatd's figures stand.
func (s *Session) cgroup(e *entry, p *place) *parse.Cgroup {
	form := p.Type + "-cgroup"
	out, err := s.ask(s.ctx, e, form, fmt.Sprint(p.VMID))
	if err != nil {
		s.miss(p.Node, err)
		return nil
	}
	c, notes, err := parse.ParseCgroup(p.Type, p.VMID, out)
	if err != nil {
		s.miss(p.Node, unread(form, err))
		return nil
	}
	s.notes(p.Node, form, notes)
	return c
}

// agentDisks asks a VM's agent for its filesystems, unless it must not be asked.
func (s *Session) agentDisks(e *entry, p *place) (*parse.AgentFilesystems, parse.AgentTrouble) {
	if _, reason := agentAllowed(p.config); reason != "" {
		return nil, parse.AgentOK
	}
	out, trouble, err := s.askAgent(e, p.VMID, "qemu-filesystems", p.Node, fmt.Sprint(p.VMID))
	if err == nil && trouble == parse.AgentOther {
		err = errorf(report.Internal, "qemu-filesystems: the agent of VM %d gave no answer", p.VMID)
		if bad := failure(out); bad != nil {
			err = bad
		}
	}
	if err != nil {
		s.miss(p.Node, err)
		return nil, trouble
	}
	switch trouble {
	case parse.AgentOK:
	case parse.AgentBlocked, parse.AgentUnsupported: // the guest says no, so there is nothing to read
		s.note(p.Node, errorf(report.Unsupported, "the guest agent of VM %d tells no filesystems: %s", p.VMID, trouble))
		return nil, trouble
	default:
		s.miss(p.Node, errorf(report.Unsupported, "the guest agent of VM %d gave no filesystems: %s", p.VMID, trouble))
		return nil, trouble
	}
	fs, notes, err := parse.FilesystemsOfAgent(out.Stdout)
	if err != nil {
		s.miss(p.Node, unread("qemu-filesystems", err))
		return nil, parse.AgentOther
	}
	s.notes(p.Node, "qemu-filesystems", notes)
	return &fs, parse.AgentOK
}
