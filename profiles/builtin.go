package profiles

import (
	"bytes"
	"fmt"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kevinburke/ssh_config"
)

// builtin resolves one destination without any program: kevinburke/ssh_config parses each file, the guard has refused
// what it parses wrongly, and where the two readings of a line differ all the same, the line is refused too.
func (r *resolution) builtin(d destination, behindJump bool) (*Target, []jump, error) {
	if err := r.checkExec(d); err != nil {
		return nil, nil, err
	}
	if err := r.checkProven(); err != nil {
		return nil, nil, err
	}
	o := &options{alias: d.host, set: map[string]*sshLine{}}
	for _, root := range r.files.roots {
		if err := o.file(root, true); err != nil {
			return nil, nil, err
		}
	}
	return r.finish(o, d, behindJump)
}

// options is ssh's state while it reads: the first line of a keyword wins, file names add up.
type options struct {
	alias       string
	set         map[string]*sshLine
	ids, certs  []gathered
	jump, proxy *sshLine
}

type gathered struct {
	line *sshLine
	name string
}

// maxGathered is OpenSSH's limit on IdentityFile and CertificateFile; above it it refuses the file.
const maxGathered = 99

// includeMark stands for an Include line in what kevinburke reads: it would look for the files elsewhere.
const includeMark = "pvelensinclude"

// file applies one file; active is whether the block around its Include line applies.
func (o *options) file(f *sshFile, active bool) error {
	var text bytes.Buffer
	at := make(map[int]*sshLine, len(f.lines))
	var blocks []*sshLine
	for _, l := range f.lines {
		key, raw := l.key, l.raw
		if key == "include" {
			key, raw = includeMark, "x"
		}
		text.WriteString(key + " " + raw + "\n")
		at[bytes.Count(text.Bytes(), []byte("\n"))] = l
		if key == "host" || key == "match" {
			blocks = append(blocks, l)
		}
	}
	parsed, err := ssh_config.DecodeBytes(text.Bytes())
	if err != nil {
		return &unprovenError{f.path, "the file cannot be parsed"}
	}
	if len(parsed.Hosts) != len(blocks)+1 {
		return &unprovenError{f.path, "the blocks are read differently"}
	}
	seen := len(blocks)
	for i, block := range parsed.Hosts {
		applies := active && block.Matches(o.alias)
		// The guard leaves no Match but Match all.
		if i > 0 && block.Matches(o.alias) != (blocks[i-1].key == "match" || matchHost(blocks[i-1].args, o.alias)) {
			return &unprovenError{blocks[i-1].at(), "the patterns are read differently"}
		}
		for _, node := range block.Nodes {
			kv, ok := node.(*ssh_config.KV)
			if !ok {
				continue
			}
			line := at[kv.Pos().Line]
			if line == nil || !sameReading(kv, line) {
				return &unprovenError{f.path, fmt.Sprintf("the keyword %s is read differently", quoteName(kv.Key))}
			}
			seen++
			if err := o.line(line, applies); err != nil {
				return err
			}
		}
	}
	if seen != len(f.lines) {
		return &unprovenError{f.path, "a line is read differently"}
	}
	return nil
}

// sameReading compares kevinburke's value with the guard's; of a command it cuts a #, and the guard's stands.
func sameReading(kv *ssh_config.KV, l *sshLine) bool {
	switch k := keywords[l.key].kind; {
	case l.key == "include":
		return kv.Key == includeMark
	case kv.Key != l.key:
		return false
	case k == kindCommand || k == kindJump || k == kindRefuse || k == kindUnproven:
		return true
	case l.quoted:
		return len(l.args) == 1 && kv.Value == l.args[0]
	}
	return slices.Equal(strings.FieldsFunc(kv.Value, func(r rune) bool { return r == ' ' || r == '\t' }), l.args)
}

