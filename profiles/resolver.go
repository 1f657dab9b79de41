package profiles

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/user"
	"strconv"
	"strings"
	"sync"
)

// Env is what the answer depends on beside the files; tests give their own.
type Env struct {
	// Home, User and UID are those of the password file, which OpenSSH takes in place of HOME and USER.
	Home, User string
	UID        int
	// Hostname is this machine's name, for the tokens %l, %L and %C.
	Hostname string
	Getenv   func(string) string
	// SystemConfig is the system's ssh_config; its relative Includes and the global known_hosts are beside it.
	SystemConfig string
	// SSH finds the absolute path of the ssh program; nil or an error is none.
	SSH func() (string, error)
	// LookupHome gives the home of another user, for ~user in Include and in file names; nil is not looked up.
	LookupHome func(user string) (string, error)
}

// HostEnv is the environment of this process.
func HostEnv() (Env, error) {
	u, err := user.Current()
	if err != nil {
		return Env{}, configError("", "who runs pvelens: %v", err)
	}
	uid, _ := strconv.Atoi(u.Uid)
	host, _ := os.Hostname()
	return Env{
		Home: u.HomeDir, User: u.Username, UID: uid, Hostname: host, Getenv: os.Getenv,
		SystemConfig: "/etc/ssh/ssh_config", SSH: findSSH,
		LookupHome: func(name string) (string, error) {
			other, err := user.Lookup(name)
			if err != nil {
				return "", err
			}
			return other.HomeDir, nil
		},
	}, nil
}

// Resolver answers what ssh would do for a destination, and keeps each answer until a configuration file changes. It is
// safe for concurrent use.
type Resolver struct {
	env   Env
	mu    sync.Mutex
	cache map[cacheKey]*cached
	ssh   sshProgram
}

type cacheKey struct {
	config, user, resolver, transport, destination string
	allow                                          bool
}

type cached struct {
	busy   chan struct{} // held while it is filled
	stamp  string
	target *Target
}

// NewResolver makes a Resolver with an empty cache.
func NewResolver(env Env) *Resolver {
	if env.Getenv == nil {
		env.Getenv = func(string) string { return "" }
	}
	return &Resolver{env: env, cache: map[cacheKey]*cached{}}
}

