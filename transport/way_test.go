package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"

	"pvelens/profiles"
)

func TestJumpThroughBastions(t *testing.T) {
	one, two, s := newServer(t).start(), newServer(t).start(), newServer(t).start()
	p := newPool(t)
	h := s.through("pve1", one, two)
	if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
		t.Fatal(err)
	}
	for name, hop := range map[string]*server{"first": one, "second": two, "node": s} {
		if n := hop.conns.total.Load(); n != 1 {
			t.Errorf("%s hop: %d connections, want 1", name, n)
		}
	}
	one.drop() // all that goes through it is lost, and found again in one call
	if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
		t.Errorf("after the bastion's reboot: %v", err)
	}
}

func TestJumpOfAHopsOwn(t *testing.T) {
	one, two, s := newServer(t).start(), newServer(t).start(), newServer(t).start()
	h := s.through("pve1", one, two)
	h.Target.ProxyJump[1].ProxyJump = h.Target.ProxyJump[:1]
	h.Target.ProxyJump = h.Target.ProxyJump[1:]
	if _, err := newPool(t).Run(t.Context(), h, clock(t)); err != nil {
		t.Fatal(err)
	}
	if n := one.conns.total.Load(); n != 1 {
		t.Errorf("%d connections to the first hop, want 1", n)
	}
	h.Target.ProxyJump[0].ProxyJump = h.Target.ProxyJump // through itself
	if _, err := newPool(t).Run(t.Context(), h, clock(t)); codeOf(err) != Config || !strings.Contains(err.Error(), "more than 16 hops") {
		t.Errorf("got %v", err)
	}
}

func TestJumpFailures(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(bastion, node *server, h *Host)
		code Code
		text string
	}{
		{"bastion's key unknown", func(b, n *server, h *Host) { h.KnownHosts = []byte(n.knownHost()) }, HostKey, "pve1: via jump0: host key unknown"},
		{"node's key unknown", func(b, n *server, h *Host) { h.KnownHosts = []byte(b.knownHost()) }, HostKey, "pve1: via jump0: host key unknown"},
		{"bastion down", func(b, n *server, h *Host) { b.l.Close() }, Unreachable, "pve1: via jump0: "},
		{"node down", func(b, n *server, h *Host) { n.l.Close() }, Unreachable, `the bastion says "Connection refused"`},
		{"forwarding forbidden", func(b, n *server, h *Host) {
			b.open = func(nc ssh.NewChannel) bool {
				nc.Reject(ssh.Prohibited, "administratively prohibited")
				return false
			}
		}, Unreachable, "the bastion forbids forwarding"},
		{"forwarding unanswered", func(b, n *server, h *Host) {
			b.open = func(nc ssh.NewChannel) bool { return false }
		}, Timeout, "via jump0: no answer from"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			b, n := newServer(t).start(), newServer(t).start()
			h := n.through("pve1", b)
			h.ConnectTimeout = 300 * time.Millisecond
			tt.set(b, n, h)
			_, err := newPool(t).Run(t.Context(), h, clock(t))
			if codeOf(err) != tt.code || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %s: %v, want %s: %s", codeOf(err), err, tt.code, tt.text)
			}
		})
	}
}

// TestMain lets the test program be a ProxyCommand, a second writer of the audit
// log, or a client whose memory is measured.
func TestMain(m *testing.M) {
	if path := os.Getenv("TEST_AUDIT"); path != "" {
		if err := writeAudit(path, os.Getenv("TEST_AUDIT_LINES")); err != nil {
			log.Fatal(err)
		}
		return
	}
	if addr := os.Getenv("TEST_IDLE"); addr != "" {
		if err := idle(addr, os.Getenv("TEST_IDLE_KEY")); err != nil {
			log.Fatal(err)
		}
		return
	}
	if to := os.Getenv("TEST_PROXY_TO"); to != "" {
		c, err := net.Dial("tcp", to)
		if err != nil {
			log.Fatal(err)
		}
		go io.Copy(c, os.Stdin)
		io.Copy(os.Stdout, c)
		return
	}
	os.Exit(m.Run())
}

