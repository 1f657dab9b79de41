package profiles

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// sshCase is one configuration and what is looked up in it.
type sshCase struct {
	name, config string
	hosts        []string
	files        map[string]string // below HOME/.ssh
	env          map[string]string
	allow        bool
	user         string // ssh_user of the profile
}

// corpus reads the cases of testdata/ssh_config.
func corpus(t *testing.T) []sshCase {
	t.Helper()
	const dir = "testdata/ssh_config"
	var list []struct {
		Name  string
		Hosts []string
	}
	if err := json.Unmarshal(readFile(t, dir+"/cases.json"), &list); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	root := dir + "/home/.ssh"
	if err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			files[strings.TrimPrefix(path, root+"/")] = string(readFile(t, path))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	var cases []sshCase
	for _, c := range list {
		cases = append(cases, sshCase{name: c.Name, hosts: c.Hosts, files: files, config: string(readFile(t, dir+"/"+c.Name+".conf"))})
	}
	return cases
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// lay writes a case into a new home, with modes that do not depend on the checkout, and gives its environment.
func (c sshCase) lay(t *testing.T) (env Env, config string) {
	t.Helper()
	home := filepath.Join(t.TempDir(), "home")
	writeAll(t, filepath.Join(home, ".ssh"), c.files, home)
	config = filepath.Join(home, "config")
	writeAll(t, home, map[string]string{"config": c.config}, home)
	me, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	uid, _ := strconv.Atoi(me.Uid)
	host, _ := os.Hostname()
	vars := map[string]string{"HOME": home, "USER": me.Username, "PATH": "/usr/bin:/bin"}
	for k, v := range c.env {
		vars[k] = v
	}
	return Env{
		Home: me.HomeDir, User: me.Username, UID: uid, Hostname: host, SystemConfig: "/etc/ssh/ssh_config", SSH: findSSH,
		Getenv: func(name string) string { return vars[name] },
		LookupHome: func(name string) (string, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return "", err
			}
			return u.HomeDir, nil
		},
	}, config
}

