package report

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"pvelens/tools/parse"
)

// psFile reads a recorded docker ps.
func psFile(t *testing.T, name string) RuntimeAnswer {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "parse", "testdata", "b", name))
	if err != nil {
		t.Fatal(err)
	}
	return psAnswer(t, string(b))
}

func psAnswer(t *testing.T, lines string) RuntimeAnswer {
	t.Helper()
	cs, notes, err := parse.DockerPs([]byte(lines))
	if err != nil || len(notes) > 0 {
		t.Fatalf("%v, %v", err, notes)
	}
	a := RuntimeAnswer{Place: ContainerPlace{Where: Where{Guest: 105, GuestName: "apps"}, Status: PlaceOK, Runtime: "docker"}, Containers: cs, Judged: judgedAt}
	a.Count()
	return a
}

// A service's containers in the words of a test: project/service#number state
// status [image ID, policy].
type con struct {
	project, service string
	number           int
	state, status    string
	dir, depends     string
	oneoff           bool
	image, policy    string // with an inspect line if policy is set
	exit             int
	extra            string // further fields of inspect
}

func stackOf(t *testing.T, project string, cons ...con) *Stack {
	t.Helper()
	var ps, inspect strings.Builder
	for i, c := range cons {
		id := fmt.Sprintf("%064x", i+1)
		name := fmt.Sprintf("%s-%s-%d", c.project, c.service, c.number)
		oneoff := "False"
		if c.oneoff {
			oneoff = "True"
		}
		fmt.Fprintf(&ps, `{"id":%q,"names":%q,"image":"img","state":%q,"status":%q,"created":"","ports":"","networks":"n","project":%q,"service":%q,"number":"%d","oneoff":%q,"config_files":"","working_dir":%q}`+"\n",
			id, name, c.state, c.status, c.project, c.service, c.number, oneoff, c.dir)
		if c.policy != "" {
			fmt.Fprintf(&inspect, `{"id":%q,"name":%q,"image":"img","image_id":%q,"status":%q,"exit_code":%d,"restart_policy":%q,"compose":{"project":%q,"service":%q,"number":"%d","oneoff":%q,"working_dir":%q,"depends_on":%q}%s}`+"\n",
				id, "/"+name, c.image, c.state, c.exit, c.policy, c.project, c.service, c.number, oneoff, c.dir, c.depends, c.extra)
		}
	}
	a := psAnswer(t, ps.String())
	ds, notes, err := parse.DockerInspect([]byte(inspect.String()))
	if err != nil || len(notes) > 0 {
		t.Fatalf("%v, %v", err, notes)
	}
	a.Details = map[string]parse.ContainerDetail{}
	for _, d := range ds {
		a.Details[d.ID] = d
	}
	return StackOf(a, project, GuestFiles{Kind: "lxc", Judged: judgedAt}, Judge{})
}

func up(service string, n int) con {
	return con{project: "app", service: service, number: n, state: "running", status: "Up 2 hours"}
}

func ended(service string, n, code int) con {
	return con{project: "app", service: service, number: n, state: "exited", status: fmt.Sprintf("Exited (%d) 2 hours ago", code), exit: code}
}

func with(c con, policy, depends string) con {
	c.policy, c.depends = policy, depends
	return c
}

