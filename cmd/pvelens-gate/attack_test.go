//go:build linux

package main

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"pvelens/allowlist"
)

var loginShells = []string{"bash", "dash", "fish", "tcsh"}

// open is an sshd that allows all that a key's options and the gate then refuse.
const open = `AuthorizedKeysFile /etc/ssh/keys/%u
AcceptEnv LANG LC_*
AllowTcpForwarding yes
AllowStreamLocalForwarding yes
AllowAgentForwarding yes
X11Forwarding yes
PermitTunnel yes
PermitTTY yes
PermitUserEnvironment yes
GatewayPorts yes
Subsystem sftp internal-sftp
Match User gate-dash
	AcceptEnv *
`

func TestHostileCommandsOverSSH(t *testing.T) {
	if !inNamespace(t, "sshd", "sudo", "visudo", "bash", "dash", "fish", "tcsh") {
		return
	}
	key := newKey(t)
	installGate(t, key)
	addr := startSSHD(t, open)
	lines := hostileLines(t)
	lines = slices.DeleteFunc(lines, func(line string) bool { // sshd takes the last NUL of a string for its end
		return strings.HasSuffix(line, "\x00")
	})
	lines = append(lines, strings.Repeat("/usr/sbin/qm list ", 1<<16), strings.Repeat("x", 200_000), allowlist.GatePath+" --version"+strings.Repeat(" ", 130_000))
	for _, sh := range loginShells {
		c := dial(t, addr, "gate-"+sh, key)
		if r := run(c, "/bin/echo pvelens-probe"); r != (result{stdout: "pvelens-probe\n"}) {
			t.Fatalf("%s: a permitted command: %v", sh, r)
		}
		work := make(chan string)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				own := dial(t, addr, "gate-"+sh, key)
				for line := range work {
					r := run(own, line)
					if refused := r.exit == exitRefused && strings.Count(r.stderr, "\n") == 1; r.stdout != "" || r.exit == 0 || !refused && len(line) < 100_000 && !strings.Contains(line, "\x00") {
						t.Errorf("%s: %.200q: %v", sh, line, r)
					}
					if r.exit == -1 { // sshd ends the connection for a NUL
						own = dial(t, addr, "gate-"+sh, key)
					}
				}
			})
		}
		for _, line := range lines {
			work <- line
		}
		close(work)
		wg.Wait()
	}
	t.Logf("%d lines, %d login shells", len(lines), len(loginShells))
}

func TestEveryPermittedLineIsNotRefused(t *testing.T) {
	if !inNamespace(t, "sshd", "sudo", "visudo", "bash", "dash", "fish", "tcsh") {
		return
	}
	key := newKey(t)
	installGate(t, key)
	addr := startSSHD(t, open)
	this := thisHost()
	for _, sh := range loginShells {
		c := dial(t, addr, "gate-"+sh, key)
		for _, f := range allowlist.Forms() {
			if f.ID == "ping" || f.ID == "node-df" || sh != "dash" && f.Rights == allowlist.Root {
				continue // the first two take their time, root's forms each start sudo
			}
			words := fill(f)
			for i := range words {
				words[i] = strings.Replace(words[i], "/nodes/pve1/", "/nodes/"+this.name+"/", 1)
			}
			cmd, err := allowlist.Check(this.role, words...)
			if err != nil {
				continue
			}
			r := run(c, cmd.Line())
			if refused := r.exit == exitRefused; refused != f.ClientOnly() || strings.Contains(r.stderr, "pvelens-gate: refused") != f.ClientOnly() {
				t.Errorf("%s: %s: %v", sh, f.ID, r)
			}
		}
		if r := run(c, strings.Replace(formLine(t, "lxc-status"), "pve1", "x"+this.name, 1)); r.exit != exitRefused {
			t.Errorf("%s: another node's form: %v", sh, r)
		}
	}
}

func TestForwardingAndTerminalsAreRefused(t *testing.T) {
	if !inNamespace(t, "sshd", "sudo", "visudo", "bash", "dash", "fish", "tcsh") {
		return
	}
	key := newKey(t)
	installGate(t, key)
	addr := startSSHD(t, open)
	l, err := net.Listen("unix", "/run/stand-in/socket")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for _, sh := range loginShells {
		attackChannels(t, addr, "gate-"+sh, key)
	}
}