func TestProxyCommand(t *testing.T) {
	s := newServer(t).start()
	h := s.hostOf("pve1")
	h.Target.ProxyCommand = "env TEST_PROXY_TO=" + s.l.Addr().String() + " " + os.Args[0]
	p := newPool(t)
	if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
		t.Fatal(err)
	}
	p.Close()
	s.stop() // ends only when the proxy has
}

func TestProxyCommandFailures(t *testing.T) {
	for _, tt := range []struct {
		name, command string
		code          Code
		text          string
	}{
		{"says why", "sh -c 'echo cannot log in to the tunnel >&2; exit 3'", Unreachable, `ProxyCommand said "cannot log in to the tunnel"`},
		{"is not there", "/nonexistent/proxy", Unreachable, "ProxyCommand said"},
		{"ends silently", "true", Unreachable, "ProxyCommand ended before SSH started"},
		{"hangs", "sleep 1000", Timeout, "ProxyCommand does not reach an SSH server within 300ms"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t).start()
			h := s.hostOf("pve1")
			h.ConnectTimeout = 300 * time.Millisecond
			h.Target.ProxyCommand = tt.command
			_, err := newPool(t).Run(t.Context(), h, clock(t))
			if codeOf(err) != tt.code || !strings.Contains(err.Error(), tt.text) {
				t.Errorf("got %s: %v, want %s: %s", codeOf(err), err, tt.code, tt.text)
			}
		})
	}
}

// TestProxyCommandGroupEnds: what the command started ends with it.
func TestProxyCommandGroupEnds(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	s := newServer(t).start()
	h := s.hostOf("pve1")
	h.ConnectTimeout = 300 * time.Millisecond
	h.Target.ProxyCommand = "sh -c 'trap \"\" TERM; sleep 1000 & echo $! > " + file + "; wait; sleep 1000'"
	if _, err := newPool(t).Run(t.Context(), h, clock(t)); codeOf(err) != Timeout {
		t.Fatal(err)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		t.Fatal(err)
	}
	await(t, "the child's end", func() bool { return !running(pid) })
}

// running reports whether a process lives, a zombie not counted.
func running(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(rest, "Z")
}

// await polls, for what other processes do.
func await(t *testing.T, what string, is func() bool) {
	t.Helper()
	tick, end := time.NewTicker(10*time.Millisecond), time.After(10*time.Second)
	defer tick.Stop()
	for !is() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("%s: not within 10 s", what)
		}
	}
}

func TestKnownHostsCommand(t *testing.T) {
	s := newServer(t).start()
	h := s.hostOf("pve1")
	file := write(t, filepath.Join(t.TempDir(), "keys"), string(h.KnownHosts))
	h.KnownHosts = nil
	h.Target.KnownHostsCommand = "/bin/cat " + file
	if _, err := newPool(t).Run(t.Context(), h, clock(t)); err != nil {
		t.Error(err)
	}
	h.Target.KnownHostsCommand = "/bin/echo %H %t ssh-ed25519 AAAA"
	if _, err := newPool(t).Run(t.Context(), h, clock(t)); codeOf(err) != HostKey || !strings.Contains(err.Error(), "looked in KnownHostsCommand") {
		t.Errorf("got %v", err)
	}
	h.Target.KnownHostsCommand = "/bin/cat 'a file'"
	if _, err := newPool(t).Run(t.Context(), h, clock(t)); codeOf(err) != Unsupported {
		t.Errorf("got %v", err)
	}
	h.Target.KnownHostsCommand = "/bin/cat /nonexistent"
	if _, err := newPool(t).Run(t.Context(), h, clock(t)); codeOf(err) != Config {
		t.Errorf("got %v", err)
	}
}

