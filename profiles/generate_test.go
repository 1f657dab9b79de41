package profiles

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
)

// FuzzSameAsSSH makes small configurations out of building blocks and holds both resolvers to the law of
// TestSameAsSSH: the answer of ssh, field by field, or a refusal.
func FuzzSameAsSSH(f *testing.F) {
	for seed := range uint64(60) {
		f.Add(seed)
	}
	ssh, sshErr := findSSH()
	f.Fuzz(func(t *testing.T, seed uint64) {
		if sshErr != nil {
			needSSH(t)
		}
		c := generate(rand.New(rand.NewPCG(seed, 7)))
		env, config := c.lay(t)
		for _, host := range c.hosts {
			for _, kind := range []string{"builtin", "openssh"} {
				got, err := NewResolver(env).Resolve(context.Background(), c.profile(config, kind), host)
				if err != nil {
					var e *Error
					if !errors.As(err, &e) {
						t.Errorf("%s %s: %v is no *Error\n%s", kind, host, err, c.config)
					}
					continue
				}
				d, err := parseDestination(host)
				if err != nil {
					t.Fatal(err)
				}
				if diff := (oracle{t, ssh, env, config, d}).compare(got); diff != "" {
					t.Errorf("%s %s: -ssh +ours\n%s\n%s\n%v", kind, host, diff, c.config, c.files)
				}
			}
		}
	})
}

// pieces are values by keyword; most are good.
var pieces = []struct {
	key    string
	values []string
}{
	{"HostName", []string{"%h", "%h.lan", "Big.LAN", "10.0.0.7", "10.7", "2001:db8::7", "a%%b", "x y", "%n"}},
	{"User", []string{"root", "joe", "Mixed", "\"q u\"", "'s'", "a=b", "x#y", "joe # c", "%u", "\"\""}},
	{"Port", []string{"22", "2222", "65535", "022", "0", "ssh", "7 # c", "\"8\""}},
	{"IdentityFile", []string{"~/.ssh/a", "~/.ssh/b", "~/.ssh/%h_%r", "%d/k", "/k/%n/%p", "none", "\"~/a b\"", "~/a\\ b", "~/k#1", "~root/k", "${HOME}/k", "$HOME/k", "~/%C", "~/%%", "~/%z", "rel/k", "a b"}},
	{"CertificateFile", []string{"~/c1", "~/c-%u", "\"/c d\"", "none"}},
	{"IdentitiesOnly", []string{"yes", "NO", "True", "on", "yes no"}},
	{"IdentityAgent", []string{"none", "SSH_AUTH_SOCK", "~/agent", "$USER", "${HOME}/a", "\"~/a b\"", "NONE", "%d/x"}},
	{"HostKeyAlias", []string{"ALIAS", "alias", "[a]:22", "%h"}},
	{"UserKnownHostsFile", []string{"~/k1", "~/k1 ~/k2", "none", "\"~/k 1\"", "\"~/k 1\" ~/k2", "/dev/null", "~/k_%h /k/%k", "none ~/x"}},
	{"GlobalKnownHostsFile", []string{"/g1 /g2", "/dev/null", "none", "~/g"}},
	{"RevokedHostKeys", []string{"/r", "none", "~/r"}},
	{"ProxyJump", []string{"none", "gw", "j@gw:23", "gw,other", "ssh://u@gw:24", "[::1]:25", "gw # x", "\"gw\"", "a b", "GW", "a"}},
	{"ProxyCommand", []string{"none", "nc %h %p", "nc # x", "'"}},
	{"KnownHostsCommand", []string{"none", "/bin/x %h"}},
	{"StrictHostKeyChecking", []string{"yes", "no", "accept-new", "ask", "off", "never"}},
	{"ConnectTimeout", []string{"5", "1m30s", "none", "0", "5x", "2H", "1m 2"}},
	{"ServerAliveInterval", []string{"15", "none", "0", "1m"}},
	{"ServerAliveCountMax", []string{"2", "0", "-1", "x", "007"}},
	{"AddressFamily", []string{"inet", "INET6", "any", "ipv4"}},
	{"BindAddress", []string{"10.0.0.1", "%h"}},
	{"BatchMode", []string{"no", "yes"}},
	{"Ciphers", []string{"aes256-ctr", "aes256-ctr,aes128-ctr", "+aes128-cbc", "-aes*", "^aes256-ctr", "bad"}},
	{"HostKeyAlgorithms", []string{"ssh-ed25519", "+ssh-rsa", "-ecdsa*", "ssh-ed25519,rsa-sha2-512"}},
	{"PubkeyAcceptedKeyTypes", []string{"+ssh-rsa"}},
	{"ControlPath", []string{"~/.ssh/%r@%h:%p", "~/.ssh/%C", "none", "\"/tmp/a b\""}},
	{"CanonicalizeHostname", []string{"no", "no", "false"}},
	{"IgnoreUnknown", []string{"Foo*,Bar", "Foo*", "*"}},
	{"FooBar", []string{"1", "\"a", "x y z"}},
	{"SendEnv", []string{"LANG LC_*", "-LC_*", "A=B"}},
	{"SetEnv", []string{"A=B", "A=\"b c\"", "A"}},
	{"HashKnownHosts", []string{"yes", "no", "x"}},
	{"RemoteCommand", []string{"none", "none", "w"}},
	{"PreferredAuthentications", []string{"publickey", "publickey,password", "password"}},
	{"LocalForward", []string{"80 a:80", "80 a", "[::1]:80 a:80"}},
	{"Include", []string{"inc1", "inc*", "~/.ssh/inc2", "sub/*", "none", "inc1 inc2", "\"inc1\"", "inc1 # c", "sub"}},
}

