//go:build linux

package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"pvelens/allowlist"
	"pvelens/fixtures"
)

// What needs users, sudo and files in /etc/pve runs as root in namespaces of its
// own: /etc is a copy there, /usr/bin and /usr/sbin have a layer above them, /run,
// /var/lib and /var/log are empty, and nothing of it is left on the machine.
const inside = "PVELENS_TEST_NODES"

var unshare = []string{"unshare", "--mount", "--uts", "--pid", "--propagation", "private", "--fork", "--kill-child", "--mount-proc"}

// inNamespace runs the test again inside namespaces, and reports whether this is
// the run inside.
func inNamespace(t *testing.T, packages map[string]string) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	if testing.Short() {
		t.Skip("left out by -short")
	}
	for _, program := range []string{"unshare", "mount", "useradd", "usermod"} {
		need(t, program, "util-linux and passwd")
	}
	for program, pkg := range packages {
		need(t, program, pkg)
	}
	lacking := ""
	switch try := exec.Command(unshare[0], append(slices.Clone(unshare[1:]), "true")...); {
	case os.Geteuid() != 0:
		lacking = "run as root"
	case try.Run() != nil:
		lacking = "run where root may make namespaces"
	}
	if lacking != "" && os.Getenv("CI") == "true" {
		t.Fatal(lacking)
	} else if lacking != "" {
		t.Skip(lacking)
	}
	dir := t.TempDir()
	buildGates(t, dir)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell is the first process there, and takes in those that lose their parent.
	cmd := exec.Command(unshare[0], append(slices.Clone(unshare[1:]), "/bin/sh", "-c", `"$@"; exit $?`, "sh", self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=8m")...)
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("inside the namespaces: %v", err)
	}
	if t.Failed() || testing.Verbose() {
		t.Logf("inside the namespaces:\n%s", out)
	}
	return false
}

// buildGates builds the gate, and one whose table lacks a form, has another limit
// for a second one, and has one that ours lacks.
func buildGates(t *testing.T, dir string) {
	t.Helper()
	goTool := need(t, "go", "Go")
	build := func(in, out string) {
		cmd := exec.Command(goTool, "build", "-buildvcs=false", "-o", out, "./cmd/pvelens-gate")
		cmd.Dir, cmd.Env = in, append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOFLAGS=")
		if text, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
	}
	build("../..", filepath.Join(dir, "gate"))
	other := filepath.Join(dir, "other")
	shell(t, `
		mkdir -p "$1/cmd"
		cp -r allowlist "$1/allowlist"
		cp -r cmd/pvelens-gate "$1/cmd/pvelens-gate"
		find "$1" \( -name '*_test.go' -o -name testdata \) -prune -exec rm -rf {} +
		printf 'module pvelens\n\n%s\n' "$(grep '^go ' go.mod)" >"$1/go.mod"
		sed -i -e '/^\t{"quorum", /d' -e 's/^\(\t{"clock", .*None\), 5,/\1, 4,/' -e 's/^\t{"probe", /\t{"uptime", PVE, Any, None, 5, kib, zero, argv{"\/usr\/bin\/uptime"}, "", ""},\n&/' "$1/allowlist/allowlist.go"
	`, other)
	build(other, filepath.Join(dir, "other-gate"))
}

// shell runs a script, from the module's root, with the words as its arguments,
// and returns what it prints.
func shell(t testing.TB, script string, words ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "/bin/sh", append([]string{"-euc", script, "sh"}, words...)...)
	cmd.Dir, cmd.WaitDelay = "../..", time.Second
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// enterNode makes this namespace the node pve1.
func enterNode(t *testing.T) {
	t.Helper()
	shell(t, `
		mkdir "$1/etc"
		cp -a /etc/. "$1/etc" || [ -s "$1/etc/shadow" ] # a file may vanish meanwhile
		rm -f "$1"/etc/*.lock
		touch "$1/etc/.pvelens-test-copy"
		mount --bind "$1/etc" /etc
		[ -e /etc/.pvelens-test-copy ] # from here on nothing reaches the machine's own
		for dir in /run /usr/local /var/lib /var/log /sys/fs/cgroup; do
			mount -t tmpfs -o mode=755 tmpfs "$dir"
		done
		for dir in /bin /sbin /usr/bin /usr/sbin; do
			if [ ! -L "$dir" ]; then
				mkdir -p "/run/above$dir" "/run/work$dir"
				mount -t overlay overlay -o "lowerdir=$dir,upperdir=/run/above$dir,workdir=/run/work$dir" "$dir"
			fi
		done
		mkdir -p /run/sshd /run/lock /run/client /etc/ssh/keys /usr/local/bin /usr/local/sbin
		mkdir -m 1777 /run/wire
		rm -f /etc/ssh/sshd_config.d/* /etc/sudoers.d/* /etc/nologin
		printf 'Include /etc/ssh/sshd_config.d/*.conf\n' >/etc/ssh/sshd_config
		printf 'Defaults env_reset, use_pty, logfile=/run/sudo.log\nroot ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n' >/etc/sudoers
		printf '127.0.0.1 localhost pve1 pve3\n' >/etc/hosts
		[ -s /etc/ssh/ssh_host_ed25519_key ] || ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
		getent group www-data >/dev/null || groupadd --system www-data
	`, os.Getenv(inside))
	if err := syscall.Sethostname([]byte("pve1")); err != nil {
		t.Fatal(err)
	}
	putTree(t)
	putPrograms(t)
}

