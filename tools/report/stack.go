package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// The states of a service and of a stack.
const (
	StackRunning    = "running"
	StackPartial    = "partial"  // some containers run and others do not
	StackFinished   = "finished" // a job that ended well
	StackDown       = "down"     // no container runs, and it is no finished job
	StackRestarting = "restarting"
	StackPaused     = "paused"
	StackMissing    = "missing" // another service needs it, and it has no container
)

// A StackService is one service of a Compose project, from the labels of its
// containers: a service that never had a container is seen only where another
// one depends on it. ExpectedMin is the highest replica number or the number of
// containers: the file may ask for more. MissingNumbers are replica numbers below
// it that no container has.
type StackService struct {
	Service        string      `json:"service"`
	State          string      `json:"state"`
	Health         string      `json:"health,omitempty"`
	Running        int         `json:"running"`
	ExpectedMin    int         `json:"expected_min"`
	MissingNumbers []int       `json:"missing_numbers,omitempty"`
	DependsOn      []string    `json:"depends_on,omitempty"`
	MixedImages    bool        `json:"mixed_images,omitempty"`
	Containers     []Container `json:"containers"`
}

// A MountUse is one container that has a mount.
type MountUse struct {
	Container   string `json:"container"`
	Service     string `json:"service,omitempty"`
	Destination string `json:"destination"`
	ReadOnly    bool   `json:"read_only,omitempty"`
}

// A StackMount is one volume, bind mount or tmpfs of the stack, who uses it,
// and whether it is in a backup. Source is a path in the guest.
type StackMount struct {
	Type      string `json:"type"`
	Volume    string `json:"volume,omitempty"`
	Anonymous bool   `json:"anonymous,omitempty"`
	Source    string `json:"source,omitempty"`
	Driver    string `json:"driver,omitempty"`
	MountBackup
	UsedBy []MountUse `json:"used_by"`
}

// A StackNetwork is one network of the stack and who has which address in it.
type StackNetwork struct {
	Name    string        `json:"name"`
	Gateway string        `json:"gateway,omitempty"`
	Members []StackMember `json:"members"`
}

// A StackMember is one container in a network.
type StackMember struct {
	Container string `json:"container"`
	IPv4      string `json:"ipv4,omitempty"`
	IPv6      string `json:"ipv6,omitempty"`
	MAC       string `json:"mac,omitempty"`
}

// Stack is the answer of inspect_compose_stack. Status says whether the guest
// could be asked, as in list_guest_containers; State is absent unless it is ok.
// OneOff are containers of docker compose run, which are no part of the stack's
// state.
type Stack struct {
	Answer
	Where
	Type           string         `json:"type,omitempty"`
	Node           string         `json:"node,omitempty"`
	Runtime        string         `json:"runtime,omitempty"`
	Status         string         `json:"status"`
	Reason         string         `json:"reason,omitempty"`
	Note           string         `json:"note,omitempty"`
	Project        string         `json:"project"`
	State          string         `json:"state,omitempty"`
	ComposeVersion string         `json:"compose_version,omitempty"`
	WorkingDirs    []string       `json:"working_dirs"`
	ConfigFiles    []string       `json:"config_files"`
	Services       []StackService `json:"services"`
	OneOff         []Container    `json:"one_off"`
	Networks       []StackNetwork `json:"networks"`
	Mounts         []StackMount   `json:"mounts"`
	Backup         *StackBackup   `json:"backup,omitempty"`
	Findings       []Finding      `json:"findings"`
	MoreFindings   int            `json:"more_findings,omitempty"`
}

// A StackBackup is what the mounts' answers rest on: the enabled jobs that take
// the guest, its newest archive, and the storages that could not be read.
type StackBackup struct {
	Jobs        []string `json:"jobs"`
	Archive     string   `json:"archive,omitempty"`
	ArchiveAt   string   `json:"archive_at,omitempty"`
	ArchiveAgeS *int64   `json:"archive_age_s,omitempty"`
	NotRead     []string `json:"not_read,omitempty"`
	Problem     string   `json:"problem,omitempty"`
}

