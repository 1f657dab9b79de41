package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"

	"pvelens/profiles"
)

// serveAgent serves a on a socket and returns its path.
func serveAgent(t testing.TB, a agent.Agent) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() { agent.ServeAgent(a, c); c.Close() }()
		}
	}()
	return path
}

func agentWith(t testing.TB, keys ...testKeyPair) string {
	t.Helper()
	ring := agent.NewKeyring()
	for _, k := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: k.raw}); err != nil {
			t.Fatal(err)
		}
	}
	return serveAgent(t, ring)
}

// A tokenAgent holds a security key: a token that signs with flags and a counter.
type tokenAgent struct {
	agent.Agent
	key *ecdsa.PrivateKey
	pub ssh.PublicKey
}

func newToken(t testing.TB) *tokenAgent {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	point, err := key.PublicKey.Bytes()
	if err != nil {
		t.Fatal(err)
	}
	pub, err := ssh.ParsePublicKey(ssh.Marshal(struct{ Type, Curve, Point, App string }{ssh.KeyAlgoSKECDSA256, "nistp256", string(point), "ssh:"}))
	if err != nil {
		t.Fatal(err)
	}
	return &tokenAgent{agent.NewKeyring(), key, pub}
}

func (a *tokenAgent) List() ([]*agent.Key, error) {
	return []*agent.Key{{Format: a.pub.Type(), Blob: a.pub.Marshal(), Comment: "token"}}, nil
}

func (a *tokenAgent) Sign(key ssh.PublicKey, data []byte) (*ssh.Signature, error) {
	app, msg := sha256.Sum256([]byte("ssh:")), sha256.Sum256(data)
	rest := []byte{1, 0, 0, 0, 7} // touched; the counter
	digest := sha256.Sum256(slices.Concat(app[:], rest, msg[:]))
	r, s, err := ecdsa.Sign(rand.Reader, a.key, digest[:])
	if err != nil {
		return nil, err
	}
	return &ssh.Signature{Format: a.pub.Type(), Blob: ssh.Marshal(struct{ R, S *big.Int }{r, s}), Rest: rest}, nil
}

// A wallet is what an auth case starts from: a home with keys in it.
type wallet struct {
	t    *testing.T
	home string
	tgt  *profiles.Target
	d    *daemon
}

// put writes an identity file and lists it.
func (w *wallet) put(name, data string) string {
	path := write(w.t, filepath.Join(w.home, name), data)
	w.tgt.IdentityFiles = append(w.tgt.IdentityFiles, path)
	return path
}

func (w *wallet) accept(keys ...testKeyPair) { w.d.authorize(w.t, keys...) }

