package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
	"pvelens/transport"
)

// unhurried lets agents be asked again at once, as a test cannot wait.
func unhurried(t *testing.T) {
	t.Helper()
	rest := agentRest
	agentRest = 0
	t.Cleanup(func() { agentRest = rest })
}

// statuses are the answers of a list's places, by guest or host.
func statuses(l *report.ContainerList) map[string]string {
	out := map[string]string{}
	for _, p := range l.Places {
		at := p.Host
		if p.Guest != 0 {
			at = fmt.Sprint(p.Guest)
		}
		out[at] = strings.TrimSpace(p.Status + " " + p.Runtime)
	}
	return out
}

func TestEveryReasonIsAnAnswerOfItsOwn(t *testing.T) {
	unhurried(t)
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"limit":500}`)
	want := map[string]string{
		"301": "ok docker", "302": "no_docker", "303": "daemon_stopped docker", "304": "daemon_unreachable docker",
		"307": "ok docker", "308": "ok podman", "309": "ok podman", "310": "ok docker", "311": "ok docker",
		"401": "agent_off", "402": "ok docker", "403": "locked", "404": "timeout", "405": "unknown", "406": "ok podman", "407": "no_docker",
	}
	if d := cmp.Diff(want, statuses(l)); d != "" {
		t.Errorf("places (-want +got):\n%s", d)
	}
	for _, p := range l.Places {
		switch known := p.Containers != nil; {
		case known != (p.Status == report.PlaceOK):
			t.Errorf("%d: %s with containers %v", p.Guest, p.Status, p.Containers)
		case p.Guest == 307 && *p.Containers != 0:
			t.Errorf("zero is %d", *p.Containers)
		case p.Status != report.PlaceOK && p.Reason == "":
			t.Errorf("%d: %s without a reason", p.Guest, p.Status)
		}
	}
	if l.Complete {
		t.Error("complete although guests could not be asked")
	}
	golden(t, "docker", "zoo-list", l)
}

func TestAStoppedGuestIsNotAsked(t *testing.T) {
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"306"}`)
	if got := statuses(l)["306"]; got != report.PlaceGuestStopped || !l.Complete {
		t.Errorf("%s, complete %v", got, l.Complete)
	}
	if p := perl(t, env); len(p) > 0 {
		t.Errorf("asked: %v", p)
	}
}

// A daemon that is seen not to run is never asked: that could start it.
func TestAskingStartsNoDaemon(t *testing.T) {
	for _, tc := range []struct {
		scenario, args, at, want string
		never                    []string
	}{
		{"docker-zoo", `{"guest":303}`, "303", "daemon_stopped docker", []string{"lxc-docker-ps", "lxc-docker-version", "lxc-docker-inspect"}},
		{"docker-zoo", `{"guest":302}`, "302", "no_docker", []string{"lxc-docker-ps", "lxc-docker-version"}},
		{"docker-zoo", `{"guest":308}`, "308", "ok podman", []string{"lxc-docker-ps", "lxc-docker-version"}},
		{"docker-hosts", `{"host":"asleep"}`, "asleep", "daemon_stopped docker", []string{"host-docker-ps", "host-docker-version", "host-docker-inspect"}},
		{"docker-hosts", `{"host":"bare"}`, "bare", "no_docker", []string{"host-docker-ps", "host-docker-version"}},
		{"docker-hosts", `{"host":"podbox"}`, "podbox", "ok podman", []string{"host-docker-ps", "host-docker-version"}},
	} {
		t.Run(tc.at, func(t *testing.T) {
			env := replay(t, scenarios.Named(tc.scenario), fixtures.Options{})
			l := answer[*report.ContainerList](t, env, "list_guest_containers", tc.args)
			if got := statuses(l)[tc.at]; got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
			for form, n := range forms(t, env) {
				if slices.Contains(tc.never, form) {
					t.Errorf("%s was run %d times", form, n)
				}
			}
		})
	}
}

