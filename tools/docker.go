package tools

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

// A dockerPlace is a guest or a docker host, and what its runtime said. The
// runtime is asked through pct exec, through the agent, or directly.
type dockerPlace struct {
	report.RuntimeAnswer
	guest    *place // nil: a docker host
	entry    *entry // who is asked
	services parse.RuntimeServices
	lost     int   // lines of the list that could not be read
	err      error // why there is no whole answer, for problems
}

// maxIDs is how many containers one inspect is asked for.
const maxIDs = 100

// askDocker asks every place at once, for its containers and, with details, for
// what inspect tells of those that want chooses (nil: all). It records what
// could not be read.
func (s *Session) askDocker(places []*dockerPlace, details bool, want func(parse.Container) bool) []report.RuntimeAnswer {
	var mu sync.Mutex
	done := 0
	parallel(places, func(_ int, p *dockerPlace) {
		p.Judged = s.judged
		s.askPlace(p)
		if details && p.Place.Status == report.PlaceOK {
			s.inspect(p, want)
		}
		if details {
			s.runtimeVersion(p)
		}
		mu.Lock()
		defer mu.Unlock()
		done++
		s.progress(done, len(places), "%s", p.name())
	})
	var out []report.RuntimeAnswer
	for _, p := range places {
		s.miss(p.problemNode(), p.err)
		out = append(out, p.RuntimeAnswer)
	}
	return out
}

func (p *dockerPlace) name() string {
	if p.guest == nil {
		return p.entry.dest
	}
	return "guest " + strconv.Itoa(p.guest.VMID)
}

func (p *dockerPlace) problemNode() string {
	if p.guest == nil {
		return p.entry.dest
	}
	return p.guest.Node
}

// askPlace finds out what there is to ask, without starting a daemon, and asks.
func (s *Session) askPlace(p *dockerPlace) {
	if p.guest == nil {
		s.askHost(p)
		return
	}
	g := p.guest
	switch {
	case report.Offline(g.cluster.State, g.Node):
		p.fail(report.PlaceUnknown, &Error{Code: report.HostUnreachable, Node: g.Node, Message: "the cluster says that node " + g.Node + " is offline"})
		return
	case g.Status == report.Stopped:
		p.is(report.PlaceGuestStopped, "the guest is stopped")
		return
	case g.Status != report.Running && g.Status != report.Unknown:
		p.fail(report.PlaceUnknown, errorf(report.Unsupported, "the guest is %s, so nothing in it answers", g.Status))
		return
	}
	e, err := g.cluster.at(g.Node)
	if err != nil {
		p.fail(report.PlaceUnknown, err)
		return
	}
	p.entry = e
	if g.Type == "lxc" {
		s.askLXC(p)
		return
	}
	if status, reason := agentAllowed(g.config); status != "" {
		p.fail(status, errorf(report.Unsupported, "guest %d: %s", g.VMID, reason))
		p.Place.Reason = reason
		return
	}
	s.askRuntimes(p, p.programs()...)
	if p.Place.Status == report.PlaceOK {
		answered.Store(p.key(), p.Place.Runtime)
	}
}

// answered holds which program answered in a VM last time: there a second
// question has to wait.
var answered sync.Map

type vmKey struct {
	entry *entry
	vmid  int
}

func (p *dockerPlace) key() vmKey { return vmKey{p.entry, p.guest.VMID} }

// programs are docker and podman, the one that answered last time first.
func (p *dockerPlace) programs() []string {
	if last, ok := answered.Load(p.key()); ok && last == "podman" {
		return []string{"podman", "docker"}
	}
	return []string{"docker", "podman"}
}

// askLXC looks at the container's control groups first: where systemd shows no
// daemon, docker itself is asked only for its version, which starts nothing.
func (s *Session) askLXC(p *dockerPlace) {
	out, err := s.exec(s.ctx, p.entry, "lxc-services", p.vmid())
	if err == nil {
		p.services, err = parse.LXCServices(out.Stdout)
	}
	if err != nil {
		p.services = parse.RuntimeServices{}
	}
	s.askSeen(p)
}