func encrypted(t testing.TB, k testKeyPair) string {
	t.Helper()
	block, err := ssh.MarshalPrivateKeyWithPassphrase(k.raw, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

func many(n int) []testKeyPair {
	out := make([]testKeyPair, n)
	for i := range out {
		out[i] = newEd25519()
	}
	return out
}

const (
	trustCA      = "TrustedUserCAKeys $DIR/ca.pub"
	passwordOnly = "PubkeyAuthentication no\nPasswordAuthentication yes\nKbdInteractiveAuthentication no"
	secondFactor = "AuthenticationMethods publickey,password\nPasswordAuthentication yes"
)

// authCases run against a real sshd. text is part of the error; "" is a login.
var authCases = []struct {
	name, config string
	set          func(w *wallet)
	text, hint   string
}{
	{name: "ed25519 file", set: func(w *wallet) { k := newEd25519(); w.accept(k); w.put("id", string(k.pem)) }},
	{name: "ecdsa file", set: func(w *wallet) { k := keyKinds()["ecdsa"]; w.accept(k); w.put("id", string(k.pem)) }},
	{name: "rsa file", set: func(w *wallet) { k := keyKinds()["rsa"]; w.accept(k); w.put("id", string(k.pem)) }},
	{name: "rsa file, sha2-256 only", config: "PubkeyAcceptedAlgorithms rsa-sha2-256", set: func(w *wallet) {
		w.tgt.PubkeyAcceptedAlgorithms = []string{"ssh-rsa", "rsa-sha2-256"} // sshd advertises both; ssh needs this too
		k := keyKinds()["rsa"]
		w.accept(k)
		w.put("id", string(k.pem))
	}},
	{name: "rsa in the agent", set: func(w *wallet) { k := keyKinds()["rsa"]; w.accept(k); w.tgt.IdentityAgent = agentWith(w.t, k) }},
	{name: "legacy PEM", set: func(w *wallet) {
		k := keyKinds()["ecdsa"]
		der, err := x509.MarshalECPrivateKey(k.raw.(*ecdsa.PrivateKey))
		if err != nil {
			w.t.Fatal(err)
		}
		w.accept(k)
		w.put("id", string(pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: der})))
	}},
	{name: "second file", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("first", string(newEd25519().pem))
		w.put("second", string(k.pem))
	}},
	{name: "file that does not exist beside a good one", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.tgt.IdentityFiles = append(w.tgt.IdentityFiles, filepath.Join(w.home, "missing"))
		w.put("id", string(k.pem))
	}},
	{name: "encrypted, in the agent", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", encrypted(w.t, k))
		w.tgt.IdentityAgent = agentWith(w.t, append(many(8), k)...)
	}},
	{name: "encrypted, not in the agent", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", encrypted(w.t, k))
		w.tgt.IdentityAgent = agentWith(w.t)
	}, text: "no key to offer to", hint: "ssh-add"},
	{name: "encrypted, unused, beside a good one", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("locked", encrypted(w.t, newEd25519()))
		w.put("id", string(k.pem))
	}},
	{name: "public key selects an agent key", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id.pub", k.authorized()+"\n")
		w.tgt.IdentityAgent, w.tgt.IdentitiesOnly = agentWith(w.t, append(many(8), k)...), true
	}},
	{name: "only the public half is there", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		write(w.t, filepath.Join(w.home, "id.pub"), k.authorized()+"\n")
		w.tgt.IdentityFiles = []string{filepath.Join(w.home, "id")}
		w.tgt.IdentityAgent, w.tgt.IdentitiesOnly = agentWith(w.t, append(many(8), k)...), true
	}},
	{name: "public key that is not in the agent", set: func(w *wallet) {
		w.put("id.pub", newEd25519().authorized()+"\n")
	}, text: "is a public key that is not in the agent", hint: "ssh-add"},
	{name: "nine agent keys, the right one named", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
		w.tgt.IdentityAgent = agentWith(w.t, append(many(8), k)...)
	}},
	{name: "nine agent keys, the right one last", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.tgt.IdentityAgent = agentWith(w.t, append(many(8), k)...)
	}, text: "refused 5 keys (agent SHA256:", hint: "authorized_keys"},
	{name: "five keys against MaxAuthTries 3", config: "MaxAuthTries 3", set: func(w *wallet) {
		w.accept()
		w.tgt.IdentityAgent = agentWith(w.t, many(5)...)
	}, text: "too many authentication failures", hint: "IdentitiesOnly yes"},
	{name: "identities only", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(newEd25519().pem))
		w.tgt.IdentityAgent, w.tgt.IdentitiesOnly = agentWith(w.t, k), true
	}, text: "refused 1 key (~/id SHA256:", hint: "authorized_keys"},
	{name: "agent that is not there, good file", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
		w.tgt.IdentityAgent = filepath.Join(w.home, "gone")
	}},
	{name: "agent that is not there, no file", set: func(w *wallet) {
		w.tgt.IdentityAgent = filepath.Join(w.home, "gone")
	}, text: "the agent at ~/gone cannot be asked: connect: no such file or directory", hint: "ssh-add"},
	{name: "key file that others can read", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		os.Chmod(w.put("id", string(k.pem)), 0o644)
	}, text: "key ~/id is ignored: its mode 0644 lets others read it; run: chmod 600 ~/id"},
	{name: "key file that is none", set: func(w *wallet) { w.put("id", "-----BEGIN NONSENSE-----\n") }, text: "key ~/id cannot be used: not a private key"},
	{name: "security key in the agent", set: func(w *wallet) {
		a := newToken(w.t)
		line := string(ssh.MarshalAuthorizedKey(a.pub))
		os.WriteFile(filepath.Join(w.d.dir, "authorized_keys"), []byte(line), 0o644)
		w.tgt.IdentityAgent = serveAgent(w.t, a)
	}},
	{name: "security key as a file only", set: func(w *wallet) {
		a := newToken(w.t)
		w.put("id_sk", "-----BEGIN OPENSSH PRIVATE KEY-----\nAAAA\n-----END OPENSSH PRIVATE KEY-----\n")
		write(w.t, filepath.Join(w.home, "id_sk.pub"), string(ssh.MarshalAuthorizedKey(a.pub)))
	}, text: "key ~/id_sk is a security key, which needs ssh-agent; run: ssh-add ~/id_sk"},
	{name: "user certificate", config: trustCA, set: func(w *wallet) {
		k := newEd25519()
		w.put("id", string(k.pem))
		w.cert("id-cert.pub", k, time.Hour, w.tgt.User)
	}},
	{name: "user certificate of an rsa key", config: trustCA, set: func(w *wallet) {
		k := keyKinds()["rsa"]
		w.put("id", string(k.pem))
		w.cert("id-cert.pub", k, time.Hour, w.tgt.User)
	}},
	{name: "certificate file for an agent key", config: trustCA, set: func(w *wallet) {
		k := keyKinds()["rsa"]
		w.tgt.IdentityAgent = agentWith(w.t, append(many(6), k)...)
		w.tgt.CertificateFiles = []string{w.cert("my-cert.pub", k, time.Hour, w.tgt.User)}
	}},
	{name: "certificate in the agent", config: trustCA, set: func(w *wallet) {
		k := newEd25519()
		ring := agent.NewKeyring()
		ring.Add(agent.AddedKey{PrivateKey: k.raw, Certificate: certFor(w.t, k, ssh.UserCert, time.Hour, w.tgt.User)})
		w.tgt.IdentityAgent = serveAgent(w.t, ring)
	}},
	{name: "certificate for another user", config: trustCA, set: func(w *wallet) {
		k := newEd25519()
		w.put("id", string(k.pem))
		w.cert("id-cert.pub", k, time.Hour, "somebody")
	}, text: "certificate ~/id-cert.pub is for somebody, not for "},
	{name: "expired certificate", config: trustCA, set: func(w *wallet) {
		k := newEd25519()
		w.put("id", string(k.pem))
		w.cert("id-cert.pub", k, -time.Minute, w.tgt.User)
	}, text: "certificate ~/id-cert.pub expired at "},
	{name: "certificate file without its key", config: trustCA, set: func(w *wallet) {
		w.tgt.CertificateFiles = []string{w.cert("my-cert.pub", newEd25519(), time.Hour, w.tgt.User)}
	}, text: "certificate ~/my-cert.pub has no private key beside it"},
	{name: "key that the server does not know", set: func(w *wallet) { w.put("id", string(newEd25519().pem)) }, text: "refused 1 key (~/id SHA256:", hint: "PermitRootLogin"},
	{name: "login forbidden", config: "DenyUsers *", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
	}, text: "; server allows: ", hint: "AllowUsers"},
	{name: "password only", config: passwordOnly, set: func(w *wallet) { w.put("id", string(newEd25519().pem)) }, text: "allows only password, and pvelens uses keys only", hint: "controlmaster"},
	{name: "second factor", config: secondFactor, set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
	}, text: "key accepted, server also requires password (2FA)", hint: "controlmaster"},
	{name: "no key at all", set: func(w *wallet) {}, text: "no key to offer to ", hint: "IdentityFile"},
	{name: "accepted algorithms rule the key out", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
		w.tgt.PubkeyAcceptedAlgorithms = []string{"rsa-sha2-512"}
	}, text: "key ~/id is not among PubkeyAcceptedAlgorithms"},
	{name: "old server", config: "KexAlgorithms diffie-hellman-group14-sha1", set: func(w *wallet) {}, text: `no common algorithm: key exchange; the server offers only "diffie-hellman-group14-sha1`, hint: "old"},
	{name: "own lists of algorithms", set: func(w *wallet) {
		k := newEd25519()
		w.accept(k)
		w.put("id", string(k.pem))
		w.tgt.KexAlgorithms = []string{"diffie-hellman-group1-sha1", "curve25519-sha256"}
		w.tgt.Ciphers = []string{"aes256-ctr"}
		w.tgt.MACs = []string{"hmac-sha2-512"}
		w.tgt.HostKeyAlgorithms = []string{"rsa-sha2-512"}
	}},
	{name: "own list of weak algorithms", set: func(w *wallet) { w.tgt.Ciphers = []string{"3des-cbc"} }, text: "Ciphers: none of the algorithms", hint: "ssh_config"},
	{name: "banner", config: "Banner $DIR/ca.pub", set: func(w *wallet) {}, text: `; the server says "ssh-ed25519`},
}

