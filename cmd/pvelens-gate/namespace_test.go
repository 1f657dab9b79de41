//go:build linux

package main

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"pvelens/allowlist"
)

// What needs users, a sudoers file and an sshd runs in namespaces of its own, as
// root: /etc is a copy there, /run and /usr/local are empty, processes end with
// the test, and nothing of it is left on the machine.
const inside = "PVELENS_TEST_GATE"

var unshare = []string{"unshare", "--mount", "--propagation", "private", "--pid", "--fork", "--kill-child", "--mount-proc"}

// inNamespace runs the test again inside a namespace, and reports whether this is
// the run inside.
func inNamespace(t *testing.T, programs ...string) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		setUp(t)
		return true
	}
	if testing.Short() {
		t.Skip("left out by -short")
	}
	t.Parallel()
	for _, p := range append(programs, "unshare", "mount") {
		if _, err := exec.LookPath(p); err != nil {
			skip(t, "install "+p)
		}
	}
	if os.Geteuid() != 0 {
		skip(t, "run as root")
	}
	if err := exec.Command(unshare[0], append(unshare[1:], "true")...).Run(); err != nil {
		skip(t, "run where root may make namespaces")
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", dir+"/gate", ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The shell is the first process there, and takes in those that lose their parent.
	cmd := exec.Command(unshare[0], append(unshare[1:], "/bin/sh", "-c", `"$@"; exit $?`, "sh", self, "-test.run=^"+t.Name()+"$", "-test.v", "-test.timeout=5m")...)
	cmd.Env = append(os.Environ(), inside+"="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("inside the namespace: %v\n%s", err, out)
	}
	return false
}

func skip(t *testing.T, reason string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatal(reason)
	}
	t.Skip(reason)
}

func setUp(t *testing.T) {
	t.Helper()
	shell(t, `
		mkdir "$1/etc"
		cp -a /etc/. "$1/etc" || [ -s "$1/etc/shadow" ] # a file may vanish meanwhile
		rm -f "$1"/etc/*.lock
		touch "$1/etc/.pvelens-test-copy"
		mount --bind "$1/etc" /etc
		[ -e /etc/.pvelens-test-copy ] # from here on nothing reaches the machine's own
		mount -t tmpfs -o mode=755 tmpfs /run
		mount -t tmpfs -o mode=755 tmpfs /usr/local
		mkdir -p /run/sshd /usr/local/bin /usr/local/sbin
		mkdir -m 1777 /run/stand-in
		rm -f /etc/ssh/sshd_config.d/* /etc/nologin
		printf 'Include /etc/ssh/sshd_config.d/*.conf\n' >/etc/ssh/sshd_config
		printf 'Defaults env_reset, use_pty\nroot ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n' >/etc/sudoers
		[ -s /etc/ssh/ssh_host_ed25519_key ] || ssh-keygen -q -t ed25519 -N '' -f /etc/ssh/ssh_host_ed25519_key
	`, os.Getenv(inside))
}

// shell runs a script with the words as its arguments and returns what it prints.
func shell(t *testing.T, script string, words ...string) string {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-euc", script, "sh"}, words...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func gateBinary() string { return os.Getenv(inside) + "/gate" }

// installGate puts the gate and users of all login shells in place, by hand.
func installGate(t *testing.T, signer ssh.Signer) {
	t.Helper()
	shell(t, `
		mkdir -p /usr/local/libexec /etc/ssh/keys
		install -m 0755 "$1" "$2"
		for s in bash dash fish tcsh; do
			useradd -m -k /dev/null -b /run -s "$(command -v $s)" -G www-data gate-$s # fish writes to its home
			usermod -p '*' gate-$s
			printf 'restrict,command="%s" %s\n' "$2" "$3" >/etc/ssh/keys/gate-$s
			printf 'gate-%s ALL=(root) NOPASSWD: %s\n' $s "$2" >>/etc/sudoers.d/gate-test
		done
		chmod 0440 /etc/sudoers.d/gate-test
		visudo -cq
	`, gateBinary(), allowlist.GatePath, authorized(signer))
}

func authorized(s ssh.Signer) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(s.PublicKey())))
}

func newKey(t *testing.T) ssh.Signer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(pem.EncodeToMemory(block))
	if err != nil {
		t.Fatal(err)
	}
	return signer
}

// startSSHD starts an sshd with the configuration, which may allow all it likes,
// and returns its address.
func startSSHD(t *testing.T, config string) string {
	t.Helper()
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := free.Addr().String()
	_, port, _ := net.SplitHostPort(addr)
	file := filepath.Join(t.TempDir(), "sshd_config")
	config = "Port " + port + "\nListenAddress 127.0.0.1\nHostKey /etc/ssh/ssh_host_ed25519_key\nPidFile /run/sshd.pid\nMaxStartups 100\nMaxSessions 10\nUsePAM yes\n" + config
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	free.Close()
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", file)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line := make([]byte, 4096)
	n, _ := stderr.Read(line)
	if !strings.Contains(string(line[:n]), "Server listening") {
		t.Fatalf("sshd: %s", line[:n])
	}
	go io.Copy(io.Discard, stderr)
	return addr
}

func dial(t *testing.T, addr, user string, signer ssh.Signer) *ssh.Client {
	t.Helper()
	c, err := ssh.Dial("tcp", addr, &ssh.ClientConfig{User: user, Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)}, HostKeyCallback: ssh.InsecureIgnoreHostKey(), Timeout: 10 * time.Second})
	if err != nil {
		t.Fatalf("%s: %v", user, err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

type result struct {
	stdout, stderr string
	exit           int // -1 when there was none
}

func (r result) String() string {
	return fmt.Sprintf("exit %d, %.200q, %.300q", r.exit, r.stdout, r.stderr)
}

// run sends one exec request; a connection that dies of it has no exit.
func run(c *ssh.Client, line string, env ...string) result {
	s, err := c.NewSession()
	if err != nil {
		return result{exit: -1, stderr: err.Error()}
	}
	defer s.Close()
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		_ = s.Setenv(name, value)
	}
	var stdout, stderr strings.Builder
	s.Stdout, s.Stderr = &stdout, &stderr
	err = s.Run(line)
	r := result{stdout: stdout.String(), stderr: stderr.String()}
	var exit *ssh.ExitError
	if errors.As(err, &exit) {
		r.exit = exit.ExitStatus()
	} else if err != nil {
		r.exit = -1
	}
	return r
}

// waitFor asks until it is so, for at most ten seconds.
func waitFor(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); {
		if time.Now().After(end) {
			t.Fatalf("waited 10 s for %s", what)
		}
		time.Sleep(10 * time.Millisecond)
	}
}
