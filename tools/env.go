package tools

import (
	"context"
	"slices"
	"sync"
	"time"

	"pvelens/allowlist"
	"pvelens/profiles"
	"pvelens/tools/report"
	"pvelens/transport"
)

// A Backend is what one profile needs from outside: who it asks, and how they
// are reached. The demo cluster and a real one differ only in this.
type Backend struct {
	Profile *profiles.Profile
	Pool    *transport.Pool
	// Host resolves an SSH destination of the profile.
	Host func(ctx context.Context, destination string, role allowlist.Role) (*transport.Host, error)
	// Source is "demo" or "replay" where the answers are recordings, else "".
	Source string
	// Now is the clock: that of the recordings where there is one.
	Now func() time.Time
}

// An Env is what the tools of one process share: the profiles that were opened,
// what is known of their nodes, and the last inventory.
type Env struct {
	// Open returns the backend of a profile; "" is the default one. It is
	// called once a name, and gives one backend for all names of a profile.
	Open func(profile string) (*Backend, error)
	// At judges ages and limits as of another time than now.
	At *time.Time
	// Version and Tools are what the program calls itself and offers.
	Version string
	Tools   []string
	// Profiles are the names of the configured profiles.
	Profiles func() []string
	// Progress is told how far a long call has come; it may be nil.
	Progress func(ctx context.Context, done, total int, what string)

	mu     sync.Mutex
	fleets map[string]*fleet
}

// A fleet is what the process knows of one profile's hosts.
type fleet struct {
	*Backend
	nodes, dockers []*entry

	mu    sync.Mutex
	known []known // the guests, nodes and projects of the last inventory, for completions
}

// An entry is one SSH destination of a profile and what was learned of it.
type entry struct {
	dest string
	role allowlist.Role

	mu       sync.Mutex
	host     *transport.Host
	node     string // PVE name, from state
	cluster  string // identity of its cluster
	serves   bool   // it served its cluster's inventory last time
	busyTill map[string]time.Time
	heard    map[string]agentAnswer // what agents said, by question
}

func (e *entry) learned() (node, cluster string, serves bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.node, e.cluster, e.serves
}

func (e *entry) learn(node, cluster string, serves bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.node, e.cluster, e.serves = node, cluster, serves
}

// name is how a problem names the entry: its PVE name when known.
func (e *entry) name() string {
	if node, _, _ := e.learned(); node != "" {
		return node
	}
	return e.dest
}

func (env *Env) fleet(profile string) (*fleet, error) {
	env.mu.Lock()
	defer env.mu.Unlock()
	if f := env.fleets[profile]; f != nil {
		return f, nil
	}
	b, err := env.Open(profile)
	if err != nil {
		return nil, err
	}
	if f := env.fleets[b.Profile.Name]; f != nil {
		env.fleets[profile] = f // "" is one of the names
		return f, nil
	}
	f := &fleet{Backend: b}
	for _, d := range b.Profile.Nodes {
		f.nodes = append(f.nodes, &entry{dest: d, role: allowlist.PVE})
	}
	for _, d := range b.Profile.DockerHosts {
		f.dockers = append(f.dockers, &entry{dest: d, role: allowlist.Docker})
	}
	if env.fleets == nil {
		env.fleets = map[string]*fleet{}
	}
	env.fleets[profile], env.fleets[b.Profile.Name] = f, f
	return f, nil
}

// open starts a session: one call's deadline, clock and record of what it read.
func (env *Env) open(ctx context.Context, in Common) (*Session, error) {
	f, err := env.fleet(in.Profile)
	if err != nil {
		return nil, err
	}
	now := f.Now()
	s := &Session{fleet: f, env: env, caller: ctx, now: now, judged: now, Detailed: in.Detail == "detailed", complete: true}
	if env.At != nil {
		s.judged = *env.At
	}
	s.ctx, s.cancel = context.WithTimeoutCause(ctx, f.Profile.Deadline, errorf(report.Timeout, "the deadline of %s passed", f.Profile.Deadline).hint("raise `deadline` in the profile, or ask for less"))
	return s, nil
}

// profileNames are the configured profiles, with the one that was asked.
func (env *Env) profileNames(asked string) []string {
	names := []string{asked}
	if env.Profiles != nil {
		names = append(names, env.Profiles()...)
	}
	slices.Sort(names)
	return slices.Compact(names)
}
