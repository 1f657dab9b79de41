package parse

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A ContainerState is what the runtime says a container does.
type ContainerState string

// The states of docker, and podman's words for the same; the last is for words
// that neither program has had so far.
const (
	StateCreated      ContainerState = "created" // never started; also podman's initialized and configured
	StateRunning      ContainerState = "running"
	StatePaused       ContainerState = "paused"
	StateRestarting   ContainerState = "restarting"
	StateStopping     ContainerState = "stopping" // podman only
	StateRemoving     ContainerState = "removing"
	StateExited       ContainerState = "exited" // also podman's stopped
	StateDead         ContainerState = "dead"
	StateUnrecognized ContainerState = "unrecognized"
)

// A Health is the verdict of a container's own check. It exists only while the
// container runs; a stopped one keeps its last verdict, which says nothing.
type Health string

// The verdicts; none means that there is no check, which is not "healthy".
const (
	HealthNone      Health = ""
	HealthStarting  Health = "starting"
	HealthHealthy   Health = "healthy"
	HealthUnhealthy Health = "unhealthy"
)

// A Container is one line of docker ps or podman ps.
type Container struct {
	ID       string   // 64 lower-case hex digits
	Name     string   // without the leading slash
	Links    []string // names that other containers use for it ("web/db"), sorted
	Image    string   // as the runtime prints it; an image without a name is "sha256:…"
	State    ContainerState
	Status   string // the program's own words: "Up 2 hours (healthy)"
	Health   Health
	ExitCode *int       // of exited, dead and restarting containers
	Created  *time.Time // UTC
	Ports    []Port     // what ps prints; a host's network shows none although every open port is reachable
	Networks []string   // sorted
	Pod      string     // podman: the pod's ID
	Compose  *Compose   // nil: not part of a project
}

// DockerPs reads what docker ps (20.10 to 29) and podman ps (4 and 5) print for
// the table's template: one JSON object a line. No container is no line.
//
//	{"id":"77d2…f67a","names":"labels","image":"lab/base:1","state":"exited","status":"Exited (137) 32 minutes ago","created":"2026-11-29 16:04:16 +0000 UTC","ports":"",…}
//
// A line that is no container becomes a note and does not cost the others; when
// no line is one, that is an error. The order is the program's.
func DockerPs(out []byte) ([]Container, []Note, error) {
	list := []Container{}
	notes, err := jsonLines("docker ps", out, func(o jsonObject) bool {
		c, ok := psContainer(o)
		if ok {
			list = append(list, c)
		}
		return ok
	})
	return list, notes, err
}

// jsonLines calls read for each line that is a JSON object. It fails when there
// are lines and none of them was good.
func jsonLines(what string, out []byte, read func(jsonObject) bool) ([]Note, error) {
	notes := []Note{}
	line, good := 0, 0
	for raw := range bytes.Lines(out) {
		line++
		if raw = bytes.TrimSpace(raw); len(raw) == 0 {
			continue
		}
		if o, ok := jsonEntry(raw, line, &notes); ok && read(o) {
			good++
		}
	}
	if good == 0 && len(notes) > 0 {
		return notes, fmt.Errorf("%s: want one JSON object a line: %s", what, notes[0])
	}
	return notes, nil
}

func psContainer(o jsonObject) (Container, bool) {
	c := Container{
		ID: o.text("id"), Image: o.text("image"), Status: o.text("status"), Created: zonedTime(o.text("created")),
		Networks: o.texts("networks"), Pod: o.text("pod"), Compose: psCompose(o),
	}
	c.Name, c.Links = containerNames(o.texts("names"))
	if !containerIdentity(o, c.ID, c.Name) {
		return c, false
	}
	if c.Status == "" && !o.has("state") {
		o.note("status", "the container's state")
		return c, false
	}
	c.State = stateWord(o.text("state"), c.Status)
	c.Health = statusHealth(c.State, c.Status)
	c.ExitCode = psExit(o, c)
	var bad int
	if c.Ports, bad = portsProse(o.text("ports")); bad > 0 {
		o.note("ports", "HOST:PORT->PORT/PROTOCOL in each part")
	}
	return c, true
}

// containerIdentity requires what every later question needs: the ID, because
// names repeat and move, and a name to show.
func containerIdentity(o jsonObject, id, name string) bool {
	if len(id) != 64 || strings.Trim(id, "0123456789abcdef") != "" {
		o.note("id", "64 lower-case hex digits")
		return false
	}
	if name == "" {
		o.note("names", "a name")
		return false
	}
	return true
}

