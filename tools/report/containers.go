package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"pvelens/tools/parse"
)

// The words for what came of asking a guest or host for its containers. Only
// ok says how many there are, which may be none; no other one means "no
// containers".
const (
	PlaceOK                = "ok"
	PlaceNoDocker          = "no_docker"          // neither docker nor podman is installed
	PlaceDaemonStopped     = "daemon_stopped"     // docker is installed, its daemon does not run
	PlaceDaemonUnreachable = "daemon_unreachable" // the daemon runs and does not answer
	PlaceNoRights          = "no_rights"          // the user may not ask
	PlaceGuestStopped      = "guest_stopped"
	PlaceAgentOff          = "agent_off" // a VM whose agent is off or silent
	PlaceLocked            = "locked"    // a VM under a lock: its agent is left alone
	PlaceTimeout           = "timeout"
	PlaceUnknown           = "unknown"
)

// A Where says on which guest or docker host something is: a VMID, or the SSH
// destination of a host that is reached directly. Cluster is set if there are
// several.
type Where struct {
	Guest     int    `json:"guest,omitempty"`
	GuestName string `json:"guest_name,omitempty"`
	Cluster   string `json:"cluster,omitempty"`
	Host      string `json:"host,omitempty"`
}

// subject names the place, or a stack in it, for findings.
func (w Where) subject(project string) string {
	s := "host/" + w.Host
	switch {
	case w.Guest != 0 && project != "":
		s = fmt.Sprintf("stack/%d/%s", w.Guest, project)
	case w.Guest != 0:
		s = fmt.Sprintf("guest/%d", w.Guest)
	case project != "":
		s = "stack/" + w.Host + "/" + project
	}
	if w.Cluster != "" {
		s = w.Cluster + "/" + s
	}
	return s
}

// text names the place for people.
func (w Where) text() string {
	switch {
	case w.Guest == 0:
		return w.Host
	case w.Cluster != "":
		return fmt.Sprintf("%s/%d %s", w.Cluster, w.Guest, w.GuestName)
	}
	return strings.TrimSpace(fmt.Sprintf("%d %s", w.Guest, w.GuestName))
}

// A ContainerPlace is one guest or docker host that was looked at. Containers
// and Running are absent unless the runtime answered. Note says what the reader
// must know of how it was asked.
type ContainerPlace struct {
	Where
	Type       string `json:"type,omitempty"`
	Node       string `json:"node,omitempty"`
	Runtime    string `json:"runtime,omitempty"`
	Version    string `json:"version,omitempty"`
	Status     string `json:"status"`
	Reason     string `json:"reason,omitempty"`
	Note       string `json:"note,omitempty"`
	Containers *int   `json:"containers,omitempty"`
	Running    *int   `json:"running,omitempty"`
}

// A ContainerPort is one way into a container. HostPort is absent when it is
// only exposed (Published false), or ephemeral. Addresses are those of the guest
// it listens on; * is every one. Configured means that the container does not
// run, so nothing listens now.
type ContainerPort struct {
	Protocol         string   `json:"protocol"`
	ContainerPort    int      `json:"container_port"`
	ContainerPortEnd int      `json:"container_port_end,omitempty"`
	HostPort         int      `json:"host_port,omitempty"`
	HostPortEnd      int      `json:"host_port_end,omitempty"`
	Addresses        []string `json:"addresses,omitempty"`
	Published        bool     `json:"published"`
	Ephemeral        bool     `json:"ephemeral,omitempty"`
	Configured       bool     `json:"configured,omitempty"`
}

