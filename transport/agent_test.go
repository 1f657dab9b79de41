package transport

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"math/big"
	"net"
	"path/filepath"
	"slices"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
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
