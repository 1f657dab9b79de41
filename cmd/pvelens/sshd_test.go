package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A lab is a folder with keys, a few real sshds on loopback, and the ssh_config
// and known_hosts of a user who reaches them.
type lab struct {
	*testing.T
	dir, sshd, user string
	ports           map[string]int
}

func newLab(t *testing.T) *lab {
	t.Helper()
	l := &lab{T: t, sshd: need(t, "sshd", "openssh-server"), dir: t.TempDir(), ports: map[string]int{}}
	need(t, "ssh", "openssh-client")
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	l.user = me.Username
	for _, k := range []string{"id", "other", "locked", "host", "ca"} {
		phrase := ""
		if k == "locked" {
			phrase = "secret"
		}
		l.do("ssh-keygen", "-q", "-t", "ed25519", "-N", phrase, "-f", l.path(k))
	}
	l.do("ssh-keygen", "-q", "-t", "rsa", "-b", "3072", "-N", "", "-f", l.path("rsa"))
	l.do("ssh-keygen", "-q", "-s", l.path("ca"), "-I", "node", "-h", "-n", "pve-ca", l.path("host.pub"))
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	l.put("forced", "#!/bin/sh\nPVELENS_TEST_NODE=pve1 exec "+self+"\n")
	l.put("noisy", "#!/bin/sh\necho welcome\nPVELENS_TEST_NODE=pve1 exec "+self+"\n")
	l.put("authorized", l.get("id.pub")+l.get("locked.pub"))
	return l
}

func (l *lab) path(name string) string { return filepath.Join(l.dir, name) }

func (l *lab) put(name, text string) {
	l.Helper()
	if err := os.MkdirAll(filepath.Dir(l.path(name)), 0o700); err != nil {
		l.Fatal(err)
	}
	if err := os.WriteFile(l.path(name), []byte(text), 0o700); err != nil {
		l.Fatal(err)
	}
}

func (l *lab) get(name string) string {
	l.Helper()
	b, err := os.ReadFile(l.path(name))
	if err != nil {
		l.Fatal(err)
	}
	return string(b)
}

func (l *lab) do(program string, args ...string) string {
	l.Helper()
	out, err := exec.Command(need(l.T, program, "openssh-client"), args...).CombinedOutput()
	if err != nil {
		l.Fatalf("%s: %v: %s", program, err, out)
	}
	return string(out)
}

// serve starts an sshd; the first of two settings of a kind counts.
func (l *lab) serve(name string, settings ...string) {
	l.Helper()
	l.ports[name] = freePort(l.T)
	lines := append(settings, "ForceCommand "+l.path("forced"), "HostKey "+l.path("host"), "PubkeyAuthentication yes",
		"ListenAddress 127.0.0.1", fmt.Sprintf("Port %d", l.ports[name]), "AuthorizedKeysFile "+l.path("authorized"),
		"PidFile none", "StrictModes no", "PasswordAuthentication no", "KbdInteractiveAuthentication no", "UsePAM no", "PermitRootLogin yes")
	if strings.HasPrefix(settings[0], "HostKey ") {
		lines = append(lines[:len(settings)+1], lines[len(settings)+2:]...) // host keys add up
	}
	l.put(name+".sshd", strings.Join(lines, "\n")+"\n")
	startSSHD(l.T, l.sshd, l.path(name+".sshd"), l.ports[name])
}

// agent is an ssh-agent that holds the encrypted key.
func (l *lab) agent() string {
	l.Helper()
	socket := l.path("agent")
	cmd := exec.Command(need(l.T, "ssh-agent", "openssh-client"), "-D", "-a", socket)
	if err := cmd.Start(); err != nil {
		l.Fatal(err)
	}
	l.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for end := time.Now().Add(5 * time.Second); ; {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			break
		} else if time.Now().After(end) {
			l.Fatal(err)
		}
	}
	l.put("phrase", "#!/bin/sh\necho secret\n")
	add := exec.Command(need(l.T, "ssh-add", "openssh-client"), "-q", l.path("locked"))
	add.Env = append(os.Environ(), "SSH_AUTH_SOCK="+socket, "SSH_ASKPASS="+l.path("phrase"), "SSH_ASKPASS_REQUIRE=force", "DISPLAY=:0")
	if out, err := add.CombinedOutput(); err != nil {
		l.Fatalf("ssh-add: %v: %s", err, out)
	}
	return socket
}

// key is a public key without its comment, as in known_hosts.
func (l *lab) key(name string) string {
	return strings.Join(strings.Fields(l.get(name + ".pub"))[:2], " ")
}

func (l *lab) known(server, key string) string {
	return fmt.Sprintf("[127.0.0.1]:%d %s\n", l.ports[server], l.key(key))
}