func TestDockerHosts(t *testing.T) {
	env := replay(t, scenarios.Named("docker-hosts"), fixtures.Options{})
	l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"limit":500}`)
	want := map[string]string{
		"asleep": "daemon_stopped docker", "bare": "no_docker", "empty": "ok docker", "nas": "ok docker", "norights": "no_rights docker", "podbox": "ok podman",
	}
	if d := cmp.Diff(want, statuses(l)); d != "" {
		t.Errorf("places (-want +got):\n%s", d)
	}
	codes := map[string]string{}
	for _, f := range l.Findings {
		if f.Code == "DOCKER_UNREACHABLE" {
			codes[f.Subject] = string(f.Severity)
		}
	}
	if d := cmp.Diff(map[string]string{"host/asleep": "info", "host/norights": "warning"}, codes); d != "" {
		t.Errorf("DOCKER_UNREACHABLE (-want +got):\n%s", d)
	}
	golden(t, "docker", "hosts-list", l)
}

// Where no control group tells, the runtime is asked, and the answer says so.
func TestAskedBecauseItCannotBeTold(t *testing.T) {
	sc := scenarios.Named("docker-zoo")
	const refused = "failed to connect to the docker API at unix:///var/run/docker.sock; check if the path is correct and if the daemon is running: dial unix /var/run/docker.sock: connect: no such file or directory\n"
	for _, tc := range []struct {
		name, guest, want, note string
		ps                      fixtures.Answer
	}{
		{"it answers", "307", "ok docker", "cannot be told", fixtures.Answer{}},
		{"nothing listens", "307", "daemon_stopped docker", "cannot be told", fixtures.Answer{Exit: 1, Stderr: []byte(refused)}},
		{"not installed", "302", "no_docker", "", fixtures.Answer{Exit: 127, Stderr: []byte("lxc-attach: 302: ../src/lxc/attach.c: lxc_attach_run_command: 1844 No such file or directory - Failed to exec \"docker\"\n")}},
		{"stopped meanwhile", "307", "guest_stopped", "", fixtures.Answer{Exit: 255, Stderr: []byte("container '307' not running!\n")}},
		{"no rights", "307", "no_rights docker", "cannot be told", fixtures.Answer{Exit: 1, Stderr: []byte("permission denied while trying to connect to the docker API at unix:///var/run/docker.sock\n")}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			sc := sc
			sc.Machines = slices.Clone(sc.Machines)
			sc.Machines[0].Source = instead{sc.Machines[0].Source, map[string]fixtures.Answer{
				"lxc-services+" + tc.guest: {Exit: 2}, "lxc-docker-ps+" + tc.guest: tc.ps,
			}}
			env := replay(t, sc, fixtures.Options{})
			l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"`+tc.guest+`"}`)
			p := l.Places[0]
			if got := strings.TrimSpace(p.Status + " " + p.Runtime); got != tc.want || !strings.Contains(p.Note, tc.note) || tc.note == "" && p.Note != "" {
				t.Errorf("%s (%s), want %s", got, p.Note, tc.want)
			}
		})
	}
}

// A user's own daemon is not root's: root's socket is not asked, which could
// start another one.
func TestRootlessDocker(t *testing.T) {
	const groups = "/sys/fs/cgroup/lxc/303/ns/init.scope/cgroup.procs\n/sys/fs/cgroup/lxc/303/ns/user.slice/user-1000.slice/user@1000.service/app.slice/docker.service/cgroup.procs\n"
	env := replay(t, zooWith(map[string]fixtures.Answer{"lxc-services+303": {Stdout: []byte(groups)}}), fixtures.Options{})
	p := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"303"}`).Places[0]
	if p.Status != report.PlaceDaemonStopped || !strings.Contains(p.Reason, "rootless") || forms(t, env)["lxc-docker-ps"] != 0 {
		t.Errorf("%+v, %v", p, forms(t, env))
	}
}

// A docker host that is down costs its own place only.
func TestADockerHostIsDown(t *testing.T) {
	sc := scenarios.Named("docker-hosts")
	sc.Machines = append(slices.Clone(sc.Machines), fixtures.Machine{Name: "down", Role: allowlist.Docker, Behaviour: fixtures.Refuses})
	env := replay(t, sc, fixtures.Options{})
	l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"limit":500}`)
	got := statuses(l)
	if got["down"] != report.PlaceUnknown || got["nas"] != "ok docker" || l.Complete {
		t.Errorf("%v, complete %v", got, l.Complete)
	}
	if !slices.ContainsFunc(l.Problems, func(p report.Problem) bool { return p.Node == "down" && p.Code == report.HostUnreachable }) {
		t.Errorf("problems %v", l.Problems)
	}
}

