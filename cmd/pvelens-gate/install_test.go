//go:build linux

package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"pvelens/allowlist"
)

const installScript = "../pvelens/gate_install.sh"

// install runs the script with a POSIX shell and returns what it says.
func install(t *testing.T, sh string, words ...string) (string, error) {
	t.Helper()
	args := append(strings.Fields(sh), append([]string{installScript}, words...)...)
	cmd := exec.Command(args[0], args[1:]...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

// snapshot lists what the script may change, with owners, modes and contents. It
// leaves out the copies that useradd makes of the files it edits, and the times.
func snapshot(t *testing.T) string {
	t.Helper()
	return shell(t, `
		cd /; find etc usr/local ! -name '*-' ! -name '.pwd.lock' -printf '%p %y %u:%g %m\n' | sort
		find etc usr/local -type f ! -name '*-' ! -name '.pwd.lock' -exec sha256sum {} + | sort
	`)
}

func TestInstallScript(t *testing.T) {
	if !inNamespace(t, "sshd", "sudo", "visudo", "dash", "busybox") {
		return
	}
	key := newKey(t)
	standIn(t, "/usr/local/bin/docker", `id -u`)
	running := startSSHD(t, machine)
	before := snapshot(t)
	words := []string{"--gate", gateBinary(), "--key", authorized(key) + " you@desk"}
	first, err := install(t, "dash", words...)
	if err != nil {
		t.Fatalf("%v\n%s", err, first)
	}
	waitFor(t, "the running sshd to read its files again", func() bool {
		c, err := ssh.Dial("tcp", running, login(key))
		if err == nil {
			c.Close()
		}
		return err == nil
	})
	installed := snapshot(t)
	for _, want := range []string{"etc/sudoers.d/pvelens f root:root 440", "etc/ssh/pvelens_authorized_keys f root:root 644", "etc/ssh/sshd_config.d/pvelens.conf f root:root 644", "usr/local/libexec/pvelens-gate f root:root 755"} {
		if !strings.Contains(installed, want+"\n") {
			t.Errorf("not there: %s", want)
		}
	}
	for _, sh := range []string{"busybox sh", "bash --posix", "sh"} {
		again, err := install(t, sh, words...)
		if err != nil || snapshot(t) != installed || strings.Contains(again, "written") || strings.Count(again, "same ") != 4 {
			t.Errorf("%s, again: %v\n%s", sh, err, again)
		}
	}
	tryInstalled(t, key)

	other := newKey(t)
	if out, err := install(t, "dash", "--gate", gateBinary(), "--key", authorized(other), "--key", authorized(key), "--from", "127.0.0.0/8"); err != nil || strings.Count(out, "written") != 1 {
		t.Errorf("other keys: %v\n%s", err, out)
	}
	tryInstalled(t, other)

	// The second lock: sshd's own file holds without any option on the key.
	if err := os.WriteFile("/etc/ssh/pvelens_authorized_keys", []byte(authorized(key)+"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	tryInstalled(t, key)

	for range 2 {
		if out, err := install(t, "dash", "--remove"); err != nil || snapshot(t) != before || !strings.Contains(out, "nothing of the gate is left") {
			t.Errorf("remove: %v\n%s\n%s", err, out, difference(t, before, snapshot(t)))
		}
	}
}

// tryInstalled logs in as the script's user to an sshd with the machine's own
// configuration.
func tryInstalled(t *testing.T, key ssh.Signer) {
	t.Helper()
	addr := startSSHD(t, machine)
	c := dial(t, addr, "pvelens", key)
	if r := run(c, "/bin/echo pvelens-probe"); r != (result{stdout: "pvelens-probe\n"}) {
		t.Errorf("a permitted command: %v", r)
	}
	if r := run(c, dockerVersion(t)); r != (result{stdout: "0\n"}) {
		t.Errorf("a permitted command of root: %v", r)
	}
	if r := run(c, "/bin/true lock-probe"); r.exit != exitRefused {
		t.Errorf("lock-probe: %v", r)
	}
	for _, line := range []string{"id", "", "/bin/echo pvelens-probe;id", "/usr/bin/sudo -n id"} {
		if r := run(c, line); r.exit != exitRefused || r.stdout != "" {
			t.Errorf("%q: %v", line, r)
		}
	}
	attackChannels(t, addr, "pvelens", key)
	c.Close()
	password := login(key)
	password.Auth = []ssh.AuthMethod{ssh.Password("")}
	for _, config := range []*ssh.ClientConfig{password, login(newKey(t))} {
		if _, err := ssh.Dial("tcp", addr, config); err == nil {
			t.Error("came in without the key")
		}
	}
}

// machine is the machine's own configuration, which allows much.
const machine = "AllowTcpForwarding yes\nPermitTunnel yes\nX11Forwarding yes\nSubsystem sftp internal-sftp\nInclude /etc/ssh/sshd_config\n"

func login(key ssh.Signer) *ssh.ClientConfig {
	return &ssh.ClientConfig{User: "pvelens", Auth: []ssh.AuthMethod{ssh.PublicKeys(key)}, HostKeyCallback: ssh.InsecureIgnoreHostKey()}
}

// The script that pvelens prints names the table that the gate must hold.
func TestInstallScriptComparesTheTable(t *testing.T) {
	if !inNamespace(t, "sshd", "sudo", "visudo", "sh") {
		return
	}
	b, err := os.ReadFile(installScript)
	if err != nil {
		t.Fatal(err)
	}
	for hash, permitted := range map[string]bool{allowlist.Hash(): true, strings.Repeat("0", 64): false} {
		file := filepath.Join(t.TempDir(), "install.sh")
		script := strings.Replace(string(b), "ALLOWLIST_SHA256=''", "ALLOWLIST_SHA256='"+hash+"'", 1)
		if err := os.WriteFile(file, []byte(script), 0o600); err != nil {
			t.Fatal(err)
		}
		out, err := exec.Command("sh", file, "--gate", gateBinary(), "--key", authorized(newKey(t))).CombinedOutput()
		if (err == nil) != permitted || !permitted && !strings.Contains(string(out), "another table") {
			t.Errorf("hash %.8s: %v\n%s", hash, err, out)
		}
	}
}

// When a step fails, all is as it was.
func TestInstallScriptIsNeverHalfDone(t *testing.T) {
	if !inNamespace(t, "sshd", "sudo", "visudo", "dash") {
		return
	}
	key := authorized(newKey(t))
	good := []string{"--gate", gateBinary(), "--key", key}
	standIn(t, "/run/stand-in/not-a-gate", "echo hello")
	tests := []struct {
		name, broken, mended string
		words                []string
		want                 string
	}{
		{"no key", "", "", []string{"--gate", gateBinary()}, "no --key"},
		{"no gate", "", "", []string{"--gate", "/nowhere", "--key", key}, "no gate at /nowhere"},
		{"another program", "", "", []string{"--gate", "/run/stand-in/not-a-gate", "--key", key}, "is no pvelens gate"},
		{"a key with options", "", "", []string{"--gate", gateBinary(), "--key", `command="id" ` + key}, "public key without options"},
		{"no key at all", "", "", []string{"--gate", gateBinary(), "--key", "ssh-ed25519 AAAA"}, "no valid public key"},
		{"two lines", "", "", []string{"--gate", gateBinary(), "--key", key + "\n" + key}, "one line"},
		{"bad addresses", "", "", append([]string{"--from", `10.0.0.1",command="id`}, good...), "--from wants"},
		{"unknown option", "", "", append([]string{"--force"}, good...), "unknown option"},
		{"a user of that name", "useradd -M pvelens", "userdel pvelens", good, "did not make"},
		{"sshd_config invalid", "echo Nonsense >>/etc/ssh/sshd_config", "sed -i /Nonsense/d /etc/ssh/sshd_config", good, "sshd_config is not valid"},
		{"sudoers invalid", "echo nonsense >>/etc/sudoers", "sed -i /nonsense/d /etc/sudoers", good, "/etc/sudoers is not valid"},
		{"sshd_config without Include", "mv /etc/ssh/sshd_config /run/stand-in; : >/etc/ssh/sshd_config", "mv /run/stand-in/sshd_config /etc/ssh", good, "does not apply"},
		{"sudoers without includedir", "sed -i s/^@includedir/#/ /etc/sudoers", "sed -i 's/^# /@includedir /' /etc/sudoers", good, "does not read"},
		{"another command forced", `printf 'Match User pvelens\n\tForceCommand id\n' >/etc/ssh/sshd_config.d/a.conf`, "rm /etc/ssh/sshd_config.d/a.conf", good, "does not apply"},
	}
	for _, state := range []string{"new", "installed"} {
		if state == "installed" {
			if out, err := install(t, "dash", append([]string{"--key", authorized(newKey(t))}, good...)...); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
		}
		for _, tt := range tests {
			if state == "installed" && strings.HasPrefix(tt.broken, "useradd") {
				continue
			}
			start := snapshot(t)
			shell(t, tt.broken)
			broken := snapshot(t)
			out, err := install(t, "dash", tt.words...)
			if err == nil || !strings.Contains(out, tt.want) || strings.Contains(out, "done:") {
				t.Errorf("%s, %s: %v\n%s", state, tt.name, err, out)
			}
			if now := snapshot(t); now != broken {
				t.Errorf("%s, %s: changed:\n%s", state, tt.name, difference(t, broken, now))
			}
			if shell(t, tt.mended); snapshot(t) != start {
				t.Fatalf("%s, %s: the test itself left:\n%s", state, tt.name, difference(t, start, snapshot(t)))
			}
		}
	}
	if left, err := filepath.Glob("/etc/.pvelens-install*"); err != nil || left != nil {
		t.Errorf("left %q, %v", left, err)
	}
}

// Half of the script does nothing.
func TestInstallScriptCutShort(t *testing.T) {
	b, err := os.ReadFile(installScript)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(b), "\n")
	for _, line := range lines[:len(lines)-2] {
		if strings.HasPrefix(line, "main ") {
			t.Error("main is called before the last line")
		}
	}
	if last := lines[len(lines)-2]; last != "main \"$@\" </dev/null\n" || !strings.Contains(string(b), "\nmain() {\n") {
		t.Errorf("ends with %q", last)
	}
	if !strings.Contains(string(b), "gate="+allowlist.GatePath+"\n") {
		t.Errorf("does not install to %s", allowlist.GatePath)
	}
}

func difference(t *testing.T, a, b string) string {
	t.Helper()
	dir := t.TempDir()
	for name, s := range map[string]string{"a": a, "b": b} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, _ := exec.Command("diff", filepath.Join(dir, "a"), filepath.Join(dir, "b")).Output()
	return string(out)
}