func (s *Session) askHost(p *dockerPlace) {
	out, err := s.exec(s.ctx, p.entry, "host-services")
	if err == nil {
		p.services, err = parse.HostServices(out.Stdout)
	}
	if err != nil {
		if AsError(err).Code == report.HostUnreachable || AsError(err).Code == report.AuthFailed || AsError(err).Code == report.HostKey || AsError(err).Code == report.Config {
			p.fail(report.PlaceUnknown, err)
			return
		}
		p.services = parse.RuntimeServices{}
	}
	s.askSeen(p)
	if host, err := s.host(s.ctx, p.entry); err == nil && p.Place.Runtime == "podman" && host.Target.User != "root" {
		p.Place.Note = "only the containers of user " + report.Clean(host.Target.User) + ": podman shows no other user's"
	}
}

// askSeen asks what was seen to run, or what cannot be told.
func (s *Session) askSeen(p *dockerPlace) {
	switch {
	case p.services.Docker == parse.Present:
		s.askRuntimes(p, "docker")
	case p.services.Docker == parse.CannotTell:
		s.askRuntimes(p, "docker", "podman")
		if p.Place.Runtime == "docker" {
			p.Place.Note = "whether the daemon ran before it was asked cannot be told here"
		}
	default:
		s.askClient(p)
	}
}

// askClient is for a place where no daemon runs: is docker installed at all, and
// if not, is podman, which has no daemon?
func (s *Session) askClient(p *dockerPlace) {
	if p.services.Podman == parse.Present {
		s.askRuntimes(p, "podman")
		return
	}
	r, err := s.run(p, "docker", "client")
	if err != nil {
		p.failed(err)
		return
	}
	program, version, perr := parse.DockerClient(r.Stdout)
	fail := parse.ClassifyDocker("docker", r.Exit, r.Stdout, r.Stderr)
	switch {
	case fail.Trouble == parse.DockerAbsent, program == "podman":
		s.askRuntimes(p, "podman")
	case fail.Trouble != parse.DockerOK && fail.Trouble != parse.DockerIsPodman:
		p.trouble("docker", fail.Trouble, r)
	case perr != nil:
		p.fail(report.PlaceUnknown, unread("docker --version", perr))
	default:
		p.Place.Runtime, p.Place.Version = "docker", report.Clean(version)
		p.is(report.PlaceDaemonStopped, "its daemon does not run")
		p.Place.Note = report.NoteNotAsked
		if slices.Contains(p.services.Rootless, "docker") {
			p.Place.Reason += " for root; a user runs a rootless one, which root's socket does not show"
		}
	}
}

// askRuntimes asks the programs one after another until one of them is there.
func (s *Session) askRuntimes(p *dockerPlace, programs ...string) {
	for i, program := range programs {
		r, err := s.run(p, program, "ps")
		if err != nil {
			p.failed(err)
			if i > 0 {
				p.is(report.PlaceUnknown, programs[0]+" is not installed, and "+program+" could not be asked: "+p.Place.Reason)
			}
			return
		}
		f := parse.ClassifyDocker(program, r.Exit, r.Stdout, r.Stderr)
		switch {
		case f.Trouble == parse.DockerOK:
			p.list(program, r.Stdout)
			return
		case f.Trouble == parse.DockerIsPodman && program == "docker":
			s.askRuntimes(p, "podman")
			return
		case f.Trouble == parse.DockerAbsent && i < len(programs)-1:
		default:
			p.trouble(program, f.Trouble, r)
			return
		}
	}
}

