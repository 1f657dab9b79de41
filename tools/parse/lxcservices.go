package parse

import (
	"errors"
	"slices"
	"strings"
)

// A Presence is a question's answer from what was seen. Its zero value is "cannot tell".
type Presence string

// The answers.
const (
	CannotTell Presence = ""
	Present    Presence = "yes"
	Absent     Presence = "no"
)

// RuntimeServices says which container runtimes run in a guest or on a host, from
// the names of its control groups: asking the runtime itself could start it.
type RuntimeServices struct {
	Docker   Presence // a daemon of root, or containers of it
	Podman   Presence // containers of root
	Rootless []string // docker or podman of a user that is not root, which root cannot ask; sorted
}

// LXCServices reads the paths that grep -rsl finds under
// /sys/fs/cgroup/lxc/{vmid} (cgroup v2, PVE 7 to 9): one file a control group
// that has processes.
//
//	/sys/fs/cgroup/lxc/105/ns/system.slice/docker.service/cgroup.procs
//
// Empty output tells nothing: the container is stopped, or the node uses cgroup
// v1. "no" needs a service manager's groups: without one, a daemon would run in
// the container's own group and not be seen. Text that holds no path is an error.
func LXCServices(out []byte) (RuntimeServices, error) {
	groups, err := cgroupPaths(out)
	if err != nil {
		return RuntimeServices{}, err
	}
	s := runtimesOf(groups)
	if slices.ContainsFunc(groups, hasServiceManager) {
		s.orAbsent(true)
	}
	return s, nil
}

// HostServices reads the same of /sys/fs/cgroup/system.slice on a docker host.
// podman's containers stand elsewhere there, so its absence cannot be told.
func HostServices(out []byte) (RuntimeServices, error) {
	groups, err := cgroupPaths(out)
	if err != nil {
		return RuntimeServices{}, err
	}
	s := runtimesOf(groups)
	if len(groups) > 0 {
		s.orAbsent(false)
	}
	return s, nil
}

func (s *RuntimeServices) orAbsent(podman bool) {
	if s.Docker == CannotTell {
		s.Docker = Absent
	}
	if podman && s.Podman == CannotTell {
		s.Podman = Absent
	}
}

// cgroupPaths returns each path's directories.
func cgroupPaths(out []byte) ([][]string, error) {
	groups := [][]string{}
	text := false
	for line := range strings.Lines(string(out)) {
		line = strings.TrimSpace(line)
		path, ok := strings.CutSuffix(line, "/cgroup.procs")
		if !ok || !strings.HasPrefix(path, "/sys/fs/cgroup/") {
			text = text || line != ""
			continue
		}
		groups = append(groups, strings.Split(strings.TrimPrefix(path, "/sys/fs/cgroup/"), "/"))
	}
	if text && len(groups) == 0 {
		return nil, errors.New("control groups: want paths that end in /cgroup.procs")
	}
	return groups, nil
}

func runtimesOf(groups [][]string) RuntimeServices {
	s := RuntimeServices{Rootless: []string{}}
	for _, dirs := range groups {
		runtime, at := runtimeGroup(dirs)
		if runtime == "" {
			continue
		}
		rootless := slices.ContainsFunc(dirs[:at], func(d string) bool {
			return strings.HasPrefix(d, "user-") && d != "user-0.slice" || strings.HasPrefix(d, "user@") && d != "user@0.service"
		})
		switch {
		case rootless && !slices.Contains(s.Rootless, runtime):
			s.Rootless = append(s.Rootless, runtime)
		case rootless:
		case runtime == "docker":
			s.Docker = Present
		default:
			s.Podman = Present
		}
	}
	slices.Sort(s.Rootless)
	return s
}

// runtimeGroup finds the first directory that only a runtime makes. What is
// below it belongs to a container and may hold a runtime of its own.
func runtimeGroup(dirs []string) (runtime string, at int) {
	for i, d := range dirs {
		switch {
		case d == "docker.service", d == "openrc.docker", strings.HasSuffix(d, "dockerd.service"), strings.HasPrefix(d, "docker-") && isContainerID(strings.TrimSuffix(d[len("docker-"):], ".scope")):
			return "docker", i
		case isContainerID(d) && i > 0 && dirs[i-1] == "docker":
			return "docker", i
		case strings.HasPrefix(d, "libpod-"), d == "libpod_parent":
			return "podman", i
		}
	}
	return "", 0
}

func isContainerID(s string) bool {
	return len(s) == 64 && strings.Trim(s, "0123456789abcdef") == ""
}

// hasServiceManager looks only above a runtime's own groups: a container may
// have a service manager while the guest has none.
func hasServiceManager(dirs []string) bool {
	if _, at := runtimeGroup(dirs); at > 0 {
		dirs = dirs[:at]
	}
	return slices.ContainsFunc(dirs, func(d string) bool {
		return d == "init.scope" || d == "system.slice" || d == "machine.slice" || strings.HasPrefix(d, "openrc.")
	})
}
