package parse

import (
	"bytes"
	"encoding/json"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func inspected(t testing.TB, file string) map[string]ContainerDetail {
	t.Helper()
	list, notes, err := DockerInspect(captured(t, file))
	if err != nil || len(notes) > 0 {
		t.Fatal(err, notes)
	}
	byName := map[string]ContainerDetail{}
	for _, c := range list {
		byName[c.Name] = c
	}
	return byName
}

// inspectLine changes fields of a stopped container's recorded line.
func inspectLine(t *testing.T, change map[string]any) []byte {
	t.Helper()
	var line map[string]any
	first, _, _ := bytes.Cut(captured(t, "docker-28.2-inspect.txt"), []byte("\n"))
	if err := json.Unmarshal(first, &line); err != nil {
		t.Fatal(err)
	}
	for k, v := range change {
		line[k] = v
	}
	out, err := json.Marshal(line)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// The daemon gives mounts and networks in random order; the client's version
// must not matter either.
func TestDockerInspectIsStable(t *testing.T) {
	old, now := inspected(t, "docker-20.10-inspect.txt"), inspected(t, "docker-28.2-inspect.txt")
	for name := range old {
		if h := old[name].Health; h != nil {
			h.Log, now[name].Health.Log = nil, nil // asked two seconds apart
		}
	}
	diff(t, old, now)
}

func TestDockerInspectDetail(t *testing.T) {
	list := inspected(t, "docker-28.2-inspect.txt")
	want := ContainerDetail{
		ID: "f2a6825c3807b7b17b96c01b6643eb509aa72712acc894f1d0eacd0a9b4bd34c", Name: "mounts",
		Created: new(time.Date(2026, 11, 29, 16, 4, 12, 408255404, time.UTC)), Image: "lab/base:1",
		ImageID: "d8528ece3bc9c38196bba7e53aaf90a9fdfa2db6d9e91b14c7d37688b9bd5735", State: StateRunning,
		Started: new(time.Date(2026, 11, 29, 16, 42, 36, 129586380, time.UTC)), Finished: new(time.Date(2026, 11, 29, 16, 26, 5, 996597063, time.UTC)),
		Restarts: new(0), RestartPolicy: "no", LogDriver: "json-file", CapAdd: []string{}, NetworkMode: "default", Ports: []Port{},
		Networks: []ContainerNetwork{{
			Name: "bridge", ID: "6569c836f8ad271e7b0d92e25bdb6ca36d52104c76982250bf43d840f6662d7b", IPv4: netip.MustParsePrefix("172.29.0.3/24"),
			IPv6: netip.MustParsePrefix("fd00:d0c:1::242:ac1d:3/64"), Gateway: netip.MustParseAddr("172.29.0.1"), MAC: "02:42:ac:1d:00:03", Assigned: true,
		}},
		Mounts: []ContainerMount{
			{Type: "volume", Name: "02895fe6ea8deb7cecb566e8e881a9b76b3f1848469b5278c3ebcb3ebdfb7922", Anonymous: true, Source: "/var/lib/docker/volumes/02895fe6ea8deb7cecb566e8e881a9b76b3f1848469b5278c3ebcb3ebdfb7922/_data", Destination: "/anonvol", Driver: "local"},
			{Type: "bind", Source: "/srv/config", Destination: "/config", ReadOnly: true},
			{Type: "volume", Name: "namedvol", Source: "/var/lib/docker/volumes/namedvol/_data", Destination: "/data", Driver: "local"},
			{Type: "bind", Source: "/srv/media", Destination: "/m", ReadOnly: true},
			{Type: "tmpfs", Destination: "/run2"},
			{Type: "tmpfs", Destination: "/scratch"},
			{Type: "volume", Name: "0f411e3b58146c50e92e17f4b558b725d56aa3236f9822d2dc1bfd55a9d69825", Anonymous: true, Source: "/var/lib/docker/volumes/0f411e3b58146c50e92e17f4b558b725d56aa3236f9822d2dc1bfd55a9d69825/_data", Destination: "/va", Driver: "local"},
		},
	}
	diff(t, want, list["mounts"])
}

func TestDockerInspectStates(t *testing.T) {
	list := inspected(t, "docker-28.2-inspect.txt")
	for _, tc := range []struct {
		name, container string
		got             func(ContainerDetail) any
		want            any
	}{
		{"out of memory", "oomer", func(c ContainerDetail) any { return []any{*c.ExitCode, c.OOMKilled, *c.MemoryLimit} }, []any{137, true, int64(16777216)}},
		{"killed by hand", "killed137", func(c ContainerDetail) any { return []any{*c.ExitCode, c.OOMKilled} }, []any{137, false}},
		{"a stopped container's last verdict is dropped", "hc-noisy", func(c ContainerDetail) any { return c.Health == nil }, true},
		{"unhealthy", "media_sonarr_1", func(c ContainerDetail) any { return c.Health.Status }, HealthUnhealthy},
		{"a failed start", "badcmd", func(c ContainerDetail) any { return []any{c.State, c.FailedStart, *c.ExitCode, c.Started == nil} }, []any{StateCreated, true, 127, true}},
		{"never started", "createdonly", func(c ContainerDetail) any { return []any{c.FailedStart, c.ExitCode == nil} }, []any{false, true}},
		{"configured ports of a container that does not run", "createdonly", func(c ContainerDetail) any { return c.Ports }, []Port{{Protocol: "tcp", Container: 9999, ContainerEnd: 9999, Published: true, Host: 9999, HostEnd: 9999, Configured: true}}},
		{"restarting", "media_worker_1", func(c ContainerDetail) any { return []any{c.State, *c.ExitCode, *c.Restarts, c.RestartPolicy} }, []any{StateRestarting, 3, 42, "always"}},
		{"gave up", "giveup", func(c ContainerDetail) any { return []any{c.RestartPolicy, *c.RestartMax} }, []any{"on-failure", 2}},
		{"cpus", "jellyfin", func(c ContainerDetail) any { return *c.CPUs }, 1.5},
		{"two networks", "jellyfin", func(c ContainerDetail) any { return c.Networks[0].Name + " " + c.Networks[1].Name }, "media_back media_front"},
		{"another container's network", "sharednet", func(c ContainerDetail) any { return len(c.Networks) }, 0},
		{"ranges", "media_qbittorrent_1", func(c ContainerDetail) any { return len(c.Ports) }, 6},
		{"a stopped container has no address", "labels", func(c ContainerDetail) any { return c.Networks[0].Assigned }, false},
		{"an image that moved on", "notag", func(c ContainerDetail) any { return c.Image }, "sha256:df985c3fc9f5ddd90f4b309627210ccbff2e0eae8df28670207a87f7062598de"},
	} {
		t.Run(tc.name, func(t *testing.T) { diff(t, tc.want, tc.got(list[tc.container])) })
	}
}

func TestPodmanInspect(t *testing.T) {
	list := inspected(t, "podman-4.3-inspect.txt")
	web := list["pweb"]
	diff(t, []any{StateRunning, true, true, "unless-stopped", "a59b25c859838c6c3206dcb2c539cdb4c4a880257aac5aeffc1f995380f2c7b5"},
		[]any{web.State, web.Health == nil, web.Finished == nil, web.RestartPolicy, web.ImageID})
	diff(t, []Port{
		{Protocol: "udp", Container: 53, ContainerEnd: 53, Published: true, Host: 15353, HostEnd: 15353},
		{Protocol: "tcp", Container: 80, ContainerEnd: 80, Published: true, Host: 18080, HostEnd: 18080},
		{Protocol: "tcp", Container: 443, ContainerEnd: 443, Published: true, HostIP: "127.0.0.1", Host: 18443, HostEnd: 18443},
		{Protocol: "tcp", Container: 6000, ContainerEnd: 6002, Published: true, Host: 16000, HostEnd: 16002},
	}, web.Ports)
	diff(t, &Compose{
		Project: "podstack", Service: "web", Number: new(1), ConfigFiles: []string{"/opt/stacks/podstack/docker-compose.yml"},
		WorkingDir: "/opt/stacks/podstack", DependsOn: []Dependency{},
	}, list["podstack_web_1"].Compose)
	diff(t, HealthStarting, list["pstarting"].Health.Status)
	diff(t, "no", list["pbad"].RestartPolicy)
	diff(t, 0.5, *list["phost"].CPUs)
	diff(t, []Port{
		{Protocol: "tcp", Container: 1, ContainerEnd: 1, Published: true, Host: 19999, HostEnd: 19999, Configured: true},
		{Protocol: "tcp", Container: 1234, ContainerEnd: 1234},
	}, list["pcreated"].Ports)
}

func TestDockerInspectFields(t *testing.T) {
	running := map[string]any{"status": "running"}
	for _, tc := range []struct {
		name   string
		change map[string]any
		got    func(ContainerDetail) any
		want   any
	}{
		{"null ports", map[string]any{"ports": nil, "bindings": nil, "exposed": nil}, func(c ContainerDetail) any { return c.Ports }, []Port{}},
		{"a list for no ports", map[string]any{"ports": []any{}, "cap_add": []any{}, "tmpfs": []any{}}, func(c ContainerDetail) any { return c.Ports }, []Port{}},
		{
			"an ephemeral port", map[string]any{"bindings": map[string]any{"7000/tcp": []any{map[string]any{"HostIp": "127.0.0.1", "HostPort": ""}}}},
			func(c ContainerDetail) any { return c.Ports },
			[]Port{{Protocol: "tcp", Container: 7000, ContainerEnd: 7000, Published: true, HostIP: "127.0.0.1", Ephemeral: true, Configured: true}},
		},
		{
			"one of a range of host ports", map[string]any{"bindings": map[string]any{"80/tcp": []any{map[string]any{"HostIp": "", "HostPort": "8000-8010"}}}},
			func(c ContainerDetail) any { return c.Ports },
			[]Port{{Protocol: "tcp", Container: 80, ContainerEnd: 80, Published: true, Host: 8000, HostEnd: 8010, Ephemeral: true, Configured: true}},
		},
		{
			"the host's network publishes nothing", map[string]any{"status": "exited", "network_mode": "host", "bindings": map[string]any{"80/tcp": []any{map[string]any{"HostPort": "80"}}}},
			func(c ContainerDetail) any { return c.Ports }, []Port{},
		},
		{"a running container's old exit code", running, func(c ContainerDetail) any { return c.ExitCode == nil }, true},
		{"dead by flag", map[string]any{"dead": true}, func(c ContainerDetail) any { return c.State }, StateDead},
		{"health none", map[string]any{"status": "running", "health": map[string]any{"status": "none"}}, func(c ContainerDetail) any { return c.Health == nil }, true},
		{"a quota", map[string]any{"cpu_quota": 50000, "cpu_period": 0}, func(c ContainerDetail) any { return *c.CPUs }, 0.5},
		{
			"depends_on", map[string]any{"compose": map[string]any{"project": "app", "depends_on": "db:service_healthy:true,cache:service_started:false,old"}},
			func(c ContainerDetail) any { return c.Compose.DependsOn },
			[]Dependency{{"cache", "service_started", false}, {"db", "service_healthy", true}, {"old", "", false}},
		},
		{
			"podman-compose alone", map[string]any{"compose": map[string]any{"project": "", "podman_project": "stack"}},
			func(c ContainerDetail) any { return c.Compose.Project }, "stack",
		},
		{
			"a one-off run", map[string]any{"compose": map[string]any{"project": "app", "oneoff": "True", "number": "x"}},
			func(c ContainerDetail) any { return []any{c.Compose.OneOff, c.Compose.Number == nil} }, []any{true, true},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, _, err := DockerInspect(inspectLine(t, tc.change))
			wantError(t, err, "")
			diff(t, tc.want, tc.got(list[0]))
		})
	}
}

func TestDockerInspectBadInput(t *testing.T) {
	for _, tc := range []struct{ name, in, err string }{
		{"no good ID", "\n", ""},
		{"no status", string(inspectLine(t, map[string]any{"status": nil})), "status: want the container's state"},
		{"no ID", string(inspectLine(t, map[string]any{"id": "web"})), "id: want 64 lower-case hex digits"},
		{"an ID of another kind", string(inspectLine(t, map[string]any{"id": []int{1}})), "id: want text"},
		{"docker's own array", "[\n    {\n        \"Id\": \"x\"\n    }\n]\n", "want one JSON object a line"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, _, err := DockerInspect([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, []ContainerDetail{}, list)
		})
	}
}

// A hash of the configuration, environments and commands have nowhere to go.
func TestDockerInspectDropsTheHash(t *testing.T) {
	out := captured(t, "docker-28.2-inspect.txt")
	list, _, err := DockerInspect(out)
	wantError(t, err, "")
	all, err := json.Marshal(list)
	wantError(t, err, "")
	if !bytes.Contains(out, []byte("6149502413dc11d0")) || strings.Contains(string(all), "6149502413dc11d0") {
		t.Error("the configuration's hash is in the answer")
	}
}

// Law: the order of the lines does not matter, and neither does a blank one.
func FuzzDockerInspect(f *testing.F) {
	for _, name := range []string{"docker-20.10-inspect.txt", "podman-4.3-inspect.txt"} {
		for line := range bytes.Lines(captured(f, name)) {
			f.Add(line)
		}
	}
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	other, _, _ := bytes.Cut(captured(f, "docker-20.10-inspect.txt"), []byte("\n"))
	f.Fuzz(func(t *testing.T, line []byte) {
		line = bytes.ReplaceAll(line, []byte("\n"), nil)
		one, _, err := DockerInspect(append(append(bytes.Clone(line), "\n\n"...), other...))
		two, _, err2 := DockerInspect(append(append(bytes.Clone(other), '\n'), line...))
		if err != nil || err2 != nil || len(one) != len(two) {
			t.Fatalf("%v %v: %d and %d containers", err, err2, len(one), len(two))
		}
		if !cmp.Equal(one[len(one)-1], two[0], sameAddresses) || !cmp.Equal(one[0], two[len(two)-1], sameAddresses) {
			t.Fatal("the order of lines changes a container")
		}
	})
}
