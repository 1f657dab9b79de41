package parse

import (
	"strings"
	"testing"
)

var containerID = strings.Repeat("1a2b3c4d", 8)

func TestRuntimeServices(t *testing.T) {
	const ct = "/sys/fs/cgroup/lxc/105"
	for _, tc := range []struct {
		name  string
		paths []string
		want  RuntimeServices
	}{
		{"stopped, or cgroup v1", nil, RuntimeServices{Rootless: []string{}}},
		{"only the container's own group", []string{ct, ct + "/ns"}, RuntimeServices{Rootless: []string{}}},
		{"systemd without docker", []string{ct + "/ns/init.scope", ct + "/ns/system.slice/cron.service"}, RuntimeServices{Absent, Absent, []string{}}},
		{"the daemon", []string{ct + "/ns/init.scope", ct + "/ns/system.slice/docker.service"}, RuntimeServices{Present, Absent, []string{}}},
		{"only the socket", []string{ct + "/ns/init.scope", ct + "/ns/system.slice/docker.socket", ct + "/ns/system.slice/containerd.service"}, RuntimeServices{Absent, Absent, []string{}}},
		{"containers, systemd driver", []string{ct + "/ns/system.slice/docker-" + containerID + ".scope"}, RuntimeServices{Present, Absent, []string{}}},
		{"containers, cgroupfs driver", []string{ct + "/ns/docker/" + containerID}, RuntimeServices{Present, CannotTell, []string{}}},
		{"a folder called docker is no container", []string{ct + "/ns/docker/cache"}, RuntimeServices{Rootless: []string{}}},
		{"OpenRC", []string{ct + "/ns/openrc.docker", ct + "/ns/openrc.sshd"}, RuntimeServices{Present, Absent, []string{}}},
		{"podman", []string{ct + "/ns/init.scope", ct + "/ns/machine.slice/libpod-" + containerID + ".scope/container"}, RuntimeServices{Absent, Present, []string{}}},
		{"a user's", []string{ct + "/ns/init.scope", ct + "/ns/user.slice/user-1000.slice/user@1000.service/app.slice/docker.service", ct + "/ns/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" + containerID + ".scope"}, RuntimeServices{Absent, Absent, []string{"docker", "podman"}}},
		{"root's own session", []string{ct + "/ns/user.slice/user-0.slice/session-1.scope", ct + "/ns/user.slice/user-0.slice/user@0.service/user.slice/libpod-" + containerID + ".scope"}, RuntimeServices{CannotTell, Present, []string{}}},
		{"docker inside podman is podman", []string{ct + "/ns/machine.slice/libpod-" + containerID + ".scope/system.slice/docker.service"}, RuntimeServices{Absent, Present, []string{}}},
		{"a container with systemd in a guest without", []string{ct + "/ns/libpod_parent/libpod-" + containerID + "/system.slice/cron.service"}, RuntimeServices{CannotTell, Present, []string{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out strings.Builder
			for _, p := range tc.paths {
				out.WriteString(p + "/cgroup.procs\n")
			}
			got, err := LXCServices([]byte(out.String()))
			wantError(t, err, "")
			diff(t, tc.want, got)
		})
	}
}

func TestHostServices(t *testing.T) {
	const slice = "/sys/fs/cgroup/system.slice"
	for _, tc := range []struct {
		name, in string
		want     RuntimeServices
	}{
		{"nothing", "", RuntimeServices{Rootless: []string{}}},
		{"the daemon", slice + "/ssh.service/cgroup.procs\n" + slice + "/docker.service/cgroup.procs\n", RuntimeServices{Present, CannotTell, []string{}}},
		{"no daemon", slice + "/ssh.service/cgroup.procs\n", RuntimeServices{Absent, CannotTell, []string{}}},
		{"a NAS's own name for the daemon", slice + "/ssh.service/cgroup.procs\n" + slice + "/pkg-ContainerManager-dockerd.service/cgroup.procs\n", RuntimeServices{Present, CannotTell, []string{}}},
		{"podman in a unit", slice + "/web.service/libpod-payload-" + containerID + "/cgroup.procs\n", RuntimeServices{Absent, Present, []string{}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := HostServices([]byte(tc.in))
			wantError(t, err, "")
			diff(t, tc.want, got)
		})
	}
}

func TestServicesGarbage(t *testing.T) {
	for _, in := range []string{"grep: x: Permission denied\n", "docker.service", "/etc/passwd/cgroup.procs\n"} {
		_, err := LXCServices([]byte(in))
		wantError(t, err, "control groups: want paths")
		_, err = HostServices([]byte(in))
		wantError(t, err, "control groups: want paths")
	}
}

// Law: more lines never turn a yes into anything else.
func FuzzRuntimeServices(f *testing.F) {
	f.Add("/sys/fs/cgroup/lxc/105/ns/system.slice/docker.service/cgroup.procs\n", "/sys/fs/cgroup/lxc/105/ns/init.scope/cgroup.procs\n")
	f.Add("", "docker")
	f.Fuzz(func(t *testing.T, a, b string) {
		one, err := LXCServices([]byte(a))
		both, err2 := LXCServices([]byte(a + "\n" + b))
		if err == nil && err2 == nil && (one.Docker == Present && both.Docker != Present || one.Podman == Present && both.Podman != Present) {
			t.Fatalf("%+v became %+v", one, both)
		}
	})
}
