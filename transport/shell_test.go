package transport

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pvelens/allowlist"
)

// testUser is another one in each process: tests may run twice at once.
var testUser = fmt.Sprint("pvelens-t", os.Getpid())

// newUser makes the test user with an empty home, and removes both at the end.
func newUser(t *testing.T) (home string) {
	t.Helper()
	needRoot(t)
	add, del := need(t, "useradd", "passwd"), need(t, "userdel", "passwd")
	top, err := os.MkdirTemp("", "home")
	if err != nil {
		t.Fatal(err)
	}
	os.Chmod(top, 0o755)
	home = filepath.Join(top, testUser)
	exec.Command(del, testUser).Run() // of a run that was killed
	if out, err := exec.Command(add, "-m", "-k", "/nonexistent", "-d", home, "-s", "/bin/sh", "-p", "*", testUser).CombinedOutput(); err != nil {
		t.Fatalf("useradd: %v: %s", err, out)
	}
	t.Cleanup(func() {
		await(t, "userdel", func() bool {
			out, err := exec.Command(del, testUser).CombinedOutput()
			if err != nil {
				ps, _ := exec.Command("ps", "-u", testUser, "-o", "pid,stat,args").Output()
				t.Logf("%s%s", out, ps)
			}
			return err == nil
		})
		os.RemoveAll(top)
	})
	return home
}

func setShell(t *testing.T, path string) {
	t.Helper()
	if out, err := exec.Command(need(t, "usermod", "passwd"), "-s", path, testUser).CombinedOutput(); err != nil {
		t.Fatalf("usermod: %v: %s", err, out)
	}
}

// ownHome keeps the login's own home.
const ownHome = "SetEnv PVELENS=test"

// asUser is the daemon with the test user's login.
func (d *daemon) asUser(t *testing.T) *Host {
	key := newEd25519()
	d.authorize(t, key)
	h := d.host(t)
	h.Target.User, h.Signers = testUser, key.pem
	return h
}

// home writes the test user's files anew.
func writeHome(t *testing.T, home string, files map[string]string) {
	t.Helper()
	old, _ := os.ReadDir(home)
	for _, f := range old {
		os.RemoveAll(filepath.Join(home, f.Name()))
	}
	for name, text := range files {
		path := filepath.Join(home, name)
		os.MkdirAll(filepath.Dir(path), 0o755)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// The file that each shell reads for a command.
var loginShells = []struct{ name, install, rc string }{
	{"bash", "bash", ".bashrc"},
	{"dash", "dash", ""},
	{"zsh", "zsh", ".zshenv"},
	{"fish", "fish", ".config/fish/config.fish"},
	{"tcsh", "tcsh", ".tcshrc"},
	{"busybox", "busybox", ""},
}

func TestLoginShells(t *testing.T) {
	home := newUser(t)
	d := startSSHD(t, "PrintMotd yes\n"+ownHome)
	h := d.asUser(t)
	mounts := mountsForm(t)
	for _, sh := range loginShells {
		t.Run(sh.name, func(t *testing.T) {
			path := need(t, sh.name, sh.install)
			if sh.name == "busybox" {
				link := filepath.Join(filepath.Dir(home), "ash")
				if err := os.Symlink(path, link); err != nil {
					t.Fatal(err)
				}
				path = link
			}
			setShell(t, path)
			writeHome(t, home, nil)
			checkShell(t, h, mounts, false)
			if sh.rc == "" {
				return
			}
			writeHome(t, home, map[string]string{sh.rc: "echo 'Welcome to the lab'\necho 'no newline' | tr -d '\\n'\n"})
			checkShell(t, h, mounts, true)
			writeHome(t, home, map[string]string{sh.rc: "sh -c 'echo to stderr >&2'\n"})
			checkShell(t, h, mounts, false)
			writeHome(t, home, map[string]string{sh.rc: "date +%N\n"})
			_, err := newPool(t).Run(t.Context(), h, clock(t))
			if codeOf(err) != Unsupported || !strings.Contains(err.Error(), "login shell prints text before command output") {
				t.Errorf("text that varies: got %v", err)
			}
		})
	}
	t.Run("ssh/rc", func(t *testing.T) {
		setShell(t, "/bin/sh")
		writeHome(t, home, map[string]string{".ssh/rc": "echo hello from rc\n"})
		checkShell(t, h, mounts, true)
	})
}

// mountsForm is a form with blanks, brackets and a caret in a word.
func mountsForm(t *testing.T) allowlist.Command {
	t.Helper()
	for _, f := range allowlist.Forms() {
		if f.ID == "mounts" {
			return command(t, f.Argv...)
		}
	}
	t.Fatal("the table has no form mounts")
	return allowlist.Command{}
}

// checkShell runs three commands at once on a fresh connection, then one more.
func checkShell(t *testing.T, h *Host, mounts allowlist.Command, noise bool) {
	t.Helper()
	p := newPool(t)
	runAll(t, p, repeat(h, 2))
	res, err := p.Run(t.Context(), h, mounts)
	if err != nil {
		t.Fatal(err)
	}
	if res.Exit != 0 || !strings.Contains(string(res.Stdout), " /proc proc rw\n") || res.Noise != noise || strings.Contains(string(res.Stdout), "elcome") {
		t.Errorf("exit %d, noise %v, stdout %.200q, stderr %q", res.Exit, res.Noise, res.Stdout, res.Stderr)
	}
}

func TestShellsThatRunNothing(t *testing.T) {
	home := newUser(t)
	d := startSSHD(t, ownHome)
	h := d.asUser(t)
	for _, tt := range []struct {
		name, shell string
		files       map[string]string
		code        Code
		text        string
	}{
		{"restricted", "rbash", nil, Unsupported, "restricted login shell"},
		{"nologin", "nologin", nil, PermissionDenied, "this account may not run commands"},
		{"false", "false", nil, Unsupported, "the login shell does not run commands: exit 1"},
		{"rc that exits", "bash", map[string]string{".bashrc": "echo no entry; exit 4\n"}, Unsupported, `exit 4, it said "no entry"`},
		{"rc without end", "bash", map[string]string{".bashrc": "while true; do echo spam; done\n"}, Unsupported, "prints without end"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			setShell(t, need(t, tt.shell, "bash, login"))
			writeHome(t, home, tt.files)
			_, err := newPool(t).Run(t.Context(), h, clock(t))
			if codeOf(err) != tt.code || !strings.Contains(fmt.Sprint(err), tt.text) {
				t.Errorf("got %s: %v, want %s: %s", codeOf(err), err, tt.code, tt.text)
			}
		})
	}
}

// TestMendedShellIsSeen: a shell that ran nothing is asked anew by the next call.
func TestMendedShellIsSeen(t *testing.T) {
	s := newServer(t)
	broken := true
	s.run = func(c *call) {
		if broken {
			io.WriteString(c, "nope")
			c.exit(1)
			return
		}
		answer(c)
	}
	s.start()
	p := newPool(t)
	h := s.hostOf("pve1")
	if _, err := p.Run(t.Context(), h, clock(t)); codeOf(err) != Unsupported {
		t.Errorf("got %v", err)
	}
	s.drop()
	broken = false
	if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
		t.Error(err)
	}
}

