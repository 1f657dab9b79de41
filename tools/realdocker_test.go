package tools

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/tools/report"
)

// A local runs permitted commands on this machine, with an environment that
// points docker and podman at the test's own stores.
type local struct {
	ctx context.Context
	env []string
}

func (l local) Answer(c allowlist.Command) (fixtures.Answer, bool) {
	argv := c.Argv()
	cmd := exec.CommandContext(l.ctx, argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = l.env, &out, &errs
	err := cmd.Run()
	a := fixtures.Answer{Stdout: out.Bytes(), Stderr: errs.Bytes()}
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		a.Exit = exit.ExitCode()
	case err != nil: // what timeout prints
		a.Exit, a.Stderr = 127, []byte("timeout: failed to run command '"+argv[0]+"': No such file or directory\n")
	}
	return a, true
}

// realEnv says whether real runtimes may be started here; they need root, and
// leave a bridge docker0 behind.
func realEnv(t *testing.T, programs ...string) (context.Context, string) {
	t.Helper()
	ci := os.Getenv("CI") == "true"
	if !ci && os.Getenv("PVELENS_REAL_DOCKER") == "" {
		t.Skip("set PVELENS_REAL_DOCKER=1 to start real runtimes (needs root)")
	}
	for _, p := range append(programs, "busybox") {
		if _, err := exec.LookPath(p); err != nil {
			if ci {
				t.Fatalf("%s is missing: apt-get install docker.io podman busybox-static", p)
			}
			t.Skipf("%s is missing: apt-get install docker.io podman busybox-static", p)
		}
	}
	if os.Getuid() != 0 {
		t.Skip("real runtimes need root; the recordings stand in")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	dir, err := os.MkdirTemp("", "pvelens-real") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = exec.Command("umount", dir+"/exec/netns/default").Run() // dockerd leaves it mounted
		_ = os.RemoveAll(dir)
	})
	return ctx, dir
}

// here runs a program with an environment and returns what it prints.
func (l local) here(stdin []byte, argv ...string) (string, error) {
	cmd := exec.CommandContext(l.ctx, argv[0], argv[1:]...)
	cmd.Env, cmd.Stdin = l.env, bytes.NewReader(stdin)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = errors.New(strings.Join(argv, " ") + ": " + err.Error() + ": " + lastLine(out))
	}
	return strings.TrimSpace(string(out)), err
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}

// image is a root filesystem with nothing but busybox.
func (l local) image(t *testing.T, program string) {
	t.Helper()
	root := t.TempDir()
	path, err := exec.LookPath("busybox")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, "bin", "busybox"), b, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("busybox", filepath.Join(root, "bin", "sh")); err != nil {
		t.Fatal(err)
	}
	tar, err := exec.CommandContext(l.ctx, "tar", "-C", root, "-c", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	if out, err := l.here(tar, program, "import", "-", "lab/busybox:1"); err != nil {
		t.Skipf("%s cannot import an image here (%s); the recordings stand in", program, lastLine([]byte(out)))
	}
}

// until polls a real runtime until it says want, or the test's time is over.
func (l local) until(t *testing.T, want string, argv ...string) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if out, err := l.here(nil, argv...); err == nil && out == want {
			return
		}
		select {
		case <-tick.C:
		case <-l.ctx.Done():
			t.Fatalf("%v never said %q", argv, want)
		}
	}
}

// dockerd starts a daemon of its own, or skips in one line where it cannot.
func dockerd(t *testing.T, ctx context.Context, dir string) (l local, stop func()) {
	t.Helper()
	socket := "unix://" + dir + "/docker.sock"
	l = local{ctx, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "DOCKER_HOST=" + socket}}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(ctx, "dockerd", "--data-root", dir+"/root", "--exec-root", dir+"/exec", "--pidfile", dir+"/pid", "--host", socket,
		"--iptables=false", "--ip6tables=false", "--storage-driver=vfs")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	stop = func() {
		_ = cmd.Process.Signal(os.Interrupt)
		<-ended
	}
	t.Cleanup(stop)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	started, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		if _, err := l.here(nil, "docker", "version", "--format", "{{.Server.Version}}"); err == nil {
			return l, stop
		}
		select {
		case <-tick.C:
			continue
		case <-ended:
		case <-started.Done():
		}
		b, _ := os.ReadFile(log.Name())
		t.Skipf("dockerd does not start on this machine (%s); the recordings stand in", lastLine(b))
	}
}

// realHost is a docker host whose commands really run.
func realHost(l fixtures.Source) fixtures.Scenario {
	return fixtures.Scenario{Name: "real", Clock: time.Now(), Machines: []fixtures.Machine{{Name: "box", Role: allowlist.Docker, Source: l}}}
}