// line applies one line, as process_config_line does.
func (o *options) line(l *sshLine, active bool) error {
	for _, inc := range l.included {
		if err := o.file(inc, active); err != nil {
			return err
		}
	}
	if !active {
		return nil
	}
	switch l.key {
	case "identityfile":
		o.ids = gather(o.ids, l)
	case "certificatefile":
		o.certs = gather(o.certs, l)
	case "proxyjump":
		if o.proxy == nil && o.jump == nil {
			o.jump = l
		}
	case "proxycommand":
		if o.jump != nil && isNone(o.jump.raw) && !isNone(l.raw) {
			return &unprovenError{l.at(), "ProxyCommand after ProxyJump none"}
		}
		if o.proxy == nil && o.jump == nil {
			o.proxy = l
		}
	case "connecttimeout", "serveraliveinterval":
		if l.args[0] != "none" { // none leaves it to the next line
			o.first(l)
		}
	default:
		o.first(l)
	}
	return nil
}

func (o *options) first(l *sshLine) {
	if o.set[l.key] == nil {
		o.set[l.key] = l
	}
}

func gather(list []gathered, l *sshLine) []gathered {
	for _, g := range list { // ssh drops doubles only among the user's files, or the system's
		if g.name == l.args[0] && g.line.file.user == l.file.user {
			return list
		}
	}
	return append(list, gathered{l, l.args[0]})
}

// value is the first word of a keyword's line, or "".
func (o *options) value(key string) string {
	if l := o.set[key]; l != nil {
		return l.args[0]
	}
	return ""
}

func (o *options) isYes(key string) bool {
	v := strings.ToLower(o.value(key))
	return v == "yes" || v == "true"
}

// finish makes the answer of what was set.
func (r *resolution) finish(o *options, d destination, behindJump bool) (*Target, []jump, error) {
	t := &Target{Resolver: "builtin", Port: 22, User: r.env.User, ServerAliveCountMax: 3, AddressFamily: "any"}
	if len(o.ids) > maxGathered || len(o.certs) > maxGathered {
		return nil, nil, &unprovenError{r.files.roots[0].path, "more file names than ssh takes"}
	}
	if err := o.identity(t, d, r.env); err != nil {
		return nil, nil, err
	}
	hops, err := r.proxies(o, t, d.host, behindJump)
	if err != nil {
		return nil, nil, err
	}
	if err := o.refused(); err != nil {
		return nil, nil, err
	}
	if err := o.numbers(t); err != nil {
		return nil, nil, err
	}
	toks := tokensOf(r.env, t, d.host)
	if len(hops) > 0 {
		delete(toks, 'C') // with a jump host the hash differs between versions
	}
	if err := r.fileNames(o, t, toks); err != nil {
		return nil, nil, err
	}
	if t.KnownHostsCommand, err = r.knownHosts(o, toks); err != nil {
		return nil, nil, err
	}
	t.KexAlgorithms, t.HostKeyAlgorithms = o.algos("kexalgorithms"), o.algos("hostkeyalgorithms")
	t.PubkeyAcceptedAlgorithms, t.Ciphers, t.MACs = o.algos("pubkeyacceptedalgorithms"), o.algos("ciphers"), o.algos("macs")
	t.Notes = notes(o.value("stricthostkeychecking"), o.value("verifyhostkeydns"), o.value("nohostauthenticationforlocalhost"))
	return t, hops, nil
}

// identity settles host, user and port.
func (o *options) identity(t *Target, d destination, env Env) error {
	t.HostName = d.host
	at := "destination " + quoteName(d.host)
	if l := o.set["hostname"]; l != nil {
		name, err := tokens{'h': d.host, '%': "%"}.expand(l.args[0], nil)
		if err != nil {
			return &unprovenError{l.at(), err.Error() + " in HostName"}
		}
		t.HostName, at = name, l.at()
	}
	if !plainHost(t.HostName) {
		return &unprovenError{at, "a host name or address in an unusual form"}
	}
	t.HostName = strings.ToLower(t.HostName)
	if d.user != "" {
		t.User = d.user
	} else if l := o.set["user"]; l != nil {
		if t.User = l.args[0]; strings.ContainsAny(t.User, "%$") {
			return &unprovenError{l.at(), "a token in User"}
		}
	}
	if d.port != 0 {
		t.Port = d.port
	} else if l := o.set["port"]; l != nil {
		t.Port, _ = parsePort(l.args[0])
	}
	t.HostKeyAlias, t.BindAddress = strings.ToLower(o.value("hostkeyalias")), o.value("bindaddress")
	for _, key := range []string{"hostkeyalias", "bindaddress"} {
		if strings.ContainsAny(o.value(key), "%$") {
			return &unprovenError{o.set[key].at(), "a token in " + key}
		}
	}
	return nil
}