// attackChannels tries all that SSH can do beside an exec request.
func attackChannels(t *testing.T, addr, user string, key ssh.Signer) {
	t.Helper()
	c := dial(t, addr, user, key)
	session := func() *ssh.Session {
		s, err := c.NewSession()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	s := session()
	if err := s.RequestPty("xterm", 24, 80, nil); err == nil {
		t.Errorf("%s: pty granted", user)
	}
	s.Close()
	for _, name := range []string{"sftp", "netconf", "../sftp"} {
		s = session()
		out, _ := s.StdoutPipe()
		if err := s.RequestSubsystem(name); err == nil {
			if b, _ := io.ReadAll(out); len(b) > 0 {
				t.Errorf("%s: subsystem %s answered %q", user, name, b)
			}
			if err := s.Wait(); err == nil {
				t.Errorf("%s: subsystem %s granted", user, name)
			}
		}
		s.Close()
	}
	s = session()
	s.Stdin = strings.NewReader("id\nexit 0\n")
	var out bytes.Buffer
	s.Stdout = &out
	if err := s.Shell(); err == nil {
		err = s.Wait()
		if exit, ok := err.(*ssh.ExitError); !ok || exit.ExitStatus() != exitRefused || out.Len() > 0 {
			t.Errorf("%s: shell: %v, %q", user, err, out.String())
		}
	}
	s.Close()
	x11 := ssh.Marshal(struct {
		Single        bool
		Proto, Cookie string
		Screen        uint32
	}{false, "MIT-MAGIC-COOKIE-1", "00", 0})
	for name, payload := range map[string][]byte{"x11-req": x11, "auth-agent-req@openssh.com": nil} {
		s = session()
		if ok, err := s.SendRequest(name, true, payload); ok || err != nil {
			t.Errorf("%s: %s: granted %v, %v", user, name, ok, err)
		}
		s.Close()
	}
	if conn, err := c.Dial("tcp", addr); err == nil {
		conn.Close()
		t.Errorf("%s: TCP forwarded", user)
	}
	if conn, err := c.Dial("unix", "/run/stand-in/socket"); err == nil {
		conn.Close()
		t.Errorf("%s: socket forwarded", user)
	}
	if l, err := c.Listen("tcp", "127.0.0.1:0"); err == nil {
		l.Close()
		t.Errorf("%s: TCP listens", user)
	}
	if l, err := c.ListenUnix("/run/stand-in/listen"); err == nil {
		l.Close()
		t.Errorf("%s: socket listens", user)
	}
	if ch, _, err := c.OpenChannel("tun@openssh.com", ssh.Marshal(struct{ Mode, Unit uint32 }{1, 0x7fffffff})); err == nil {
		ch.Close()
		t.Errorf("%s: tunnel granted", user)
	}
}

func TestEnvironmentDoesNotReachTheCommand(t *testing.T) {
	if !inNamespace(t, "sshd", "sudo", "visudo", "bash", "dash", "fish", "tcsh") {
		return
	}
	key := newKey(t)
	installGate(t, key)
	standIn(t, "/usr/local/bin/podman", `tr '\0' '\n' </proc/$$/environ; readlink /proc/$$/fd/0; pwd; id -un`)
	standIn(t, "/usr/local/bin/docker", `tr '\0' '\n' </proc/$$/environ; readlink /proc/$$/fd/0; pwd; id -un`)
	addr := startSSHD(t, open)
	env := []string{"BASH_ENV=/dev/stdin", "ENV=/dev/stdin", "LD_PRELOAD=/run/stand-in/x.so", "LD_LIBRARY_PATH=/run/stand-in", "LANG=../../run/stand-in", "LC_ALL=/run/stand-in", "LC_X=$(id)", "PATH=/run/stand-in", "IFS=/", "DOCKER_HOST=tcp://127.0.0.1:1",
		"GODEBUG=x", "HOME=/run/stand-in", "SSH_ORIGINAL_COMMAND=/usr/sbin/qm list", "CONTAINER_HOST=x", "PERL5OPT=-Mx", "SUDO_ASKPASS=/bin/id", "SHLVL=5"}
	const clean = "HOME=/\nLC_ALL=C.UTF-8\nPATH=" + path + "\n"
	for _, sh := range loginShells {
		for form, user := range map[string]string{"host-podman-ps": "gate-" + sh, "host-docker-ps": "root"} {
			r := run(dial(t, addr, "gate-"+sh, key), formLine(t, form), env...)
			lines := strings.SplitAfter(r.stdout, "\n")
			if len(lines) != 7 || r.exit != 0 {
				t.Errorf("%s: %s: %v", sh, form, r)
				continue
			}
			slices.Sort(lines[:3])
			if got, want := strings.Join(lines, ""), clean+"/dev/null\n/\n"+user+"\n"; got != want {
				t.Errorf("%s: %s: got %q, want %q", sh, form, got, want)
			}
		}
	}
}

// Called by hand with sudo, the gate compares an array of words; sudo's options
// give nothing more.
func TestSudoGivesNoMore(t *testing.T) {
	if !inNamespace(t, "sshd", "sudo", "visudo", "bash", "dash", "fish", "tcsh") {
		return
	}
	installGate(t, newKey(t))
	standIn(t, "/usr/local/bin/docker", `id -u`)
	version := dockerWords(t)
	sudoAs := func(words ...string) result {
		cmd := exec.Command("setpriv", append([]string{"--reuid=gate-dash", "--regid=gate-dash", "--init-groups", "/usr/bin/sudo", "-n"}, words...)...)
		var stdout, stderr bytes.Buffer
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		cmd.Env = []string{"PATH=" + path, "BASH_ENV=/dev/stdin"}
		_ = cmd.Run()
		return result{stdout.String(), stderr.String(), cmd.ProcessState.ExitCode()}
	}
	gate := func(words ...string) []string { return append([]string{allowlist.GatePath}, words...) }
	if r := sudoAs(gate(version...)...); r != (result{stdout: "0\n"}) {
		t.Fatalf("a permitted command: %v", r)
	}
	for _, words := range [][]string{
		gate(), gate(""), gate("id"), gate("/bin/sh"), gate("-c", "id"), gate("--"), gate("--version", "id"), gate("--help"),
		gate("docker version"), gate(strings.Join(version, " ")), gate(append(version, "")...), gate(append(version, "\n")...), gate(append([]string{"--"}, version...)...),
		gate(append([]string{"env"}, version...)...), gate("/usr/sbin/pct", "exec", "101 -- id #", "--", "df", "-P", "-k"), gate("/usr/sbin/pct", "exec", "101\n", "--", "df", "-P", "-k"),
		gate("/usr/sbin/pct", "exec", "１０１", "--", "df", "-P", "-k"), gate("/usr/sbin/pct", "exec", "101/../102", "--", "df", "-P", "-k"), gate("/bin/true", "lock-probe"), gate("/usr/sbin/qm", "list", "--full", "1"),
		gate("/usr/bin/pvesh", "--noproxy", "get", "/nodes/../access/users", "--output-format", "json"),
		{"-E", allowlist.GatePath, "id"}, {"SSH_ORIGINAL_COMMAND=/usr/sbin/qm list", allowlist.GatePath}, append([]string{"LD_PRELOAD=/x.so"}, gate(version...)...), append([]string{"-E"}, gate(version...)...),
		append([]string{"-u", "daemon"}, gate(version...)...), append([]string{"-g", "0"}, gate(version...)...), append([]string{"-D", "/tmp"}, gate(version...)...), append([]string{"-R", "/"}, gate(version...)...), append([]string{"-C", "9"}, gate(version...)...),
		{"-s"}, {"-i"}, {"-e", "/etc/shadow"}, {"id"}, {"/bin/sh"}, {"/usr/local/libexec/../libexec/pvelens-gate"}, {allowlist.GatePath + " --version"}, {"/usr/local/bin/docker", "version"}, {"su"}, {"-l", "id"},
	} {
		if r := sudoAs(words...); r.exit == 0 || r.stdout != "" && !strings.Contains(r.stderr, "usage") {
			t.Errorf("%.200q: %v", words, r)
		}
	}
}

// Ended by its limit, by its cap or by its client, a command is gone.
func TestSupervision(t *testing.T) {
	if !inNamespace(t, "sshd", "sudo", "visudo", "bash", "dash", "fish", "tcsh") {
		return
	}
	key := newKey(t)
	installGate(t, key)
	const stubborn = `trap '' TERM HUP; sleep 60 & echo $$ $! >/run/stand-in/pid; while :; do sleep 1; done`
	standIn(t, "/usr/local/bin/docker", stubborn)
	standIn(t, "/usr/local/bin/podman", stubborn)
	standIn(t, "/run/stand-in/date", `. /run/stand-in/date.sh`)
	shell(t, `chmod 0755 /run/stand-in/date; mount --bind /run/stand-in/date "$(readlink -f /bin/date)"`)
	dateIs := func(script string) { shell(t, `printf '%s\n' "$1" >/run/stand-in/date.sh`, script) }
	addr := startSSHD(t, open)
	clock := formLine(t, "clock")
	c := dial(t, addr, "gate-dash", key)

	dateIs("sleep 1; echo late; exit 7")
	if r := run(c, clock); r != (result{stdout: "late\n", exit: 7}) {
		t.Errorf("stdin at its end: %v", r)
	}
	dateIs("head -c 1024 /dev/zero")
	if r := run(c, clock); r.exit != 0 || len(r.stdout) != 1024 {
		t.Errorf("as much as the cap: exit %d, %d bytes", r.exit, len(r.stdout))
	}
	dateIs("head -c 5000 /dev/zero; head -c 200000 /dev/zero >&2; exit 0")
	if r := run(c, clock); r.exit != exitCap || len(r.stdout) != 1025 || !strings.HasSuffix(r.stderr, "form clock: output cut after 1025 bytes\n") {
		t.Errorf("over the cap: exit %d, %d bytes, %d of stderr", r.exit, len(r.stdout), len(r.stderr))
	}
	dateIs("exec cat /dev/zero")
	if r := run(c, clock); r.exit != exitCap || len(r.stdout) != 1025 {
		t.Errorf("without end: exit %d, %d bytes", r.exit, len(r.stdout))
	}
	dateIs("kill -SEGV $$")
	if r := run(c, clock); r.exit != 128+11 {
		t.Errorf("ended by a signal: %v", r)
	}
	dateIs(stubborn)
	if r := run(c, clock); r.exit != exitLimit || r.stderr != "pvelens-gate: form clock: ended after 5 s\n" {
		t.Errorf("over the limit: %v", r)
	}
	waitFor(t, "the date that ignores TERM", gone)

	for _, how := range []string{"session", "connection"} {
		for _, form := range []string{"host-podman-ps", "host-docker-ps"} {
			shell(t, `rm -f /run/stand-in/pid`)
			c := dial(t, addr, "gate-dash", key)
			s, err := c.NewSession()
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Start(formLine(t, form)); err != nil {
				t.Fatal(err)
			}
			waitFor(t, form+" to start", func() bool { return !gone() })
			if how == "session" {
				s.Close()
			} else {
				c.Close()
			}
			waitFor(t, fmt.Sprintf("%s after its %s closed", form, how), gone)
		}
	}
	shell(t, `umount "$(readlink -f /bin/date)"`)
}

// gone reports whether the stand-in that wrote its number, and its child's, and
// this child are no longer there.
func gone() bool {
	return exec.Command("/bin/sh", "-c", `read pid child </run/stand-in/pid && { [ -d /proc/$pid ] || [ -d /proc/$child ]; }`).Run() != nil
}

// standIn makes a program of a shell script.
func standIn(t *testing.T, file, script string) {
	t.Helper()
	shell(t, `printf '#!/bin/sh\n%s\n' "$2" >"$1"; chmod 0755 "$1"`, file, script)
}

func dockerWords(t *testing.T) []string {
	t.Helper()
	for _, f := range allowlist.Forms() {
		if f.ID == "host-docker-version" {
			return fill(f)
		}
	}
	t.Fatal("no form")
	return nil
}
