package report

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// ContainerFindings judges what the runtimes said. What needs inspect is judged
// only where details were asked for.
func (j Judge) ContainerFindings(answers []RuntimeAnswer) []*Finding {
	var out []*Finding
	for _, a := range answers {
		out = append(out, j.placeFindings(a)...)
		for _, c := range a.Containers {
			out = append(out, j.oneContainer(a, c)...)
		}
		out = append(out, j.summed(a)...)
		out = append(out, j.portConflicts(a)...)
		out = append(out, j.projectCollisions(a)...)
	}
	return out
}

// placeFindings judges the guest: docker that does not answer, and a container
// whose nesting is off.
func (j Judge) placeFindings(a RuntimeAnswer) []*Finding {
	var out []*Finding
	p, subject := a.Place, a.Place.subject("")
	switch p.Status {
	case PlaceDaemonUnreachable, PlaceNoRights:
		out = append(out, j.Find("DOCKER_UNREACHABLE", Warning, subject, "Docker cannot be asked: "+p.Reason))
	case PlaceDaemonStopped:
		// Whoever was not asked may be stopped on purpose, to start on demand.
		severity := Warning
		if p.Note == NoteNotAsked {
			severity = Info
		}
		out = append(out, j.Find("DOCKER_UNREACHABLE", severity, subject, "Docker is installed, but "+p.Reason))
	}
	there := slices.Contains([]string{PlaceOK, PlaceDaemonStopped, PlaceDaemonUnreachable, PlaceNoRights}, p.Status)
	if a.Nesting != nil && !*a.Nesting && p.Runtime == "docker" && there {
		out = append(out, j.Find("CT_DOCKER_NO_NESTING", "", subject, "Docker is used in a container whose nesting feature is off"))
	}
	return out
}

// NoteNotAsked is the note of a place whose daemon was seen not to run.
const NoteNotAsked = "not asked: asking could start it"

func (j Judge) oneContainer(a RuntimeAnswer, c parse.Container) []*Finding {
	row, d := ContainerRow(a, c), a.Detail(c.ID)
	subject := a.Place.subject(row.Project)
	find := func(code string, severity Severity, message string, evidence ...Evidence) *Finding {
		return j.Find(code, severity, subject, message, evidence...)
	}
	var out []*Finding
	state := parse.ContainerState(row.State)
	switch {
	case row.Health == string(parse.HealthUnhealthy):
		out = append(out, find("DOCKER_UNHEALTHY", "", row.Name+" is unhealthy: its own check fails", failing(row)...))
	case state == parse.StateRestarting:
		severity, evidence := restarting(a, row, d)
		out = append(out, find("DOCKER_RESTARTING", severity, row.Name+" restarts again and again", evidence...))
	case row.OOMKilled && state != parse.StateRunning: // says more than its exit code
	case (state == parse.StateExited || state == parse.StateDead) && row.ExitCode != nil && *row.ExitCode != 0:
		severity, meaning := exitMeaning(*row.ExitCode)
		out = append(out, find("DOCKER_EXITED_NONZERO", severity, fmt.Sprintf("%s ended with exit code %d%s", row.Name, *row.ExitCode, meaning), Evidence{Name: "exit_code", Value: fmt.Sprint(*row.ExitCode)}))
	case state == parse.StateDead:
		out = append(out, find("DOCKER_EXITED_NONZERO", "", row.Name+" is dead: the runtime could not remove it"))
	case row.StartError == "operation not permitted" || row.StartError == "permission denied":
		out = append(out, find("DOCKER_START_DENIED", "", row.Name+" could not start: "+row.StartError))
	case row.StartError != "":
		out = append(out, find("DOCKER_EXITED_NONZERO", "", row.Name+" could not start: "+startReason(row.StartError)))
	}
	if row.OOMKilled {
		out = append(out, find("DOCKER_OOM", "", row.Name+" was killed for want of memory", memoryLimit(d)...))
	}
	if row.Privileged {
		out = append(out, find("DOCKER_PRIVILEGED", "", row.Name+" is privileged"))
	}
	if m := socketMount(d); m != "" {
		out = append(out, find("DOCKER_SOCKET_MOUNTED", "", row.Name+" can reach the runtime's socket", Evidence{Name: "source", Value: m}))
	}
	return out
}

func startReason(word string) string {
	if word == "other" {
		return "the runtime gives a reason that is not shown, for it may repeat the command"
	}
	return word
}

// exitMeaning says what an exit code proves: little.
func exitMeaning(code int) (Severity, string) {
	switch code {
	case 137:
		return Warning, " (killed; the runtime does not say why)"
	case 143, 130:
		return Info, " (it was told to stop)"
	}
	return Warning, ""
}

func failing(row Container) []Evidence {
	if row.HealthFailing == nil {
		return nil
	}
	return []Evidence{{Name: "failing_in_a_row", Value: fmt.Sprint(*row.HealthFailing)}}
}

// restarting is critical above ten restarts an hour since the container was
// made.
func restarting(a RuntimeAnswer, row Container, d *parse.ContainerDetail) (Severity, []Evidence) {
	var evidence []Evidence
	if row.ExitCode != nil {
		evidence = append(evidence, Evidence{Name: "exit_code", Value: fmt.Sprint(*row.ExitCode)})
	}
	if d == nil || d.Restarts == nil {
		return Warning, evidence
	}
	evidence = append(evidence, Evidence{Name: "restarts", Value: fmt.Sprint(*d.Restarts)})
	if d.Created == nil || !a.Judged.After(*d.Created) {
		return Warning, evidence
	}
	hours := max(a.Judged.Sub(*d.Created), time.Hour).Hours()
	if float64(*d.Restarts)/hours > 10 {
		return Critical, evidence
	}
	return Warning, evidence
}