func writeAll(t *testing.T, dir string, files map[string]string, home string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "/") {
			if err := os.MkdirAll(path, 0o700); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if err := os.WriteFile(path, []byte(strings.ReplaceAll(text, "@HOME@", home)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func (c sshCase) profile(config, resolver string) *Profile {
	return &Profile{Name: "t", SSHConfig: config, Resolver: resolver, AllowLocalCommands: c.allow, SSHUser: c.user, Transport: "controlmaster"}
}

// needSSH gives the ssh program or skips; with CI=true its absence is a failure.
func needSSH(t *testing.T) string {
	t.Helper()
	path, err := findSSH()
	if err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal("no ssh program: install openssh-client")
		}
		t.Skip("no ssh program: install openssh-client")
	}
	return path
}

// oracle is what ssh itself says, read independently of openssh.go: every file name is expanded by ssh, as a ControlPath.
type oracle struct {
	t    *testing.T
	ssh  string
	env  Env
	conf string
	d    destination
}

func (o oracle) dump(options ...string) (map[string][]string, error) {
	args := append([]string{"-GT"}, options...)
	if o.d.user != "" {
		args = append(args, "-l", o.d.user)
	}
	if o.d.port != 0 {
		args = append(args, "-p", strconv.Itoa(o.d.port))
	}
	if o.conf != "" {
		args = append(args, "-F", o.conf)
	}
	cmd := exec.Command(o.ssh, append(args, "--", o.d.host)...)
	for _, name := range sshEnvironment {
		if v := o.env.Getenv(name); v != "" {
			cmd.Env = append(cmd.Env, name+"="+v)
		}
	}
	out, err := cmd.Output()
	m := map[string][]string{}
	for _, line := range strings.Split(string(out), "\n") {
		k, v, _ := strings.Cut(line, " ")
		m[k] = append(m[k], v)
	}
	return m, err
}

func (o oracle) expand(key string, names []string) (out []string) {
	for _, n := range names {
		if strings.EqualFold(n, "none") || strings.HasSuffix(n, "/id_dsa") && n[0] == '~' || strings.HasSuffix(n, "/id_xmss") && n[0] == '~' {
			continue
		}
		if rest, ok := strings.CutPrefix(n, "~/"); ok && !strings.ContainsAny(rest, "%$") && !strings.HasPrefix(rest, "/") {
			out = append(out, strings.TrimSuffix(o.env.Home, "/")+"/"+rest)
			continue
		}
		m, err := o.dump("-o", `ControlPath="`+n+`"`)
		if err != nil {
			out = append(out, key+": ssh cannot expand it")
			continue
		}
		out = append(out, m["controlpath"][0])
	}
	return out
}

func (o oracle) target() (*Target, []string, error) {
	m, err := o.dump()
	if err != nil {
		return nil, nil, err
	}
	one := func(k string) string {
		if len(m[k]) == 0 {
			return ""
		}
		return m[k][0]
	}
	seconds := func(k string) time.Duration {
		n, _ := strconv.Atoi(one(k))
		return time.Duration(n) * time.Second
	}
	port, _ := strconv.Atoi(one("port"))
	count, _ := strconv.Atoi(one("serveralivecountmax"))
	home := func(s string) string { return strings.ReplaceAll(s, "~/", o.env.Home+"/") }
	list := func(k string) []string {
		if one(k) == "none" {
			return nil
		}
		return strings.Split(home(one(k)), " ")
	}
	t := &Target{
		HostName: one("hostname"), User: one("user"), Port: port, IdentitiesOnly: one("identitiesonly") == "yes",
		IdentityAgent: one("identityagent"), HostKeyAlias: one("hostkeyalias"), UserKnownHosts: list("userknownhostsfile"),
		GlobalKnownHosts: list("globalknownhostsfile"), RevokedHostKeys: one("revokedhostkeys"),
		ConnectTimeout: seconds("connecttimeout"), ServerAliveInterval: seconds("serveraliveinterval"), ServerAliveCountMax: count,
		AddressFamily: one("addressfamily"), BindAddress: one("bindaddress"), ControlPath: one("controlpath"),
		IdentityFiles: o.expand("identityfile", m["identityfile"]), CertificateFiles: o.expand("certificatefile", m["certificatefile"]),
		ProxyCommand: one("proxycommand"), KnownHostsCommand: one("knownhostscommand"),
	}
	plain, _ := oracle{o.t, o.ssh, o.env, "/dev/null", o.d}.dump()
	for k, to := range map[string]*[]string{"kexalgorithms": &t.KexAlgorithms, "hostkeyalgorithms": &t.HostKeyAlgorithms,
		"pubkeyacceptedalgorithms": &t.PubkeyAcceptedAlgorithms, "ciphers": &t.Ciphers, "macs": &t.MACs} {
		if one(k) != plain[k][0] {
			*to = strings.Split(one(k), ",")
		}
	}
	switch a := t.IdentityAgent; {
	case a == "SSH_AUTH_SOCK":
		t.IdentityAgent = ""
	case strings.HasPrefix(a, "$"):
		t.IdentityAgent = o.env.Getenv(a[1:])
	}
	var hops []string
	if v := one("proxyjump"); v != "" {
		hops = strings.Split(v, ",")
	}
	switch one("stricthostkeychecking") {
	case "false", "accept-new":
		t.Notes = append(t.Notes, "strict")
	}
	if one("verifyhostkeydns") == "true" {
		t.Notes = append(t.Notes, "dns")
	}
	if one("nohostauthenticationforlocalhost") == "yes" {
		t.Notes = append(t.Notes, "localhost")
	}
	return t, hops, nil
}

// joined undoes the split of the lists that ssh prints with blanks between the names: a name may hold one.
func joined(t *Target) *Target {
	c := *t
	for _, list := range []*[]string{&c.UserKnownHosts, &c.GlobalKnownHosts} {
		*list = []string{strings.Join(*list, " ")}
	}
	return &c
}

// compare checks every field of an answer against the oracle's, and each hop against the oracle asked about that hop.
func (o oracle) compare(got *Target) string {
	want, hops, err := o.target()
	if err != nil {
		return "ssh refuses this, we answer " + got.HostName
	}
	jumps := got.ProxyJump
	diff := cmp.Diff(joined(want), joined(got), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Target{}, "Name", "Resolver", "ProxyJump", "Notes", "ProxyCommand", "KnownHostsCommand"))
	if len(want.Notes) != len(got.Notes) {
		diff += "notes: want " + strings.Join(want.Notes, ",") + "; got " + strings.Join(got.Notes, ",") + "\n"
	}
	if (want.ProxyCommand == "") != (got.ProxyCommand == "") || (want.KnownHostsCommand == "") != (got.KnownHostsCommand == "") {
		diff += "commands: want " + want.ProxyCommand + want.KnownHostsCommand + "; got " + got.ProxyCommand + got.KnownHostsCommand + "\n"
	}
	if len(hops) == 0 && len(jumps) == 0 {
		return diff
	}
	if len(jumps) < len(hops) || len(hops) == 0 {
		return diff + "hops: want " + strings.Join(hops, ",") + "\n"
	}
	for i, text := range hops {
		d, err := parseJump(text)
		if err != nil {
			return diff + "hop " + text
		}
		hop := o
		hop.d = d
		mine := *jumps[len(jumps)-len(hops)+i]
		want, own, err := hop.target()
		if err != nil {
			return diff + "ssh refuses the hop " + text
		}
		if i == 0 && len(own)+len(hops) > len(jumps) {
			diff += "the first hop's own hops are missing\n"
		}
		diff += cmp.Diff(joined(want), joined(&mine), cmpopts.EquateEmpty(), cmpopts.IgnoreFields(Target{}, "Name", "Resolver", "ProxyJump", "Notes", "ProxyCommand", "KnownHostsCommand"))
	}
	return diff
}

