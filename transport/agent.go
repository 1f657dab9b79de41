package transport

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// agentKeys are the keys of the user's ssh-agent; none when there is no agent.
type agentKeys struct {
	offers []offer
}

var errAgent = errors.New("ssh-agent")

// openAgent lists the agent's keys. An agent that cannot be asked is a note, not
// an error: key files may do.
func (c *credentials) openAgent() *agentKeys {
	path, ok := c.agentSocket()
	if !ok {
		return &agentKeys{}
	}
	conn, err := net.Dial("unix", path)
	if err != nil {
		reason, _ := reasonOf(err)
		c.note("the agent at %s cannot be asked: %s", tilde(path, c.home), reason)
		return &agentKeys{}
	}
	context.AfterFunc(c.wait.ctx, func() { conn.Close() }) // with the dial
	c.setAsking(true)
	signers, err := agent.NewClient(conn).Signers()
	keys := &agentKeys{}
	if c.wait.ctx.Err() != nil {
		return keys // the dial is over; what was asked stays on record
	}
	c.setAsking(false)
	if err != nil {
		c.note("the agent at %s does not list its keys", tilde(path, c.home))
	}
	for _, s := range signers {
		if as, ok := s.(ssh.AlgorithmSigner); ok {
			keys.offers = append(keys.offers, offer{&agentSigner{as, c}, "agent"})
		}
	}
	return keys
}

// agentSocket follows IdentityAgent, then the environment.
func (c *credentials) agentSocket() (string, bool) {
	path := c.target.IdentityAgent
	switch {
	case path == "none":
		return "", false
	case path == "" || path == "SSH_AUTH_SOCK":
		path = c.getenv("SSH_AUTH_SOCK")
	case strings.HasPrefix(path, "$"):
		path = c.getenv(strings.Trim(path[1:], "{}"))
	}
	return path, path != ""
}

// find returns the agent's key equal to pub.
func (a *agentKeys) find(pub ssh.PublicKey) (offer, bool) {
	for _, o := range a.offers {
		if equalKeys(o.PublicKey(), pub) {
			return o, true
		}
	}
	return offer{}, false
}

// An agentSigner gives the dial more time while the agent may wait for a touch.
type agentSigner struct {
	ssh.AlgorithmSigner
	who *credentials
}

func (s *agentSigner) SignWithAlgorithm(rand io.Reader, data []byte, algorithm string) (*ssh.Signature, error) {
	s.who.wait.extend()
	s.who.setAsking(true)
	sig, err := s.AlgorithmSigner.SignWithAlgorithm(rand, data, algorithm)
	if s.who.wait.ctx.Err() == nil {
		s.who.setAsking(false)
	}
	if err != nil {
		return nil, errors.Join(errAgent, err)
	}
	return sig, nil
}

// ownFile reports whether this user owns the file, as OpenSSH asks before it
// judges a key file's mode.
func ownFile(path string) (mode os.FileMode, own bool) {
	fi, err := os.Stat(filepath.Clean(path))
	if err != nil {
		return 0, false
	}
	return fi.Mode().Perm(), ownedByUs(fi)
}