func memoryLimit(d *parse.ContainerDetail) []Evidence {
	if d == nil || d.MemoryLimit == nil {
		return nil
	}
	return []Evidence{{Name: "memory_limit_bytes", Value: fmt.Sprint(*d.MemoryLimit), Unit: "bytes"}}
}

// socketMount returns the mount through which a container reaches the runtime's
// socket, or "".
func socketMount(d *parse.ContainerDetail) string {
	if d == nil {
		return ""
	}
	for _, m := range d.Mounts {
		src := cleanPath(m.Source)
		switch {
		case m.Type != "bind":
		case strings.HasSuffix(src, "/docker.sock"), strings.HasSuffix(src, "/podman.sock"),
			src == "/", src == "/run", src == "/var/run", src == "/var", src == "/run/podman", src == "/var/run/podman":
			return Clean(m.Source)
		}
	}
	return ""
}

// summed are findings that would stand once a container and say the same.
func (j Judge) summed(a RuntimeAnswer) []*Finding {
	unchecked, open := map[string][]string{}, map[string][]string{}
	for _, c := range a.Containers {
		d := a.Detail(c.ID)
		if d == nil || d.State != parse.StateRunning {
			continue
		}
		row := ContainerRow(a, c)
		if d.Health == nil {
			unchecked[row.Project] = append(unchecked[row.Project], row.Name)
		}
		for _, p := range row.Ports {
			if p.everywhere() {
				open[row.Project] = append(open[row.Project], row.Name+" "+p.text())
			}
		}
	}
	var out []*Finding
	for project, names := range unchecked {
		slices.Sort(names)
		out = append(out, j.Find("DOCKER_NO_HEALTHCHECK", "", a.Place.subject(project), several(len(names), "running container has", "running containers have")+" no health check: "+few(names)))
	}
	for project, ports := range open {
		slices.Sort(ports)
		out = append(out, j.Find("PORT_ALL_INTERFACES", "", a.Place.subject(project), several(len(ports), "port is", "ports are")+" published on every address: "+few(ports)))
	}
	return out
}

func several(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// few joins at most eight names.
func few(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

// portConflicts finds two containers of one guest that want the same port,
// where at least one of them does not run: it cannot start beside the other.
func (j Judge) portConflicts(a RuntimeAnswer) []*Finding {
	var out []*Finding
	for _, p := range j.portConflictPairs(a) {
		out = append(out, p.Finding)
	}
	return out
}

// A portPair is a conflict and the IDs of the two containers.
type portPair struct {
	*Finding
	x, y string
}

func (j Judge) portConflictPairs(a RuntimeAnswer) []portPair {
	var out []portPair
	rows := Containers([]RuntimeAnswer{a})
	for i, x := range rows {
		for _, y := range rows[i+1:] {
			if x.State == string(parse.StateRunning) && y.State == string(parse.StateRunning) {
				continue
			}
			if p, ok := sharedPort(x, y); ok {
				out = append(out, portPair{j.Find("PORT_CONFLICT", "", a.Place.subject(""), fmt.Sprintf("%s and %s want the same port %s; only one can run", x.Name, y.Name, p)), x.ID, y.ID})
			}
		}
	}
	return out
}

func sharedPort(x, y Container) (string, bool) {
	for _, p := range x.Ports {
		for _, q := range y.Ports {
			if p.HostPort == 0 || q.HostPort == 0 || p.Ephemeral || q.Ephemeral || p.Protocol != q.Protocol || !sameAddress(p, q) {
				continue
			}
			from, to := max(p.HostPort, q.HostPort), min(max(p.HostPort, p.HostPortEnd), max(q.HostPort, q.HostPortEnd))
			if from <= to {
				return portText(from, to) + "/" + p.Protocol, true
			}
		}
	}
	return "", false
}

func sameAddress(p, q ContainerPort) bool {
	overlap := func(a, b string) bool {
		switch {
		case a == b, a == "*", b == "*":
			return true
		case a == "0.0.0.0", b == "0.0.0.0":
			return !strings.Contains(a+b, ":")
		case a == "::", b == "::":
			return strings.Count(a, ":") > 0 && strings.Count(b, ":") > 0
		}
		return false
	}
	return slices.ContainsFunc(p.Addresses, func(a string) bool {
		return slices.ContainsFunc(q.Addresses, func(b string) bool { return overlap(a, b) })
	})
}

// projectCollisions finds a project name that is used from two directories.
func (j Judge) projectCollisions(a RuntimeAnswer) []*Finding {
	var out []*Finding
	for project, dirs := range workingDirs(a) {
		if len(dirs) > 1 {
			out = append(out, j.Find("COMPOSE_PROJECT_COLLISION", "", a.Place.subject(project), fmt.Sprintf("project %s is used from %s", project, few(dirs))))
		}
	}
	return out
}

// workingDirs returns each project's directories, cleaned and sorted.
func workingDirs(a RuntimeAnswer) map[string][]string {
	out := map[string][]string{}
	for _, c := range a.Containers {
		p := composeOf(a, c)
		if p == nil || p.WorkingDir == "" {
			continue
		}
		name, dir := Clean(p.Project), Clean(cleanPath(p.WorkingDir))
		if !slices.Contains(out[name], dir) {
			out[name] = append(out[name], dir)
		}
	}
	for _, dirs := range out {
		slices.Sort(dirs)
	}
	return out
}

// composeOf prefers inspect: podman's ps does not know the directory.
func composeOf(a RuntimeAnswer, c parse.Container) *parse.Compose {
	if d := a.Detail(c.ID); d != nil && d.Compose != nil {
		return d.Compose
	}
	return c.Compose
}