// Whenever `ssh HOST` works, so does the program; when it does not, the program
// says why and what to do.
func TestUserReachesNodes(t *testing.T) {
	l := newLab(t)
	l.serve("plain", "LogLevel INFO")
	l.serve("certified", "HostCertificate "+l.path("host-cert.pub"))
	l.serve("second", "AuthenticationMethods publickey,password", "PasswordAuthentication yes")
	l.serve("noisy", "ForceCommand "+l.path("noisy"))
	l.serve("mute", "ForceCommand /bin/true")
	l.serve("changed", "HostKey "+l.path("rsa"))
	socket := l.agent()
	known := l.known("second", "host") + l.known("noisy", "host") + l.known("mute", "host") + "pve-alias " + l.key("host") + "\n@cert-authority pve-ca " + l.key("ca") + "\n"
	l.put("more", "Match exec \"touch "+l.path("made")+"\"\n Compression no\n")
	l.put("known", l.known("plain", "host"))
	l.put("known2", known)
	l.do("ssh-keygen", "-q", "-t", "rsa", "-b", "2048", "-N", "", "-f", l.path("rsa-old"))
	l.put("known-old", l.known("changed", "rsa-old"))
	config := func(server string, lines ...string) string {
		return fmt.Sprintf("Host pve1\n HostName 127.0.0.1\n Port %d\n %s\n", l.ports[server], strings.Join(lines, "\n "))
	}
	id := "IdentityFile " + l.path("id")
	for _, tt := range []struct {
		name, config, profile, want string
		ssh                         bool // works with ssh
	}{
		{"plain", config("plain", id), "", "", true},
		{"jump", config("plain", id, "ProxyJump hop1,hop2"), "", "", true},
		{"encrypted key in the agent", config("plain", "IdentityFile "+l.path("locked"), "IdentityAgent "+socket), "", "", true},
		{"encrypted key", config("plain", "IdentityFile "+l.path("locked")), "", "run: ssh-add ~/locked", false},
		{"alias", config("plain", id, "HostKeyAlias pve-alias"), "", "", true},
		{"authority", config("certified", id, "HostKeyAlias pve-ca"), "", "", true},
		{"noisy shell", config("noisy", id), "", "", true},
		{"mute shell", config("mute", id), "", "command= before the key in authorized_keys, and for ForceCommand", true},
		{"changed key", config("changed", id, "UserKnownHostsFile "+l.path("known-old")), "", "HOST KEY CHANGED", false},
		{"unknown key", config("changed", id), "", l.known("changed", "rsa"), false},
		{"unknown key, kept nowhere", config("plain", id, "UserKnownHostsFile /dev/null", "StrictHostKeyChecking no"), "", "in place of /dev/null", true},
		{"2FA", config("second", id), "", "server also requires password (2FA)", false},
		{"wrong key", config("plain", "IdentityFile "+l.path("other")), "", "refused 1 key", false},
		{"no key", config("plain", "IdentityFile "+l.path("gone")), "", "no such file: ~/gone", false},
		{"Match exec", config("plain", id) + "Include " + l.path("more") + "\n", "", l.path("more") + ":1: Match exec would start a program", true},
		{"ProxyCommand", config("plain", id, "ProxyCommand sh -c 'echo no tunnel >&2'"), "allow_local_commands = true", `ProxyCommand said "no tunnel"`, false},
	} {
		common := "Host *\n User " + l.user + "\n UserKnownHostsFile " + l.path("known") + " " + l.path("known2") + "\n GlobalKnownHostsFile none\n IdentitiesOnly yes\n"
		hops := ""
		for i := range 2 {
			hops += strings.Replace(config("plain", id), "pve1", fmt.Sprintf("hop%d", i+1), 1)
		}
		l.put("ssh_config", tt.config+hops+"Host *\n IdentityAgent none\n"+common)
		l.put("conf/profiles.toml", fmt.Sprintf("[profiles.p]\nnodes = [\"pve1\"]\nssh_config = %q\n%s\n", l.path("ssh_config"), tt.profile))
		vars := map[string]string{"PVELENS_HOME": l.path("conf"), "XDG_STATE_HOME": l.path("state"), "PATH": os.Getenv("PATH"), "HOME": l.dir}
		var out, errs bytes.Buffer
		_ = run(t.Context(), []string{"list-nodes", "--json"}, stdio{in: os.Stdin, out: &out, err: &errs}, func(name string) string { return vars[name] })
		if _, err := os.Stat(l.path("made")); err == nil {
			t.Errorf("%s: a local program was started", tt.name)
		}
		if answered := strings.Contains(out.String(), `"pve_version":"9.`); answered != (tt.want == "") || !strings.Contains(errs.String(), strings.TrimSpace(tt.want)) {
			t.Errorf("%s: want %q\nstdout %s\nstderr %s", tt.name, tt.want, out.String(), errs.String())
		}
		probe := exec.CommandContext(t.Context(), "ssh", "-F", l.path("ssh_config"), "-o", "BatchMode=yes", "pve1", "/bin/echo pvelens-probe")
		if text, err := probe.CombinedOutput(); (err == nil) != tt.ssh {
			t.Errorf("%s: ssh itself: %v: %s", tt.name, err, text)
		}
		_ = os.Remove(l.path("made"))
	}
}
