package transport

import (
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

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

// TestAgentConnectionEndsWithTheDial: a silent agent is not held on to.
func TestAgentConnectionEndsWithTheDial(t *testing.T) {
	path := filepath.Join(t.TempDir(), "agent")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	gone := make(chan bool)
	go func() {
		c, err := l.Accept()
		if err == nil {
			io.Copy(io.Discard, c)
			c.Close()
		}
		close(gone)
	}()
	s := newServer(t)
	s.cfg.NoClientAuth = false
	s.cfg.PublicKeyCallback = func(ssh.ConnMetadata, ssh.PublicKey) (*ssh.Permissions, error) { return nil, nil }
	s.start()
	h := s.hostOf("pve1")
	h.Signers, h.ConnectTimeout, h.Target.IdentityAgent = nil, 200*time.Millisecond, path
	if _, err := newPool(t).Run(t.Context(), h, clock(t)); codeOf(err) != Timeout {
		t.Errorf("got %v", err)
	}
	<-gone
}
