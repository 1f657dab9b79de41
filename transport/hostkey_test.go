package transport

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/knownhosts"
)

// certFor returns key with a host certificate of the test authority.
func certFor(t testing.TB, key testKeyPair, kind uint32, valid time.Duration, principals ...string) *ssh.Certificate {
	t.Helper()
	now := time.Now()
	c := &ssh.Certificate{
		Key: key.public(), CertType: kind, KeyId: "test", ValidPrincipals: principals,
		ValidAfter: uint64(now.Add(-time.Hour).Unix()), ValidBefore: uint64(now.Add(valid).Unix()),
	}
	if kind == ssh.UserCert {
		c.Permissions.Extensions = map[string]string{"permit-pty": ""}
	}
	if err := c.SignCert(rand.Reader, keyKinds()["ca"].signer); err != nil {
		t.Fatal(err)
	}
	return c
}

// hostKeyCases are known_hosts files for a server with an ed25519, an ecdsa and
// an rsa key. %P is the port, @name a key. differs marks where we decide
// otherwise than OpenSSH.
var hostKeyCases = []struct {
	name, lines string
	cert        []string      // principals of the server's certificate; nil is none
	certFor     time.Duration // its validity; 0 is an hour
	alias       string
	revokedFile string
	text        string // of the error; "" is a connection
	differs     bool
}{
	{name: "ed25519 only", lines: "[127.0.0.1]:%P @ed25519"},
	{name: "ecdsa only", lines: "[127.0.0.1]:%P @ecdsa"},
	{name: "rsa only", lines: "[127.0.0.1]:%P @rsa"},
	{name: "hashed", lines: "%H @rsa"},
	{name: "hashed, another host", lines: "%O @rsa", text: "host key unknown: ED25519"},
	{name: "without port", lines: "127.0.0.1 @ed25519"},
	{name: "without port, not the server's first kind", lines: "127.0.0.1 @rsa", differs: true}, // ssh asks for ed25519 and gives up
	{name: "without port, another key", lines: "127.0.0.1 @other", text: "host key unknown"},
	{name: "other port", lines: "[127.0.0.1]:1 @ed25519", text: "host key unknown"},
	{name: "star", lines: "* @ecdsa"},
	{name: "star in brackets", lines: "[127.0.0.*]:%P @rsa"},
	{name: "list", lines: "nas,[127.0.0.?]:%P,x @rsa"},
	{name: "negated", lines: "*,![127.0.0.1]:%P @ed25519"},
	{name: "negated with and without port", lines: "*,!127.0.0.1,![127.0.0.1]:%P @ed25519", text: "host key unknown"},
	{name: "stale rsa beside good ed25519", lines: "[127.0.0.1]:%P @staleRSA\n[127.0.0.1]:%P @ed25519"},
	{name: "stale ed25519 beside good ed25519", lines: "[127.0.0.1]:%P @other\n[127.0.0.1]:%P @ed25519"},
	{name: "stale rsa with port, good one without", lines: "[127.0.0.1]:%P @staleRSA\n127.0.0.1 @ed25519", text: "HOST KEY CHANGED: known RSA"},
	{name: "changed", lines: "[127.0.0.1]:%P @other", text: "HOST KEY CHANGED: known ED25519 SHA256:"},
	{name: "revoked for all", lines: "[127.0.0.1]:%P @ed25519\n@revoked * @ed25519", text: "HOST KEY REVOKED: ED25519"},
	{name: "revoked for another host", lines: "[127.0.0.1]:%P @ed25519\n@revoked elsewhere @ed25519", text: "HOST KEY REVOKED", differs: true},
	{name: "revoked by file", lines: "[127.0.0.1]:%P @ed25519", revokedFile: "# stolen\n@ed25519\n", text: "HOST KEY REVOKED"},
	{name: "revoked by file, another", lines: "[127.0.0.1]:%P @ed25519", revokedFile: "@other\n"},
	{name: "revocation list that is none", lines: "[127.0.0.1]:%P @ed25519", revokedFile: "whatever\n", text: "revoked:1: want a public key"},
	{name: "authority", lines: "@cert-authority [127.0.0.1]:%P @ca", cert: []string{"127.0.0.1"}},
	{name: "authority for all", lines: "@cert-authority * @ca", cert: []string{"127.0.0.1"}},
	{name: "authority without port", lines: "@cert-authority 127.0.0.1 @ca", cert: []string{"127.0.0.1"}},
	{name: "authority of another host", lines: "@cert-authority elsewhere @ca", cert: []string{"127.0.0.1"}, text: "host key unknown"},
	{name: "authority, pattern principal", lines: "@cert-authority * @ca", cert: []string{"127.0.*"}, text: "is not valid for"},
	{name: "another authority", lines: "@cert-authority * @other", cert: []string{"127.0.0.1"}, text: "host key unknown: ED25519"},
	{name: "authority, wrong principal", lines: "@cert-authority * @ca", cert: []string{"elsewhere"}, text: "is not valid for [127.0.0.1]:%P: "},
	{name: "authority, wrong principal, key pinned", lines: "@cert-authority * @ca\n[127.0.0.1]:%P @ed25519", cert: []string{"elsewhere"}},
	{name: "authority, expired", lines: "@cert-authority * @ca", cert: []string{"127.0.0.1"}, certFor: -time.Minute, text: "is not valid for"},
	{name: "authority, server without certificate", lines: "@cert-authority * @ca", text: "host key unknown: ED25519"},
	{name: "authority revoked", lines: "@cert-authority * @ca\n@revoked * @ca", cert: []string{"127.0.0.1"}, text: "HOST KEY REVOKED"},
	{name: "plain key pinned, server has a certificate", lines: "[127.0.0.1]:%P @ed25519", cert: []string{"127.0.0.1"}},
	{name: "another authority beside a pinned key", lines: "@cert-authority * @other\n[127.0.0.1]:%P @ed25519", cert: []string{"127.0.0.1"}},
	{name: "other authority, key pinned without port", lines: "@cert-authority * @other\n127.0.0.1 @ed25519"},
	{name: "garbage beside a good line", lines: "gibberish\n[127.0.0.1]:%P ssh-ed25519 AAAA\n\n# note\n[127.0.0.1]:%P @ed25519"},
	{name: "only garbage", lines: "gibberish\n\x00\x01", text: "host key unknown"},
	{name: "empty", lines: "", text: "host key unknown"},
	{name: "alias", lines: "pve1.lab @rsa", alias: "PVE1.lab"},
	{name: "alias, but the address is listed", lines: "[127.0.0.1]:%P @ed25519", alias: "pve1.lab", text: "host key unknown: ED25519"},
}

