package parse

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const idA = "591757e1063f45d3dedb5af7b9cfe120718af3a2b1dae094bfd990cfdfab17c6"

func psLine(field, value string) string {
	line := map[string]string{"id": `"` + idA + `"`, "names": `"web"`, "image": `"nginx:1"`, "state": `"running"`, "status": `"Up 2 hours"`}
	line[field] = value
	var b strings.Builder
	for _, k := range []string{"id", "names", "image", "state", "status", "created", "ports", "networks", "project", "number", "exit", "oneoff"} {
		if v := line[k]; v != "" {
			fmt.Fprintf(&b, ",%q:%s", k, v)
		}
	}
	return "{" + b.String()[1:] + "}\n"
}

func TestDockerPsHealthWords(t *testing.T) {
	list, notes, err := DockerPs(captured(t, "docker-health-words.txt"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	type row struct {
		Name   string
		State  ContainerState
		Health Health
		Exit   string
	}
	want := []row{
		{"app-web-1", StateRunning, HealthHealthy, "-"},
		{"app-db-1", StateRunning, HealthUnhealthy, "-"},
		{"app-init-1", StateExited, HealthNone, "0"},
		{"app-job-1", StateExited, HealthNone, "137"},
		{"app-cache-1", StateRunning, HealthStarting, "-"},
		{"vpn", StateRestarting, HealthNone, "1"},
		{"old", StateCreated, HealthNone, "-"},
		{"frozen", StatePaused, HealthNone, "-"},
		{"nohc", StateRunning, HealthNone, "-"},
		{"gone", StateDead, HealthNone, "-"},
		{"rm", StateRemoving, HealthNone, "-"},
	}
	var got []row
	for _, c := range list {
		exit := "-"
		if c.ExitCode != nil {
			exit = fmt.Sprint(*c.ExitCode)
		}
		got = append(got, row{c.Name, c.State, c.Health, exit})
	}
	diff(t, want, got)
}

func TestDockerPsLinesAndLabels(t *testing.T) {
	list, notes, err := DockerPs(captured(t, "docker-ps-lines-and-labels.txt"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	created := time.Date(2026, 11, 20, 10, 0, 0, 0, time.UTC)
	want := []Container{
		{
			ID: idA, Name: "app-web-1", Links: []string{}, Image: "nginx:1.29",
			State: StateRunning, Status: "Up 9 days", Created: &created, Networks: []string{"app_default", "proxy"},
			Ports: []Port{
				{Protocol: "tcp", Container: 80, ContainerEnd: 80, Published: true, HostIP: "0.0.0.0", Host: 8080, HostEnd: 8080},
				{Protocol: "tcp", Container: 80, ContainerEnd: 80, Published: true, HostIP: "::", Host: 8080, HostEnd: 8080},
				{Protocol: "tcp", Container: 443, ContainerEnd: 443},
			},
			Compose: &Compose{
				Project: "app", Service: "web", Number: new(1), WorkingDir: "/opt/app", Version: "2.40.3",
				ConfigFiles: []string{"/opt/app/compose.yml", "/opt/app/compose.override.yml"}, DependsOn: []Dependency{},
			},
		},
		{
			ID: "6a6c9db34a775f26fd9df71d995f9edaa0d45e1184368a555b938d77b0b14bb0", Name: "media_db_1", Links: []string{}, Image: "postgres:17",
			State: StateRunning, Status: "Up 9 days", Created: &created, Networks: []string{"media_back"}, Ports: []Port{},
			Compose: &Compose{
				Project: "media", Service: "db", Number: new(1), WorkingDir: "/opt/stacks/media", Version: "1.29.2",
				ConfigFiles: []string{"/opt/stacks/media/compose.yaml"}, DependsOn: []Dependency{},
			},
		},
		{
			ID: "5b565a33b80b75dc462328a68cb5b57d31e3fe1a246438e70629059fcb8aca19", Name: "standalone", Links: []string{}, Image: "sha256:0f0f0f0f",
			State: StateRunning, Status: "Up 9 days", Created: &created, Networks: []string{"bridge"},
			Ports: []Port{
				{Protocol: "udp", Container: 53, ContainerEnd: 53, Published: true, HostIP: "0.0.0.0", Host: 53, HostEnd: 53},
				{Protocol: "tcp", Container: 9000, ContainerEnd: 9002, Published: true, HostIP: "127.0.0.1", Host: 9000, HostEnd: 9002},
			},
		},
	}
	diff(t, want, list)
	if p := list[2].Ports; !p[0].AllAddresses() || p[0].LoopbackOnly() || p[1].AllAddresses() || !p[1].LoopbackOnly() {
		t.Error("53/udp listens on all addresses, 9000-9002 on loopback alone")
	}
}

// The client's version changes the prose, not the facts.
func TestDockerPsVersionsAgree(t *testing.T) {
	old, oldNotes, err := DockerPs(captured(t, "docker-20.10-ps.txt"))
	wantError(t, err, "")
	now, nowNotes, err := DockerPs(captured(t, "docker-28.2-ps.txt"))
	wantError(t, err, "")
	diff(t, []Note{}, append(oldNotes, nowNotes...))
	if len(old) != 37 {
		t.Fatalf("got %d containers, want 37", len(old))
	}
	for i := range old {
		old[i].Status, now[i].Status = "", ""
	}
	diff(t, old, now)
}

// ps and inspect, asked at one moment, say the same.
func TestDockerPsAgreesWithInspect(t *testing.T) {
	ps, _, err := DockerPs(captured(t, "docker-28.2-ps.txt"))
	wantError(t, err, "")
	details, notes, err := DockerInspect(captured(t, "docker-28.2-inspect.txt"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	for i, d := range details {
		c := ps[i]
		var health Health
		if d.Health != nil {
			health = d.Health.Status
		}
		if d.State == StateRunning {
			diff(t, published(c.Ports), published(d.Ports)) // on an internal network ps shows no exposed port
		}
		if c.State == StateCreated {
			c.ExitCode = d.ExitCode // ps does not tell
		}
		if c.Compose != nil {
			c.Compose.DependsOn = d.Compose.DependsOn
		}
		diff(t, []any{c.ID, c.Name, c.State, c.Health, c.ExitCode, c.Compose}, []any{d.ID, d.Name, d.State, health, d.ExitCode, d.Compose})
	}
}

func published(ports []Port) []Port {
	out := []Port{}
	for _, p := range ports {
		if p.Published {
			out = append(out, p)
		}
	}
	return out
}

func TestPodmanPs(t *testing.T) {
	list, notes, err := DockerPs(captured(t, "podman-4.3-ps.txt"))
	wantError(t, err, "")
	diff(t, []Note{}, notes)
	type row struct {
		State  ContainerState
		Health Health
		Exit   *int
	}
	want := map[string]row{
		"pweb": {StateRunning, "", nil}, "phealthy": {StateRunning, HealthHealthy, nil}, "punhealthy": {StateRunning, HealthUnhealthy, nil},
		"pstarting": {StateRunning, HealthStarting, nil}, "pkilled": {StateExited, "", new(137)}, "poom": {StateExited, "", new(137)},
		"pcreated": {StateCreated, "", nil}, "ppaused": {StatePaused, "", nil}, "pexit3": {StateExited, "", new(3)}, "pbad": {StateCreated, "", nil},
	}
	for _, c := range list {
		if w, ok := want[c.Name]; ok {
			diff(t, w, row{c.State, c.Health, c.ExitCode})
			delete(want, c.Name)
		}
	}
	if len(want) > 0 {
		t.Errorf("not found: %v", want)
	}
	diff(t, &Compose{Project: "pods", Service: "web", Number: new(1), ConfigFiles: []string{}, DependsOn: []Dependency{}}, list[0].Compose)
	diff(t, Port{Protocol: "tcp", Container: 6000, ContainerEnd: 6002, Published: true, HostIP: "0.0.0.0", Host: 16000, HostEnd: 16002}, list[0].Ports[3])
}

func TestDockerPsFields(t *testing.T) {
	for _, tc := range []struct {
		name, field, value string
		want               func(Container) any
		is                 any
	}{
		{"a link's name is not the container's", "names", `"web/db,db"`, func(c Container) any { return []any{c.Name, c.Links} }, []any{"db", []string{"web/db"}}},
		{"podman may give a list", "names", `["cache"]`, func(c Container) any { return c.Name }, "cache"},
		{"a local zone", "created", `"2026-11-20 11:00:00 +0100 CET"`, func(c Container) any { return c.Created.Format(time.RFC3339) }, "2026-11-20T10:00:00Z"},
		{"a date of no known form", "created", `"yesterday"`, func(c Container) any { return c.Created == nil }, true},
		{"an unknown state", "state", `"hibernating"`, func(c Container) any { return c.State }, StateUnrecognized},
		{"podman's initialized", "state", `"initialized"`, func(c Container) any { return c.State }, StateCreated},
		{"podman's stopped", "state", `"stopped"`, func(c Container) any { return c.State }, StateExited},
		{"no project", "project", `""`, func(c Container) any { return c.Compose == nil }, true},
		{"sctp", "ports", `"0.0.0.0:5-6->7-8/sctp"`, func(c Container) any { return c.Ports }, []Port{{Protocol: "sctp", Container: 7, ContainerEnd: 8, Published: true, HostIP: "0.0.0.0", Host: 5, HostEnd: 6}}},
		{"an old IPv6 loopback", "ports", `"::1:8081->8080/tcp"`, func(c Container) any { return c.Ports[0].HostIP }, "::1"},
		{"a new IPv6 loopback", "ports", `"[::1]:8081->8080/tcp"`, func(c Container) any { return c.Ports[0].HostIP }, "::1"},
		{"no address", "ports", `":8081->8080/tcp"`, func(c Container) any { return c.Ports[0].AllAddresses() }, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, _, err := DockerPs([]byte(psLine(tc.field, tc.value)))
			wantError(t, err, "")
			diff(t, tc.is, tc.want(list[0]))
		})
	}
}

func TestDockerPsBadLines(t *testing.T) {
	good := psLine("", "")
	for _, tc := range []struct {
		name, in string
		want     int
		notes    []string
		err      string
	}{
		{"no container", "", 0, []string{}, ""},
		{"blank lines", "\n\r\n", 0, []string{}, ""},
		{"a cut line does not cost the other", good + `{"id":"1a2b3c`, 1, []string{"line 2: want a JSON object"}, ""},
		{"the order does not matter", "{\n" + good, 1, []string{"line 1: want a JSON object"}, ""},
		{"a short ID", good + strings.Replace(good, idA, idA[:12], 1), 1, []string{"line 2: id: want 64 lower-case hex digits"}, ""},
		{"upper case is no ID", strings.ToUpper(good), 0, []string{"line 1: id: want 64 lower-case hex digits"}, "want one JSON object a line: line 1: id"},
		{"no name", good + psLine("names", `""`), 1, []string{"line 2: names: want a name"}, ""},
		{"no state", good + psLine("status", `""`), 2, []string{}, ""},
		{"a bad port costs itself", psLine("ports", `"0.0.0.0:99999->80/tcp, 81/tcp"`), 1, []string{"line 1: ports: want HOST:PORT->PORT/PROTOCOL in each part"}, ""},
		{"the word json of 20.10", "json\njson\n", 0, []string{"line 1: want a JSON object", "line 2: want a JSON object"}, "docker ps: want one JSON object a line"},
		{"podman's array", "[" + strings.TrimSpace(good) + "]", 0, []string{"line 1: want a JSON object"}, "want one JSON object a line"},
		{"a table", "CONTAINER ID   IMAGE\n", 0, []string{"line 1: want a JSON object"}, "want one JSON object a line"},
		{"half a template, from podman behind docker", string(captured(t, "podman-4.3-docker-template-ps.txt")), 0, []string{"line 1: want a JSON object"}, "want one JSON object a line"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			list, notes, err := DockerPs([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, tc.notes, noteTexts(notes))
			if len(list) != tc.want {
				t.Errorf("got %d containers, want %d", len(list), tc.want)
			}
		})
	}
}

func TestDockerVersion(t *testing.T) {
	for _, tc := range []struct {
		name, in string
		want     RuntimeVersion
		err      string
	}{
		{
			"both halves", `{"client":"28.2.2","client_api":"1.41","server":{"version":"20.10.24+dfsg1","api":"1.41","min_api":"1.12","os":"linux","arch":"amd64","kernel":"6.18.44"}}`,
			RuntimeVersion{"28.2.2", "1.41", &ServerVersion{"20.10.24+dfsg1", "1.41", "1.12", "linux", "amd64", "6.18.44"}}, "",
		},
		{"no daemon", `{"client":"29.7.2","client_api":"1.55","server":null}` + "\n", RuntimeVersion{"29.7.2", "1.55", nil}, ""},
		{"nothing", "", RuntimeVersion{}, "docker version: want a JSON object, got nothing"},
		{"text", "Docker version 28", RuntimeVersion{}, "at byte 1"},
		{"no client", "{}", RuntimeVersion{}, "want the client's version"},
		{"an array", "[]", RuntimeVersion{}, "another kind of JSON"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := DockerVersion([]byte(tc.in))
			wantError(t, err, tc.err)
			diff(t, tc.want, got)
		})
	}
}

// Law: a broken line never changes what the other lines say.
func FuzzDockerPs(f *testing.F) {
	for _, name := range []string{"docker-20.10-ps.txt", "docker-28.2-ps.txt", "podman-4.3-ps.txt", "docker-health-words.txt"} {
		f.Add(captured(f, name))
	}
	for _, g := range garbage {
		f.Add([]byte(g))
	}
	f.Fuzz(func(t *testing.T, out []byte) {
		list, notes, err := DockerPs(out)
		if err != nil {
			if len(list) > 0 {
				t.Fatal("an error and containers")
			}
			return
		}
		again, moreNotes, err := DockerPs(append(bytes.TrimSuffix(bytes.Clone(out), []byte("\n")), "\n{\"id\":\"12"...))
		if len(list) > 0 && err != nil || len(moreNotes) != len(notes)+1 || !cmp.Equal(list, again) {
			t.Fatalf("a broken line changed %d containers to %d (%v)", len(list), len(again), err)
		}
		for _, c := range list {
			if len(c.ID) != 64 || c.Name == "" {
				t.Fatalf("a container without identity: %q %q", c.ID, c.Name)
			}
			for _, p := range c.Ports {
				if p.Container < 1 || p.ContainerEnd < p.Container || p.ContainerEnd > 65535 || p.Published != (p.Host > 0) {
					t.Fatalf("impossible port %+v", p)
				}
			}
		}
	})
}
