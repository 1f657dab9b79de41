package transport

import (
	"bytes"
	"encoding/pem"
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/crypto/ssh"
)

// identity returns the key that an IdentityFile stands for, and whether the
// agent holds it. A public key, or an encrypted private one, selects an agent
// key. A file that does not exist is skipped silently: defaults are listed.
func (c *credentials) identity(path string, agent *agentKeys) (o offer, inAgent, ok bool) {
	if path == "none" || path == "" {
		return offer{}, false, false
	}
	shown := tilde(path, c.home)
	b, err := os.ReadFile(path)
	if err != nil {
		if pub, ok := publicKeyFile(path + ".pub"); ok {
			return c.fromAgent(pub, agent, shown+".pub", "is not in the agent, and its private file is missing")
		}
		if os.IsNotExist(err) {
			c.miss(shown)
		} else {
			c.note("key %s cannot be read", shown)
		}
		return offer{}, false, false
	}
	if pub, ok := parsePublicKey(b); ok {
		return c.fromAgent(pub, agent, shown, "is a public key that is not in the agent")
	}
	if mode, own := ownFile(path); own && mode&0o077 != 0 {
		c.note("key %s is ignored: its mode %#o lets others read it; run: chmod 600 %s", shown, mode, shown)
		return offer{}, false, false
	}
	signer, err := ssh.ParsePrivateKey(b)
	if err == nil {
		if held, ok := agent.find(signer.PublicKey()); ok {
			return offer{held.Signer, shown + " (agent)"}, true, true
		}
		return offer{signer, shown}, false, true
	}
	return c.locked(path, shown, err, agent)
}

// locked handles a private key that only the agent can use.
func (c *credentials) locked(path, shown string, err error, agent *agentKeys) (offer, bool, bool) {
	var missing *ssh.PassphraseMissingError
	encrypted := errors.As(err, &missing)
	pub, ok := publicKeyFile(path + ".pub")
	if encrypted && missing.PublicKey != nil {
		pub, ok = missing.PublicKey, true
	}
	switch {
	case encrypted && ok:
		return c.fromAgent(pub, agent, shown, "is passphrase-protected and not in the agent; run: ssh-add "+shown)
	case encrypted:
		c.note("key %s is passphrase-protected; run: ssh-add %s", shown, shown)
	case ok && strings.HasPrefix(pub.Type(), "sk-"):
		return c.fromAgent(pub, agent, shown, "is a security key, which needs ssh-agent; run: ssh-add "+shown)
	case ok:
		return c.fromAgent(pub, agent, shown, "has a form that pvelens cannot read, and it is not in the agent; run: ssh-add "+shown)
	default:
		c.note("key %s cannot be used: not a private key of a known form (a security key needs ssh-agent)", shown)
	}
	return offer{}, false, false
}

func (c *credentials) fromAgent(pub ssh.PublicKey, agent *agentKeys, shown, otherwise string) (offer, bool, bool) {
	if held, ok := agent.find(pub); ok {
		return offer{held.Signer, shown + " (agent)"}, true, true
	}
	c.note("key %s %s", shown, otherwise)
	return offer{}, false, false
}

// certificate returns o with the certificate of the file at path, if it fits.
func (c *credentials) certificate(path string, o offer, quiet bool) (offer, bool) {
	shown := tilde(path, c.home)
	pub, ok := publicKeyFile(path)
	cert, isCert := pub.(*ssh.Certificate)
	if !ok || !isCert {
		if !quiet {
			c.note("certificate %s cannot be read", shown)
		}
		return offer{}, false
	}
	signer, err := ssh.NewCertSigner(cert, o.Signer)
	if err != nil {
		return offer{}, false
	}
	if why := c.invalid(cert); why != "" {
		c.note("certificate %s %s", shown, why)
		return offer{}, false
	}
	if !slices.Contains(cert.ValidPrincipals, c.target.User) {
		c.note("certificate %s is for %s, not for %s", shown, listed(cert.ValidPrincipals), c.target.User)
	}
	return offer{signer, shown}, true
}

func (c *credentials) certificateOfAny(path string, keys []offer) []offer {
	if path == "none" {
		return nil
	}
	for i, o := range keys {
		if cert, ok := c.certificate(path, o, i > 0); ok {
			return []offer{cert}
		}
	}
	if len(keys) == 0 {
		c.note("certificate %s has no private key beside it", tilde(path, c.home))
	}
	return nil
}

// invalid names what is wrong with a certificate by this machine's clock, which
// the server would only call a failure.
func (c *credentials) invalid(cert *ssh.Certificate) string {
	now := uint64(c.now().Unix())
	day := func(t uint64) string { return time.Unix(int64(t), 0).UTC().Format(time.RFC3339) }
	switch {
	case cert.CertType != ssh.UserCert:
		return "is a host certificate"
	case now < cert.ValidAfter:
		return "is not valid before " + day(cert.ValidAfter)
	case cert.ValidBefore != ssh.CertTimeInfinity && now >= cert.ValidBefore:
		return "expired at " + day(cert.ValidBefore) + "; issue a new one"
	}
	return ""
}

// fromPEM returns the keys of a bundle of PEM blocks.
func (c *credentials) fromPEM() []offer {
	var out []offer
	for rest := c.pem; ; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			return out
		}
		signer, err := ssh.ParsePrivateKey(pem.EncodeToMemory(block))
		if err != nil {
			c.note("a given key cannot be used")
			continue
		}
		out = append(out, offer{signer, "given key"})
	}
}

func publicKeyFile(path string) (ssh.PublicKey, bool) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, false
	}
	return parsePublicKey(b)
}

func parsePublicKey(b []byte) (ssh.PublicKey, bool) {
	if bytes.HasPrefix(bytes.TrimSpace(b), []byte("-----BEGIN")) {
		return nil, false
	}
	pub, _, _, _, err := ssh.ParseAuthorizedKey(b)
	return pub, err == nil
}

func ownedByUs(fi os.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Getuid()
}