// StackOf builds the answer for one project. The answer a holds all containers
// of the place, with details of the project's own.
func StackOf(a RuntimeAnswer, project string, files GuestFiles, j Judge) *Stack {
	p := a.Place
	r := &Stack{
		Where: p.Where, Type: p.Type, Node: p.Node, Runtime: p.Runtime, Status: p.Status, Reason: p.Reason, Note: p.Note, Project: Clean(project),
		WorkingDirs: []string{}, ConfigFiles: []string{}, Services: []StackService{}, OneOff: []Container{}, Networks: []StackNetwork{}, Mounts: []StackMount{}, Findings: []Finding{},
	}
	own := ofProject(a, project)
	r.labels(own)
	r.services(own)
	r.networks()
	r.mounts(own, files)
	r.Backup = files.summary()
	if p.Status == PlaceOK {
		r.State = r.state()
	}
	r.Findings = Findings(slices.Concat(j.ContainerFindings([]RuntimeAnswer{own}), r.conflicts(a, j), r.findings(j))...)
	return r
}

// ofProject keeps the containers of one project.
func ofProject(a RuntimeAnswer, project string) RuntimeAnswer {
	own := a
	own.Containers = nil
	for _, c := range a.Containers {
		if p := composeOf(a, c); p != nil && p.Project == project {
			own.Containers = append(own.Containers, c)
		}
	}
	return own
}

// Projects are the names of the Compose projects of a place, as they are
// written, sorted.
func Projects(a RuntimeAnswer) []string {
	out := []string{}
	for _, c := range a.Containers {
		if c.Compose != nil && !slices.Contains(out, c.Compose.Project) {
			out = append(out, c.Compose.Project)
		}
	}
	slices.Sort(out)
	return out
}

func (r *Stack) labels(own RuntimeAnswer) {
	for _, dirs := range workingDirs(own) {
		r.WorkingDirs = append(r.WorkingDirs, dirs...)
	}
	for _, c := range own.Containers {
		p := composeOf(own, c)
		r.ComposeVersion = cmp.Or(r.ComposeVersion, Clean(p.Version))
		for _, f := range p.ConfigFiles {
			if f = Clean(f); !slices.Contains(r.ConfigFiles, f) {
				r.ConfigFiles = append(r.ConfigFiles, f)
			}
		}
	}
	slices.Sort(r.WorkingDirs)
	slices.Sort(r.ConfigFiles)
}

func (r *Stack) services(own RuntimeAnswer) {
	depends, jobs := map[string][]string{}, map[string]bool{}
	for _, c := range own.Containers {
		row, p := ContainerRow(own, c), composeOf(own, c)
		if row.OneOff {
			r.OneOff = append(r.OneOff, row)
			continue
		}
		i := slices.IndexFunc(r.Services, func(s StackService) bool { return s.Service == row.Service })
		if i < 0 {
			r.Services, i = append(r.Services, StackService{Service: row.Service}), len(r.Services)
		}
		r.Services[i].Containers = append(r.Services[i].Containers, row)
		for _, d := range p.DependsOn {
			on := Clean(d.Service)
			jobs[on] = jobs[on] || d.Condition == "service_completed_successfully"
			if !slices.Contains(depends[row.Service], on) {
				depends[row.Service] = append(depends[row.Service], on)
			}
		}
	}
	for i := range r.Services {
		s := &r.Services[i]
		s.DependsOn = depends[s.Service]
		slices.Sort(s.DependsOn)
		SortContainers(s.Containers)
		s.judge(jobs[s.Service])
	}
	r.needed(depends)
	SortContainers(r.OneOff)
	slices.SortFunc(r.Services, func(a, b StackService) int { return strings.Compare(a.Service, b.Service) })
}

// needed adds services that others depend on and that have no container.
func (r *Stack) needed(depends map[string][]string) {
	for _, on := range depends {
		for _, name := range on {
			if !slices.ContainsFunc(r.Services, func(s StackService) bool { return s.Service == name }) {
				r.Services = append(r.Services, StackService{Service: name, State: StackMissing, ExpectedMin: 1, Containers: []Container{}})
			}
		}
	}
}