// TestControlMaster uses the connection of a running ssh.
func TestControlMaster(t *testing.T) {
	client := need(t, "ssh", "openssh-client")
	d := startSSHD(t, "MaxSessions 10")
	key := newEd25519()
	d.authorize(t, key)
	dir := t.TempDir()
	sock := filepath.Join(dir, "master")
	h := d.host(t)
	h.KnownHosts, h.Signers = nil, nil
	h.Target.ControlPath = sock
	p := newPool(t)
	_, err := p.Run(t.Context(), h, clock(t))
	if codeOf(err) != Unreachable || !strings.Contains(err.Error(), "no OpenSSH master at "+sock) {
		t.Fatalf("without a master: %v", err)
	}
	known := write(t, filepath.Join(dir, "known_hosts"), d.knownHosts())
	id := write(t, filepath.Join(dir, "id"), string(key.pem))
	master := exec.Command(client, "-F", "none", "-NM", "-o", "ControlPath="+sock, "-o", "UserKnownHostsFile="+known, "-o", "BatchMode=yes",
		"-i", id, "-p", strconv.Itoa(d.port), h.Target.User+"@127.0.0.1")
	if err := master.Start(); err != nil {
		t.Fatal(err)
	}
	defer master.Wait()
	defer master.Process.Kill()
	await(t, "the master's socket", func() bool { _, err := os.Stat(sock); return err == nil })
	runAll(t, p, repeat(h, 20))
	master.Process.Kill()
	master.Wait()
	if _, err := p.Run(t.Context(), h, clock(t)); codeOf(err) != Unreachable {
		t.Errorf("after the master's end: %v", err)
	}
}

// TestHalfOpen stops the sshd process of a connection, as a node that lost power
// does without a word. The next call finds the node again.
func TestHalfOpen(t *testing.T) {
	d := startSSHD(t, "")
	key := newEd25519()
	d.authorize(t, key)
	h := d.host(t)
	h.Signers = key.pem
	p := newPool(t)
	p.time.busy, p.time.alive, p.time.check = 100*time.Millisecond, 200*time.Millisecond, 200*time.Millisecond
	if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
		t.Fatal(err)
	}
	stopped := descendants(d.cmd.Process.Pid)
	for _, pid := range stopped {
		syscall.Kill(pid, syscall.SIGSTOP)
		defer syscall.Kill(pid, syscall.SIGKILL)
	}
	if len(stopped) == 0 {
		t.Fatal("no process to stop")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := p.Run(ctx, h, clock(t)); err != nil {
		t.Errorf("got %v", err)
	}
}

// descendants returns the processes below pid.
func descendants(pid int) []int {
	var out []int
	dirs, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, dir := range dirs {
		b, err := os.ReadFile(dir)
		if err != nil {
			continue
		}
		head, rest, _ := strings.Cut(string(b), " (")
		_, rest, _ = strings.Cut(rest, ") ")
		f := strings.Fields(rest)
		if len(f) > 1 && f[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(head)
			out = append(out, child)
			out = append(out, descendants(child)...)
		}
	}
	return out
}

// TestBastionLostDuringADial costs one more dial, not an error.
func TestBastionLostDuringADial(t *testing.T) {
	bastion, s := newServer(t), newServer(t).start()
	var once sync.Once
	bastion.open = func(ssh.NewChannel) bool {
		lost := false
		once.Do(func() { bastion.drop(); lost = true })
		return !lost
	}
	bastion.start()
	if _, err := newPool(t).Run(t.Context(), s.through("pve1", bastion), clock(t)); err != nil {
		t.Error(err)
	}
}

func TestAddressOfThisSide(t *testing.T) {
	for _, tt := range []struct {
		name string
		set  func(*profiles.Target)
		text string
	}{
		{"another family", func(t *profiles.Target) { t.AddressFamily = "inet6" }, "127.0.0.1 has no address of the family that AddressFamily inet6"},
		{"not ours", func(t *profiles.Target) { t.BindAddress = "192.0.2.1" }, "BindAddress 192.0.2.1: want an address of this machine"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newServer(t).start().hostOf("pve1")
			tt.set(h.Target)
			_, err := newPool(t).Run(t.Context(), h, clock(t))
			if e := (*Error)(nil); !errors.As(err, &e) || e.Code != Config || !strings.Contains(e.Message, tt.text) || !strings.Contains(e.Hint, "in ssh_config") {
				t.Errorf("got %s: %v, want %s: %s", codeOf(err), err, Config, tt.text)
			}
		})
	}
}