// The agent is left alone while the VM is locked, is asked at most once in
// agentRest, and not for agentBackoff after it did not answer.
func TestTheAgentIsLeftAlone(t *testing.T) {
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	_, profile := behind(t, env)
	profile.Deadline = 4 * time.Second
	ask := func(args string) report.ContainerPlace {
		return answer[*report.ContainerList](t, env, "list_guest_containers", args).Places[0]
	}
	if p := ask(`{"guest":"403"}`); p.Status != report.PlaceLocked || !strings.Contains(p.Reason, "backup") {
		t.Errorf("locked: %+v", p)
	}
	if p := ask(`{"guest":"401"}`); p.Status != report.PlaceAgentOff {
		t.Errorf("agent off: %+v", p)
	}
	if p := perl(t, env); len(p) > 0 {
		t.Errorf("asked: %v", p)
	}
	for range 3 {
		if p := ask(`{"guest":"402"}`); p.Status != report.PlaceOK {
			t.Errorf("from memory: %+v", p)
		}
	}
	if n := forms(t, env)["qemu-docker-ps"]; n != 1 {
		t.Errorf("VM 402 was asked %d times", n)
	}
	if l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"402","detail":"detailed"}`); l.Complete || forms(t, env)["qemu-docker-inspect"] != 0 {
		t.Errorf("asked again at once; complete %v", l.Complete)
	}
	for range 2 {
		if p := ask(`{"guest":"404"}`); p.Status != report.PlaceTimeout {
			t.Errorf("no answer in time: %+v", p)
		}
	}
	if n := forms(t, env)["qemu-docker-ps"]; n != 2 {
		t.Errorf("VM 404 was asked %d times", n-1)
	}
}

// Where the deadline allows it, the agent's turn is waited for.
func TestTheAgentsTurnIsWaitedFor(t *testing.T) {
	unhurried(t)
	agentRest = 50 * time.Millisecond
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	begin := time.Now()
	l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"402","detail":"detailed"}`)
	if l.Items[0].RestartPolicy == "" || time.Since(begin) < agentRest {
		t.Errorf("inspected %v after %v", l.Items[0].RestartPolicy != "", time.Since(begin))
	}
}

// A VM without docker may have podman: where its turn does not come in time, the
// answer is not "no docker". The next call asks what answered last time first.
func TestPodmanInAVMWaitsForItsTurn(t *testing.T) {
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	_, profile := behind(t, env)
	profile.Deadline = 4 * time.Second
	ask := func() report.ContainerPlace {
		return answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"406"}`).Places[0]
	}
	if p := ask(); p.Status != report.PlaceUnknown || !strings.Contains(p.Reason, "podman could not be asked") {
		t.Errorf("no turn: %+v", p)
	}
	unhurried(t)
	env = replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	for range 2 {
		if p := ask(); p.Status != report.PlaceOK || p.Runtime != "podman" {
			t.Errorf("%+v", p)
		}
	}
	if f := forms(t, env); f["qemu-docker-ps"] != 1 || f["qemu-podman-ps"] != 2 {
		t.Errorf("forms %v", f)
	}
}

// The daemon is asked for at most 100 containers at once.
func TestContainersAreAskedForInBatches(t *testing.T) {
	const n = 230
	var ps, inspect strings.Builder
	for i := range n {
		id := fmt.Sprintf("%064x", i+1)
		fmt.Fprintf(&ps, `{"id":"%s","names":"c%d","image":"i","state":"running","status":"Up","created":"","ports":"","networks":"bridge","project":"p","service":"s","number":"%d","oneoff":"False"}`+"\n", id, i, i+1)
		fmt.Fprintf(&inspect, `{"id":"%s","name":"/c%d","status":"running","image":"i","restart_policy":"always","compose":{"project":"p","service":"s","number":"%d"}}`+"\n", id, i, i+1)
	}
	sc := zooWith(map[string]fixtures.Answer{"lxc-docker-ps+301": {Stdout: []byte(ps.String())}})
	sc.Machines[0].Source = cutting{sc.Machines[0].Source, inspect.String()}
	env := replay(t, sc, fixtures.Options{})
	l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"301","detail":"detailed","limit":500}`)
	if l.Total != n || !l.Complete {
		t.Errorf("%d containers, complete %v: %v", l.Total, l.Complete, l.Problems)
	}
	var sizes []int
	cluster, _ := behind(t, env)
	for _, s := range cluster.Nodes[0].Seen() {
		if s.Form == "lxc-docker-inspect" {
			ids := 0
			for _, w := range s.Argv {
				if len(w) == 64 {
					ids++
				}
			}
			sizes = append(sizes, ids)
		}
	}
	if d := cmp.Diff([]int{100, 100, 30}, sizes); d != "" {
		t.Errorf("batches (-want +got):\n%s", d)
	}
}

