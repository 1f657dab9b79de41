package transport

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"

	"pvelens/profiles"
)

// maxOffers keeps below sshd's MaxAuthTries of 6.
const maxOffers = 5

// An offer is a key that is shown to the server, and where it came from.
type offer struct {
	ssh.Signer
	source string
}

// A credentials is what one login can offer, and what it learned from the
// server. x/crypto tries only the first method of a kind, so that all keys are
// one ordered list.
type credentials struct {
	target *profiles.Target
	pem    []byte // keys instead of the agent and files
	home   string
	now    func() time.Time
	getenv func(string) string
	wait   *patience

	mu       sync.Mutex
	offers   []offer
	left     int      // keys that were not offered because of maxOffers
	notes    []string // why a key was not offered
	missing  []string // key files that are not there
	context  *ssh.ClientAuthContext
	started  bool
	signing  bool
	bannered string
}

// signers is called when the server admits public keys.
func (c *credentials) signers() ([]ssh.Signer, error) {
	all := c.collect()
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(all) > maxOffers {
		c.left, all = len(all)-maxOffers, all[:maxOffers]
	}
	c.offers = all
	out := make([]ssh.Signer, len(all))
	for i, o := range all {
		out[i] = o.Signer
	}
	return out, nil
}

// collect returns all usable keys in order, each once: certificates, the
// configured keys that the agent holds, other key files, then the agent's rest.
func (c *credentials) collect() []offer {
	if c.pem != nil {
		return c.usable(c.fromPEM())
	}
	agent := c.openAgent()
	var certs, held, files []offer
	for _, path := range c.target.IdentityFiles {
		o, inAgent, ok := c.identity(path, agent)
		if !ok {
			continue
		}
		if cert, ok := c.certificate(path+"-cert.pub", o, true); ok {
			certs = append(certs, cert)
		}
		if inAgent {
			held = append(held, o)
		} else {
			files = append(files, o)
		}
	}
	base := slices.Concat(held, files, agent.offers)
	for _, path := range c.target.CertificateFiles {
		certs = append(certs, c.certificateOfAny(path, base)...)
	}
	all := slices.Concat(certs, held, files)
	if !c.target.IdentitiesOnly {
		all = append(all, agent.offers...)
	}
	return c.usable(all)
}

// usable drops doubles and keys that the configuration does not admit, and
// restricts RSA to SHA-2.
func (c *credentials) usable(all []offer) []offer {
	seen := map[string]bool{}
	var out []offer
	for _, o := range all {
		id := string(o.PublicKey().Marshal())
		if seen[id] {
			continue
		}
		seen[id] = true
		signer, ok := restrict(o.Signer, c.target.PubkeyAcceptedAlgorithms)
		if !ok {
			c.note("key %s is not among PubkeyAcceptedAlgorithms", o.source)
			continue
		}
		out = append(out, offer{signer, o.source})
	}
	return out
}

// restrict returns s limited to the accepted algorithms; nil accepts all of
// them. SHA-1 is never among them.
func restrict(s ssh.Signer, accepted []string) (ssh.Signer, bool) {
	t := s.PublicKey().Type()
	accepts := func(algo string) bool { return accepted == nil || slices.Contains(accepted, algo) }
	if t != ssh.KeyAlgoRSA && t != ssh.CertAlgoRSAv01 {
		return s, accepts(t)
	}
	var algos []string
	for _, a := range [][2]string{{ssh.KeyAlgoRSASHA512, ssh.CertAlgoRSASHA512v01}, {ssh.KeyAlgoRSASHA256, ssh.CertAlgoRSASHA256v01}} {
		if t == ssh.KeyAlgoRSA && accepts(a[0]) || t != ssh.KeyAlgoRSA && accepts(a[1]) {
			algos = append(algos, a[0])
		}
	}
	as, ok := s.(ssh.AlgorithmSigner)
	if !ok || len(algos) == 0 {
		return nil, false
	}
	limited, err := ssh.NewSignerWithAlgorithms(as, algos)
	return limited, err == nil
}

// observe remembers what the server admits, for the error's text.
func (c *credentials) observe(ctx *ssh.ClientAuthContext) (ssh.AuthMethod, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.context, c.started = ctx, true
	return nil, nil
}

func (c *credentials) banner(text string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.bannered == "" && strings.TrimSpace(text) != "" {
		c.bannered = said([]byte(text))
	}
	return nil
}

func (c *credentials) bannerText() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bannered
}

