package profiles

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// sshEnvironment is all that ssh gets of our environment.
var sshEnvironment = []string{"HOME", "USER", "PATH", "SSH_AUTH_SOCK"}

const (
	sshTimeout   = 20 * time.Second
	maxSSHOutput = 1 << 20
	maxSSHAtOnce = 4
)

// findSSH looks for the ssh program on PATH.
func findSSH() (string, error) {
	path, err := exec.LookPath("ssh")
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// sshProgram is the one ssh of this process, found once.
type sshProgram struct {
	once     sync.Once
	path     string
	err      error
	slots    chan struct{}
	mu       sync.Mutex
	defaults map[string][]string // what an empty configuration gives
}

func (s *sshProgram) find(env Env) (string, error) {
	s.once.Do(func() {
		s.slots = make(chan struct{}, maxSSHAtOnce)
		if s.err = errors.New("no ssh program"); env.SSH == nil {
			return
		}
		if s.path, s.err = env.SSH(); s.err == nil && !filepath.IsAbs(s.path) {
			s.err = errors.New("the path of the ssh program is not absolute")
		}
	})
	return s.path, s.err
}

// run starts ssh -GT and gives what it prints, by keyword.
func (s *sshProgram) run(ctx context.Context, env Env, args ...string) (map[string][]string, error) {
	path, err := s.find(env)
	if err != nil {
		return nil, err
	}
	select {
	case s.slots <- struct{}{}:
		defer func() { <-s.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	ctx, cancel := context.WithTimeout(ctx, sshTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, path, append([]string{"-GT"}, args...)...)
	cmd.Env = []string{}
	for _, name := range sshEnvironment {
		if v := env.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	out, problems := &capped{max: maxSSHOutput}, &capped{max: 4096}
	cmd.Stdout, cmd.Stderr = out, problems
	cmd.WaitDelay = time.Second
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			return nil, fmt.Errorf("ssh -G: %w", ctx.Err())
		}
		return nil, configError("Correct the file; ssh -G shows the same for this host.", "ssh refuses its configuration: %s", firstLines(problems.Bytes(), err))
	}
	if out.cut {
		return nil, configError("", "ssh -G printed more than %d bytes", maxSSHOutput)
	}
	return parseDump(out.Bytes()), nil
}

// capped keeps the first bytes of a stream and drops the rest.
type capped struct {
	bytes.Buffer
	max int
	cut bool
}

func (c *capped) Write(p []byte) (int, error) {
	if room := c.max - c.Len(); len(p) > room {
		c.cut = true
		c.Buffer.Write(p[:max(room, 0)])
	} else {
		c.Buffer.Write(p)
	}
	return len(p), nil
}

// firstLines makes one printable line of what ssh complained about.
func firstLines(stderr []byte, err error) string {
	text := strings.Map(func(r rune) rune {
		if r == '\n' || r == '\r' {
			return ' '
		}
		if r < 0x20 || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.TrimSpace(string(stderr)), "?"))
	if len(text) > 400 {
		text = strings.ToValidUTF8(text[:400], "") + "..."
	}
	if text == "" {
		return err.Error()
	}
	return text
}

// parseDump reads the lines KEYWORD VALUE of ssh -G; a value may hold blanks.
func parseDump(out []byte) map[string][]string {
	dump := map[string][]string{}
	for line := range strings.SplitSeq(string(out), "\n") {
		if key, value, ok := strings.Cut(line, " "); ok {
			key = strings.ToLower(key)
			dump[key] = append(dump[key], value)
		}
	}
	return dump
}

// openssh asks ssh itself for one destination, after the files were searched for what would start a program.
func (r *resolution) openssh(d destination, behindJump bool) (*Target, []jump, error) {
	if err := r.checkExec(d); err != nil {
		return nil, nil, err
	}
	if err := r.checkCommands(d, behindJump); err != nil {
		return nil, nil, err
	}
	dump, err := r.ask(d)
	if err != nil {
		return nil, nil, err
	}
	a := &answer{resolution: r, dump: dump, d: d}
	return a.target(behindJump)
}

func (r *resolution) ask(d destination, options ...string) (map[string][]string, error) {
	args := options
	if d.user != "" {
		args = append(args, "-l", d.user)
	}
	if d.port != 0 {
		args = append(args, "-p", strconv.Itoa(d.port))
	}
	if r.profile.SSHConfig != "" {
		args = append(args, "-F", r.files.roots[0].path)
	}
	dump, err := r.ssh.run(r.ctx, r.env, append(args, "--", d.host)...)
	var e *Error
	if errors.As(err, &e) {
		e.Message = d.host + ": " + e.Message
	}
	return dump, err
}

// answer is what ssh printed for one destination.
type answer struct {
	*resolution
	dump map[string][]string
	d    destination
}

func (a *answer) value(key string) string {
	if v := a.dump[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// where names the first line of the files that sets a keyword.
func (a *answer) where(keys ...string) string {
	at := "ssh_config of " + a.d.host
	found := false
	a.files.each(func(l *sshLine) {
		if !found && slices.Contains(keys, l.key) {
			at, found = l.at(), true
		}
	})
	return at
}

var zoned = regexp.MustCompile(`^[0-9a-f:.]+%[A-Za-z0-9._-]+$`)

func (a *answer) target(behindJump bool) (*Target, []jump, error) {
	t := &Target{
		Resolver: "openssh", HostName: a.value("hostname"), User: a.value("user"),
		HostKeyAlias: a.value("hostkeyalias"), BindAddress: a.value("bindaddress"), AddressFamily: a.value("addressfamily"),
		IdentitiesOnly: a.value("identitiesonly") == "yes",
		Notes:          notes(a.value("stricthostkeychecking"), a.value("verifyhostkeydns"), a.value("nohostauthenticationforlocalhost")),
	}
	if err := a.refused(); err != nil {
		return nil, nil, err
	}
	if !validHost(t.HostName) && !zoned.MatchString(t.HostName) {
		return nil, nil, configError("Correct HostName in ssh_config.", "%s: HostName: ssh reads %s, which is neither a name nor an address", a.where("hostname"), quoteName(t.HostName))
	}
	if t.User == "" || hasControl(t.User) {
		return nil, nil, configError("Correct User in ssh_config.", "%s: User: ssh reads no user name", a.where("user"))
	}
	if err := a.numbers(t); err != nil {
		return nil, nil, err
	}
	if err := a.algorithms(t); err != nil {
		return nil, nil, err
	}
	hops, err := a.proxies(t, behindJump)
	if err != nil {
		return nil, nil, err
	}
	if err := a.fileNames(t); err != nil {
		return nil, nil, err
	}
	return t, hops, nil
}

// refused are settings under which ssh would not do what pvelens does, as in the builtin resolver.
func (a *answer) refused() error {
	off := func(key string, plain ...string) bool {
		v := a.dump[key]
		return len(v) == 0 || slices.Contains(plain, strings.ToLower(v[0]))
	}
	switch {
	case !off("remotecommand"):
		return unsupported(a.where("remotecommand"), "RemoteCommand")
	case !off("bindinterface"):
		return unsupported(a.where("bindinterface"), "BindInterface")
	case !off("sessiontype", "default"):
		return unsupported(a.where("sessiontype"), "SessionType")
	case !off("canonicalizehostname", "false", "no"), !off("canonicalizepermittedcnames", "none"):
		return unsupported(a.where("canonicalizehostname", "canonicalizepermittedcnames"), "the canonical form of a host name, which depends on the moment")
	case a.value("pubkeyauthentication") == "false" || a.value("pubkeyauthentication") == "no":
		return unsupported(a.where("pubkeyauthentication"), "PubkeyAuthentication no")
	}
	if v := a.dump["preferredauthentications"]; len(v) > 0 && !slices.Contains(strings.Split(v[0], ","), "publickey") {
		return unsupported(a.where("preferredauthentications"), "PreferredAuthentications without publickey")
	}
	return nil
}

func (a *answer) numbers(t *Target) error {
	var ok bool
	if t.Port, ok = parsePort(a.value("port")); !ok {
		return configError("", "%s: ssh reads no port", a.where("port"))
	}
	count, err := strconv.Atoi(a.value("serveralivecountmax"))
	if err != nil {
		return configError("", "%s: ssh reads no ServerAliveCountMax", a.where("serveralivecountmax"))
	}
	t.ServerAliveCountMax = count
	if t.ConnectTimeout, err = a.time("connecttimeout"); err != nil {
		return err
	}
	t.ServerAliveInterval, err = a.time("serveraliveinterval")
	return err
}

func (a *answer) time(key string) (time.Duration, error) {
	v := a.value(key)
	if v == "none" {
		return 0, nil
	}
	seconds, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return 0, configError("", "%s: ssh reads no time for %s", a.where(key), key)
	}
	return time.Duration(seconds) * time.Second, nil
}

// algorithms keeps a list only where it differs from what ssh does without any configuration: nil is our own, stricter.
func (a *answer) algorithms(t *Target) error {
	lists := map[string]*[]string{"kexalgorithms": &t.KexAlgorithms, "hostkeyalgorithms": &t.HostKeyAlgorithms,
		"pubkeyacceptedalgorithms": &t.PubkeyAcceptedAlgorithms, "ciphers": &t.Ciphers, "macs": &t.MACs}
	set := false
	a.files.each(func(l *sshLine) {
		set = set || lists[l.key] != nil || l.key == "pubkeyacceptedkeytypes"
	})
	if !set {
		return nil
	}
	plain, err := a.ssh.plain(a.ctx, a.env)
	if err != nil {
		return err
	}
	for key, to := range lists {
		if v := a.value(key); v != "" && !slices.Equal(plain[key], a.dump[key]) {
			*to = strings.Split(v, ",")
		}
	}
	return nil
}

// plain is what ssh prints for an empty configuration.
func (s *sshProgram) plain(ctx context.Context, env Env) (map[string][]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.defaults == nil {
		dump, err := s.run(ctx, env, "-F", os.DevNull, "--", "localhost")
		if err != nil {
			return nil, err
		}
		s.defaults = dump
	}
	return s.defaults, nil
}

func (a *answer) proxies(t *Target, behindJump bool) ([]jump, error) {
	command, known := a.value("proxycommand"), a.value("knownhostscommand")
	var hops []jump
	if v := a.value("proxyjump"); v != "" && !behindJump {
		var err error
		if hops, err = parseJumps(v); err != nil {
			return nil, unsupported(a.where("proxyjump"), "ProxyJump in another form than [user@]host[:port],...")
		}
	}
	if behindJump || isNone(command) {
		command = ""
	}
	if isNone(known) {
		known = ""
	}
	switch {
	case command != "" && !a.profile.AllowLocalCommands:
		return nil, localCommand(a.where("proxycommand"), "ProxyCommand")
	case known != "" && !a.profile.AllowLocalCommands:
		return nil, localCommand(a.where("knownhostscommand"), "KnownHostsCommand")
	case command != "" && a.value("proxyusefdpass") == "yes":
		return nil, unsupported(a.where("proxyusefdpass"), "ProxyUseFdpass")
	}
	var err error
	if t.ProxyCommand, err = proxyTokens(t, a.d.host).expand(command, nil); err != nil {
		return nil, configError("", "%s: %v in ProxyCommand", a.where("proxycommand"), err)
	}
	if known != "" {
		toks, err := a.tokensFor(t, known)
		if err != nil {
			return nil, err
		}
		if t.KnownHostsCommand, err = expandKnownHosts(known, toks); err != nil {
			return nil, configError("", "%s: %v in KnownHostsCommand", a.where("knownhostscommand"), err)
		}
	}
	return hops, nil
}

// tokensFor knows every token of the texts. What differs between versions of ssh is asked of ssh: it expands ControlPath.
func (a *answer) tokensFor(t *Target, texts ...string) (tokens, error) {
	toks := tokensOf(a.env, t, a.d.host)
	delete(toks, 'C')
	for _, c := range "Cj" {
		token := "%" + string(c)
		if !strings.Contains(strings.Join(texts, "\n"), token) {
			continue
		}
		dump, err := a.ask(a.d, "-o", "ControlPath=/"+token)
		if err != nil {
			return nil, err
		}
		if v := dump["controlpath"]; len(v) > 0 {
			toks[byte(c)] = strings.TrimPrefix(v[0], "/")
		}
	}
	return toks, nil
}

func (a *answer) fileNames(t *Target) error {
	ids, certs := a.dump["identityfile"], a.dump["certificatefile"]
	if isPreset(ids) {
		ids = slices.DeleteFunc(slices.Clone(ids), func(s string) bool { return s == "~/.ssh/id_dsa" || s == "~/.ssh/id_xmss" })
	}
	texts := slices.Concat(ids, certs)
	a.files.each(func(l *sshLine) {
		if l.key == "userknownhostsfile" {
			texts = append(texts, l.args...)
		}
	})
	toks, err := a.tokensFor(t, texts...)
	if err != nil {
		return err
	}
	if t.IdentityFiles, err = a.paths(ids, toks, "identityfile"); err != nil {
		return err
	}
	if t.CertificateFiles, err = a.paths(certs, toks, "certificatefile"); err != nil {
		return err
	}
	if t.UserKnownHosts, err = a.list("userknownhostsfile", toks, "~/.ssh/known_hosts", "~/.ssh/known_hosts2"); err != nil {
		return err
	}
	if t.GlobalKnownHosts, err = a.list("globalknownhostsfile", nil, "/etc/ssh/ssh_known_hosts", "/etc/ssh/ssh_known_hosts2"); err != nil {
		return err
	}
	if t.RevokedHostKeys = a.value("revokedhostkeys"); strings.HasPrefix(t.RevokedHostKeys, "~") {
		return configError("Write the path in full.", "%s: RevokedHostKeys: this version of ssh does not expand ~ here", a.where("revokedhostkeys"))
	}
	if a.profile.Transport == "controlmaster" {
		t.ControlPath = a.value("controlpath")
	}
	return a.agentOf(t)
}

func (a *answer) agentOf(t *Target) error {
	t.IdentityAgent = a.value("identityagent")
	switch {
	case t.IdentityAgent == "SSH_AUTH_SOCK":
		t.IdentityAgent = ""
	case strings.HasPrefix(t.IdentityAgent, "$"):
		var err error
		if t.IdentityAgent, err = a.agentVar(t.IdentityAgent); err != nil {
			return unsupported(a.where("identityagent"), err.Error())
		}
	}
	return nil
}

// isPreset tells OpenSSH's own list of identity files.
func isPreset(ids []string) bool {
	for _, name := range defaultIdentities {
		if !slices.Contains(ids, "~/.ssh/"+name) {
			return false
		}
	}
	return true
}

func (a *answer) paths(in []string, toks tokens, key string) ([]string, error) {
	var out []string
	for _, s := range in {
		if isNone(s) {
			continue
		}
		path, err := a.env.path(s, toks)
		if err != nil {
			return nil, configError("", "%s: %s: %v", a.where(key), key, err)
		}
		out = append(out, path)
	}
	return out, nil
}

// list splits one of the two known_hosts lists, which ssh prints with blanks between the names. A name may hold a blank:
// so the split is taken from the line of the files that gives what ssh printed, and refused where two such lines differ.
func (a *answer) list(key string, toks tokens, preset ...string) ([]string, error) {
	value := a.value(key)
	if value == "" || isNone(value) {
		return []string{}, nil
	}
	candidates := [][]string{preset}
	a.files.each(func(l *sshLine) {
		if l.key == key {
			candidates = append(candidates, l.args)
		}
	})
	var found []string
	for _, args := range candidates {
		names, err := a.expandList(args, toks)
		if err != nil || strings.Join(names, " ") != value && strings.Join(args, " ") != value {
			continue
		}
		if found != nil && !slices.Equal(found, names) {
			return nil, unsupported(a.where(key), key+" with a blank in a file's name")
		}
		found = names
	}
	if found != nil {
		return found, nil
	}
	if a.mayHoldBlanks(candidates, toks) {
		return nil, unsupported(a.where(key), key+" with a blank in a file's name")
	}
	return a.expandList(strings.Split(value, " "), nil)
}

// mayHoldBlanks tells whether a blank in a printed list could be part of a name.
func (a *answer) mayHoldBlanks(lists [][]string, toks tokens) bool {
	blank := func(s string) bool { return strings.ContainsAny(s, " \t") }
	if blank(a.env.Home) {
		return true
	}
	for _, v := range toks {
		if blank(v) {
			return true
		}
	}
	return slices.ContainsFunc(slices.Concat(lists...), func(s string) bool {
		expanded, _ := expandVars(s, a.env.lookupVar)
		return blank(s) || blank(expanded)
	})
}

// expandList expands ~, and the tokens where toks is given: of the global list ssh expands ~ only.
func (a *answer) expandList(args []string, toks tokens) ([]string, error) {
	var out []string
	for _, s := range args {
		path, err := a.env.tilde(s)
		if err == nil && toks != nil {
			path, err = toks.expand(path, a.env.lookupVar)
		}
		if err != nil {
			return nil, err
		}
		out = append(out, path)
	}
	return out, nil
}

// checkCommands refuses, before ssh is started, a destination to which a ProxyCommand or a KnownHostsCommand applies for
// certain. Where a Match decides, ssh is asked, and its answer is refused.
func (r *resolution) checkCommands(d destination, behindJump bool) error {
	if r.profile.AllowLocalCommands {
		return nil
	}
	var refused error
	settled := map[string]bool{"proxycommand": behindJump}
	r.files.eachFor(d.host, func(l *sshLine, applies truth) {
		what, named := l.key, map[string]string{"proxycommand": "ProxyCommand", "knownhostscommand": "KnownHostsCommand"}
		if what == "proxyjump" {
			what = "proxycommand"
		}
		if named[what] == "" || applies == no || settled[what] {
			return
		}
		settled[what] = true
		if applies == yes && l.key != "proxyjump" && !isNone(l.raw) && refused == nil {
			refused = localCommand(l.at(), named[what])
		}
	})
	return refused
}