// cutting answers inspect with the lines of the IDs that were asked.
type cutting struct {
	fixtures.Source
	lines string
}

func (c cutting) Answer(cmd allowlist.Command) (fixtures.Answer, bool) {
	if cmd.ID() != "lxc-docker-inspect" {
		return c.Source.Answer(cmd)
	}
	var out strings.Builder
	for line := range strings.Lines(c.lines) {
		for _, w := range cmd.Argv() {
			if len(w) == 64 && strings.Contains(line[:80], w) {
				out.WriteString(line)
			}
		}
	}
	return fixtures.Answer{Stdout: []byte(out.String())}, true
}

// zooWith is the zoo with some answers changed.
func zooWith(answers map[string]fixtures.Answer) fixtures.Scenario {
	sc := scenarios.Named("docker-zoo")
	sc.Machines = slices.Clone(sc.Machines)
	sc.Machines[0].Source = instead{sc.Machines[0].Source, answers}
	return sc
}

// A container that was removed between ps and inspect is not missed, and does
// not cost the others.
func TestAContainerVanishes(t *testing.T) {
	gone := strings.Repeat("a", 64)
	line := `{"id":"` + gone + `","names":"gone","image":"i","state":"running","status":"Up","created":"","ports":"","networks":""}` + "\n"
	ps := fixtures.Ask(scenarios.Named("docker-zoo").Source("zoo"), "lxc-docker-ps", "301")
	sc := zooWith(map[string]fixtures.Answer{"lxc-docker-ps+301": {Stdout: append([]byte(line), ps.Stdout...)}})
	env := replay(t, sc, fixtures.Options{})
	l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"301","detail":"detailed","limit":500}`)
	if l.Total != 37 || *l.Places[0].Containers != 37 || !l.Complete {
		t.Errorf("%d containers, complete %v: %v", l.Total, l.Complete, l.Problems)
	}
}

// Lines that were printed before a failure are used, and the answer says that it
// is not whole.
func TestInspectFailsHalfWay(t *testing.T) {
	zoo := scenarios.Named("docker-zoo").Source("zoo")
	ps := fixtures.Ask(zoo, "lxc-docker-ps", "311")
	var ids []string
	for line := range strings.Lines(string(ps.Stdout)) {
		ids = append(ids, line[len(`{"id":"`):][:64])
	}
	whole := fixtures.Ask(zoo, "lxc-docker-inspect", append([]string{"311"}, ids...)...)
	first, _, _ := strings.Cut(string(whole.Stdout), "\n")
	env := replay(t, zooWith(map[string]fixtures.Answer{"lxc-docker-inspect+311": {Stdout: []byte(first + "\n"), Stderr: []byte("Error: something new\n"), Exit: 1}}), fixtures.Options{})
	l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"311","detail":"detailed"}`)
	policies := 0
	for _, c := range l.Items {
		if c.RestartPolicy != "" {
			policies++
		}
	}
	if l.Total != 2 || policies != 1 || l.Complete {
		t.Errorf("%d containers, %d inspected, complete %v", l.Total, policies, l.Complete)
	}
}

// What a gate, sudo or the node says is no word of docker: 127 and 126 of theirs
// do not mean that docker is absent.
func TestTheWayThereIsNotTheRuntime(t *testing.T) {
	for _, tc := range []struct {
		name   string
		answer fixtures.Answer
		want   string
		code   report.Code
	}{
		{"gate", fixtures.Answer{Exit: 126, Stderr: []byte("pvelens-gate: refused: no-form\n")}, "unknown", report.Unsupported},
		{"no pct", fixtures.Answer{Exit: 127, Stderr: []byte("/usr/bin/timeout: failed to run command ‘/usr/sbin/pct’: No such file or directory\n")}, "unknown", report.Unsupported},
		{"sudo", fixtures.Answer{Exit: 1, Stderr: []byte("sudo: a password is required\n")}, "no_rights", report.PermissionDenied},
		{"not root", fixtures.Answer{Exit: 255, Stderr: []byte("please run as root\n")}, "no_rights", report.PermissionDenied},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := replay(t, zooWith(map[string]fixtures.Answer{"lxc-docker-ps+307": tc.answer}), fixtures.Options{})
			l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"307"}`)
			if got := l.Places[0].Status; got != tc.want || l.Complete || len(l.Problems) == 0 || l.Problems[0].Code != tc.code {
				t.Errorf("%s, problems %v", got, l.Problems)
			}
		})
	}
}