// A Container is one container; a concise answer has the first twelve digits of
// its ID. Health exists only while it runs and has a
// check; ExitCode only of one that ended. HostNetwork means that it listens on
// ports of the guest that no runtime knows. With detail=detailed the runtime is
// asked for each container; ImageID and what follows it are from there. OOMKilled
// is set only where the runtime says so. StartError is why a start failed, in
// fixed words.
type Container struct {
	Where
	ID          string          `json:"id"`
	Name        string          `json:"name"`
	Image       string          `json:"image"`
	State       string          `json:"state"`
	Health      string          `json:"health,omitempty"`
	ExitCode    *int            `json:"exit_code,omitempty"`
	Project     string          `json:"project,omitempty"`
	Service     string          `json:"service,omitempty"`
	Number      *int            `json:"number,omitempty"`
	OneOff      bool            `json:"one_off,omitempty"`
	Ports       []ContainerPort `json:"ports"`
	HostNetwork bool            `json:"host_network,omitempty"`

	ImageID       string           `json:"image_id,omitempty"`
	ImageStale    bool             `json:"image_stale,omitempty"`
	Status        string           `json:"status,omitempty"`
	CreatedAt     string           `json:"created_at,omitempty"`
	StartedAt     string           `json:"started_at,omitempty"`
	FinishedAt    string           `json:"finished_at,omitempty"`
	Restarts      *int             `json:"restarts,omitempty"`
	RestartPolicy string           `json:"restart_policy,omitempty"`
	RestartMax    *int             `json:"restart_max,omitempty"`
	OOMKilled     bool             `json:"oom_killed,omitempty"`
	StartError    string           `json:"start_error,omitempty"`
	HealthFailing *int             `json:"health_failing_in_a_row,omitempty"`
	Privileged    bool             `json:"privileged,omitempty"`
	NetworkMode   string           `json:"network_mode,omitempty"`
	Networks      []ContainerNet   `json:"networks,omitempty"`
	Mounts        []ContainerMount `json:"mounts,omitempty"`
	MemoryLimit   *int64           `json:"memory_limit_bytes,omitempty"`
	CPULimit      *float64         `json:"cpu_limit,omitempty"`
}

// A ContainerNet is one network of a container. One that does not run has no
// addresses.
type ContainerNet struct {
	Name    string `json:"name"`
	IPv4    string `json:"ipv4,omitempty"`
	IPv6    string `json:"ipv6,omitempty"`
	Gateway string `json:"gateway,omitempty"`
	MAC     string `json:"mac,omitempty"`
}

// A ContainerMount is one mount of a container: a volume, a bind mount of the
// guest, or a tmpfs. Source is a path in the guest.
type ContainerMount struct {
	Type        string `json:"type"`
	Volume      string `json:"volume,omitempty"`
	Source      string `json:"source,omitempty"`
	Destination string `json:"destination"`
	ReadOnly    bool   `json:"read_only,omitempty"`
	Driver      string `json:"driver,omitempty"`
}

// ContainerList is the answer of list_guest_containers. Places are the guests
// and hosts that were looked at, whatever came of it; MorePlaces counts those
// that were left out to keep the answer short, the ones without Docker first.
type ContainerList struct {
	Answer
	Places     []ContainerPlace `json:"places"`
	MorePlaces int              `json:"more_places,omitempty"`
	Items      []Container      `json:"items"`
	Page
	Findings     []Finding `json:"findings"`
	MoreFindings int       `json:"more_findings,omitempty"`
}

// A RuntimeAnswer is what was found out of one guest or host: the place, and if
// its status is ok the containers. Details is nil when they were not asked for.
// Nesting is nil where it does not matter.
type RuntimeAnswer struct {
	Place      ContainerPlace
	Containers []parse.Container
	Details    map[string]parse.ContainerDetail
	Nesting    *bool
	Judged     time.Time
}

// Detail returns what inspect said of a container, or nil.
func (a RuntimeAnswer) Detail(id string) *parse.ContainerDetail {
	if d, ok := a.Details[id]; ok {
		return &d
	}
	return nil
}

// Count fills in how many containers there are.
func (a *RuntimeAnswer) Count() {
	running := 0
	for _, c := range a.Containers {
		if c.State == parse.StateRunning {
			running++
		}
	}
	a.Place.Containers, a.Place.Running = Ptr(len(a.Containers)), &running
}