func TestStackStates(t *testing.T) {
	created := con{project: "app", service: "web", number: 1, state: "created", status: "Created"}
	restarting := con{project: "app", service: "web", number: 1, state: "restarting", status: "Restarting (1) 8 seconds ago"}
	paused := con{project: "app", service: "web", number: 1, state: "paused", status: "Up 2 hours (Paused)"}
	for _, tc := range []struct {
		name     string
		cons     []con
		want     string
		services string
		findings string
	}{
		{"all run", []con{up("web", 1), up("db", 1)}, "running", "db running 1/1, web running 1/1", ""},
		{"two run and one ended", []con{up("web", 1), up("web", 2), ended("web", 3, 1)}, "partial", "web partial 2/3", "COMPOSE_PARTIAL DOCKER_EXITED_NONZERO"},
		{"restarting is neither up nor down", []con{restarting}, "partial", "web restarting 0/1", "DOCKER_RESTARTING"},
		{"one created, three ended", []con{created, ended("a", 1, 0), ended("b", 1, 1), ended("c", 1, 137)}, "down", "a finished 0/1, b down 0/1, c down 0/1, web down 0/1",
			"COMPOSE_SERVICE_MISSING COMPOSE_SERVICE_MISSING COMPOSE_SERVICE_MISSING DOCKER_EXITED_NONZERO DOCKER_EXITED_NONZERO"},
		{"a job that ended well", []con{up("web", 1), with(ended("migrate", 1, 0), "no", "")}, "running", "migrate finished 0/1, web running 1/1", ""},
		{"a job of unless-stopped that others wait for", []con{with(up("web", 1), "always", "migrate:service_completed_successfully:false"), with(ended("migrate", 1, 0), "unless-stopped", "")}, "running", "migrate finished 0/1, web running 1/1", "DOCKER_NO_HEALTHCHECK"},
		{"a service that was stopped", []con{up("web", 1), with(ended("db", 1, 0), "unless-stopped", "")}, "partial", "db down 0/1, web running 1/1", "COMPOSE_SERVICE_MISSING"},
		{"every job is done", []con{with(ended("job", 1, 0), "on-failure", "")}, "finished", "job finished 0/1", ""},
		{"a service that others need", []con{with(up("web", 1), "always", "db:service_healthy:false")}, "partial", "db missing 0/1, web running 1/1", "COMPOSE_SERVICE_MISSING DOCKER_NO_HEALTHCHECK"},
		{"paused", []con{paused}, "paused", "web paused 0/1", ""},
		{"a number is missing", []con{up("web", 1), up("web", 3)}, "running", "web running 2/3 [2]", ""},
		{"a one-off is no part", []con{up("web", 1), {project: "app", service: "web", number: 1, state: "exited", status: "Exited (1) 1 hour ago", oneoff: true}}, "running", "web running 1/1", "DOCKER_EXITED_NONZERO"},
		{"of another project", []con{up("web", 1), {project: "other", service: "x", number: 1, state: "dead", status: "Dead"}}, "running", "web running 1/1", ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := stackOf(t, "app", tc.cons...)
			var got, codes []string
			for _, x := range s.Services {
				line := fmt.Sprintf("%s %s %d/%d", x.Service, x.State, x.Running, x.ExpectedMin)
				if x.MissingNumbers != nil {
					line += fmt.Sprint(" ", x.MissingNumbers)
				}
				got = append(got, line)
			}
			for _, f := range s.Findings {
				codes = append(codes, f.Code)
			}
			slices.Sort(codes)
			if s.State != tc.want || strings.Join(got, ", ") != tc.services || strings.Join(codes, " ") != tc.findings {
				t.Errorf("%s: %s: %v", s.State, strings.Join(got, ", "), codes)
			}
		})
	}
}

func TestStackFromTwoDirectories(t *testing.T) {
	a, b := up("web", 1), up("db", 1)
	a.dir, b.dir = "/opt/one", "/opt/two/"
	s := stackOf(t, "app", a, b)
	if d := cmp.Diff([]string{"/opt/one", "/opt/two"}, s.WorkingDirs); d != "" {
		t.Errorf("directories (-want +got):\n%s", d)
	}
	if !slices.ContainsFunc(s.Findings, func(f Finding) bool {
		return f.Code == "COMPOSE_PROJECT_COLLISION" && f.Subject == "stack/105/app"
	}) {
		t.Errorf("findings %v", s.Findings)
	}
	b.dir = "/opt/./one"
	if s := stackOf(t, "app", a, b); len(s.WorkingDirs) != 1 || len(s.Findings) != 0 {
		t.Errorf("one directory: %v, %v", s.WorkingDirs, s.Findings)
	}
}