// With details a daemon's version is told; of one that does not answer the
// client's.
func TestRuntimeVersions(t *testing.T) {
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	for guest, want := range map[string]string{"301": "20.10.24+dfsg1", "303": "28.2.2", "304": "28.2.2 (client)", "302": "", "308": ""} {
		l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"`+guest+`","detail":"detailed"}`)
		if got := l.Places[0].Version; got != want {
			t.Errorf("%s: version %q, want %q", guest, got, want)
		}
	}
	if forms(t, env)["lxc-docker-version"] != 2 {
		t.Errorf("forms %v", forms(t, env))
	}
}

// People are not told "0 containers" where nobody could look.
func TestNoListIsNotZero(t *testing.T) {
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	for guest, want := range map[string]bool{"302": false, "303": false, "304": false, "306": false, "307": true, "401": false} {
		var b strings.Builder
		for _, table := range answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"`+guest+`"}`).Tables() {
			if err := table.Write(&b); err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Contains(b.String(), "0 containers"); got != want {
			t.Errorf("%s: 0 containers is %v:\n%s", guest, got, b.String())
		}
	}
}

func TestContainerFilters(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	for _, tc := range []struct {
		args string
		want int
	}{
		{`{"guest":"102"}`, 37},
		{`{"guest":"102","state":"running"}`, 9},
		{`{"guest":"102","health":"unhealthy"}`, 1},
		{`{"guest":"102","health":"none"}`, 6},
		{`{"guest":"102","project":"MEDIA"}`, 9},
		{`{"guest":"102","project":"media","name":"scaled"}`, 3},
		{`{"guest":"immich","image":"jellyfin"}`, 2},
		{`{"guest":"102","name":"sonarr"}`, 1},
		{`{"guest":"102","limit":5}`, 37},
	} {
		l := answer[*report.ContainerList](t, env, "list_guest_containers", tc.args)
		if l.Total != tc.want {
			t.Errorf("%s: %d containers, want %d", tc.args, l.Total, tc.want)
		}
	}
	for _, bad := range []string{`{"guest":"102","host":"x"}`, `{"host":"nas"}`, `{"guest":"nosuch"}`, `{"state":"up"}`} {
		if _, err := call(t, env, "list_guest_containers", bad); err == nil {
			t.Errorf("%s: no error", bad)
		}
	}
}

func TestContainersOfTheDemo(t *testing.T) {
	unhurried(t)
	for _, q := range [][3]string{
		{"heimlabor-list", "list_guest_containers", `{}`},
		{"heimlabor-102-detailed", "list_guest_containers", `{"guest":"102","detail":"detailed"}`},
		{"heimlabor-media", "inspect_compose_stack", `{"guest":"102","project":"media"}`},
		{"heimlabor-media-detailed", "inspect_compose_stack", `{"guest":"102","project":"media","detail":"detailed"}`},
		{"heimlabor-find-8080", "find_containers", `{"port":8080}`},
	} {
		env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
		golden(t, "docker", q[0], answer[report.Tabler](t, env, q[1], q[2]))
	}
}

