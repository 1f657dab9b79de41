package parse

import (
	"cmp"
	"net/netip"
	"slices"
	"strings"
	"time"
)

// A ContainerDetail is one line of container inspect. There is no field for an
// environment, a command, a label map or a hash of the configuration.
type ContainerDetail struct {
	ID      string
	Name    string
	Created *time.Time
	Image   string // what the container was made from; may have moved to another image since
	ImageID string // without "sha256:"
	State   ContainerState

	ExitCode    *int // of exited, dead and restarting containers, and of a failed start
	FailedStart bool // created, but the start failed: see Error
	OOMKilled   bool // podman does not set it on cgroup v1
	Error       string
	Started     *time.Time // nil: never
	Finished    *time.Time // nil: never
	Restarts    *int
	Health      *HealthDetail // nil: no check, or not running

	RestartPolicy  string // no, always, unless-stopped, on-failure
	RestartMax     *int   // of on-failure, when limited
	AutoRemove     bool
	Privileged     bool
	ReadonlyRootfs bool
	User           string // "" is root, or the image's user
	LogDriver      string
	MemoryLimit    *int64   // bytes; nil: no limit
	CPUs           *float64 // limit in cores; nil: no limit
	PidMode        string
	CapAdd         []string

	NetworkMode string // default, bridge, host, none, a network's name, container:ID
	Networks    []ContainerNetwork
	Ports       []Port
	Mounts      []ContainerMount
	Pod         string // podman: the pod's ID
	Compose     *Compose
}

// HealthDetail is the check's verdict and its last runs, without their output.
type HealthDetail struct {
	Status Health
	Streak *int // failures in a row
	Log    []HealthRun
}

// A HealthRun is one run of the check; exit -1 is a timeout.
type HealthRun struct {
	End  *time.Time
	Exit *int
}

// A ContainerNetwork is one network of a container. A container that does not
// run has no addresses.
type ContainerNetwork struct {
	Name     string
	ID       string // docker: 64 hex digits; podman: the name
	IPv4     netip.Prefix
	IPv6     netip.Prefix
	Gateway  netip.Addr
	MAC      string
	Assigned bool // it has an address
}

// A ContainerMount is one mount of a container, or a tmpfs.
type ContainerMount struct {
	Type        string // bind, volume, tmpfs, npipe, cluster
	Name        string // of a volume
	Anonymous   bool   // a volume without a name of its own
	Source      string // host path
	Destination string
	ReadOnly    bool
	Driver      string
}

// DockerInspect reads what docker container inspect (20.10 to 29) and podman
// container inspect (4 and 5) print for the table's template: one JSON object a
// line, for no known ID a single blank line. Networks, mounts and ports, whose
// order is random in docker, are sorted.
//
//	{"id":"77d2…","name":"/labels","created":"2026-11-29T16:04:16.973987261Z","image":"lab/base:1",…,"status":"exited","exit_code":137,"oom_killed":false,…}
//
// A broken line becomes a note; when no line is good, that is an error.
func DockerInspect(out []byte) ([]ContainerDetail, []Note, error) {
	list := []ContainerDetail{}
	notes, err := jsonLines("docker container inspect", out, func(o jsonObject) bool {
		c, ok := inspectContainer(o)
		if ok {
			list = append(list, c)
		}
		return ok
	})
	return list, notes, err
}

func inspectContainer(o jsonObject) (ContainerDetail, bool) {
	c := ContainerDetail{
		ID: o.text("id"), Name: strings.TrimPrefix(o.text("name"), "/"),
		Created: zonedTime(o.text("created")), Image: o.text("image"), ImageID: strings.TrimPrefix(o.text("image_id"), "sha256:"),
		OOMKilled: o.yes("oom_killed"), Error: o.text("error"), Restarts: smallInt(o.integer("restarts")),
		AutoRemove: o.yes("auto_remove"), Privileged: o.yes("privileged"), ReadonlyRootfs: o.yes("readonly_rootfs"),
		User: o.text("user"), LogDriver: o.text("log_driver"), MemoryLimit: positive(o.integer("memory")), CPUs: cpuLimit(o),
		PidMode: o.text("pid_mode"), CapAdd: o.texts("cap_add"), NetworkMode: o.text("network_mode"),
		Pod: o.text("pod"),
	}
	if !containerIdentity(o, c.ID, c.Name) {
		return c, false
	}
	if o.text("status") == "" {
		o.note("status", "the container's state")
		return c, false
	}
	c.State = inspectState(o)
	c.Started, c.Finished = zonedTime(o.text("started")), zonedTime(o.text("finished"))
	c.setExit(o)
	c.setRestartPolicy(o)
	c.Health = inspectHealth(o, c.State)
	c.Networks = containerNetworks(o)
	c.Ports = inspectPorts(o, c.State, c.NetworkMode)
	c.Mounts = containerMounts(o)
	if labels, ok := o.object("compose"); ok {
		c.Compose = newCompose(labels, "version", "podman_project")
	}
	return c, true
}