// TestSameAsSSH is the promise: for every case, both resolvers give what ssh gives, field by field, or refuse.
func TestSameAsSSH(t *testing.T) {
	ssh := needSSH(t)
	answered := map[string]int{}
	for _, c := range slices.Concat(corpus(t), ownCases) {
		t.Run(c.name, func(t *testing.T) {
			env, config := c.lay(t)
			defer func() {
				if _, err := os.Stat(filepath.Join(env.Getenv("HOME"), "evil")); err == nil {
					t.Error("a program of the configuration was started")
				}
			}()
			for _, host := range c.hosts {
				checkAuto(t, c, env, config, host)
				for _, kind := range []string{"builtin", "openssh"} {
					d, err := parseDestination(host)
					got, rerr := NewResolver(env).Resolve(context.Background(), c.profile(config, kind), host)
					if rerr != nil {
						var e *Error
						if !errors.As(rerr, &e) || e.Message == "" {
							t.Errorf("%s %s: %v is no *Error", kind, host, rerr)
						}
						continue
					}
					if err != nil {
						t.Fatalf("%s: %v", host, err)
					}
					if c.user != "" {
						d.user = c.user
					}
					answered[kind]++
					for _, hop := range append(got.ProxyJump, got) {
						if !c.allow && hop.ProxyCommand+hop.KnownHostsCommand != "" {
							t.Errorf("%s %s: a command that the profile does not allow: %+v", kind, host, hop)
						}
					}
					if diff := (oracle{t, ssh, env, config, d}).compare(got); diff != "" {
						t.Errorf("%s %s: -ssh +ours\n%s", kind, host, diff)
					}
				}
			}
		})
	}
	t.Logf("answered: %v", answered)
}

// checkAuto: auto is the builtin resolver where that answers, and ssh where it does not.
func checkAuto(t *testing.T, c sshCase, env Env, config, host string) {
	t.Helper()
	r := NewResolver(env)
	got, _ := r.Resolve(context.Background(), c.profile(config, "auto"), host)
	want, err := r.Resolve(context.Background(), c.profile(config, "builtin"), host)
	if err != nil {
		want, _ = r.Resolve(context.Background(), c.profile(config, "openssh"), host)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("auto %s: -want +got\n%s", host, diff)
	}
}