// The same 37 containers of a client of version 20.10, of 28, and through a VM's
// agent, give the same rows.
func TestVersionsAndWaysAgree(t *testing.T) {
	unhurried(t)
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	rows := func(guest string) []report.Container {
		l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"`+guest+`","limit":500}`)
		for i := range l.Items {
			l.Items[i].Where = report.Where{}
		}
		return l.Items
	}
	if d := cmp.Diff(rows("301"), rows("310")); d != "" {
		t.Errorf("20.10 and 28 differ:\n%s", d)
	}
	if d := cmp.Diff(rows("301"), rows("402")); d != "" {
		t.Errorf("LXC and VM differ:\n%s", d)
	}
}

func TestFindContainers(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	for _, tc := range []struct {
		args   string
		want   []string
		cannot int
	}{
		{`{"text":"jellyfin"}`, []string{"jellyfin", "publishall"}, 0},
		{`{"port":8080}`, []string{"media_qbittorrent_1"}, 1},
		{`{"text":"6885"}`, []string{"media_qbittorrent_1"}, 1},
		{`{"port":6885,"protocol":"udp"}`, []string{"media_qbittorrent_1"}, 1},
		{`{"port":8081}`, []string{"traefik"}, 1},
		{`{"port":1234}`, nil, 1},                  // only exposed
		{`{"port":8123}`, nil, 1},                  // the guest's network
		{`{"port":8096,"image":"sonarr"}`, nil, 0}, // nobody else may be meant
		{`{"project":"media","name":"db"}`, []string{"media_db_1"}, 0},
		{`{"image":"POSTGRES"}`, []string{"media_db_1"}, 0},
	} {
		f := answer[*report.FoundContainers](t, env, "find_containers", tc.args)
		var got []string
		for _, c := range f.Items {
			got = append(got, c.Name)
		}
		slices.Sort(got)
		if !slices.Equal(got, tc.want) || len(f.CannotTell) != tc.cannot {
			t.Errorf("%s: %v, want %v; %d cannot be told", tc.args, got, tc.want, len(f.CannotTell))
		}
		if f.Searched != 3 {
			t.Errorf("%s: %d searched", tc.args, f.Searched)
		}
	}
	if _, err := call(t, env, "find_containers", `{}`); err == nil {
		t.Error("nothing to find is no error")
	}
}

func TestFindNamesWhatItCouldNotSearch(t *testing.T) {
	unhurried(t)
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	f := answer[*report.FoundContainers](t, env, "find_containers", `{"text":"no-such-thing"}`)
	var got []int
	for _, p := range f.NotSearched {
		got = append(got, p.Guest)
	}
	if d := cmp.Diff([]int{303, 304, 401, 403, 404, 405}, got); d != "" || f.Complete || f.Total != 0 {
		t.Errorf("not searched (-want +got), complete %v:\n%s", f.Complete, d)
	}
}

func TestChooseStack(t *testing.T) {
	unhurried(t)
	env := replay(t, scenarios.Named("docker-zoo"), fixtures.Options{})
	for _, tc := range []struct{ args, err string }{
		{`{"guest":"301"}`, ""}, // the only project there
		{`{"guest":"301","project":"Media"}`, ""},
		{`{"project":"media"}`, "AMBIGUOUS"}, // in several guests
		{`{"guest":"301","project":"nosuch"}`, "NOT_FOUND"},
		{`{"guest":"307"}`, "NOT_FOUND"},
		{`{"guest":"303","project":"media"}`, ""}, // says that its daemon is stopped
	} {
		_, err := call(t, env, "inspect_compose_stack", tc.args)
		if tc.err == "" && err != nil || tc.err != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.err)) {
			t.Errorf("%s: %v, want %q", tc.args, err, tc.err)
		}
	}
	s := answer[*report.Stack](t, env, "inspect_compose_stack", `{"guest":"303","project":"media"}`)
	if s.Status != report.PlaceDaemonStopped || s.State != "" {
		t.Errorf("%s, state %q", s.Status, s.State)
	}
}

// planted are the fake secrets of the recording host: in environments, command
// lines, labels, health checks and create commands. The recorded outputs of
// forbidden forms show them; the permitted ones must not.
func TestNoSecretInAnyDockerAnswer(t *testing.T) {
	unhurried(t)
	secret := []string{"SECRET", "hunter2", "s3cr3t"}
	leaky := func(form string) fixtures.Answer {
		// A runtime that puts secrets where only free text stands.
		return fixtures.Answer{Exit: 1, Stderr: []byte("Error response from daemon: exec: \"--token=SECRETcommand\": executable file not found, env SECRETenv=hunter2 (" + form + ")\n")}
	}
	startFails := `{"id":"` + strings.Repeat("b", 64) + `","names":"job","image":"i","state":"created","status":"Created","created":"","ports":"","networks":""}` + "\n"
	inspected := `{"id":"` + strings.Repeat("b", 64) + `","name":"/job","image":"i","status":"created","exit_code":127,"error":"exec: \"--token=SECRETcommand\": executable file not found in $PATH","restart_policy":"no","env":["SECRETenv=1"],"cmd":["SECRETcmd"],"labels":{"x":"SECRETlabel"},"healthcheck":{"Test":["SECRETtest"]},"log_options":{"token":"SECRETlog"},"create_command":["SECRETcreate"],"mounts":[{"type":"volume","name":"v","src":"/var/lib/docker/volumes/v/_data","dst":"/d","rw":true,"driver":"local","options":{"o":"username=SECRETvol"}}],"tmpfs":{"/t":"SECRETtmpfs"},"compose":{"project":"","config_hash":"SECREThash"}}` + "\n"
	sc := zooWith(map[string]fixtures.Answer{
		"lxc-docker-ps+307": leaky("ps"), "lxc-podman-ps+308": leaky("podman"),
		"lxc-docker-ps+311": {Stdout: []byte(startFails)}, "lxc-docker-inspect+311": {Stdout: []byte(inspected)},
	})
	env := replay(t, sc, fixtures.Options{})
	check := func(what string, text []byte) {
		t.Helper()
		for _, s := range secret {
			if strings.Contains(string(text), s) {
				t.Errorf("%s shows %s", what, s)
			}
		}
	}
	for _, q := range [][2]string{
		{"list_guest_containers", `{"limit":500}`}, {"list_guest_containers", `{"limit":500,"detail":"detailed"}`},
		{"list_guest_containers", `{"guest":"307"}`}, {"inspect_compose_stack", `{"guest":"301","detail":"detailed"}`}, {"find_containers", `{"text":"SECRE"}`},
	} {
		r, err := call(t, env, q[0], q[1])
		if err != nil {
			t.Fatalf("%s %s: %v", q[0], q[1], err)
		}
		text, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		check(q[0]+" "+q[1], text)
		var people strings.Builder
		for _, table := range r.Tables() {
			if err := table.Write(&people); err != nil {
				t.Fatal(err)
			}
		}
		check(q[0]+" for people", []byte(people.String()))
	}
	for _, l := range auditLines(t, env) {
		text, err := json.Marshal(l)
		if err != nil {
			t.Fatal(err)
		}
		check("audit", text)
	}
}

func auditLines(t *testing.T, env *Env) []transport.AuditLine {
	t.Helper()
	r, ok := replays.Load(env)
	if !ok {
		t.Fatal("not an Env of replay")
	}
	return r.(*replayed).audit.Lines()
}

// No text of a container reaches an answer uncleaned.
func TestContainerTextIsCleaned(t *testing.T) {
	unhurried(t)
	evil := `\u001b[31mred\u202e\u200bname`
	line := `{"id":"` + strings.Repeat("c", 64) + `","names":"` + evil + `","image":"` + evil + `","state":"running","status":"Up ` + evil + `","created":"","ports":"","networks":"n","project":"` + evil + `","service":"` + evil + `","number":"1","oneoff":"False","config_files":"/x/` + evil + `","working_dir":"/x/` + evil + `"}` + "\n"
	detail := `{"id":"` + strings.Repeat("c", 64) + `","name":"/` + evil + `","image":"` + evil + `","status":"running","restart_policy":"` + evil + `","network_mode":"` + evil + `","networks":{"` + evil + `":{"ip":"10.0.0.2","prefix":24}},"mounts":[{"type":"bind","name":"` + evil + `","src":"/srv/` + evil + `","dst":"/` + evil + `","rw":true,"driver":""}],"compose":{"project":"` + evil + `","service":"` + evil + `","number":"1","depends_on":"` + evil + `:service_started:true"}}` + "\n"
	sc := zooWith(map[string]fixtures.Answer{"lxc-docker-ps+311": {Stdout: []byte(line)}, "lxc-docker-inspect+311": {Stdout: []byte(detail)}})
	env := replay(t, sc, fixtures.Options{})
	for _, q := range [][2]string{
		{"list_guest_containers", `{"guest":"311","detail":"detailed"}`}, {"inspect_compose_stack", `{"guest":"311","detail":"detailed"}`}, {"find_containers", `{"text":"red"}`},
	} {
		r, err := call(t, env, q[0], q[1])
		if err != nil {
			t.Fatalf("%s: %v", q[0], err)
		}
		text, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		for _, bad := range []string{"\x1b", `\u001b`, "\u202e", "\u200b", "[31m"} {
			if strings.Contains(string(text), bad) {
				t.Errorf("%s %s holds %q", q[0], q[1], bad)
			}
		}
	}
}

// A hung daemon, or a node that drops the connection, costs its own place only.
func TestFaultsCostTheirOwnPlace(t *testing.T) {
	for _, tc := range []struct {
		name  string
		fault fixtures.Fault
		want  string
	}{
		{"timed out", fixtures.Fault{Kind: fixtures.TimedOut, Form: "lxc-docker-ps"}, report.PlaceTimeout},
		{"half", fixtures.Fault{Kind: fixtures.HalfOutput, Form: "lxc-docker-ps"}, report.PlaceOK},
		{"junk", fixtures.Fault{Kind: fixtures.JunkOutput, Form: "lxc-docker-ps"}, report.PlaceUnknown},
	} {
		t.Run(tc.name, func(t *testing.T) {
			env := replay(t, fixtures.Heimlabor(), fixtures.Options{Faults: map[string]fixtures.Fault{"pve1": tc.fault}})
			l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"102","limit":500}`)
			if l.Places[0].Status != tc.want || l.Complete {
				t.Errorf("%s, complete %v", l.Places[0].Status, l.Complete)
			}
		})
	}
}