func fillHostKeys(t *testing.T, text string, port int) string {
	keys := keyKinds()
	pairs := []string{
		"%P", strconv.Itoa(port), "%H", knownhosts.HashHostname(fmt.Sprintf("[127.0.0.1]:%d", port)), "%O", knownhosts.HashHostname("elsewhere"),
		"@staleRSA", "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAAAgQDEAsNCgKC4ejV5ltFyrM1ZHeJFCTGg0qsu4i8Y0o0bfdn4rIvYJaHjY8h1tKcRVJhUfqQyp+AO8pGsGqQyLZ0Zfs2mGDUhMpDh4SYu1mKOGL8EmoTlLI4bMf2sPmPOkUbnmzC4oIHcKEWvEtBsXhzvJfDKdZBV8nVYAV3nHQKc2w==",
	}
	for _, kind := range []string{"ed25519", "ecdsa", "rsa", "ca", "other"} {
		pairs = append(pairs, "@"+kind, keys[kind].authorized())
	}
	return strings.NewReplacer(pairs...).Replace(text)
}

// TestHostKeysLikeOpenSSH checks each case against a real sshd, and that ssh
// itself decides the same.
func TestHostKeysLikeOpenSSH(t *testing.T) {
	need(t, "sshd", "openssh-server")
	whole := t
	client := newEd25519()
	var daemons = map[string]*daemon{}
	for _, tt := range hostKeyCases {
		t.Run(tt.name, func(t *testing.T) {
			config, id := "", fmt.Sprint(tt.cert, tt.certFor)
			d := daemons[id]
			if d == nil {
				if tt.cert != nil {
					valid := tt.certFor
					if valid == 0 {
						valid = time.Hour
					}
					cert := certFor(t, keyKinds()["ed25519"], ssh.HostCert, valid, tt.cert...)
					file := filepath.Join(whole.TempDir(), "cert.pub")
					config = "HostCertificate " + write(t, file, string(ssh.MarshalAuthorizedKey(cert)))
				}
				d = startSSHD(whole, config)
				d.authorize(t, client)
				daemons[id] = d
			}
			dir := t.TempDir()
			h := d.host(t)
			h.Signers, h.KnownHosts = client.pem, nil
			h.Target.HostKeyAlias = tt.alias
			file := write(t, filepath.Join(dir, "known_hosts"), fillHostKeys(t, tt.lines, d.port)+"\n")
			h.Target.UserKnownHosts = []string{filepath.Join(dir, "missing"), file}
			if tt.revokedFile != "" {
				h.Target.RevokedHostKeys = write(t, filepath.Join(dir, "revoked"), fillHostKeys(t, tt.revokedFile, d.port))
			}
			_, err := newPool(t).Run(t.Context(), h, clock(t))
			text := fillHostKeys(t, tt.text, d.port)
			switch {
			case err != nil && text == "":
				t.Fatalf("got %v", err)
			case text != "":
				if err == nil || !strings.Contains(err.Error(), text) {
					t.Fatalf("got %v, want %q", err, text)
				}
				var e *Error
				if errors.As(err, &e); e.Hint == "" || e.Code != HostKey && e.Code != Config {
					t.Errorf("code %s, hint %q", e.Code, e.Hint)
				}
			}
			if ok := sshConnects(t, h, client); ok != (err == nil) && !tt.differs {
				t.Errorf("ssh connects: %v, we: %v", ok, err)
			}
		})
	}
}

