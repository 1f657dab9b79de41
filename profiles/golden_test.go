package profiles

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite testdata/golden.json and testdata/dumps.json; needs ssh, and a home at /root")

// recorded is what ssh 9.2 printed for each destination that a case asks about; a text that begins with ! is a refusal.
type recorded = map[string]string

// outcome is one golden answer: what a resolver gave, or its refusal.
type outcome struct {
	Refused string         `json:",omitempty"`
	Target  map[string]any `json:",omitempty"` // without the empty fields
}

var (
	algoLine     = regexp.MustCompile(`^(ciphers|macs|\w+algorithms) `)
	algoConfig   = regexp.MustCompile(`(?i)ciphers|macs|algorithms|keytypes`)
	machineBound = regexp.MustCompile(`%[ClLi]|%%|/etc/`)
	dumpKeys     = regexp.MustCompile(`(?m)^(user|hostname|port|addressfamily|canonicalize(hostname|permittedcnames)|identitiesonly|proxyusefdpass|` +
		`pubkeyauthentication|sessiontype|stricthostkeychecking|verifyhostkeydns|nohostauthenticationforlocalhost|serveralive\w+|bind\w+|` +
		`ciphers|macs|kexalgorithms|hostkeyalgorithms|pubkeyacceptedalgorithms|controlpath|hostkeyalias|identityagent|remotecommand|` +
		`preferredauthentications|revokedhostkeys|knownhostscommand|identityfile|certificatefile|globalknownhostsfile|userknownhostsfile|` +
		`connecttimeout|proxy(command|jump)) .*\n`)
)

// goldenCases are those whose answer does not depend on the machine.
func goldenCases(t *testing.T) []sshCase {
	return slices.DeleteFunc(slices.Concat(corpus(t), ownCases), func(c sshCase) bool {
		return machineBound.MatchString(c.config) || strings.Contains(c.name, "exec-allowed")
	})
}

// goldenEnv is one fixed machine; ssh is a script that plays back what was recorded, or records.
func goldenEnv(env Env, ssh string) Env {
	env.Home, env.User, env.UID, env.Hostname = "/root", "root", 0, "lab"
	env.SSH = func() (string, error) { return ssh, nil }
	getenv := env.Getenv
	env.Getenv = func(name string) string {
		if name == "USER" {
			return "root"
		}
		return getenv(name)
	}
	env.LookupHome = func(name string) (string, error) {
		if name != "root" {
			return "", os.ErrNotExist
		}
		return "/root", nil
	}
	return env
}

// The scripts name a question by all arguments but -F FILE.
const (
	scriptStart = "#!/bin/sh\nk=; f=\nfor a; do case $f$a in -GT|--) ;; -F) f=F;; F/dev/null) f=; k=plain-;; F*) f=;; *) k=\"$k$a \";; esac; done\n"
	playScript  = scriptStart + "if [ -e \"$0.d/$k\" ]; then cat \"$0.d/$k\"; exit 0; fi\ncat \"$0.d/$k.err\" >&2; exit 255\n"
	noteScript  = scriptStart + "if /usr/bin/ssh \"$@\" >\"$0.d/$k\" 2>\"$0.d/$k.err\"; then cat \"$0.d/$k\"; exit 0; fi\nrm \"$0.d/$k\"; cat \"$0.d/$k.err\" >&2; exit 255\n"
)

