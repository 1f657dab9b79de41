package tools

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"pvelens/tools/parse"
	"pvelens/tools/report"
)

type inspectComposeStackIn struct {
	Common
	Project string `json:"project,omitempty" help:"Compose project; default: the only one" pos:"true"`
	Guest   Text   `json:"guest,omitempty" help:"guest it runs in; default: looked for everywhere"`
	Host    string `json:"host,omitempty" help:"docker host it runs on"`
}

var inspectComposeStack = define("inspect_compose_stack", "Inspect a Compose stack",
	"Inspects a Docker Compose stack: services, replicas, health, restarts, images, networks, files, and for every mount whether it is in a backup: yes with the archive's age, no or unknown with the reason. Treat unknown as not backed up.",
	func(_ context.Context, s *Session, in inspectComposeStackIn) (*report.Stack, error) {
		places, inv, err := s.dockerPlaces(in.Guest, in.Host)
		if err != nil {
			return nil, err
		}
		s.learnProjects(s.askDocker(places, false, nil))
		p, project, err := chooseStack(places, in.Project)
		if err != nil {
			return nil, err
		}
		if p.Place.Status == report.PlaceOK {
			p.err = nil
			s.inspect(p, func(c parse.Container) bool { return c.Compose != nil && c.Compose.Project == project })
			s.miss(p.problemNode(), p.err)
		}
		out := report.StackOf(p.RuntimeAnswer, project, s.guestFiles(inv, p), s.judge())
		if !s.Detailed {
			out.Brief()
		}
		s.fit(out, 0, func() bool { return report.Drop(&out.Findings, &out.MoreFindings, 5) })
		return out, nil
	})

// chooseStack finds the one place and project that are meant. Of one place that
// could not be asked the answer says why; among several, those are only named.
func chooseStack(places []*dockerPlace, project string) (*dockerPlace, string, error) {
	if len(places) == 1 && places[0].Place.Status != report.PlaceOK {
		return places[0], project, nil
	}
	type hit struct {
		place   *dockerPlace
		project string
	}
	var hits []hit
	var all []string
	unsure := 0
	for _, p := range places {
		if p.err != nil {
			unsure++
		}
		names := report.Projects(p.RuntimeAnswer)
		exact := slices.Contains(names, project)
		for _, name := range names {
			all = append(all, fmt.Sprintf("%s on %s", report.Clean(name), p.name()))
			if project == "" || name == project || !exact && strings.EqualFold(name, project) {
				hits = append(hits, hit{p, name})
			}
		}
	}
	switch {
	case len(hits) == 1:
		return hits[0].place, hits[0].project, nil
	case len(hits) > 1:
		what := "several stacks"
		if project != "" {
			what = "project " + project + " is in several places"
		}
		var list []string
		for _, h := range hits {
			list = append(list, fmt.Sprintf("%s on %s", report.Clean(h.project), h.place.name()))
		}
		return nil, "", errorf(report.Ambiguous, "%s: %s", what, strings.Join(list, ", ")).hint("give project, and guest or host")
	}
	e := errorf(report.NotFound, "no Compose project %s", project)
	if project == "" {
		e = errorf(report.NotFound, "no Compose project there")
	}
	if unsure > 0 {
		e.Message += fmt.Sprintf("; %d of %d places could not be asked", unsure, len(places))
	}
	if len(all) > 0 {
		return nil, "", e.hint("projects are: %s", strings.Join(all, ", "))
	}
	return nil, "", e.hint("list_guest_containers shows what runs where; a project with no container is not seen")
}

// guestFiles reads what decides whether a mount of the stack is in a backup: the
// guest's own mount table, and its backups. A stack without mounts needs none.
func (s *Session) guestFiles(inv *inventory, p *dockerPlace) report.GuestFiles {
	f := report.GuestFiles{Host: p.guest == nil, Judged: s.judged}
	mounted := false
	for _, d := range p.Details {
		mounted = mounted || slices.ContainsFunc(d.Mounts, func(m parse.ContainerMount) bool { return m.Type != "tmpfs" })
	}
	if p.guest == nil || !mounted {
		return f
	}
	f.Kind, f.Config = p.guest.Type, p.guest.config
	parallel([]func(){
		func() { f.Mounts = s.guestMounts(p) },
		func() { f.Backup = s.backupState(inv, p) },
	}, func(_ int, read func()) { read() })
	return f
}

// guestMounts reads a container's mount table; nil when it cannot be read whole.
func (s *Session) guestMounts(p *dockerPlace) []parse.GuestMount {
	if p.guest.Type != "lxc" {
		return nil
	}
	out, err := s.ask(s.ctx, p.entry, "lxc-mounts", p.vmid())
	if err != nil {
		s.miss(p.guest.Node, err)
		return nil
	}
	mounts, notes, err := parse.GuestMounts(out)
	if err == nil && len(notes) > 0 {
		err = fmt.Errorf("%s", notes[0])
	}
	if err != nil {
		s.miss(p.guest.Node, unread("lxc-mounts", err))
		return nil
	}
	return mounts
}

