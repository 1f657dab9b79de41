package main

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"pvelens/allowlist"
	"pvelens/fixtures"
)

// forcedCommand is what sshd runs in the place of a node: it answers the line
// that was sent with the recording of it.
func forcedCommand(node, line string) int {
	line = regexp.MustCompile(`^/usr/bin/timeout -k 2 [0-9]+ `).ReplaceAllString(line, "")
	c, err := allowlist.CheckLine(allowlist.PVE, line)
	if err != nil {
		fmt.Fprintln(os.Stderr, "not permitted")
		return 127
	}
	switch c.ID() {
	case "probe":
		fmt.Println("pvelens-probe")
		return 0
	case "lock-probe":
		return 0
	}
	a, ok := fixtures.HeimlaborPVE1().Answer(c)
	if !ok {
		fmt.Fprintln(os.Stderr, node+": no recording")
		return 127
	}
	os.Stdout.Write(a.Stdout)
	os.Stderr.Write(a.Stderr)
	return a.Exit
}

// need returns the path of a program, or skips the test; where CI is set, a
// missing program is a failure.
func need(t *testing.T, program, pkg string) string {
	t.Helper()
	if program == "sshd" && os.Getuid() != 0 && os.Getenv("CI") != "true" {
		t.Skip("run as root: sshd lets in no locked account")
	}
	for _, dir := range append(filepath.SplitList(os.Getenv("PATH")), "/usr/sbin", "/sbin") {
		if p := filepath.Join(dir, program); isExecutable(p) {
			return p
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: install %s", program, pkg)
	}
	t.Skipf("%s is missing: install %s", program, pkg)
	return ""
}

func isExecutable(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// realNode starts a real sshd on loopback that serves the recordings of pve1,
// and writes the profile and ssh_config that reach it.
func realNode(t *testing.T) (env func(string) string) {
	t.Helper()
	sshd, keygen := need(t, "sshd", "openssh-server"), need(t, "ssh-keygen", "openssh-client")
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	for _, k := range []string{"host", "id"} {
		if out, err := exec.Command(keygen, "-q", "-t", "ed25519", "-N", "", "-f", path(k)).CombinedOutput(); err != nil {
			t.Fatalf("ssh-keygen: %v: %s", err, out)
		}
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	port := freePort(t)
	pub := func(name string) string {
		b, err := os.ReadFile(path(name + ".pub"))
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	for name, text := range map[string]string{
		"forced":      "#!/bin/sh\nPVELENS_TEST_NODE=pve1 exec " + self + "\n",
		"authorized":  fmt.Sprintf("restrict,command=%q %s", path("forced"), pub("id")),
		"known_hosts": fmt.Sprintf("[127.0.0.1]:%d %s", port, pub("host")),
		"sshd_config": fmt.Sprintf("ListenAddress 127.0.0.1\nPort %d\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nPasswordAuthentication no\nUsePAM no\nPermitRootLogin yes\n", port, path("host"), path("authorized")),
		"ssh_config":  fmt.Sprintf("Host pve1\n  HostName 127.0.0.1\n  Port %d\n  User %s\n  IdentityFile %s\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile %s\n", port, me.Username, path("id"), path("known_hosts")),
	} {
		if err := os.WriteFile(path(name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(path("conf"), 0o700); err != nil {
		t.Fatal(err)
	}
	profile := fmt.Sprintf("[profiles.real]\nnodes = [\"pve1\"]\nssh_config = %q\nconnect_timeout = \"10s\"\n", path("ssh_config"))
	if err := os.WriteFile(path("conf/profiles.toml"), []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	startSSHD(t, sshd, path("sshd_config"), port)
	vars := map[string]string{"PVELENS_HOME": path("conf"), "XDG_STATE_HOME": path("state"), "HOME": me.HomeDir, "PATH": os.Getenv("PATH")}
	return func(name string) string { return vars[name] }
}

func freePort(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startSSHD runs sshd until the test ends, and waits until it listens.
func startSSHD(t *testing.T, sshd, config string, port int) {
	t.Helper()
	if err := os.MkdirAll("/run/sshd", 0o755); err != nil && os.Getuid() == 0 {
		t.Fatal(err)
	}
	var log bytes.Buffer
	cmd := exec.Command(sshd, "-D", "-e", "-f", config)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	listening, ended := make(chan bool, 1), make(chan bool)
	go func() {
		defer close(ended)
		buf := make([]byte, 4096)
		for {
			n, err := stderr.Read(buf)
			log.Write(buf[:n])
			if bytes.Contains(log.Bytes(), []byte("listening on 127.0.0.1 port "+strconv.Itoa(port))) {
				select {
				case listening <- true:
				default:
				}
			}
			if err != nil {
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-ended
		_ = cmd.Wait()
	})
	select {
	case <-listening:
	case <-ended:
		t.Fatalf("sshd ended: %s", log.String())
	}
}

func TestToolsOverARealSSHD(t *testing.T) {
	env := realNode(t)
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"list-nodes"}, exitIncomplete, `"pve_version":"9.`},
		{[]string{"get-node-capacity", "pve1"}, exitOK, `"memory_total_bytes":25276026880`},
		{[]string{"list-guests"}, exitIncomplete, `"total":17`},
		{[]string{"get-guest-config", "102"}, exitOK, `"/var/lib/immich"`},
		{[]string{"capabilities"}, exitOK, `"level":"root"`},
		{[]string{"doctor"}, exitOK, `"status":"ok"`},
	} {
		if c.args[0] == "capabilities" && env("HOME") != "/root" {
			continue // the login user must be root for it
		}
		var out, errs bytes.Buffer
		code := run(t.Context(), append(c.args, "--json"), stdio{in: os.Stdin, out: &out, err: &errs}, env)
		if code != c.code || !strings.Contains(out.String(), c.want) {
			t.Errorf("%v: exit %d, want %d\nstdout %s\nstderr %s", c.args, code, c.code, out.String(), errs.String())
		}
	}
	var out bytes.Buffer
	if code := run(t.Context(), []string{"audit", "verify"}, stdio{out: &out, err: &out}, env); code != exitOK {
		t.Errorf("audit verify: exit %d: %s", code, out.String())
	}
}