func inspectState(o jsonObject) ContainerState {
	if o.yes("dead") {
		return StateDead
	}
	return stateWord(o.text("status"), "")
}

// setExit keeps the exit code only where it tells how the container ended: a
// running one still carries that of the run before.
func (c *ContainerDetail) setExit(o jsonObject) {
	code := smallInt(o.integer("exit_code"))
	c.FailedStart = c.State == StateCreated && (c.Error != "" || code != nil && *code != 0)
	switch {
	case c.State == StateExited, c.State == StateDead, c.State == StateRestarting, c.FailedStart:
		c.ExitCode = code
	}
}

func (c *ContainerDetail) setRestartPolicy(o jsonObject) {
	c.RestartPolicy = cmp.Or(o.text("restart_policy"), "no")
	if c.RestartPolicy == "on-failure" {
		c.RestartMax = smallInt(positive(o.integer("restart_max")))
	}
}

// cpuLimit is --cpus, or the quota that says the same.
func cpuLimit(o jsonObject) *float64 {
	if n := positive(o.integer("nano_cpus")); n != nil {
		return new(float64(*n) / 1e9)
	}
	quota, period := positive(o.integer("cpu_quota")), positive(o.integer("cpu_period"))
	if quota == nil {
		return nil
	}
	if period == nil {
		period = new(int64(100000)) // the kernel's default, µs
	}
	return new(float64(*quota) / float64(*period))
}

func inspectHealth(o jsonObject, state ContainerState) *HealthDetail {
	h, ok := o.object("health")
	if !ok {
		return nil
	}
	status := runningHealth(state, h.text("status")) // podman without a check: ""
	if status == HealthNone {
		return nil
	}
	d := &HealthDetail{Status: status, Streak: smallInt(h.integer("streak")), Log: []HealthRun{}}
	for _, l := range h.objects("log") {
		d.Log = append(d.Log, HealthRun{End: zonedTime(l.text("end")), Exit: smallInt(l.integer("exit"))})
	}
	return d
}

func containerNetworks(o jsonObject) []ContainerNetwork {
	out := []ContainerNetwork{}
	nets, _ := o.object("networks")
	for _, name := range nets.keys() {
		n, ok := nets.object(name)
		if !ok {
			continue
		}
		net := ContainerNetwork{
			Name: name, ID: n.text("id"), MAC: normalMAC(n.text("mac")),
			IPv4: joinPrefix(n.text("ip"), n.integer("prefix")), IPv6: joinPrefix(n.text("ip6"), n.integer("prefix6")),
		}
		net.Gateway, _ = netip.ParseAddr(n.text("gw"))
		net.Assigned = net.IPv4.IsValid() || net.IPv6.IsValid()
		out = append(out, net)
	}
	return out
}

func containerMounts(o jsonObject) []ContainerMount {
	out := []ContainerMount{}
	for _, m := range o.objects("mounts") {
		rw := m.flag("rw")
		mount := ContainerMount{
			Type: m.text("type"), Name: m.text("name"), Source: m.text("src"), Destination: m.text("dst"),
			ReadOnly: rw != nil && !*rw, Driver: m.text("driver"),
		}
		mount.Anonymous = mount.Type == "volume" && len(mount.Name) == 64 && strings.Trim(mount.Name, "0123456789abcdef") == ""
		out = append(out, mount)
	}
	for _, destination := range rawKeys(o.fields["tmpfs"]) {
		out = append(out, ContainerMount{Type: "tmpfs", Destination: destination})
	}
	slices.SortFunc(out, func(a, b ContainerMount) int {
		return cmp.Or(strings.Compare(a.Destination, b.Destination), strings.Compare(a.Source, b.Source), strings.Compare(a.Type, b.Type))
	})
	return out
}