// judge counts a service's containers and says its state; job means that another
// service waits for its successful end.
func (s *StackService) judge(job bool) {
	var restarting, paused, finished int
	have := map[int]bool{}
	for _, c := range s.Containers {
		have[replica(c.Number)] = true
		s.ExpectedMin = max(s.ExpectedMin, replica(c.Number))
		s.Health = worse(s.Health, c.Health)
		s.MixedImages = s.MixedImages || c.ImageID != "" && s.Containers[0].ImageID != "" && c.ImageID != s.Containers[0].ImageID
		switch {
		case c.State == string(parse.StateRunning):
			s.Running++
		case c.State == string(parse.StateRestarting):
			restarting++
		case c.State == string(parse.StatePaused):
			paused++
		case c.finished(job):
			finished++
		}
	}
	s.ExpectedMin = max(s.ExpectedMin, len(s.Containers))
	for n := 1; n < s.ExpectedMin && !have[0] && s.ExpectedMin <= maxReplicas; n++ {
		if !have[n] {
			s.MissingNumbers = append(s.MissingNumbers, n)
		}
	}
	total := len(s.Containers)
	switch {
	case s.Running > 0 && s.Running+finished == total:
		s.State = StackRunning
	case s.Running > 0:
		s.State = StackPartial
	case finished == total:
		s.State = StackFinished
	case restarting > 0:
		s.State = StackRestarting
	case paused > 0:
		s.State = StackPaused
	default:
		s.State = StackDown
	}
}

// maxReplicas bounds the list of missing numbers: a number is a label, which
// anybody can write.
const maxReplicas = 100

// finished reports whether a container is a job that ended well. One that should
// always run and ended was stopped.
func (c Container) finished(job bool) bool {
	return c.State == string(parse.StateExited) && c.ExitCode != nil && *c.ExitCode == 0 && !c.OOMKilled &&
		(job || c.RestartPolicy != "always" && c.RestartPolicy != "unless-stopped")
}

func worse(a, b string) string {
	rank := []string{"", string(parse.HealthHealthy), string(parse.HealthStarting), string(parse.HealthUnhealthy)}
	if slices.Index(rank, b) > slices.Index(rank, a) {
		return b
	}
	return a
}

// state sums up the services.
func (r *Stack) state() string {
	seen := map[string]int{}
	for _, s := range r.Services {
		seen[s.State]++
	}
	n := len(r.Services)
	switch {
	case n == 0:
		return StackDown
	case seen[StackFinished] == n:
		return StackFinished
	case seen[StackRunning]+seen[StackFinished] == n:
		return StackRunning
	case seen[StackRunning]+seen[StackPartial]+seen[StackRestarting] > 0:
		return StackPartial
	case seen[StackPaused]+seen[StackFinished] == n:
		return StackPaused
	}
	return StackDown
}

func (r *Stack) networks() {
	for _, s := range r.Services {
		for _, c := range s.Containers {
			for _, n := range c.Networks {
				i := slices.IndexFunc(r.Networks, func(x StackNetwork) bool { return x.Name == n.Name })
				if i < 0 {
					r.Networks, i = append(r.Networks, StackNetwork{Name: n.Name}), len(r.Networks)
				}
				r.Networks[i].Gateway = cmp.Or(r.Networks[i].Gateway, n.Gateway)
				r.Networks[i].Members = append(r.Networks[i].Members, StackMember{c.Name, n.IPv4, n.IPv6, n.MAC})
			}
		}
	}
	slices.SortFunc(r.Networks, func(a, b StackNetwork) int { return strings.Compare(a.Name, b.Name) })
}

// mounts joins the containers' mounts by what is mounted.
func (r *Stack) mounts(own RuntimeAnswer, files GuestFiles) {
	type mount struct {
		parse.ContainerMount
		inUse bool
		first *time.Time // when the oldest container that has it was made
		uses  []MountUse
	}
	var all []mount
	for _, c := range own.Containers {
		d := own.Detail(c.ID)
		if d == nil {
			continue
		}
		row := ContainerRow(own, c)
		for _, m := range d.Mounts {
			i := slices.IndexFunc(all, func(x mount) bool {
				return x.Type == m.Type && x.Source == m.Source && x.Name == m.Name && (m.Type != "tmpfs" || x.Destination == m.Destination)
			})
			if i < 0 {
				all, i = append(all, mount{ContainerMount: m}), len(all)
			}
			all[i].inUse = all[i].inUse || d.State == parse.StateRunning || d.State == parse.StatePaused
			if d.Created != nil && (all[i].first == nil || d.Created.Before(*all[i].first)) {
				all[i].first = d.Created
			}
			all[i].uses = append(all[i].uses, MountUse{row.Name, row.Service, Clean(m.Destination), m.ReadOnly})
		}
	}
	for _, m := range all {
		slices.SortFunc(m.uses, func(a, b MountUse) int {
			return cmp.Or(strings.Compare(a.Container, b.Container), strings.Compare(a.Destination, b.Destination))
		})
		r.Mounts = append(r.Mounts, StackMount{
			Type: Clean(m.Type), Volume: Clean(m.Name), Anonymous: m.Anonymous, Source: Clean(m.Source), Driver: Clean(m.Driver),
			MountBackup: BackupOf(m.ContainerMount, m.inUse, m.first, files), UsedBy: m.uses,
		})
	}
	slices.SortFunc(r.Mounts, func(a, b StackMount) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Volume, b.Volume), strings.Compare(a.Source, b.Source), strings.Compare(a.UsedBy[0].Container, b.UsedBy[0].Container), strings.Compare(a.UsedBy[0].Destination, b.UsedBy[0].Destination))
	})
}