// The deadline ends every question, and says so.
func TestTheDeadlineEndsSlowGuests(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{Faults: map[string]fixtures.Fault{"pve1": {Kind: fixtures.Hang, Form: "lxc-docker-ps"}}})
	_, profile := behind(t, env)
	profile.Deadline = 500 * time.Millisecond
	l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"102"}`)
	if l.Places[0].Status != report.PlaceTimeout || l.Complete {
		t.Errorf("%+v, complete %v", l.Places[0], l.Complete)
	}
}

func TestProgressIsTold(t *testing.T) {
	env := replay(t, fixtures.Heimlabor(), fixtures.Options{})
	told := map[string]bool{}
	env.Progress = func(_ context.Context, done, total int, what string) {
		told[fmt.Sprintf("%d/%d %s", done, total, what)] = true
	}
	answer[*report.ContainerList](t, env, "list_guest_containers", `{}`)
	n := 0
	for k := range maps.Keys(told) {
		if strings.Contains(k, "/3 guest ") {
			n++
		}
	}
	if n != 3 {
		t.Errorf("told %v", told)
	}
}

// A daemon that is seen to run is no "no Docker" because its command is not found
// (a snap's), and a program that may not be run is there.
func TestSeenIsNotAbsent(t *testing.T) {
	const snap = "/sys/fs/cgroup/lxc/307/ns/init.scope/cgroup.procs\n/sys/fs/cgroup/lxc/307/ns/system.slice/snap.docker.dockerd.service/cgroup.procs\n"
	for name, tc := range map[string]struct {
		services, stderr string
		exit             int
		want             string
	}{
		"not in the path": {snap, "lxc-attach: 307: ../src/lxc/attach.c: lxc_attach_run_command: 1844 No such file or directory - Failed to exec \"docker\"\n", 127, "daemon_unreachable docker"},
		"not executable":  {"", "lxc-attach: 307: ../src/lxc/attach.c: lxc_attach_run_command: 1844 Permission denied - Failed to exec \"docker\"\n", 126, "no_rights docker"},
	} {
		env := replay(t, zooWith(map[string]fixtures.Answer{"lxc-services+307": printed(tc.services), "lxc-docker-ps+307": {Exit: tc.exit, Stderr: []byte(tc.stderr)}}), fixtures.Options{})
		l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"307"}`)
		if got := statuses(l)["307"]; got != tc.want || l.Complete || l.Places[0].Containers != nil {
			t.Errorf("%s: %s, complete %v", name, got, l.Complete)
		}
	}
}

// A list of which a line was lost does not say how many containers there are.
func TestACutListHasNoCount(t *testing.T) {
	ps := fixtures.Ask(scenarios.Named("docker-zoo").Machines[0].Source, "lxc-docker-ps", "301").Stdout
	env := replay(t, zooWith(map[string]fixtures.Answer{"lxc-docker-ps+301": printed(string(ps) + "{\"id\":\"77\n")}), fixtures.Options{})
	l := answer[*report.ContainerList](t, env, "list_guest_containers", `{"guest":"301"}`)
	if p := l.Places[0]; p.Containers != nil || !strings.Contains(p.Note, "not whole") || l.Complete || len(l.Items) == 0 {
		t.Errorf("%+v, complete %v, %d items", p, l.Complete, len(l.Items))
	}
}