var blocks = []string{
	"Host a", "Host *", "Host b gw", "Host * !a", "Host !b", "Host a*", "Host ?", "Host \"a\"", "Host a\tb", "Host=b", "HOST A", "Host a,b", "Host *.* a",
	"Match all", "Match host a", "Match host b,gw", "Match user root", "Match originalhost a host *", "Match !host a", "Match final all", "Match localuser *",
	"Match host zz exec \"false\"", "Match final host a", "Match canonical", "Match host \"a\"", "Match all # c",
}

func generate(r *rand.Rand) sshCase {
	c := sshCase{name: "generated", hosts: []string{"a", "b", "A", "u@gw"}, files: map[string]string{"sub/": ""}}
	for _, name := range []string{"inc1", "inc2", "sub/x", "sub/.y"} {
		if r.IntN(2) == 0 {
			c.files[name] = section(r, 1+r.IntN(3), false)
		}
	}
	c.config = section(r, 2+r.IntN(7), true)
	c.hosts = c.hosts[:2+r.IntN(3)]
	c.allow = r.IntN(4) == 0 && !strings.Contains(c.config+fmt.Sprint(c.files), "exec")
	return c
}

// section is some lines; most configurations must be good ones, so the first, plain values are much more likely.
func section(r *rand.Rand, n int, includes bool) string {
	var b strings.Builder
	end := []string{"\n", "\n", "\n", "\n", "\r\n", " \n", "\t\n"}
	if r.IntN(40) == 0 {
		b.WriteString("\ufeff")
	}
	for range n {
		if r.IntN(3) == 0 {
			b.WriteString(pick(r, blocks) + "\n")
			continue
		}
		p := pieces[r.IntN(len(pieces))]
		if p.key == "Include" && !includes {
			continue
		}
		key := p.key
		switch r.IntN(8) {
		case 0:
			key = strings.ToLower(key)
		case 1:
			key = strings.ToUpper(key)
		}
		b.WriteString(pick(r, []string{"", " ", "\t", "    "}) + key + pick(r, []string{" ", " ", " ", "  ", "\t", "=", " = ", "= "}))
		if r.IntN(3) == 0 {
			b.WriteString(pick(r, p.values))
		} else {
			b.WriteString(pick(r, p.values[:min(3, len(p.values))]))
		}
		b.WriteString(pick(r, end))
		if r.IntN(15) == 0 {
			b.WriteString(pick(r, []string{"# comment \"x\n", "\n", "   \n", "\t# c\n"}))
		}
	}
	return b.String()
}

func pick(r *rand.Rand, from []string) string { return from[r.IntN(len(from))] }