// script writes a stand-in for ssh.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ssh")
	if err := os.MkdirAll(path+".d", 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestGolden holds both resolvers to recorded answers, for machines without ssh: the openssh resolver reads what ssh
// printed when the answers were recorded.
func TestGolden(t *testing.T) {
	golden, dumps := map[string]map[string]outcome{}, map[string]recorded{}
	if !*update {
		for path, into := range map[string]any{"testdata/golden.json": &golden, "testdata/dumps.json": &dumps} {
			if err := json.Unmarshal(readFile(t, path), into); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, c := range goldenCases(t) {
		t.Run(c.name, func(t *testing.T) {
			env, config := c.lay(t)
			home := env.Getenv("HOME")
			text := playScript
			if *update {
				text = noteScript
			}
			ssh := script(t, text)
			env = goldenEnv(env, ssh)
			for host, out := range dumps[c.name] {
				name := filepath.Join(ssh+".d", host)
				if msg, refused := strings.CutPrefix(out, "!"); refused {
					name, out = name+".err", msg
				}
				if err := os.WriteFile(name, []byte(strings.ReplaceAll(out, "@HOME@", home)), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got := map[string]outcome{}
			for _, kind := range []string{"builtin", "openssh"} {
				r := NewResolver(env)
				for _, host := range c.hosts {
					target, err := r.Resolve(context.Background(), c.profile(config, kind), host)
					if err != nil {
						got[kind+" "+host] = outcome{Refused: strings.ReplaceAll(err.Error(), home, "@HOME@")}
						continue
					}
					got[kind+" "+host] = outcome{Target: portable(t, target, home)}
				}
			}
			if *update {
				golden[c.name], dumps[c.name] = got, collect(t, ssh+".d", home, algoConfig.MatchString(c.config))
				return
			}
			if diff := cmp.Diff(golden[c.name], got); diff != "" {
				t.Errorf("-recorded +now\n%s", diff)
			}
		})
	}
	if *update {
		writeJSON(t, "testdata/golden.json", golden)
		writeJSON(t, "testdata/dumps.json", dumps)
	}
}

// portable takes the place of the temporary home and the empty fields out of an answer.
func portable(t *testing.T, target *Target, home string) map[string]any {
	t.Helper()
	data, err := json.Marshal(target)
	if err != nil {
		t.Fatal(err)
	}
	var out map[string]any
	if err := json.Unmarshal(bytes.ReplaceAll(data, []byte(home), []byte("@HOME@")), &out); err != nil {
		t.Fatal(err)
	}
	prune(out)
	return out
}

func prune(m map[string]any) {
	for k, v := range m {
		if hops, ok := v.([]any); ok && k == "ProxyJump" {
			for _, hop := range hops {
				prune(hop.(map[string]any))
			}
		}
		if list, ok := v.([]any); v == nil || v == "" || v == false || v == 0.0 || ok && len(list) == 0 {
			delete(m, k)
		}
	}
}

func collect(t *testing.T, dir, home string, algos bool) recorded {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	out := recorded{}
	for _, e := range entries {
		text := strings.ReplaceAll(string(readFile(t, filepath.Join(dir, e.Name()))), home, "@HOME@")
		if host, isErr := strings.CutSuffix(e.Name(), ".err"); isErr {
			if _, answered := out[host]; !answered {
				out[host] = "!" + text
			}
			continue
		}
		lines := dumpKeys.FindAllString(text, -1)
		if !algos {
			lines = slices.DeleteFunc(lines, algoLine.MatchString)
		}
		out[e.Name()] = strings.Join(lines, "")
	}
	return out
}

// writeJSON writes one line an answer, so that a change is a readable difference.
func writeJSON[T any](t *testing.T, path string, cases map[string]map[string]T) {
	t.Helper()
	var b bytes.Buffer
	sep := "{\n"
	for _, name := range slices.Sorted(maps.Keys(cases)) {
		b.WriteString(sep + strconv.Quote(name) + ": {")
		sep = ",\n"
		inner := "\n"
		for _, key := range slices.Sorted(maps.Keys(cases[name])) {
			data, err := json.Marshal(cases[name][key])
			if err != nil {
				t.Fatal(err)
			}
			b.WriteString(inner + " " + strconv.Quote(key) + ": " + string(data))
			inner = ",\n"
		}
		b.WriteString("\n}")
	}
	b.WriteString("\n}\n")
	if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
}