// numericHost is what inet_aton would take for an address: 10.1, 0x7f.1, 010.0.0.1.
var numericHost = regexp.MustCompile(`^(0[xX][0-9a-fA-F]*|[0-9]+)(\.(0[xX][0-9a-fA-F]*|[0-9]+))*\.?$`)

// plainHost is a name, or an address in the one form that every system library writes.
func plainHost(s string) bool {
	if !validHost(s) {
		return false
	}
	if numericHost.MatchString(s) || strings.Contains(s, ":") {
		a, err := netip.ParseAddr(s)
		return err == nil && a.String() == s && (a.Is4() || !strings.Contains(s, "."))
	}
	return true
}

// proxies settles ProxyJump and ProxyCommand; behind a jump host ssh does not look at its own.
func (r *resolution) proxies(o *options, t *Target, alias string, behindJump bool) ([]jump, error) {
	switch {
	case behindJump:
		return nil, nil
	case o.jump != nil && !isNone(o.jump.raw):
		hops, err := parseJumps(o.jump.raw)
		if err != nil {
			return nil, &unprovenError{o.jump.at(), "ProxyJump"}
		}
		return hops, nil
	case o.proxy == nil || isNone(o.proxy.raw):
		return nil, nil
	case !r.profile.AllowLocalCommands:
		return nil, localCommand(o.proxy.at(), "ProxyCommand")
	case o.isYes("proxyusefdpass"):
		return nil, unsupported(o.set["proxyusefdpass"].at(), "ProxyUseFdpass")
	}
	var err error
	if t.ProxyCommand, err = proxyTokens(t, alias).expand(o.proxy.raw, nil); err != nil {
		return nil, &unprovenError{o.proxy.at(), err.Error() + " in ProxyCommand"}
	}
	return nil, nil
}

// proxyTokens are the few that ProxyCommand knows.
func proxyTokens(t *Target, alias string) tokens {
	key := t.HostKeyAlias
	if key == "" {
		key = alias
	}
	return tokens{'%': "%", 'h': t.HostName, 'k': key, 'n': alias, 'p': strconv.Itoa(t.Port), 'r': t.User}
}

func (r *resolution) knownHosts(o *options, toks tokens) (string, error) {
	l := o.set["knownhostscommand"]
	if l == nil || isNone(l.raw) {
		return "", nil
	}
	if !r.profile.AllowLocalCommands {
		return "", localCommand(l.at(), "KnownHostsCommand")
	}
	s, err := expandKnownHosts(l.raw, toks)
	if err != nil {
		return "", &unprovenError{l.at(), err.Error() + " in KnownHostsCommand"}
	}
	return s, nil
}

// expandKnownHosts leaves what only a connection knows, %f %H %I %K %t, and %% with them, to whoever runs the command.
func expandKnownHosts(s string, toks tokens) (string, error) {
	with := tokens{}
	for c, v := range toks {
		with[c] = strings.ReplaceAll(v, "%", "%%")
	}
	for _, c := range "%fHIKt" {
		with[byte(c)] = "%" + string(c)
	}
	return with.expand(s, nil)
}

func unsupported(at, what string) error {
	return &Error{Code: codeUnsupported, Message: fmt.Sprintf("%s: %s: pvelens cannot do this", at, what),
		Hint: "Add a block for this host before it that sets it otherwise, or name another file as ssh_config in the profile."}
}