func TestRealDocker(t *testing.T) {
	ctx, dir := realEnv(t, "docker", "dockerd")
	l, stop := dockerd(t, ctx, dir)
	l.image(t, "docker")
	project := func(service, number string) []string {
		return []string{
			"--label", "com.docker.compose.project=shop", "--label", "com.docker.compose.service=" + service, "--label", "com.docker.compose.container-number=" + number,
			"--label", "com.docker.compose.oneoff=False", "--label", "com.docker.compose.project.working_dir=/opt/shop", "--label", "com.docker.compose.project.config_files=/opt/shop/compose.yaml",
			"--label", "com.docker.compose.depends_on=db:service_started:false", "--label", "traefik.basicauth=SECRETlabel", "--log-opt", "tag=SECRETlog",
		}
	}
	must := func(argv ...string) {
		t.Helper()
		if _, err := l.here(nil, argv...); err != nil {
			t.Skipf("docker cannot run a container here (%v); the recordings stand in", err)
		}
	}
	must("docker", "volume", "create", "--opt", "type=cifs", "--opt", "device=//nas/x", "--opt", "o=username=SECRETvolume", "cifs")
	run := func(name string, more, image []string) {
		t.Helper()
		must(slices.Concat([]string{"docker", "run", "-d", "--name", name, "-e", "TOKEN=SECRETenv"}, more, []string{"lab/busybox:1", "/bin/busybox"}, image)...)
	}
	run("shop-web-1", append(project("web", "1"), "-p", "127.0.0.1:18080-18082:80-82", "-v", "webdata:/data", "-v", "/srv/shop:/etc/shop:ro", "--restart", "unless-stopped",
		"--health-cmd", "echo SECRETprobe; exit 1", "--health-interval", "1s", "--health-retries", "1"), []string{"sh", "-c", "sleep 600 # SECRETarg"})
	run("shop-web-2", append(project("web", "2"), "--network", "host"), []string{"sleep", "600"})
	run("shop-migrate-1", project("migrate", "1"), []string{"true"})
	run("loose", nil, []string{"sh", "-c", "exit 3 # SECRETcommand"})
	must("docker", "create", "--name", "bad", "-v", "cifs:/x", "lab/busybox:1", "/no/SECRETprogram")
	_, _ = l.here(nil, "docker", "start", "bad")
	l.until(t, "unhealthy", "docker", "inspect", "--format", "{{.State.Health.Status}}", "shop-web-1")
	l.until(t, "exited", "docker", "inspect", "--format", "{{.State.Status}}", "loose")
	l.until(t, "exited", "docker", "inspect", "--format", "{{.State.Status}}", "shop-migrate-1")

	env := replay(t, realHost(l), fixtures.Options{})
	list := answer[*report.ContainerList](t, env, "list_guest_containers", `{"detail":"detailed"}`)
	got := map[string]string{}
	for _, c := range list.Items {
		got[c.Name] = strings.TrimSpace(c.State + " " + c.Health)
	}
	for name, want := range map[string]string{"shop-web-1": "running unhealthy", "shop-web-2": "running", "shop-migrate-1": "exited", "loose": "exited", "bad": "created"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if !list.Complete || list.Places[0].Status != report.PlaceOK {
		t.Errorf("%+v, problems %v", list.Places, list.Problems)
	}
	stack := answer[*report.Stack](t, env, "inspect_compose_stack", `{"host":"box","detail":"detailed"}`)
	if stack.Project != "shop" || stack.State != report.StackPartial || len(stack.Services) != 3 || len(stack.Mounts) != 2 || stack.ConfigFiles[0] != "/opt/shop/compose.yaml" {
		t.Errorf("%+v", stack)
	}
	found := answer[*report.FoundContainers](t, env, "find_containers", `{"port":18081}`)
	if found.Total != 1 || found.Items[0].Name != "shop-web-1" || len(found.CannotTell) != 1 || found.CannotTell[0].Name != "shop-web-2" {
		t.Errorf("%+v, cannot tell %+v", found.Items, found.CannotTell)
	}
	for _, r := range []report.Tabler{list, stack, found} {
		text, err := Encode(r)
		if err != nil {
			t.Fatal(err)
		}
		if i := bytes.Index(text, []byte("SECRET")); i >= 0 {
			t.Errorf("a secret: %s", text[max(0, i-80):min(len(text), i+40)])
		}
	}

	stop()
	list = answer[*report.ContainerList](t, env, "list_guest_containers", `{}`)
	if p := list.Places[0]; p.Status != report.PlaceDaemonStopped {
		t.Errorf("stopped: %+v", p)
	}
}

// withoutDocker is a host on which docker is not installed.
type withoutDocker struct{ local }

func (w withoutDocker) Answer(c allowlist.Command) (fixtures.Answer, bool) {
	if c.Argv()[0] == "docker" {
		return fixtures.Answer{Exit: 127, Stderr: []byte("/usr/bin/timeout: failed to run command 'docker': No such file or directory\n")}, true
	}
	return w.local.Answer(c)
}

func TestRealPodman(t *testing.T) {
	ctx, dir := realEnv(t, "podman")
	conf := filepath.Join(dir, "storage.conf")
	if err := os.WriteFile(conf, []byte("[storage]\ndriver = \"vfs\"\ngraphroot = \""+dir+"/root\"\nrunroot = \""+dir+"/run\"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	l := local{ctx, []string{"PATH=" + os.Getenv("PATH"), "HOME=" + dir, "CONTAINERS_STORAGE_CONF=" + conf}}
	l.image(t, "podman")
	if _, err := l.here(nil, "podman", "create", "--name", "web", "-e", "TOKEN=SECRETenv", "--label", "com.docker.compose.project=shop", "--label", "com.docker.compose.service=web",
		"--label", "com.docker.compose.container-number=1", "--network", "host", "lab/busybox:1", "/bin/busybox", "sleep", "SECRETarg"); err != nil {
		t.Skipf("podman cannot create a container here (%v); the recordings stand in", err)
	}
	env := replay(t, realHost(withoutDocker{l}), fixtures.Options{})
	list := answer[*report.ContainerList](t, env, "list_guest_containers", `{"detail":"detailed"}`)
	if len(list.Items) != 1 || list.Places[0].Runtime != "podman" || list.Items[0].State != "created" || list.Items[0].Project != "shop" || list.Items[0].NetworkMode != "host" || !list.Complete {
		t.Errorf("%+v %+v %v", list.Places, list.Items, list.Problems)
	}
	text, err := Encode(list)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(text, []byte("SECRET")) {
		t.Errorf("a secret: %s", text)
	}
}