func (c *credentials) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.started
}

// asking reports whether the agent was asked and has not answered.
func (c *credentials) asking() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.signing
}

func (c *credentials) setAsking(on bool) {
	c.mu.Lock()
	c.signing = on
	c.mu.Unlock()
}

func (c *credentials) note(format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.notes = append(c.notes, fmt.Sprintf(format, args...))
}

func (c *credentials) miss(file string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.missing = append(c.missing, file)
}

// failure explains a login that the server did not accept.
func (c *credentials) failure(err error) *Error {
	c.mu.Lock()
	defer c.mu.Unlock()
	ctx := c.context
	e := &Error{Code: AuthFailed}
	account := c.target.User + "@" + c.target.HostName
	others := slices.DeleteFunc(slices.Clone(ctx.AllowedMethods), func(m string) bool { return m == "none" })
	switch {
	case strings.Contains(err.Error(), "Too many authentication failures"):
		e.Message = fmt.Sprintf("%s ended the login after %s: too many authentication failures", account, plural(len(c.offers), "key"))
		e.Hint = "name the right key with IdentityFile and IdentitiesOnly yes in ssh_config, or raise MaxAuthTries on the node"
	case slices.Contains(ctx.PartialSuccessMethods, "publickey"):
		e.Message = fmt.Sprintf("key accepted, server also requires %s (2FA)", strings.Join(others, " or "))
		e.Hint = "exempt this key on the node (Match User with AuthenticationMethods publickey), or set transport = \"controlmaster\" and log in once with ssh -M"
	case len(others) == 0 && len(c.offers) == 0:
		e.Message = account + " admits no way to log in"
		e.Hint = "look at AuthenticationMethods and PubkeyAuthentication in sshd_config, and at sshd's log on the node"
	case !slices.Contains(ctx.AllowedMethods, "publickey") && !slices.Contains(ctx.TriedMethods, "publickey"):
		e.Message = fmt.Sprintf("%s allows only %s, and pvelens uses keys only", account, listed(others))
		e.Hint = "set PubkeyAuthentication yes in sshd_config for this user, or transport = \"controlmaster\" and log in once with ssh -M"
	case len(c.offers) == 0:
		e.Message = "no key to offer to " + account + "; server allows: " + listed(others)
		e.Hint = "load a key with ssh-add, or name one with IdentityFile in ssh_config"
		if len(c.missing) > 0 {
			e.Message += "; no such file: " + strings.Join(c.missing, ", ")
		}
	case errors.Is(err, errAgent):
		e.Message = "the ssh-agent did not sign for " + account
		e.Hint = "was the touch or the confirmation refused, or is the agent locked? try: ssh-add -T " + c.offers[0].source
	case strings.Contains(err.Error(), "no common public key signature algorithm"):
		e.Message = account + " knows no SHA-2 signatures for the RSA keys offered"
		e.Hint = "use an ed25519 key; pvelens never signs with SHA-1"
	case strings.Contains(err.Error(), "unable to authenticate"):
		e.Message = fmt.Sprintf("%s refused %s (%s); server allows: %s", account, plural(len(c.offers), "key"), c.offered(), listed(others))
		e.Hint = "add one of these keys to ~" + c.target.User + "/.ssh/authorized_keys on the node, or correct User and IdentityFile; sshd may also forbid this user (PermitRootLogin, AllowUsers)"
	default:
		e.Code, e.Message, e.Hint = Unreachable, "the server dropped the connection during the login", "look at sshd's log on the node: "+said([]byte(err.Error()))
	}
	if c.left > 0 {
		e.Hint = "name the right key with IdentityFile and IdentitiesOnly yes in ssh_config; its .pub file is enough when the agent holds it"
		e.Message += fmt.Sprintf("; %s not offered (at most %d are)", plural(c.left, "more key"), maxOffers)
	}
	if len(c.notes) > 0 {
		e.Message += "; " + strings.Join(c.notes, "; ")
	}
	if c.bannered != "" {
		e.Message += "; the server says " + c.bannered
	}
	return e
}

func (c *credentials) offered() string {
	var out []string
	for _, o := range c.offers {
		out = append(out, o.source+" "+ssh.FingerprintSHA256(o.PublicKey()))
	}
	return strings.Join(out, ", ")
}

func listed(methods []string) string {
	if len(methods) == 0 {
		return "nothing"
	}
	return strings.Trim(said([]byte(strings.Join(methods, ", "))), `"`)
}