func (w *wallet) cert(name string, k testKeyPair, valid time.Duration, principal string) string {
	cert := certFor(w.t, k, ssh.UserCert, valid, principal)
	return write(w.t, filepath.Join(w.home, name), string(ssh.MarshalAuthorizedKey(cert)))
}

func TestAuthentication(t *testing.T) {
	for _, tt := range authCases {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			w := &wallet{t: t, home: t.TempDir()}
			w.d = startSSHD(t, tt.config)
			write(t, filepath.Join(w.d.dir, "ca.pub"), keyKinds()["ca"].authorized())
			h := w.d.host(t)
			w.tgt = h.Target
			tt.set(w)
			p := New(Options{Audit: MemoryAudit(), Getenv: func(k string) string { return map[string]string{"HOME": w.home}[k] }})
			defer p.Close()
			_, err := p.Run(t.Context(), h, clock(t))
			if tt.text == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || !strings.Contains(e.Message, tt.text) {
				t.Fatalf("got  %v\nwant %s", err, tt.text)
			}
			if e.Code != AuthFailed && e.Code != Unsupported && e.Code != Config || !strings.Contains(e.Hint, tt.hint) || e.Hint == "" {
				t.Errorf("code %s, hint %q, want %q in it", e.Code, e.Hint, tt.hint)
			}
		})
	}
}

