package transport

import (
	"bufio"
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"pvelens/allowlist"
	"pvelens/profiles"
)

// need returns the path of a program, or skips the test; in CI it must be there.
func need(t testing.TB, name, install string) string {
	t.Helper()
	if name == "sshd" {
		needRoot(t)
	}
	for _, dir := range []string{"", "/usr/sbin/", "/sbin/"} {
		if path, err := exec.LookPath(dir + name); err == nil {
			return path
		}
	}
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing: install %s", name, install)
	}
	t.Skipf("%s is missing: install %s", name, install)
	return ""
}

func needRoot(t testing.TB) {
	t.Helper()
	if os.Getuid() != 0 {
		if os.Getenv("CI") == "true" {
			t.Fatal("run this test as root")
		}
		t.Skip("run as root: sshd lets in no locked account, and some tests make users")
	}
}

// A testKeyPair is a private key in the forms that tests need.
type testKeyPair struct {
	raw    crypto.PrivateKey
	pem    []byte
	signer ssh.Signer
}

func (k testKeyPair) public() ssh.PublicKey { return k.signer.PublicKey() }

func (k testKeyPair) authorized() string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(k.public())))
}

func pair(raw crypto.PrivateKey) testKeyPair {
	signer, err := ssh.NewSignerFromKey(raw)
	if err != nil {
		panic(err)
	}
	block, err := ssh.MarshalPrivateKey(raw, "")
	if err != nil {
		panic(err)
	}
	return testKeyPair{raw, pem.EncodeToMemory(block), signer}
}

func newEd25519() testKeyPair {
	_, k, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		panic(err)
	}
	return pair(k)
}

// keyKinds has a key of each kind, made once.
var keyKinds = sync.OnceValue(func() map[string]testKeyPair {
	e, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		panic(err)
	}
	r, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err)
	}
	return map[string]testKeyPair{"ed25519": newEd25519(), "ecdsa": pair(e), "rsa": pair(r), "ca": newEd25519(), "other": newEd25519()}
})

// write puts a file for this user only into dir.
func write(t testing.TB, path string, data string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A daemon is a real sshd on a loopback port.
type daemon struct {
	dir  string
	port int
	cmd  *exec.Cmd
	log  *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) add(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.b.WriteString(line + "\n")
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// startSSHD starts an sshd with a host key of each kind. The lines of config
// come first and therefore win; $DIR in them is the daemon's folder. It is also
// the logins' home, so that no file of the real one is read.
func startSSHD(t testing.TB, config string) *daemon {
	t.Helper()
	path := need(t, "sshd", "openssh-server")
	d := &daemon{dir: t.TempDir(), port: freePort(t), log: &syncBuffer{}}
	os.Chmod(filepath.Dir(d.dir), 0o755) // other users' logins read it
	os.Chmod(d.dir, 0o755)
	os.MkdirAll("/run/sshd", 0o755)
	conf := strings.ReplaceAll(config, "$DIR", d.dir) + fmt.Sprintf(`
Port %d
ListenAddress 127.0.0.1
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
AcceptEnv LANG LC_*
MaxStartups 100:30:200
SetEnv HOME=%s
AuthorizedKeysFile %s/authorized_keys
`, d.port, d.dir, d.dir)
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		conf += "HostKey " + write(t, filepath.Join(d.dir, "host_"+kind), string(keyKinds()[kind].pem)) + "\n"
	}
	d.authorize(t, newEd25519())
	d.cmd = exec.Command(path, "-D", "-e", "-f", write(t, filepath.Join(d.dir, "sshd_config"), conf))
	stderr, err := d.cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := d.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ready := make(chan bool)
	go func() {
		sc := bufio.NewScanner(stderr)
		for up := false; sc.Scan(); {
			d.log.add(sc.Text())
			if !up && strings.Contains(sc.Text(), "Server listening") {
				up = true
				close(ready)
			}
		}
		d.cmd.Wait()
	}()
	t.Cleanup(func() {
		d.cmd.Process.Kill()
		if t.Failed() {
			t.Logf("sshd said:\n%s", d.log)
		}
	})
	<-ready
	return d
}

// authorize makes keys the only ones that may log in.
func (d *daemon) authorize(t testing.TB, keys ...testKeyPair) {
	t.Helper()
	text := ""
	for _, k := range keys {
		text += k.authorized() + "\n"
	}
	if err := os.WriteFile(filepath.Join(d.dir, "authorized_keys"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func me(t testing.TB) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

// knownHosts has the daemon's own keys.
func (d *daemon) knownHosts() string {
	text := ""
	for _, kind := range []string{"ed25519", "ecdsa", "rsa"} {
		text += fmt.Sprintf("[127.0.0.1]:%d %s\n", d.port, keyKinds()[kind].authorized())
	}
	return text
}

// host is a Host that trusts the daemon and has no keys.
func (d *daemon) host(t testing.TB) *Host {
	return &Host{
		Target: &profiles.Target{
			Name: "pve1", HostName: "127.0.0.1", Port: d.port, User: me(t), IdentityAgent: "none",
		},
		Role: allowlist.PVE, Become: allowlist.AsIs, KnownHosts: []byte(d.knownHosts()),
	}
}