// list takes what ps printed. A line that cannot be read leaves the answer
// incomplete.
func (p *dockerPlace) list(program string, out []byte) {
	containers, notes, err := parse.DockerPs(out)
	if err != nil {
		p.fail(report.PlaceUnknown, unread(program+" ps", err))
		return
	}
	p.Containers = containers
	p.Place.Runtime, p.Place.Status = program, report.PlaceOK
	p.lost = lines(out) - len(containers)
	if len(notes) > 0 {
		p.err = errorf(report.Internal, "%s: %s ps: %s (%d in all)", p.name(), program, notes[0], len(notes))
	}
	if slices.Contains(p.services.Rootless, program) {
		p.Place.Note = "a user's own containers (rootless) are not seen by root"
	}
	p.count()
}

// lines counts the lines that are not blank.
func lines(out []byte) (n int) {
	for line := range bytes.Lines(out) {
		if len(bytes.TrimSpace(line)) > 0 {
			n++
		}
	}
	return n
}

// count tells how many containers there are, where every line was read.
func (p *dockerPlace) count() {
	if p.lost > 0 {
		p.Place.Note = "the list is not whole: " + strconv.Itoa(p.lost) + " of its lines could not be read"
		return
	}
	p.Count()
}

// trouble says in the place's words why a runtime gave no list.
func (p *dockerPlace) trouble(program string, t parse.DockerTrouble, r runtimeOutput) {
	if t != parse.DockerAbsent && t != parse.DockerGuestStopped && t != parse.DockerOther {
		p.Place.Runtime = program
	}
	at := p.name()
	switch t {
	case parse.DockerAbsent:
		if p.services.Docker == parse.Present || p.services.Podman == parse.Present {
			p.Place.Runtime = program
			p.fail(report.PlaceDaemonUnreachable, errorf(report.Unsupported, "%s: %s runs, but its command is not in root's path", at, program).hint("a snap's docker is in /snap/bin; a link in /usr/local/bin helps"))
			p.Place.Reason = program + " runs, but its command is not in root's path"
			return
		}
		p.is(report.PlaceNoDocker, "docker and podman are not installed")
		if p.guest == nil || p.guest.Type == "qemu" {
			p.Place.Reason += ", or not in the path of who was asked"
		}
		if len(p.services.Rootless) > 0 {
			p.Place.Reason = "root has neither docker nor podman"
			p.Place.Note = "a user runs " + strings.Join(p.services.Rootless, " and ") + " without root, which root does not see"
		}
	case parse.DockerStopped:
		if p.services.Docker == parse.Present {
			p.fail(report.PlaceDaemonUnreachable, errorf(report.HostUnreachable, "%s: the daemon runs, but does not answer on root's socket", at))
			p.Place.Reason = "its daemon runs, but does not answer on root's socket"
			return
		}
		p.is(report.PlaceDaemonStopped, "nothing listens on root's socket: the daemon is stopped, or it is a rootless one of a user, which root does not see")
	case parse.DockerUnreachable:
		p.fail(report.PlaceDaemonUnreachable, errorf(report.HostUnreachable, "%s: the daemon does not answer", at))
		p.Place.Reason = "its daemon does not answer"
	case parse.DockerDenied:
		p.fail(report.PlaceNoRights, errorf(report.PermissionDenied, "%s: the user may not use the runtime's socket", at).hint("log in as root, set become = \"sudo\" or put the user into group docker (which is root's reach)"))
		p.Place.Reason = "the user may not use the runtime's socket"
	case parse.DockerGuestStopped:
		p.is(report.PlaceGuestStopped, "the guest does not run")
	case parse.DockerGuestMissing:
		p.fail(report.PlaceUnknown, errorf(report.NotFound, "%s is not on the node that was asked; it may just have moved", at))
	case parse.DockerBadTemplate:
		p.fail(report.PlaceUnknown, errorf(report.Unsupported, "%s: this version of %s does not know the fields that are asked for", at, program).hint("docker 20.10 and podman 4 are the oldest that are known to work"))
	default:
		p.fail(report.PlaceUnknown, failureOf(r))
	}
}

// is sets an answer that is whole.
func (p *dockerPlace) is(status, reason string) { p.Place.Status, p.Place.Reason = status, reason }