// refused are settings under which ssh would not do what pvelens does.
func (o *options) refused() error {
	for _, keyword := range []string{"RemoteCommand", "BindInterface"} {
		if l := o.set[strings.ToLower(keyword)]; l != nil && !(keyword == "RemoteCommand" && isNone(l.raw)) {
			return unsupported(l.at(), keyword)
		}
	}
	if v := strings.ToLower(o.value("pubkeyauthentication")); v == "no" || v == "false" {
		return unsupported(o.set["pubkeyauthentication"].at(), "PubkeyAuthentication no")
	}
	if v := o.value("preferredauthentications"); v != "" && !slices.Contains(strings.Split(v, ","), "publickey") {
		return unsupported(o.set["preferredauthentications"].at(), "PreferredAuthentications without publickey")
	}
	if o.isYes("batchmode") && o.set["serveraliveinterval"] == nil {
		return &unprovenError{o.set["batchmode"].at(), "BatchMode without ServerAliveInterval, which Debian's ssh then sets to 300"}
	}
	return nil
}

func (o *options) numbers(t *Target) error {
	if l := o.set["serveralivecountmax"]; l != nil {
		t.ServerAliveCountMax, _ = strconv.Atoi(l.args[0])
	}
	t.IdentitiesOnly = o.isYes("identitiesonly")
	if v := o.value("addressfamily"); v != "" {
		t.AddressFamily = strings.ToLower(v)
	}
	var err error
	if t.ConnectTimeout, err = o.time("connecttimeout"); err != nil {
		return err
	}
	t.ServerAliveInterval, err = o.time("serveraliveinterval")
	return err
}

func (o *options) time(key string) (time.Duration, error) {
	l := o.set[key]
	if l == nil {
		return 0, nil
	}
	d, ok := parseTime(l.args[0])
	if !ok {
		return 0, &unprovenError{l.at(), "the time"}
	}
	return d, nil
}

// parseTime is OpenSSH's convtime: 90, 15s, 1m30s, 2h, 1d, 1w.
func parseTime(s string) (time.Duration, bool) {
	units := map[byte]int64{'s': 1, 'm': 60, 'h': 3600, 'd': 86400, 'w': 604800}
	var total, n int64
	for i := 0; i < len(s); i++ {
		c := s[i] | 0x20
		switch {
		case s[i] >= '0' && s[i] <= '9':
			n = n*10 + int64(s[i]-'0')
		case units[c] > 0:
			total, n = total+n*units[c], 0
		default:
			return 0, false
		}
		if n > 1<<31-1 || total > 1<<31-1 {
			return 0, false
		}
	}
	total += n
	return time.Duration(total) * time.Second, s != "" && total < 1<<31-1
}

func (o *options) algos(key string) []string {
	if v := o.value(key); v != "" {
		return strings.Split(v, ",")
	}
	return nil
}

// defaultIdentities are OpenSSH's; the DSA key is left out: no version of the last ten years offers it unasked.
var defaultIdentities = []string{"id_rsa", "id_ecdsa", "id_ecdsa_sk", "id_ed25519", "id_ed25519_sk"}

// fileNames settles everything that is a path.
func (r *resolution) fileNames(o *options, t *Target, toks tokens) error {
	var err error
	if t.IdentityFiles, err = r.gathered(o.ids, toks); err != nil {
		return err
	}
	if len(o.ids) == 0 {
		for _, name := range defaultIdentities {
			t.IdentityFiles = append(t.IdentityFiles, filepath.Join(r.env.Home, ".ssh", name))
		}
	}
	if t.CertificateFiles, err = r.gathered(o.certs, toks); err != nil {
		return err
	}
	if l := o.set["identityagent"]; l != nil {
		if t.IdentityAgent, err = r.agent(l.args[0], toks); err != nil {
			return &unprovenError{l.at(), err.Error()}
		}
	}
	if t.UserKnownHosts, err = r.knownHostsFiles(o.set["userknownhostsfile"], toks,
		filepath.Join(r.env.Home, ".ssh", "known_hosts"), filepath.Join(r.env.Home, ".ssh", "known_hosts2")); err != nil {
		return err
	}
	dir := filepath.Dir(r.env.SystemConfig)
	if t.GlobalKnownHosts, err = r.knownHostsFiles(o.set["globalknownhostsfile"], nil,
		filepath.Join(dir, "ssh_known_hosts"), filepath.Join(dir, "ssh_known_hosts2")); err != nil {
		return err
	}
	if l := o.set["revokedhostkeys"]; l != nil && !isNone(l.args[0]) {
		if t.RevokedHostKeys = l.args[0]; strings.ContainsAny(t.RevokedHostKeys, "~%$") {
			return &unprovenError{l.at(), "a token or ~ in RevokedHostKeys"}
		}
	}
	if l := o.set["controlpath"]; l != nil && !isNone(l.args[0]) && r.profile.Transport == "controlmaster" {
		if t.ControlPath, err = r.provenPath(l.args[0], toks); err != nil {
			return &unprovenError{l.at(), err.Error()}
		}
	}
	return nil
}