// Brief cuts IDs to their first twelve digits, as docker does, for concise
// answers.
func Brief(rows []Container) {
	for i := range rows {
		rows[i].ID = rows[i].ID[:min(len(rows[i].ID), 12)]
	}
}

// Containers returns a row for every container, by place, project, service,
// number and name.
func Containers(answers []RuntimeAnswer) []Container {
	rows := []Container{}
	for _, a := range answers {
		for _, c := range a.Containers {
			rows = append(rows, ContainerRow(a, c))
		}
	}
	SortContainers(rows)
	return rows
}

// SortContainers puts rows into their stable order.
func SortContainers(rows []Container) {
	slices.SortFunc(rows, func(a, b Container) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Guest, b.Guest), strings.Compare(a.Host, b.Host),
			strings.Compare(a.Project, b.Project), strings.Compare(a.Service, b.Service), cmp.Compare(replica(a.Number), replica(b.Number)),
			strings.Compare(a.Name, b.Name), strings.Compare(a.ID, b.ID))
	})
}

func replica(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}

// ContainerRow renders one container, with details where they were asked for.
func ContainerRow(a RuntimeAnswer, c parse.Container) Container {
	r := Container{
		Where: a.Place.Where, ID: c.ID, Name: Clean(c.Name), Image: Clean(c.Image), State: string(c.State), Health: string(c.Health),
		ExitCode: c.ExitCode, HostNetwork: slices.Contains(c.Networks, "host"), Ports: containerPorts(c.Ports),
	}
	if id, ok := strings.CutPrefix(c.Image, "sha256:"); ok && len(id) == 64 {
		r.ImageID = Clean(c.Image)
	}
	if p := c.Compose; p != nil {
		r.Project, r.Service, r.Number, r.OneOff = Clean(p.Project), Clean(p.Service), p.Number, p.OneOff
	}
	if d := a.Detail(c.ID); d != nil {
		r.detail(c, *d)
	}
	return r
}

func (r *Container) detail(c parse.Container, d parse.ContainerDetail) {
	r.State, r.Health, r.ExitCode = string(d.State), "", d.ExitCode
	if d.Health != nil {
		r.Health, r.HealthFailing = string(d.Health.Status), d.Health.Streak
	}
	r.Ports, r.HostNetwork = containerPorts(d.Ports), d.NetworkMode == "host"
	r.ImageID, r.ImageStale = imageID(d.ImageID), stale(c, d)
	if r.ImageStale || !strings.HasPrefix(d.Image, "sha256:") {
		r.Image = Clean(d.Image)
	}
	r.Status = Clean(c.Status)
	r.CreatedAt, r.StartedAt, r.FinishedAt = moment(d.Created), moment(d.Started), moment(d.Finished)
	r.Restarts, r.RestartPolicy, r.RestartMax = d.Restarts, Clean(d.RestartPolicy), d.RestartMax
	r.OOMKilled, r.Privileged, r.NetworkMode = d.OOMKilled, d.Privileged, Clean(d.NetworkMode)
	r.MemoryLimit, r.CPULimit = d.MemoryLimit, d.CPUs
	if d.FailedStart {
		r.StartError = startError(d.Error)
	}
	for _, n := range d.Networks {
		r.Networks = append(r.Networks, containerNet(n))
	}
	for _, m := range d.Mounts {
		r.Mounts = append(r.Mounts, containerMount(m))
	}
	if d.Compose != nil && r.Project == "" {
		r.Project, r.Service, r.Number, r.OneOff = Clean(d.Compose.Project), Clean(d.Compose.Service), d.Compose.Number, d.Compose.OneOff
	}
}

func imageID(id string) string {
	if id == "" {
		return ""
	}
	return "sha256:" + Clean(id)
}