func TestStackMixesImages(t *testing.T) {
	a, b := with(up("web", 1), "always", ""), with(up("web", 2), "always", "")
	a.image, b.image = "sha256:aa", "sha256:bb"
	if s := stackOf(t, "app", a, b); !s.Services[0].MixedImages {
		t.Error("two images of one service are not told")
	}
	b.image = a.image
	if s := stackOf(t, "app", a, b); s.Services[0].MixedImages {
		t.Error("one image is two")
	}
}

// The runtime's word decides: 137 alone is no proof of an OOM kill.
func TestOOMOnlyWhenTheRuntimeSaysSo(t *testing.T) {
	killed := with(ended("web", 1, 137), "always", "")
	oom := killed
	oom.extra = `,"oom_killed":true`
	has := func(s *Stack, code string) bool {
		return slices.ContainsFunc(s.Findings, func(f Finding) bool { return f.Code == code })
	}
	if s := stackOf(t, "app", killed); has(s, "DOCKER_OOM") || !has(s, "DOCKER_EXITED_NONZERO") || s.Services[0].Containers[0].OOMKilled {
		t.Errorf("killed: %v", s.Findings)
	}
	if s := stackOf(t, "app", oom); !has(s, "DOCKER_OOM") || has(s, "DOCKER_EXITED_NONZERO") {
		t.Errorf("oom: %v", s.Findings)
	}
}

func TestContainerWords(t *testing.T) {
	a := psFile(t, "docker-health-words.txt")
	found := map[string]string{}
	for _, f := range Findings(Judge{}.ContainerFindings([]RuntimeAnswer{a})...) {
		name, _, _ := strings.Cut(f.Message, " ")
		found[name] = string(f.Severity) + " " + f.Code
	}
	want := map[string]string{
		"app-db-1": "warning DOCKER_UNHEALTHY", "app-job-1": "warning DOCKER_EXITED_NONZERO", "vpn": "warning DOCKER_RESTARTING", "gone": "warning DOCKER_EXITED_NONZERO",
	}
	if d := cmp.Diff(want, found); d != "" {
		t.Errorf("findings (-want +got):\n%s", d)
	}
	words := map[string]string{}
	for _, c := range Containers([]RuntimeAnswer{a}) {
		words[c.Name] = strings.TrimSpace(c.stateText() + " " + c.Health)
	}
	want = map[string]string{
		"app-web-1": "running healthy", "app-db-1": "running unhealthy", "app-init-1": "exited (0)", "app-job-1": "exited (137)", "app-cache-1": "running starting",
		"vpn": "restarting (1)", "old": "created", "frozen": "paused", "nohc": "running", "gone": "dead", "rm": "removing",
	}
	if d := cmp.Diff(want, words); d != "" {
		t.Errorf("words (-want +got):\n%s", d)
	}
}

func TestContainerPortsOfPs(t *testing.T) {
	got := map[string]string{}
	rows := Containers([]RuntimeAnswer{psFile(t, "docker-ps-lines-and-labels.txt")})
	for _, c := range rows {
		got[c.Name] = c.portsText()
	}
	want := map[string]string{"app-web-1": "8080->80/tcp 443/tcp", "media_db_1": "", "standalone": "53->53/udp 127.0.0.1:9000-9002->9000-9002/tcp"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("ports (-want +got):\n%s", d)
	}
	if p := rows[slices.IndexFunc(rows, func(c Container) bool { return c.Name == "app-web-1" })].Ports[0]; len(p.Addresses) != 2 || !p.Listens(8080) || p.Listens(80) {
		t.Errorf("one publication with two listeners: %+v", p)
	}
}

