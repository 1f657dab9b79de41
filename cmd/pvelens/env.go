package main

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"time"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/profiles"
	"pvelens/tools"
	"pvelens/transport"
)

const (
	demoName        = "demo"
	completionLimit = 3 * time.Second
	// The demo cluster is on loopback; a node that does not answer there at
	// once never will.
	demoConnectTimeout = 300 * time.Millisecond
)

// home is where a shell's ~ is: HOME, else the account's home directory.
func home(getenv func(string) string) string {
	if dir := getenv("HOME"); filepath.IsAbs(dir) {
		return dir
	}
	if u, err := user.Current(); err == nil {
		return u.HomeDir
	}
	return ""
}

func (a *app) config() (*profiles.Config, error) {
	return profiles.Load(profiles.Path(a.getenv, home(a.getenv)))
}

// env returns what the tools need. Nothing is read or dialled before a profile
// is opened.
func (a *app) env() (*tools.Env, error) {
	at, err := a.judgedAt()
	if err != nil {
		return nil, err
	}
	return &tools.Env{Open: a.open, At: at, Progress: a.progress, Version: version(), Tools: toolNames(tools.All()), Profiles: a.profileNames}, nil
}

func toolNames(ts []tools.Tool) []string {
	var out []string
	for _, t := range ts {
		out = append(out, t.Name)
	}
	return out
}

func (a *app) profileNames() []string {
	names := []string{demoName}
	if cfg, err := a.config(); err == nil {
		for name := range cfg.Profiles {
			names = append(names, name)
		}
	}
	return names
}

func (a *app) open(name string) (*tools.Backend, error) {
	if name == demoName {
		d, err := a.demoBackend()
		if err != nil {
			return nil, err
		}
		return d.Backend, nil
	}
	cfg, err := a.config()
	if err != nil {
		return nil, err
	}
	p, err := cfg.Select(name)
	if err != nil {
		return nil, err
	}
	if b := a.backends[p.Name]; b != nil {
		return b, nil
	}
	if err := tools.CheckProfile(p); err != nil {
		return nil, err
	}
	audit, err := a.openAudit()
	if err != nil {
		return nil, err
	}
	b, err := a.backend(p, audit)
	if err != nil {
		return nil, err
	}
	if a.backends == nil {
		a.backends = map[string]*tools.Backend{}
	}
	a.backends[p.Name] = b
	return b, nil
}

func (a *app) backend(p *profiles.Profile, audit *transport.Audit) (*tools.Backend, error) {
	env, err := profiles.HostEnv()
	if err != nil {
		return nil, err
	}
	pool := transport.New(transport.Options{Audit: audit, Getenv: a.getenv})
	a.onExit(func() { _ = pool.Close() })
	resolver := profiles.NewResolver(env)
	return &tools.Backend{
		Profile: p, Pool: pool, Now: time.Now,
		Host: func(ctx context.Context, destination string, role allowlist.Role) (*transport.Host, error) {
			t, err := resolver.Resolve(ctx, p, destination)
			if err != nil {
				return nil, err
			}
			if p.Transport == "controlmaster" && t.ControlPath == "" {
				return nil, &profiles.Error{Code: "CONFIG", Message: destination + ": transport = \"controlmaster\", but ssh_config sets no ControlPath for it", Hint: "set ControlPath and ControlMaster auto for it in ssh_config, or transport = \"ssh\""}
			}
			return &transport.Host{Target: t, Role: role, Become: allowlist.Become(p.Become), ConnectTimeout: connectTimeout(p, t)}, nil
		},
	}, nil
}

// connectTimeout is the shorter of the profile's and ssh_config's.
func connectTimeout(p *profiles.Profile, t *profiles.Target) time.Duration {
	if t.ConnectTimeout > 0 && t.ConnectTimeout < p.ConnectTimeout {
		return t.ConnectTimeout
	}
	return p.ConnectTimeout
}

// auditPath is $XDG_STATE_HOME/pvelens/audit.jsonl, else below ~/.local/state.
func (a *app) auditPath() string {
	if dir := a.getenv("XDG_STATE_HOME"); filepath.IsAbs(dir) {
		return filepath.Join(dir, "pvelens", "audit.jsonl")
	}
	return filepath.Join(home(a.getenv), ".local", "state", "pvelens", "audit.jsonl")
}

func (a *app) openAudit() (*transport.Audit, error) {
	if a.runsNothing {
		return transport.MemoryAudit(), nil
	}
	path := a.auditPath()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, auditError(path, err)
	}
	audit, err := transport.OpenAudit(path)
	if err != nil {
		return nil, auditError(path, err)
	}
	a.onExit(func() { _ = audit.Close() })
	head, err := audit.Start(version())
	if err != nil {
		return nil, auditError(path, err)
	}
	if a.serving {
		fmt.Fprintf(a.err, "pvelens: audit log %s, head %s (note it elsewhere: `pvelens audit verify --head` checks it)\n", path, head)
	}
	return audit, nil
}

func auditError(path string, err error) error {
	if e := (*transport.Error)(nil); errors.As(err, &e) && e.Err != nil {
		err = e.Err
	}
	return &profiles.Error{Code: "CONFIG", Message: "the audit log " + path + " cannot be written, so nothing runs: " + err.Error(), Hint: "make the file and its folder writable for this user only, free disk space, or set XDG_STATE_HOME"}
}

// demo is the embedded cluster and its profile.
type demo struct {
	*tools.Backend
	cluster *fixtures.Cluster
	audit   *transport.Audit
}

// demoBackend starts the embedded cluster: SSH servers on loopback that replay
// recordings. Keys, known hosts and the audit log are in memory, and the user's
// agent is not asked.
func (a *app) demoBackend() (*demo, error) {
	cluster, err := fixtures.Start(context.Background(), fixtures.Heimlabor(), fixtures.Options{})
	if err != nil {
		return nil, err
	}
	a.onExit(func() { _ = cluster.Close() })
	audit := transport.MemoryAudit()
	if _, err := audit.Start(version()); err != nil {
		return nil, err
	}
	clock := func() time.Time { return cluster.Clock }
	pool := transport.New(transport.Options{Audit: audit, Getenv: func(string) string { return "" }})
	a.onExit(func() { _ = pool.Close() })
	p := &profiles.Profile{
		Name: demoName, SSHUser: "root", Resolver: "builtin", Transport: "ssh", Become: "none",
		PermittedNetworks: []netip.Prefix{netip.MustParsePrefix("192.168.20.0/24")},
		ConnectTimeout:    demoConnectTimeout, Deadline: 20 * time.Second,
	}
	targets := map[string]*profiles.Target{}
	for _, n := range cluster.Nodes {
		p.Nodes = append(p.Nodes, n.Name)
		targets[n.Name] = &profiles.Target{Name: n.Name, HostName: n.Host(), Port: n.Port(), User: "root", IdentityAgent: "none", AddressFamily: "any", Resolver: "builtin"}
	}
	return &demo{cluster: cluster, audit: audit, Backend: &tools.Backend{
		Profile: p, Pool: pool, Now: clock, Source: "demo",
		Host: func(_ context.Context, destination string, role allowlist.Role) (*transport.Host, error) {
			return &transport.Host{Target: targets[destination], Role: role, ConnectTimeout: demoConnectTimeout, Signers: cluster.PrivateKeyPEM, KnownHosts: cluster.KnownHosts}, nil
		},
	}}, nil
}