// TestKeyOrder watches which keys a server is shown, in which order.
func TestKeyOrder(t *testing.T) {
	named, file, locked, rest := newEd25519(), newEd25519(), newEd25519(), many(9)
	cert := certFor(t, named, ssh.UserCert, time.Hour, "root")
	names := map[string]string{
		string(named.public().Marshal()): "named", string(file.public().Marshal()): "file", string(locked.public().Marshal()): "locked", string(cert.Marshal()): "cert",
	}
	for i, k := range rest {
		names[string(k.public().Marshal())] = fmt.Sprint("rest", i)
	}
	for _, tt := range []struct {
		name string
		only bool
		want string
	}{
		{"all", false, "cert locked named file rest0"},
		{"identities only", true, "cert locked named file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var mu sync.Mutex
			var shown []string
			s := newServer(t)
			s.cfg.NoClientAuth = false
			s.cfg.MaxAuthTries = 20
			s.cfg.PublicKeyCallback = func(_ ssh.ConnMetadata, k ssh.PublicKey) (*ssh.Permissions, error) {
				mu.Lock()
				defer mu.Unlock()
				shown = append(shown, names[string(k.Marshal())])
				return nil, errors.New("no")
			}
			s.start()
			dir := t.TempDir()
			h := s.hostOf("pve1")
			h.Signers = nil
			h.Target.IdentitiesOnly = tt.only
			h.Target.IdentityFiles = []string{
				write(t, filepath.Join(dir, "file"), string(file.pem)), write(t, filepath.Join(dir, "locked"), encrypted(t, locked)),
				write(t, filepath.Join(dir, "named"), string(named.pem)), write(t, filepath.Join(dir, "again"), string(file.pem)),
			}
			write(t, filepath.Join(dir, "named-cert.pub"), string(ssh.MarshalAuthorizedKey(cert)))
			h.Target.IdentityAgent = agentWith(t, append(rest, named, locked)...)
			_, err := newPool(t).Run(t.Context(), h, clock(t))
			if codeOf(err) != AuthFailed {
				t.Fatal(err)
			}
			if got := strings.Join(shown, " "); got != tt.want {
				t.Errorf("shown %s, want %s", got, tt.want)
			}
			if left := strings.Contains(err.Error(), "8 more keys not offered"); left == tt.only {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestOldRSA has a server that knows RSA with SHA-1 only.
func TestOldRSA(t *testing.T) {
	s := newServer(t)
	s.cfg.NoClientAuth = false
	s.cfg.PublicKeyAuthAlgorithms = []string{ssh.KeyAlgoRSA}
	s.cfg.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }
	s.start()
	h := s.hostOf("pve1")
	h.Signers = keyKinds()["rsa"].pem
	_, err := newPool(t).Run(t.Context(), h, clock(t))
	if codeOf(err) != AuthFailed || !strings.Contains(err.Error(), "knows no SHA-2 signatures for the RSA keys") {
		t.Errorf("got %v", err)
	}
}

// TestNoneAuth is how Tailscale SSH lets people in.
func TestNoneAuth(t *testing.T) {
	s := newServer(t).start()
	h := s.hostOf("pve1")
	h.Signers = nil
	if _, err := newPool(t).Run(t.Context(), h, clock(t)); err != nil {
		t.Error(err)
	}
}

// TestSlowAgent has an agent that waits for a touch that does not come.
func TestSlowAgent(t *testing.T) {
	key := newEd25519()
	hang := make(chan bool)
	defer close(hang)
	for _, tt := range []struct {
		name  string
		agent agent.Agent
	}{
		{"list", slowAgent{agent.NewKeyring(), hang, nil}},
		{"sign", slowAgent{agent.NewKeyring(), hang, key.public()}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			s := newServer(t)
			s.cfg.NoClientAuth = false
			s.cfg.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }
			s.start()
			h := s.hostOf("pve1")
			h.Signers, h.ConnectTimeout = nil, 200*time.Millisecond
			h.Target.IdentityAgent = serveAgent(t, tt.agent)
			p := newPool(t)
			p.time.touch = 100 * time.Millisecond
			_, err := p.Run(t.Context(), h, clock(t))
			if codeOf(err) != Timeout || !strings.Contains(err.Error(), "no answer from the ssh-agent") {
				t.Errorf("got %v", err)
			}
		})
	}
}

type slowAgent struct {
	agent.Agent
	hang chan bool
	pub  ssh.PublicKey // nil: List hangs
}

func (a slowAgent) List() ([]*agent.Key, error) {
	if a.pub == nil {
		<-a.hang
		return nil, io.EOF
	}
	return []*agent.Key{{Format: a.pub.Type(), Blob: a.pub.Marshal()}}, nil
}

func (a slowAgent) Sign(ssh.PublicKey, []byte) (*ssh.Signature, error) { <-a.hang; return nil, io.EOF }