// sshConnects asks the real client.
func sshConnects(t *testing.T, h *Host, key testKeyPair) bool {
	t.Helper()
	ssh := need(t, "ssh", "openssh-client")
	dir := t.TempDir()
	id := write(t, filepath.Join(dir, "id"), string(key.pem))
	args := []string{
		"-F", "none", "-o", "BatchMode=yes", "-o", "StrictHostKeyChecking=yes", "-o", "GlobalKnownHostsFile=none", "-o", "UpdateHostKeys=no",
		"-o", "UserKnownHostsFile=" + strings.Join(h.Target.UserKnownHosts, " "), "-o", "IdentitiesOnly=yes", "-o", "IdentityAgent=none",
		"-i", id, "-p", strconv.Itoa(h.Target.Port), "-l", h.Target.User,
	}
	if h.Target.HostKeyAlias != "" {
		args = append(args, "-o", "HostKeyAlias="+h.Target.HostKeyAlias)
	}
	if h.Target.RevokedHostKeys != "" {
		args = append(args, "-o", "RevokedHostKeys="+h.Target.RevokedHostKeys)
	}
	out, err := exec.Command(ssh, append(args, h.Target.HostName, "/bin/true")...).CombinedOutput()
	if err != nil {
		t.Logf("ssh: %s", out)
	}
	return err == nil
}

// TestUnknownHostTellsTheLineToAdd follows the advice of the error.
func TestUnknownHostTellsTheLineToAdd(t *testing.T) {
	s := newServer(t).start()
	h := s.hostOf("pve1")
	h.KnownHosts = nil
	home := t.TempDir()
	file := filepath.Join(home, ".ssh", "known_hosts")
	os.Mkdir(filepath.Dir(file), 0o700)
	h.Target.UserKnownHosts = []string{file}
	p := New(Options{Audit: MemoryAudit(), Getenv: func(k string) string { return map[string]string{"HOME": home}[k] }})
	defer p.Close()
	_, err := p.Run(t.Context(), h, clock(t))
	var e *Error
	if !errors.As(err, &e) || e.Code != HostKey {
		t.Fatalf("got %v", err)
	}
	addr := s.l.Addr().String()
	want := fmt.Sprintf("host key unknown: ED25519 %s for [127.0.0.1]:%d,127.0.0.1 (looked in ~/.ssh/known_hosts (missing))", ssh.FingerprintSHA256(s.host.PublicKey()), h.Target.Port)
	if e.Message != want {
		t.Errorf("got  %q\nwant %q", e.Message, want)
	}
	_, line, ok := strings.Cut(e.Hint, "then add to ~/.ssh/known_hosts: ")
	if !ok || !strings.Contains(e.Hint, "ssh-keygen -lf /etc/ssh/ssh_host_ed25519_key.pub") {
		t.Fatalf("hint %q", e.Hint)
	}
	write(t, file, line+"\n")
	if _, err := p.Run(t.Context(), h, clock(t)); err != nil {
		t.Errorf("after adding the line for %s: %v", addr, err)
	}
}

func TestWildcard(t *testing.T) {
	for _, tt := range []struct {
		pattern, s string
		want       bool
	}{
		{"*", "", true}, {"", "", true}, {"", "a", false}, {"a*c", "abbc", true}, {"a*c", "abcd", false}, {"?", "", false},
		{"*.lab", "pve1.lab", true}, {"*a*b*", "xxaxxbxx", true}, {"*a*b*", "xxbxxa", false}, {"**", "x", true}, {"pve?", "pve", false},
	} {
		if got := wildcard(tt.pattern, tt.s); got != tt.want {
			t.Errorf("wildcard(%q, %q) = %v", tt.pattern, tt.s, got)
		}
	}
	star := strings.Repeat("*a", 50)
	if wildcard(star+"b", strings.Repeat("a", 5000)) {
		t.Error("matched what ends in no b")
	}
}

// FuzzKnownHosts asserts that no line, however broken, makes a host known whose
// key it does not hold.
func FuzzKnownHosts(f *testing.F) {
	for _, tt := range hostKeyCases {
		f.Add([]byte(tt.lines))
	}
	f.Add([]byte("|1|aGFsbG8=|aGFsbG8= ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBvKCbiX8yUNvbMsmkPQwcxNoSFDOGbPUXCrOvIOrLvH"))
	key := newEd25519().public()
	f.Fuzz(func(t *testing.T, b []byte) {
		k := &hostKeys{names: namesOf("127.0.0.1", 2201, "")}
		k.choose(parseKnownHosts(b, "f"))
		k.algorithms()
		if err := k.check("", nil, key); err == nil {
			t.Errorf("%q makes a fresh key known", b)
		}
	})
}