// fail sets an answer that lacks what it should have; the problem names the
// place.
func (p *dockerPlace) fail(status string, err error) {
	e := *AsError(err)
	p.is(status, e.Message)
	if p.guest != nil && !strings.Contains(e.Message, p.vmid()) {
		e.Message = p.name() + ": " + e.Message
	}
	p.err = &e
}

// failed is fail for a command without an exit status.
func (p *dockerPlace) failed(err error) {
	switch AsError(err).Code {
	case report.Timeout, report.Cancelled:
		p.fail(report.PlaceTimeout, err)
	case report.PermissionDenied:
		p.fail(report.PlaceNoRights, err)
	default:
		p.fail(report.PlaceUnknown, err)
	}
	var silent *agentError
	if errors.As(err, &silent) {
		p.Place.Status = silent.status
	}
	if p.Place.Status == report.PlaceGuestStopped {
		p.err = nil
	}
}

func (p *dockerPlace) vmid() string { return strconv.Itoa(p.guest.VMID) }

// runtimeVersion asks a daemon that runs for its version; where it does not
// answer, the client's own is told. A VM's agent is not asked for that.
func (s *Session) runtimeVersion(p *dockerPlace) {
	if p.Place.Runtime != "docker" || p.Place.Status != report.PlaceOK && p.Place.Status != report.PlaceDaemonUnreachable || p.guest != nil && p.guest.Type != "lxc" {
		return
	}
	r, err := s.run(p, "docker", "version")
	if err != nil {
		s.note(p.problemNode(), err)
		return
	}
	v, err := parse.DockerVersion(r.Stdout)
	switch {
	case err != nil:
		s.note(p.problemNode(), unread(r.form.ID, err))
	case v.Server != nil:
		p.Place.Version = report.Clean(v.Server.Version)
	default:
		p.Place.Version = report.Clean(v.Client) + " (client)"
	}
}

// inspect asks for details of the containers that want chooses, in batches. A
// container that has gone in between is not missed.
func (s *Session) inspect(p *dockerPlace, want func(parse.Container) bool) {
	var ids []string
	for _, c := range p.Containers {
		if want == nil || want(c) {
			ids = append(ids, c.ID)
		}
	}
	p.Details = map[string]parse.ContainerDetail{}
	for batch := range slices.Chunk(ids, maxIDs) {
		r, err := s.run(p, p.Place.Runtime, "inspect", batch...)
		if err != nil {
			p.err = err
			return
		}
		f := parse.ClassifyDocker(p.Place.Runtime, r.Exit, r.Stdout, r.Stderr)
		if f.Trouble != parse.DockerOK && f.Trouble != parse.DockerVanished {
			p.err = failureOf(r) // the lines that are there are good all the same
		}
		list, notes, err := parse.DockerInspect(r.Stdout)
		if err != nil {
			p.err = unread(p.Place.Runtime+" container inspect", err)
			return
		}
		for _, d := range list {
			p.Details[d.ID] = d
		}
		if len(notes) > 0 {
			p.err = errorf(report.Internal, "%s: container inspect: %s (%d in all)", p.name(), notes[0], len(notes))
		}
		p.drop(f.Missing)
		if lost := missing(batch, p.Details, f.Missing); lost > 0 && p.err == nil {
			p.err = errorf(report.Internal, "%s: container inspect: %d containers are missing from the output", p.name(), lost)
		}
	}
}

// drop takes containers out of the list that were removed since ps.
func (p *dockerPlace) drop(gone []string) {
	if len(gone) == 0 {
		return
	}
	p.Containers = slices.DeleteFunc(p.Containers, func(c parse.Container) bool { return slices.Contains(gone, c.ID) })
	p.count()
}

func missing(asked []string, have map[string]parse.ContainerDetail, gone []string) (n int) {
	for _, id := range asked {
		if _, ok := have[id]; !ok && !slices.Contains(gone, id) {
			n++
		}
	}
	return n
}