// putTree builds /etc/pve with the rights that pmxcfs gives it, and the node's
// other files, from the recorded node with the planted secrets. Its live numbers
// are as of now.
func putTree(t *testing.T) {
	t.Helper()
	shell(t, `
		cp -r fixtures/secrets/root/etc/. /etc
		cp -r fixtures/secrets/root/var/. /var
		mkdir -p /var/lib/dpkg/info /var/lib/dpkg/updates
	`)
	for _, id := range []string{"node-tasks", "updates", "replication", "lxc-cgroup 101", "lxc-cgroup 102", "qemu-cgroup 200"} {
		putSections(t, recorded(t, id))
	}
	hold(t, recorded(t, "node-proc"))
	for _, id := range []string{"lxc-services 101", "lxc-services 102"} {
		for file := range strings.Lines(recorded(t, id)) {
			putFile(t, strings.TrimSpace(file), "1\n")
		}
	}
	status := ""
	for line := range strings.Lines(recorded(t, "node-packages")) {
		f := strings.Fields(line)
		status += fmt.Sprintf("Package: %s\nStatus: install ok installed\nMaintainer: a <a@example.org>\nArchitecture: amd64\nVersion: %s\nDescription: a\n\n", f[0], f[1])
	}
	putFile(t, "/var/lib/dpkg/status", status)
	makeFresh(t, "/etc/pve/.rrd", "/etc/pve/ha/manager_status", "/etc/pve/nodes/pve1/lrm_status", "/etc/pve/nodes/pve2/lrm_status", "/etc/pve/nodes/pve3/lrm_status")
	shell(t, `
		chown -R root:www-data /etc/pve
		find /etc/pve -type d -exec chmod 0755 {} +
		find /etc/pve -type f -exec chmod 0640 {} +
		find /etc/pve -name '.*' -type f -exec chmod 0440 {} +
		find /etc/pve -name priv -exec chown -R root:root {} + -exec chmod 0700 {} +
		sed 's/"nodename": "pve1"/"nodename": "pve3"/' /etc/pve/.members >/run/members-of-pve3
		chown root:www-data /run/members-of-pve3
		chmod 0440 /run/members-of-pve3
		chmod -R a+rX /var/log /var/lib /sys/fs/cgroup
	`)
}

// recorded is what a form printed on pve1; id is the form, then slot values.
func recorded(t *testing.T, id string) string {
	t.Helper()
	id, value, _ := strings.Cut(id, " ")
	for _, f := range allowlist.Forms() {
		if f.ID != id {
			continue
		}
		words := slices.Clone([]string(f.Argv))
		for i := range words {
			words[i] = strings.ReplaceAll(words[i], "{vmid}", value)
		}
		c, err := allowlist.Check(allowlist.PVE, words...)
		if err != nil {
			t.Fatal(err)
		}
		a, _ := fixtures.HeimlaborPVE1().Answer(c)
		return string(a.Stdout)
	}
	t.Fatalf("no form %s", id)
	return ""
}

// putSections writes the files that tail -v printed.
func putSections(t *testing.T, text string) {
	t.Helper()
	parts := regexp.MustCompile(`(?m)^==> (/[^ ]+) <==\n`).FindAllStringSubmatchIndex(text, -1)
	for i, p := range parts {
		end := len(text)
		if i+1 < len(parts) {
			end = parts[i+1][0] - 1 // tail puts an empty line between
		}
		putFile(t, text[p[2]:p[3]], text[p[1]:end])
	}
}

// hold puts recorded files in the place of those of /proc that change all the time.
func hold(t *testing.T, text string) {
	t.Helper()
	putSections(t, strings.ReplaceAll(text, "==> /proc/", "==> /run/proc/"))
	shell(t, `
		cd /run/proc
		find . -type f | while read -r file; do
			[ ! -e "/proc/$file" ] || mount --bind "$file" "/proc/$file"
		done
	`)
}

func putFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// replaceFile puts a new file, with the old one's owner and mode, in its place at
// once, as the cluster filesystem does.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	next := "/run/client/next"
	putFile(t, next, text)
	shell(t, `chown --reference="$1" "$2" && chmod --reference="$1" "$2" && mv -f "$2" "$1.new" && mv -f "$1.new" "$1"`, path, next)
}