// provenPath expands a path without looking up another user.
func (r *resolution) provenPath(s string, toks tokens) (string, error) {
	env := r.env
	env.LookupHome = nil
	return env.path(s, toks)
}

func (r *resolution) gathered(list []gathered, toks tokens) ([]string, error) {
	var out []string
	for _, g := range list {
		if isNone(g.name) { // stands in ssh's list, and is skipped there
			continue
		}
		path, err := r.provenPath(g.name, toks)
		if err != nil {
			return nil, &unprovenError{g.line.at(), err.Error()}
		}
		out = append(out, path)
	}
	return out, nil
}

// agent reads IdentityAgent: none, SSH_AUTH_SOCK, $NAME or a path.
func (r *resolution) agent(s string, toks tokens) (string, error) {
	switch {
	case s == "none":
		return "none", nil
	case s == "SSH_AUTH_SOCK":
		return "", nil
	case strings.HasPrefix(s, "$") && !strings.HasPrefix(s, "${"):
		return r.agentVar(s)
	}
	path, err := r.provenPath(s, toks)
	if path == "none" || path == "SSH_AUTH_SOCK" || strings.HasPrefix(path, "$") {
		return "", fmt.Errorf("IdentityAgent of an unusual form")
	}
	return path, err
}

// agentVar is the old form $NAME; ssh goes without an agent when the variable is not set.
func (r *resolution) agentVar(s string) (string, error) {
	name := s[1:]
	if !isEnvName(name) {
		return "", fmt.Errorf("IdentityAgent of an unusual form")
	}
	if socket := r.env.Getenv(name); socket != "" {
		return socket, nil
	}
	return "none", nil
}

// knownHostsFiles expands one of the two lists; toks nil means that only ~ is expanded. none is an empty list.
func (r *resolution) knownHostsFiles(l *sshLine, toks tokens, preset ...string) ([]string, error) {
	if l == nil {
		return preset, nil
	}
	out := []string{}
	for _, a := range l.args {
		if isNone(a) {
			continue
		}
		if toks == nil && strings.ContainsAny(a, "%$") {
			return nil, &unprovenError{l.at(), "a token in GlobalKnownHostsFile"}
		}
		path, err := r.provenPath(a, toks)
		if err != nil {
			return nil, &unprovenError{l.at(), err.Error()}
		}
		out = append(out, path)
	}
	return out, nil
}

// notes says where pvelens is stricter than the configuration.
func notes(strict, dns, localhost string) []string {
	var out []string
	switch strings.ToLower(strict) {
	case "no", "off", "false":
		out = append(out, "StrictHostKeyChecking no is treated as yes: an unknown or changed host key is always refused")
	case "accept-new":
		out = append(out, "StrictHostKeyChecking accept-new is treated as yes: an unknown host key is always refused")
	}
	if v := strings.ToLower(dns); v == "yes" || v == "true" {
		out = append(out, "VerifyHostKeyDNS is not used: only known_hosts files count")
	}
	if v := strings.ToLower(localhost); v == "yes" || v == "true" {
		out = append(out, "NoHostAuthenticationForLocalhost is not used: the host key of localhost is checked too")
	}
	return out
}