// backupState reads what is known of a guest's backups.
func (s *Session) backupState(inv *inventory, p *dockerPlace) report.BackupState {
	c, g := p.guest.cluster, p.guest
	if !c.has(needCluster) || c.cluster == nil {
		return report.BackupState{Problem: "the cluster's storages and backup jobs could not be read"}
	}
	if !c.has(needPools) && slices.ContainsFunc(c.cluster.BackupJobs, func(j parse.BackupJob) bool { return j.Pool != "" }) {
		return report.BackupState{Problem: "the pools could not be read, so it is not known which jobs take the guest"}
	}
	pool := ""
	for _, x := range c.pools {
		if slices.Contains(x.VMIDs, g.VMID) {
			pool = x.Name
		}
	}
	chosen := report.JobGuest{VMID: g.VMID, Node: g.Node, Pool: pool}
	b := report.BackupState{Cover: report.CoverOf(c.cluster.BackupJobs, chosen), Others: report.OtherJobs(c.cluster.BackupJobs, chosen), StdExcludes: true}
	b.Able(c.cluster.Storages, g.Node)
	if g.Type == "lxc" {
		if err := s.vzdumpDefaults(p, &b); err != nil {
			s.miss(g.Node, err)
			b.Problem = "the node's vzdump.conf could not be read, which may leave paths out"
			return b
		}
	}
	plans, disabled := s.backupPlans(c, backupFilter{})
	for _, id := range disabled {
		b.Disabled = append(b.Disabled, report.Clean(id))
	}
	sources := make([]report.BackupSource, len(plans))
	parallel(plans, func(i int, plan backupPlan) { sources[i] = s.readBackups(c, plan) })
	for _, src := range sources {
		if src.Content == nil {
			b.Unread = append(b.Unread, report.Clean(src.Storage))
			continue
		}
		if other := inv.sharesNumber(c, src.Storage, g.VMID); other != "" {
			b.Unread = append(b.Unread, report.Clean(src.Storage)+" (cluster "+other+" writes archives of its own guest "+p.vmid()+" there too)")
			continue
		}
		for _, a := range src.Content.Archives {
			if a.VMID != nil && *a.VMID == g.VMID {
				b.Archives = append(b.Archives, a)
			}
		}
	}
	slices.Sort(b.Unread)
	b.Unread = slices.Compact(b.Unread)
	return b
}

func (s *Session) vzdumpDefaults(p *dockerPlace, b *report.BackupState) error {
	out, err := s.ask(s.ctx, p.entry, "vzdump-defaults")
	if err != nil {
		return err
	}
	d, notes, err := parse.ParseVzdumpDefaults(out)
	if err != nil {
		return unread("vzdump-defaults", err)
	}
	s.notes(p.guest.Node, "vzdump-defaults", notes)
	b.ExcludePaths = d.ExcludePath
	b.StdExcludes = d.StdExcludes == nil || *d.StdExcludes
	return nil
}

// mayBeOneServer reports whether two storages' servers can be the same one: a name
// is not held against an address, a short name is one of any domain.
func mayBeOneServer(a, b string) bool {
	_, err := netip.ParseAddr(a)
	_, err2 := netip.ParseAddr(b)
	if a == "" || b == "" || err == nil && err2 == nil {
		return a == b
	}
	x, y := strings.ToLower(a), strings.ToLower(b)
	return err == nil || err2 == nil || x == y || strings.HasPrefix(x, y+".") || strings.HasPrefix(y, x+".")
}

// sharesNumber names another cluster that keeps its backups in the same place as
// a storage of c, and has a guest of the same number: whose an archive is cannot
// be told there. It is "" when there is none.
func (inv *inventory) sharesNumber(c *cluster, storage string, vmid int) string {
	i := slices.IndexFunc(c.cluster.Storages, func(x parse.StorageConfig) bool { return x.ID == storage })
	if i < 0 || c.cluster.Storages[i].Server == "" {
		return ""
	}
	mine := c.cluster.Storages[i]
	for _, other := range inv.clusters {
		if other == c || other.kind(vmid) == "" {
			continue
		}
		if other.cluster == nil {
			return other.Name
		}
		for _, x := range other.cluster.Storages {
			if x.Type == mine.Type && mayBeOneServer(x.Server, mine.Server) && x.Export == mine.Export && x.Share == mine.Share && x.Datastore == mine.Datastore && x.Namespace == mine.Namespace {
				return other.Name
			}
		}
	}
	return ""
}