// keepFresh is pvestatd: the live numbers are of the last seconds until the test
// ends.
func keepFresh(t *testing.T) {
	tick := time.NewTicker(10 * time.Second)
	done, ended := make(chan bool), make(chan bool)
	go func() {
		defer close(ended)
		for {
			select {
			case <-tick.C:
				makeFresh(t, "/etc/pve/.rrd")
			case <-done:
				return
			}
		}
	}()
	t.Cleanup(func() { tick.Stop(); close(done); <-ended })
}

// makeFresh moves the times in the files so that the newest one is now.
func makeFresh(t *testing.T, files ...string) {
	t.Helper()
	stamp := regexp.MustCompile(`\b1[0-9]{9}\b`)
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		newest := 0
		for _, s := range stamp.FindAllString(string(b), -1) {
			n, _ := strconv.Atoi(s)
			if n < 1<<31-1 && n > newest {
				newest = n
			}
		}
		shift := int(time.Now().Unix()) - newest
		replaceFile(t, file, stamp.ReplaceAllStringFunc(string(b), func(s string) string {
			n, _ := strconv.Atoi(s)
			if newest-n > 24*3600 || n > newest {
				return s // bytes, not a time
			}
			return strconv.Itoa(n + shift)
		}))
	}
}

// untouched are the programs of the allowlist that are the machine's own here.
var untouched = []string{"/bin/grep", "/bin/df", "/bin/date", "/bin/echo", "/bin/true", "/usr/bin/tail", "/usr/bin/stat", "/usr/bin/dpkg-query", allowlist.GatePath}

// putPrograms puts stand-ins in the place of what only a Proxmox node has. A
// program hangs while the file /run/hang has its name.
func putPrograms(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	shell(t, `install -D -m 0755 "$1" /run/programs/pvelens.test`, self)
	for _, f := range allowlist.Forms() {
		program := f.Argv[0]
		if f.Role == allowlist.Docker || slices.Contains(untouched, program) {
			continue
		}
		shell(t, `
			mkdir -p "${1%/*}"
			rm -f "$1"
			cat >"$1" <<-END
				#!/bin/sh
				if [ "\$(cat /run/hang 2>/dev/null)" = "$1" ]; then echo \$\$ >>/run/hung; exec sleep 61; fi
				$2="$1" exec /run/programs/pvelens.test "\$@"
			END
			chmod 0755 "$1"
		`, program, standIn)
	}
	// A login shell that keeps what goes over the wire.
	putFile(t, "/run/programs/wire", "#!/bin/bash\n/bin/sh \"$@\" > >(tee -a /run/wire/$UID) 2> >(tee -a /run/wire/$UID >&2)\n")
	// The state of pve3 comes later than that of pve1, so that pve1 serves the
	// cluster and answers can be compared.
	putFile(t, "/run/programs/tail", "#!/bin/bash\ncase \"$*\" in */etc/pve/.members*) sleep 0.5 ;; esac\nexec -a /usr/bin/tail /run/programs/real-tail \"$@\"\n")
	shell(t, `cp /usr/bin/tail /run/programs/real-tail; chmod 0755 /run/programs/wire /run/programs/tail`)
}

// startNode runs an sshd as a node until the test ends. Its log goes to /run/wire.
func startNode(t *testing.T, node string, port int) {
	t.Helper()
	config := "/run/client/sshd-" + node
	putFile(t, config, fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey /etc/ssh/ssh_host_ed25519_key\nPidFile none\nMaxStartups 200\nMaxSessions 20\nUsePAM no\nKexAlgorithms curve25519-sha256\nLogLevel VERBOSE\nPasswordAuthentication no\nPermitRootLogin prohibit-password\nInclude /etc/ssh/sshd_config\nAuthorizedKeysFile /etc/ssh/keys/%%u\n", port))
	script := `hostname "$1"; exec /usr/sbin/sshd -D -e -f "$2"`
	args := []string{"--uts"}
	if node != "pve1" {
		args = append(args, "--mount", "--propagation", "private")
		script = `mount --bind "/run/members-of-$1" /etc/pve/.members; mount --bind /run/programs/tail /usr/bin/tail; ` + script
	}
	cmd := exec.Command("unshare", append(args, "/bin/sh", "-euc", script, "sh", node, config)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	log, err := os.Create("/run/wire/sshd-" + node)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	for buf := make([]byte, 4096); !bytes.Contains(said.Bytes(), []byte("Server listening")); {
		n, err := stderr.Read(buf)
		said.Write(buf[:n])
		if err != nil {
			t.Fatalf("sshd of %s: %s", node, said.String())
		}
	}
	go func() { _, _ = io.Copy(log, io.MultiReader(&said, stderr)) }()
}