// Resolve gives what ssh would do for a destination of the profile, or an *Error, or the error of a context that ended.
// SSHUser is for the destination alone: a jump host has the user that its own configuration gives. The files are read anew each time, and
// searched before any program is started; ssh itself is asked once a destination, until a file changes. The Target is
// shared: read it only.
func (r *Resolver) Resolve(ctx context.Context, p *Profile, destination string) (*Target, error) {
	d, err := parseDestination(destination)
	if err != nil {
		return nil, &Error{Code: codeArgument, Message: err.Error(), Hint: "Want " + forms["nodes"] + "."}
	}
	files, err := readSSH(r.env, p.SSHConfig)
	if err != nil {
		return nil, err
	}
	slot := r.slot(cacheKey{p.SSHConfig, p.SSHUser, p.Resolver, p.Transport, destination, p.AllowLocalCommands})
	select {
	case slot.busy <- struct{}{}:
		defer func() { <-slot.busy }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if stamp := files.stamp(); slot.target == nil || slot.stamp != stamp {
		if p.SSHUser != "" {
			d.user = p.SSHUser // as ssh -l: it wins over user@
		}
		t, err := (&resolution{Resolver: r, ctx: ctx, profile: p, files: files}).resolve(d, destination)
		if err != nil {
			return nil, err
		}
		slot.target, slot.stamp = t, stamp
	}
	return slot.target, nil
}

func (r *Resolver) slot(key cacheKey) *cached {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cache[key] == nil {
		r.cache[key] = &cached{busy: make(chan struct{}, 1)}
	}
	return r.cache[key]
}

// resolution is one run of one resolver over one reading of the files.
type resolution struct {
	*Resolver
	ctx     context.Context
	profile *Profile
	files   *sshFiles
	one     func(d destination, behindJump bool) (*Target, []jump, error)
}

// unprovenError is the guard's: the builtin resolver cannot be sure to read this line as ssh does.
type unprovenError struct {
	at, why string
}

func (e *unprovenError) Error() string { return e.at + ": " + e.why }

// resolve picks the resolver.
func (r *resolution) resolve(d destination, name string) (*Target, error) {
	if r.profile.Resolver == "openssh" {
		return r.askSSH(d, name)
	}
	r.one = r.builtin
	t, err := r.chain(d, name, nil)
	var unproven *unprovenError
	if !errors.As(err, &unproven) {
		return t, err
	}
	if r.profile.Resolver == "builtin" {
		return nil, &Error{Code: codeUnsupported, Message: fmt.Sprintf("%s: %s: the builtin resolver does not read it", unproven.at, unproven.why),
			Hint: `Write resolver = "auto" or "openssh" in the profile, so that ssh itself is asked, or write the line more plainly.`}
	}
	if _, err := r.ssh.find(r.env); err != nil {
		return nil, &Error{Code: codeUnsupported, Message: fmt.Sprintf("%s: %s: only ssh itself can read it, and there is no ssh program here", unproven.at, unproven.why),
			Hint: "Install the OpenSSH client, write the line more plainly, or name another file as ssh_config in the profile."}
	}
	return r.askSSH(d, name)
}

func (r *resolution) askSSH(d destination, name string) (*Target, error) {
	if _, err := r.ssh.find(r.env); err != nil {
		return nil, &Error{Code: codeUnsupported, Message: "no ssh program found on PATH", Hint: `Install the OpenSSH client, or write resolver = "builtin" in the profile.`}
	}
	r.one = r.openssh
	return r.chain(d, name, nil)
}

// jump is one hop of ProxyJump.
type jump struct {
	destination
	text string
}

// maxJumps bounds a way to a host; nobody has more, and a loop through HostName is not always seen as one.
const maxJumps = 8

// chain resolves a destination and the way to it. ssh starts itself with -J for all hops but the last, so the first hop's
// own ProxyJump and ProxyCommand are followed and those of the others are not.
func (r *resolution) chain(d destination, name string, behind []string) (*Target, error) {
	t, hops, err := r.one(d, false)
	if err != nil {
		return nil, err
	}
	t.Name = name
	if len(hops) == 0 {
		return t, nil
	}
	id := fmt.Sprintf("%s\x00%s\x00%d", d.user, d.host, d.port)
	for _, seen := range behind {
		if seen == id {
			return nil, configError("Correct ProxyJump in ssh_config.", "%s: ProxyJump leads back to it", d.host)
		}
	}
	if len(behind) >= maxJumps {
		return nil, configError("Correct ProxyJump in ssh_config.", "%s: more than %d hops of ProxyJump", d.host, maxJumps)
	}
	t.ProxyJump, err = r.way(t, hops, append(behind, id))
	return t, err
}

// way resolves the hops of one ProxyJump in the order in which they are dialled.
func (r *resolution) way(t *Target, hops []jump, behind []string) ([]*Target, error) {
	first, err := r.chain(hops[0].destination, hops[0].text, behind)
	if err != nil {
		return nil, err
	}
	way := append(first.ProxyJump, first)
	first.ProxyJump = nil
	for _, hop := range hops[1:] {
		next, _, err := r.one(hop.destination, true)
		if err != nil {
			return nil, err
		}
		next.Name = hop.text
		way = append(way, next)
	}
	if len(way) > maxJumps {
		return nil, configError("Correct ProxyJump in ssh_config.", "%s: more than %d hops of ProxyJump", t.HostName, maxJumps)
	}
	for i, hop := range hops { // ssh compares the hop as written with the host behind it as resolved
		next := t
		if i+1 < len(hops) {
			next = way[len(way)-len(hops)+i+1]
		}
		if hop.host == next.HostName && cmp.Or(hop.port, 22) == next.Port && cmp.Or(hop.user, next.User) == next.User {
			return nil, configError("Correct ProxyJump in ssh_config.", "%s: ProxyJump leads to itself", next.HostName)
		}
	}
	return way, nil
}

// parseJumps reads the value of ProxyJump.
func parseJumps(s string) ([]jump, error) {
	var out []jump
	for _, text := range strings.Split(strings.TrimRight(s, blanks), ",") {
		d, err := parseJump(text)
		if err != nil {
			return nil, err
		}
		out = append(out, jump{d, text})
	}
	return out, nil
}

func parseJump(s string) (destination, error) {
	if len(s) >= 6 && strings.EqualFold(s[:6], "ssh://") {
		return parseDestination(s)
	}
	var d destination
	rest := s
	if at := strings.LastIndexByte(s, '@'); at >= 0 {
		d.user, rest = s[:at], s[at+1:]
		if !validUser(d.user) {
			return d, errors.New("no user name before the @")
		}
	}
	var err error
	if d.host, d.port, err = cutPort(rest); err == nil && !validHost(d.host) {
		err = errors.New("no host name")
	}
	return d, err
}
