package transport

import (
	"crypto/sha256"
	"encoding/json"
	"net"
	"strconv"
	"time"

	"pvelens/allowlist"
	"pvelens/profiles"
)

// A Host is one destination and how to use it.
type Host struct {
	// Target is what OpenSSH would do for this destination. Required.
	Target *profiles.Target
	// Role must fit the forms that are run here.
	Role allowlist.Role
	// Become says how commands get their rights.
	Become allowlist.Become
	// ConnectTimeout bounds one dial, from TCP to the end of the login. 0 is the
	// target's own, or 5 s.
	ConnectTimeout time.Duration
	// Signers holds private keys in PEM, used instead of the agent and of key
	// files; nil is the agent and the files.
	Signers []byte
	// KnownHosts holds known_hosts lines, used instead of files; nil is the files.
	KnownHosts []byte
}

const defaultConnectTimeout = 5 * time.Second

// A route is a place to connect to and the way there.
type route struct {
	target     *profiles.Target
	via        *route // the bastion, or nil
	signers    []byte
	knownHosts []byte
	timeout    time.Duration
	key        string // equal keys may share a connection
}

const maxHops = 16

func newRoute(h *Host) (*route, error) {
	base := route{signers: h.Signers, knownHosts: h.KnownHosts, timeout: h.ConnectTimeout}
	return base.to(h.Target, h.Target.ProxyJump, maxHops)
}

// to returns the route to t through chain, first hop first.
func (r route) to(t *profiles.Target, chain []*profiles.Target, hops int) (*route, error) {
	if hops == 0 {
		return nil, &Error{Code: Config, Node: t.Name, Message: "ProxyJump: more than 16 hops", Hint: "look for a host that jumps through itself in ssh_config"}
	}
	if t.HostName == "" || t.Port < 1 || t.Port > 65535 {
		return nil, &Error{Code: Internal, Node: t.Name, Message: "target without a host name or port"}
	}
	r.target, r.via = t, nil
	if n := len(chain); n > 0 {
		hop, before := chain[n-1], chain[:n-1]
		if len(before) == 0 {
			before = hop.ProxyJump
		}
		via, err := r.to(hop, before, hops-1)
		if err != nil {
			return nil, err
		}
		r.via = via
	}
	if r.timeout == 0 {
		r.timeout = t.ConnectTimeout
	}
	if r.timeout == 0 {
		r.timeout = defaultConnectTimeout
	}
	r.key = r.fingerprint()
	return &r, nil
}

// fingerprint covers everything that decides where a connection ends and who it
// logs in as, so that no two identities ever share one.
func (r *route) fingerprint() string {
	via := ""
	if r.via != nil {
		via = r.via.key
	}
	b, err := json.Marshal([]any{r.target, via, r.signers, r.knownHosts})
	if err != nil {
		panic("transport: a target is plain data: " + err.Error())
	}
	sum := sha256.Sum256(b)
	return string(sum[:])
}

func (r *route) address() string {
	return net.JoinHostPort(r.target.HostName, strconv.Itoa(r.target.Port))
}