// containerNames parts a container's own name from the names that --link gave
// it, which hold a second slash: "/db", "/web/db".
func containerNames(names []string) (name string, links []string) {
	links = []string{}
	for _, n := range names {
		n = strings.TrimPrefix(n, "/")
		switch {
		case strings.Contains(n, "/"):
			links = append(links, n)
		case name == "":
			name = n
		}
	}
	if name == "" && len(links) > 0 {
		name, links = links[0], links[1:]
	}
	slices.Sort(links)
	return name, links
}

// stateWord takes the state's own word, or the first words of the status where
// the program has none (podman 4 repeats the status there).
func stateWord(state, status string) ContainerState {
	if state == "" {
		state = status
	}
	first, _, _ := strings.Cut(strings.ToLower(strings.TrimSpace(state)), " ")
	switch first {
	case "created", "initialized", "configured":
		return StateCreated
	case "running", "up":
		if strings.HasSuffix(strings.ToLower(state), "(paused)") {
			return StatePaused
		}
		return StateRunning
	case "paused":
		return StatePaused
	case "restarting":
		return StateRestarting
	case "stopping":
		return StateStopping
	case "removing", "removal":
		return StateRemoving
	case "exited", "stopped":
		return StateExited
	case "dead":
		return StateDead
	default:
		return StateUnrecognized
	}
}

// statusHealth reads the word in the last parentheses: docker writes "(health:
// starting)", podman "(starting)". "(Paused)" and "(137)" are no health words.
func statusHealth(state ContainerState, status string) Health {
	open := strings.LastIndexByte(status, '(')
	if open < 0 || !strings.HasSuffix(status, ")") {
		return HealthNone
	}
	return runningHealth(state, strings.TrimPrefix(strings.ToLower(status[open+1:len(status)-1]), "health: "))
}

func runningHealth(state ContainerState, word string) Health {
	if state != StateRunning {
		return HealthNone
	}
	switch h := Health(strings.ToLower(strings.TrimSpace(word))); h {
	case HealthStarting, HealthHealthy, HealthUnhealthy:
		return h
	}
	return HealthNone
}

// psExit is the number in "Exited (137) …" and "Restarting (1) …". podman has a
// field of its own, which is 0 for a container that never ended.
func psExit(o jsonObject, c Container) *int {
	if c.State != StateExited && c.State != StateRestarting && c.State != StateDead {
		return nil
	}
	if _, rest, ok := strings.Cut(c.Status, "("); ok {
		if number, _, ok := strings.Cut(rest, ")"); ok {
			if n, err := strconv.Atoi(number); err == nil {
				return &n
			}
		}
	}
	if c.State != StateExited {
		return nil
	}
	return smallInt(o.integer("exit"))
}

func smallInt(n *int64) *int {
	if n == nil || *n < -1<<31 || *n >= 1<<31 {
		return nil
	}
	return new(int(*n))
}

// zonedTime reads "2026-11-29 16:04:16.2 +0100 CET": the client's own zone, its
// name not needed. RFC 3339 does as well. The zero time means never.
func zonedTime(s string) *time.Time {
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		f := strings.Fields(s)
		if len(f) < 3 {
			return nil
		}
		if t, err = time.Parse("2006-01-02 15:04:05 -0700", strings.Join(f[:3], " ")); err != nil {
			return nil
		}
	}
	if t.Year() <= 1970 {
		return nil
	}
	t = t.UTC()
	return &t
}

// A RuntimeVersion is what docker version prints: the client is always there.
type RuntimeVersion struct {
	Client, ClientAPI string
	Server            *ServerVersion // nil: the daemon did not answer
}

// A ServerVersion is the daemon's half.
type ServerVersion struct {
	Version, API, MinAPI, OS, Arch, Kernel string
}

// DockerVersion reads docker version (20.10 to 29) with the table's template.
// It is printed, with exit 1, also when the daemon does not answer.
//
//	{"client":"28.2.2","client_api":"1.50","server":null}
func DockerVersion(out []byte) (RuntimeVersion, error) {
	o, err := jsonOne("docker version", out)
	if err != nil {
		return RuntimeVersion{}, err
	}
	v := RuntimeVersion{Client: o.text("client"), ClientAPI: o.text("client_api")}
	if v.Client == "" {
		return RuntimeVersion{}, fmt.Errorf("docker version: want the client's version in %q", "client")
	}
	if s, ok := o.object("server"); ok {
		v.Server = &ServerVersion{
			Version: s.text("version"), API: s.text("api"), MinAPI: s.text("min_api"),
			OS: s.text("os"), Arch: s.text("arch"), Kernel: s.text("kernel"),
		}
	}
	return v, nil
}