// stale reports whether the name that the container was made from now means
// another image or none: ps then prints the ID, inspect still the name.
func stale(c parse.Container, d parse.ContainerDetail) bool {
	return strings.HasPrefix(c.Image, "sha256:") && d.Image != "" && !strings.HasPrefix(d.Image, "sha256:") && !strings.Contains(d.Image, "@sha256:") &&
		strings.TrimPrefix(c.Image, "sha256:") == d.ImageID
}

func moment(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}

func containerNet(n parse.ContainerNetwork) ContainerNet {
	out := ContainerNet{Name: Clean(n.Name), MAC: Clean(n.MAC)}
	if n.IPv4.IsValid() {
		out.IPv4 = n.IPv4.String()
	}
	if n.IPv6.IsValid() {
		out.IPv6 = n.IPv6.String()
	}
	if n.Gateway.IsValid() {
		out.Gateway = n.Gateway.String()
	}
	return out
}

func containerMount(m parse.ContainerMount) ContainerMount {
	return ContainerMount{Type: Clean(m.Type), Volume: Clean(m.Name), Source: Clean(m.Source), Destination: Clean(m.Destination), ReadOnly: m.ReadOnly, Driver: Clean(m.Driver)}
}

// startErrors are the fixed words for a failed start. The runtime's own text is
// never shown: it repeats words of the command, which may be secrets.
var startErrors = []string{
	"port is already allocated", "address already in use", "no space left on device", "cannot allocate memory",
	"operation not permitted", "permission denied", "executable file not found", "no such file or directory", "not a directory",
	"no such device", "invalid argument", "read-only file system", "network not found", "input/output error",
}

func startError(text string) string {
	text = strings.ToLower(text)
	for _, w := range startErrors {
		if strings.Contains(text, w) {
			return w
		}
	}
	return "other"
}

// A ContainerFilter chooses rows; an empty field chooses all. Texts compare
// without regard to case; Name and Image as a part. Health none is a running
// container without a check.
type ContainerFilter struct{ State, Health, Project, Name, Image string }

// Keep returns the answers with those containers that the filter chooses.
func (f ContainerFilter) Keep(answers []RuntimeAnswer) []RuntimeAnswer {
	out := slices.Clone(answers)
	for i, a := range out {
		out[i].Containers = slices.DeleteFunc(slices.Clone(a.Containers), func(c parse.Container) bool { return !f.chooses(ContainerRow(a, c)) })
	}
	return out
}

func (f ContainerFilter) chooses(c Container) bool {
	part := func(text, want string) bool {
		return want == "" || strings.Contains(strings.ToLower(text), strings.ToLower(want))
	}
	whole := func(text, want string) bool { return want == "" || strings.EqualFold(text, want) }
	return whole(c.State, f.State) && f.health(c) && whole(c.Project, f.Project) && part(c.Name, f.Name) && part(c.Image, f.Image)
}

func (f ContainerFilter) health(c Container) bool {
	if f.Health == "none" {
		return c.Health == "" && c.State == string(parse.StateRunning)
	}
	return f.Health == "" || c.Health == f.Health
}

// Places returns the places of answers in their stable order, never nil.
func Places(answers []RuntimeAnswer) []ContainerPlace {
	ps := []ContainerPlace{}
	for _, a := range answers {
		ps = append(ps, a.Place)
	}
	slices.SortFunc(ps, func(a, b ContainerPlace) int {
		return cmp.Or(strings.Compare(a.Cluster, b.Cluster), cmp.Compare(a.Guest, b.Guest), strings.Compare(a.Host, b.Host))
	})
	return ps
}

// FoldPlaces leaves out a place without Docker; false when there is none left.
func (l *ContainerList) FoldPlaces() bool {
	for i := len(l.Places) - 1; i >= 0; i-- {
		if l.Places[i].Status == PlaceNoDocker {
			l.Places = slices.Delete(l.Places, i, i+1)
			l.MorePlaces++
			return true
		}
	}
	return false
}