// Brief takes away what the stack's own lists say already, and numbers.
func (r *Stack) Brief() {
	brief := func(rows []Container) {
		Brief(rows)
		for i := range rows {
			c := &rows[i]
			c.Where, c.Networks, c.Mounts, c.Project, c.Service, c.Status, c.CreatedAt, c.FinishedAt, c.NetworkMode = Where{}, nil, nil, "", "", "", "", "", ""
			c.ImageID, c.MemoryLimit, c.CPULimit, c.HealthFailing = "", nil, nil, nil
		}
	}
	for _, s := range r.Services {
		brief(s.Containers)
	}
	brief(r.OneOff)
	for _, n := range r.Networks {
		for i := range n.Members {
			n.Members[i].MAC = ""
		}
	}
}

// conflicts are ports that this stack and others of the place want.
func (r *Stack) conflicts(a RuntimeAnswer, j Judge) []*Finding {
	names := map[string]bool{}
	for _, s := range r.Services {
		for _, c := range s.Containers {
			names[c.ID] = true
		}
	}
	var out []*Finding
	for _, f := range j.portConflictPairs(a) {
		if names[f.x] || names[f.y] {
			out = append(out, f.Finding)
		}
	}
	return out
}

func (r *Stack) findings(j Judge) []*Finding {
	subject := r.Where.subject(r.Project)
	var out []*Finding
	for _, s := range r.Services {
		evidence := []Evidence{{Name: "running", Value: fmt.Sprint(s.Running)}, {Name: "containers", Value: fmt.Sprint(len(s.Containers))}}
		switch s.State {
		case StackMissing:
			out = append(out, j.Find("COMPOSE_SERVICE_MISSING", "", subject, "service "+s.Service+" has no container, although another one depends on it"))
		case StackDown:
			out = append(out, j.Find("COMPOSE_SERVICE_MISSING", "", subject, "service "+s.Service+" does not run", evidence...))
		case StackPartial:
			out = append(out, j.Find("COMPOSE_PARTIAL", "", subject, fmt.Sprintf("service %s runs with %d of %d containers", s.Service, s.Running, len(s.Containers)), evidence...))
		}
	}
	for _, m := range r.Mounts {
		if m.InBackup == BackupNo && !m.noData {
			out = append(out, j.Find("VOLUME_NOT_IN_BACKUP", "", subject, fmt.Sprintf("%s of %s is in no backup: %s", m.name(), m.UsedBy[0].Container, m.Reason),
				Evidence{Name: "source", Value: m.Source}, Evidence{Name: "guest_volume", Value: m.GuestVolume}))
		}
	}
	return out
}

func (m StackMount) name() string {
	switch {
	case m.Anonymous:
		return "the anonymous volume at " + m.UsedBy[0].Destination
	case m.Volume != "":
		return "volume " + m.Volume
	}
	return cmp.Or(m.Source, m.UsedBy[0].Destination)
}

// summary is nil where no backup was looked for.
func (g GuestFiles) summary() *StackBackup {
	if g.Config == nil {
		return nil
	}
	b := &StackBackup{Jobs: []string{}, NotRead: g.Backup.Unread, Problem: g.Backup.Problem}
	for _, j := range g.Backup.Cover.Jobs {
		b.Jobs = append(b.Jobs, Clean(j.ID))
	}
	slices.Sort(b.Jobs)
	if a := g.newest(); a != nil {
		age := int64(g.Judged.Sub(*a.Created).Seconds())
		b.Archive, b.ArchiveAt, b.ArchiveAgeS = Clean(a.Volume), moment(a.Created), &age
	}
	return b
}