func TestPortConflicts(t *testing.T) {
	line := func(n int, state, status, ports string) string {
		return fmt.Sprintf(`{"id":"%064x","names":"c%d","image":"i","state":%q,"status":%q,"created":"","ports":%q,"networks":"n"}`+"\n", n, n, state, status, ports)
	}
	detail := func(n int, state, bindings string) string {
		return fmt.Sprintf(`{"id":"%064x","name":"/c%d","image":"i","status":%q,"exit_code":128,"error":"driver failed programming external connectivity: Bind for 0.0.0.0:8080 failed: port is already allocated","bindings":%s,"ports":{}}`+"\n", n, n, state, bindings)
	}
	for _, tc := range []struct {
		name, ports, bindings string
		want                  string
	}{
		{"the same", "0.0.0.0:8080->80/tcp", `{"80/tcp":[{"HostIp":"","HostPort":"8080"}]}`, "8080/tcp"},
		{"in a range", "0.0.0.0:8079-8081->79-81/tcp", `{"80/tcp":[{"HostIp":"0.0.0.0","HostPort":"8080"}]}`, "8080/tcp"},
		{"another protocol", "0.0.0.0:8080->80/udp", `{"80/tcp":[{"HostIp":"","HostPort":"8080"}]}`, ""},
		{"another address", "127.0.0.1:8080->80/tcp", `{"80/tcp":[{"HostIp":"10.0.0.1","HostPort":"8080"}]}`, ""},
		{"one address of all", "127.0.0.1:8080->80/tcp", `{"80/tcp":[{"HostIp":"0.0.0.0","HostPort":"8080"}]}`, "8080/tcp"},
		{"the other family", "[::1]:8080->80/tcp", `{"80/tcp":[{"HostIp":"0.0.0.0","HostPort":"8080"}]}`, ""},
		{"any host port", "0.0.0.0:8080->80/tcp", `{"80/tcp":[{"HostIp":"","HostPort":""}]}`, ""},
	} {
		a := psAnswer(t, line(1, "running", "Up", tc.ports)+line(2, "created", "Created", ""))
		ds, _, err := parse.DockerInspect([]byte(detail(2, "created", tc.bindings)))
		if err != nil {
			t.Fatal(err)
		}
		a.Details = map[string]parse.ContainerDetail{ds[0].ID: ds[0]}
		got := ""
		for _, f := range Findings(Judge{}.ContainerFindings([]RuntimeAnswer{a})...) {
			if f.Code == "PORT_CONFLICT" {
				got = f.Message
			}
		}
		if (tc.want == "") != (got == "") || !strings.Contains(got, tc.want) {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// The runtime's reason for a failed start may repeat the command: only known
// words of it are shown.
func TestStartErrorsAreFixedWords(t *testing.T) {
	for text, want := range map[string]string{
		`exec: "--token=SECRET": executable file not found in $PATH: unknown`:                                                                                       "executable file not found",
		"OCI runtime create failed: runc create failed: unable to start container process: open sysctl net.ipv4.ip_unprivileged_port_start file: permission denied": "permission denied",
		"unable to apply caps: operation not permitted":                                                                                                             "operation not permitted",
		"SECRET happened": "other",
		"":                "other",
	} {
		if got := startError(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

// Laws: no list of a report is nil, whatever the place's answer was.
func TestStackListsAreNeverNil(t *testing.T) {
	s := StackOf(RuntimeAnswer{Place: ContainerPlace{Status: PlaceNoDocker}}, "x", GuestFiles{}, Judge{})
	if s.WorkingDirs == nil || s.ConfigFiles == nil || s.Services == nil || s.OneOff == nil || s.Networks == nil || s.Mounts == nil || s.Findings == nil {
		t.Errorf("%+v", s)
	}
	if f := (ContainerSearch{Text: "x"}).Find(nil); f.Items == nil || f.NotSearched == nil || f.CannotTell == nil {
		t.Errorf("%+v", f)
	}
}