// TestStdin: a command's stdin ends at once, but a gate's only with the session.
func TestStdin(t *testing.T) {
	s := newServer(t)
	ended := make(chan string, 10)
	s.run = func(c *call) {
		if isProbe(c) {
			answer(c)
			return
		}
		io.WriteString(c, "started")
		io.Copy(io.Discard, c)
		ended <- c.line
		c.exit(0)
	}
	s.start()
	p := newPool(t)
	h := s.hostOf("pve1")
	if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
		t.Fatal(err)
	}
	<-ended
	h.Become = allowlist.ViaGate
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if _, err := p.Run(ctx, h, clock(t)); codeOf(err) != Timeout {
		t.Errorf("stdin ended before the session: %v", err)
	}
	if line := <-ended; line != "/bin/date +%s.%N%z" {
		t.Errorf("the gate was sent %q", line)
	}
}

// TestRemoteEnd: after a cancelled call nothing of ours runs on the node when
// the form's limit and three seconds are over. A FIFO in the place of a file
// holds the command.
func TestRemoteEnd(t *testing.T) {
	if testing.Short() {
		t.Skip("takes as long as a form's limit")
	}
	newUser(t)
	if _, err := os.Stat("/etc/pve"); err == nil {
		t.Skip("/etc/pve exists: this is a Proxmox node")
	}
	if err := os.Mkdir("/etc/pve", 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll("/etc/pve")
	if out, err := exec.Command("mkfifo", "-m", "0644", "/etc/pve/user.cfg").CombinedOutput(); err != nil {
		t.Fatalf("mkfifo: %v: %s", err, out)
	}
	pools := command(t, "/bin/grep", "-sE", "^pool:", "/etc/pve/user.cfg")
	d := startSSHD(t, "")
	user := d.asUser(t)
	root := d.host(t)
	root.Signers = user.Signers
	t.Run("as", func(t *testing.T) {
		for name, h := range map[string]*Host{"user": user, "root": root} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				p := newPool(t)
				p.time.orphan = -pools.Form().Timeout()
				if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error)
				for range maxSessions {
					go func() { _, err := p.Run(ctx, h, pools); done <- err }()
				}
				uid := map[string]string{"user": testUser, "root": "root"}[name]
				await(t, "the commands' start", func() bool { return held(t, uid) == maxSessions })
				start := time.Now()
				cancel()
				for range maxSessions {
					if err := <-done; codeOf(err) != Cancelled {
						t.Errorf("got %v", err)
					}
				}
				if d := time.Since(start); d > time.Second {
					t.Errorf("the callers waited %v", d)
				}
				soon, cancel := context.WithTimeout(t.Context(), 5*time.Second)
				defer cancel()
				if _, err := p.Run(soon, h, clock(t)); err != nil {
					t.Errorf("commands that hang block all others: %v", err)
				}
				limit := pools.Form().Timeout() + 3*time.Second
				for held(t, uid) > 0 {
					if time.Since(start) > limit {
						t.Fatalf("still runs after %v", limit)
					}
					<-time.After(50 * time.Millisecond)
				}
			})
		}
	})
}

// held counts the greps of TestRemoteEnd that run as the named user.
func held(t *testing.T, name string) int {
	t.Helper()
	out, _ := exec.Command(need(t, "ps", "procps"), "-u", name, "-o", "args=").Output()
	n := 0
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "/bin/grep -sE ^pool: /etc/pve/user.cfg") {
			n++
		}
	}
	return n
}
