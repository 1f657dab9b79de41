package profiles

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// resolveIn resolves in a home of its own: no file of this machine counts.
func resolveIn(t *testing.T, resolver, host string, files map[string]string) (*Target, error) {
	t.Helper()
	home := t.TempDir()
	writeAll(t, home, files, home)
	env := Env{Home: home, User: "me", Hostname: "lab", Getenv: func(string) string { return "" }, SystemConfig: filepath.Join(home, "etc", "ssh_config")}
	target, err := NewResolver(env).Resolve(context.Background(), &Profile{Resolver: resolver}, host)
	if target != nil {
		target.IdentityFiles = nil
	}
	return target, err
}

// TestUserAndSystemFiles: without ssh_config in the profile, the user's file wins over the system's, first line first.
func TestUserAndSystemFiles(t *testing.T) {
	target, err := resolveIn(t, "builtin", "a", map[string]string{
		".ssh/config":    "Include part\nHost a\n Port 5\n",
		".ssh/part":      "User part\n",
		"etc/ssh_config": "Include more/*\nHost *\n User system\n Port 6\n HostName a.lan\n",
		"etc/more/x":     "AddressFamily inet6\n",
		".ssh/more/x":    "AddressFamily inet\n",
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{target.HostName, target.User, target.Port, target.AddressFamily}
	if diff := cmp.Diff([]any{"a.lan", "part", 5, "inet6"}, got); diff != "" {
		t.Error(diff)
	}
}

func TestNoFilesAtAll(t *testing.T) {
	target, err := resolveIn(t, "builtin", "PVE1", nil)
	if err != nil {
		t.Fatal(err)
	}
	if target.HostName != "pve1" || target.User != "me" || target.Port != 22 || target.Resolver != "builtin" || target.Name != "PVE1" {
		t.Errorf("%+v", target)
	}
}

// TestRefusals names file, line and remedy.
func TestRefusals(t *testing.T) {
	for _, tt := range []struct {
		name, resolver string
		files          map[string]string
		code, text     string
	}{
		{"builtin on ?", "builtin", map[string]string{".ssh/config": "User a\nHost pve?\n"}, codeUnsupported, ".ssh/config:2: ? in a Host pattern"},
		{"in an included file", "builtin", map[string]string{".ssh/config": "Include x\n", ".ssh/x": "\nMatch user a\n"}, codeUnsupported, ".ssh/x:2: Match other"},
		{"in the system's file", "builtin", map[string]string{"etc/ssh_config": "Host *\nCiphers +aes128-cbc\n"}, codeUnsupported, "etc/ssh_config:2: the value of"},
		{"auto without ssh", "auto", map[string]string{".ssh/config": "Host pve?\n"}, codeUnsupported, "there is no ssh program here"},
		{"openssh without ssh", "openssh", nil, codeUnsupported, "no ssh program found"},
		{"exec", "auto", map[string]string{".ssh/config": "Host z\n\nMatch exec true\n"}, codeConfig, ".ssh/config:3: Match exec would start a program"},
		{"exec in a file of another host", "builtin", map[string]string{".ssh/config": "Host z\n Include x\n", ".ssh/x": "Match exec true\n"}, codeConfig, ".ssh/x:1: Match exec"},
		{"proxy command", "builtin", map[string]string{".ssh/config": "Host *\n ProxyCommand nc %h\n"}, codeConfig, ".ssh/config:2: ProxyCommand would start"},
		{"known hosts command", "builtin", map[string]string{".ssh/config": "KnownHostsCommand /bin/x\n"}, codeConfig, "KnownHostsCommand would start"},
		{"loop", "builtin", map[string]string{".ssh/config": "Host pve1\n ProxyJump b\nHost b\n ProxyJump pve1\n"}, codeConfig, "ProxyJump leads back"},
		{"hash behind a jump host", "builtin", map[string]string{".ssh/config": "IdentityFile ~/%C\nHost pve1\n ProxyJump b\n"}, codeUnsupported, ".ssh/config:1: the token %C is not known"},
		{"include of itself", "builtin", map[string]string{".ssh/config": "Include config\n"}, codeConfig, "levels of Include"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := resolveIn(t, tt.resolver, "pve1", tt.files)
			var e *Error
			if !errors.As(err, &e) || e.Code != tt.code || !strings.Contains(e.Message, tt.text) || e.Hint == "" {
				t.Errorf("got %v (%+v), want %s %s", err, e, tt.code, tt.text)
			}
		})
	}
}

func TestDestinations(t *testing.T) {
	for _, bad := range []string{"", "-x", "--", "a b", "a;b", "a\n", "@a", "-u@a", "u@", "ssh://", "ssh://a:0", "ssh://a:99999", "ssh://a/b", "a:22", "a,b", "[::1]", "$x", "a%b", "ssh://-a", "ä"} {
		_, err := resolveIn(t, "builtin", bad, nil)
		var e *Error
		if !errors.As(err, &e) || e.Code != codeArgument {
			t.Errorf("%q: %v", bad, err)
		}
	}
	for in, want := range map[string]destination{
		"a": {host: "a"}, "u@a": {user: "u", host: "a"}, "ssh://a": {host: "a"}, "ssh://u@a:1/": {user: "u", host: "a", port: 1},
		"ssh://[2001:db8::1]:22": {host: "2001:db8::1", port: 22}, "2001:db8::1": {host: "2001:db8::1"},
	} {
		if got, err := parseDestination(in); err != nil || got != want {
			t.Errorf("%s: %v, %v", in, got, err)
		}
	}
}

// TestOwnersOfConfig: a file that others could have written is refused, wherever it stands.
func TestOwnersOfConfig(t *testing.T) {
	for _, name := range []string{".ssh/config", ".ssh/inc"} {
		for _, mode := range []os.FileMode{0o620, 0o602} {
			home := t.TempDir()
			writeAll(t, home, map[string]string{".ssh/config": "Include inc\n", ".ssh/inc": "User x\n"}, home)
			if err := os.Chmod(filepath.Join(home, name), mode); err != nil {
				t.Fatal(err)
			}
			env := Env{Home: home, User: "me", SystemConfig: "/nonexistent/ssh_config"}
			for _, config := range []string{"", "~/.ssh/config"} {
				_, err := NewResolver(env).Resolve(context.Background(), &Profile{Resolver: "builtin", SSHConfig: config}, "a")
				if name == ".ssh/inc" && config != "" {
					continue // relative to this machine's home
				}
				if err == nil || !strings.Contains(err.Error(), "others can write it") {
					t.Errorf("%s %o %q: %v", name, mode, config, err)
				}
			}
		}
	}
}

// recorder is a stand-in for ssh that leaves a mark when it is started, with its environment and arguments.
func recorder(t *testing.T, body string) (path, mark string) {
	t.Helper()
	mark = filepath.Join(t.TempDir(), "started")
	return script(t, "#!/bin/sh\n{ echo \"args $*\"; env; } >>"+mark+"\n"+body), mark
}

// TestNothingIsStarted: what the profile does not allow is refused before any program runs, ssh included.
func TestNothingIsStarted(t *testing.T) {
	for _, tt := range []struct {
		name, config string
		files        map[string]string
	}{
		{"exec", "Match exec \"touch @HOME@/evil\"\n", nil},
		{"exec in an included file", "Include x\n", map[string]string{".ssh/x": "Match host * exec \"touch @HOME@/evil\"\n"}},
		{"exec in a file included for another host", "Host z\n Include d/*\n", map[string]string{".ssh/d/x": "Match exec=\"touch @HOME@/evil\"\n"}},
		{"exec with a quoted keyword", "\"Match\" exec \"touch @HOME@/evil\"\n", nil},
		{"exec after a criterion that holds", "Match originalhost a exec \"touch @HOME@/evil\"\n", nil},
		{"proxy command", "Host a?\nMatch all\n ProxyCommand touch @HOME@/evil\n", nil},
		{"proxy command in an included file", "Include x\nHost b?\n", map[string]string{".ssh/x": "Host a\n ProxyCommand touch @HOME@/evil\n"}},
		{"known hosts command", "Host b?\nHost *\n KnownHostsCommand /bin/touch @HOME@/evil\n", nil},
		{"include that cannot be followed", "Include x[a-z]y\n", nil},
		{"include with a token", "Include %h\n", nil},
	} {
		for _, resolver := range []string{"auto", "openssh", "builtin"} {
			home := t.TempDir()
			writeAll(t, home, tt.files, home)
			writeAll(t, home, map[string]string{".ssh/config": tt.config}, home)
			ssh, mark := recorder(t, "")
			env := Env{Home: home, User: "me", SystemConfig: "/nonexistent/ssh_config", SSH: func() (string, error) { return ssh, nil }}
			target, err := NewResolver(env).Resolve(context.Background(), &Profile{Resolver: resolver}, "a")
			var e *Error
			if target != nil || !errors.As(err, &e) {
				t.Errorf("%s, %s: %v, %v", tt.name, resolver, target, err)
			}
			for _, file := range []string{mark, filepath.Join(home, "evil")} {
				if _, err := os.Stat(file); err == nil {
					t.Errorf("%s, %s: a program was started (%s)", tt.name, resolver, filepath.Base(file))
				}
			}
		}
	}
}

// answerLines is the least that ssh -G prints.
const answerLines = "cat <<'END'\nuser u\nhostname h\nport 22\nserveralivecountmax 3\nserveraliveinterval 0\nconnecttimeout none\nEND\n"

// TestHowSSHIsAsked: the arguments, the environment cut to four names, and one start a destination until a file changes.
func TestHowSSHIsAsked(t *testing.T) {
	home := t.TempDir()
	config := filepath.Join(home, "config")
	writeAll(t, home, map[string]string{"config": "Host a?\n"}, home)
	ssh, mark := recorder(t, answerLines)
	vars := map[string]string{"HOME": home, "PATH": "/usr/bin:/bin", "SSH_AUTH_SOCK": "/s", "USER": "me", "SECRET": "x", "LD_PRELOAD": ""}
	found := 0
	env := Env{Home: home, User: "me", SystemConfig: "/nonexistent/ssh_config", Getenv: func(k string) string { return vars[k] },
		SSH: func() (string, error) { found++; return ssh, nil }}
	r := NewResolver(env)
	p := &Profile{Resolver: "openssh", SSHConfig: config, SSHUser: "ops"}
	ask := func(host string) {
		t.Helper()
		if _, err := r.Resolve(context.Background(), p, host); err != nil {
			t.Fatal(err)
		}
	}
	ask("a")
	ask("a")
	text := string(readFile(t, mark))
	if n := strings.Count(text, "args "); n != 1 {
		t.Errorf("started %d times", n)
	}
	if want := "args -GT -l ops -F " + config + " -- a\n"; !strings.HasPrefix(text, want) {
		t.Errorf("got %s, want %s", text, want)
	}
	for _, line := range strings.Split(text, "\n")[1:] {
		if name, _, _ := strings.Cut(line, "="); line != "" && !strings.Contains(" HOME PATH SSH_AUTH_SOCK USER PWD SHLVL _ OLDPWD ", " "+name+" ") {
			t.Errorf("environment has %s", line)
		}
	}
	ask("ssh://x@b:99")
	if text = string(readFile(t, mark)); !strings.Contains(text, "args -GT -l ops -p 99 -F "+config+" -- b\n") {
		t.Errorf("got %s", text)
	}
	writeAll(t, home, map[string]string{"config": "Host a?? \n"}, home)
	ask("a")
	if n := strings.Count(string(readFile(t, mark)), "args "); n != 3 || found != 1 {
		t.Errorf("started %d times, looked for %d times", n, found)
	}
}

func TestSSHThatHangs(t *testing.T) {
	home := t.TempDir()
	ssh, _ := recorder(t, "exec sleep 60\n")
	env := Env{Home: home, User: "me", SystemConfig: "/nonexistent/ssh_config", SSH: func() (string, error) { return ssh, nil }}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	if _, err := NewResolver(env).Resolve(ctx, &Profile{Resolver: "openssh"}, "a"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

// TestSSHThatTalksNonsense: garbage, nothing, too much and a relative path are refusals.
func TestSSHThatTalksNonsense(t *testing.T) {
	for name, body := range map[string]string{
		"nothing": "", "garbage": "echo garbage\n", "failure": "printf 'bad\\033[31m\\nline' >&2; exit 3\n",
		"too much": "head -c 3000000 /dev/zero | tr '\\0' a\n", "bad port": strings.Replace(answerLines, "port 22", "port x", 1),
		"dash host": strings.Replace(answerLines, "hostname h", "hostname -oProxyCommand=x", 1),
	} {
		ssh, _ := recorder(t, body)
		env := Env{Home: t.TempDir(), User: "me", SystemConfig: "/nonexistent/ssh_config", SSH: func() (string, error) { return ssh, nil },
			Getenv: func(k string) string { return map[string]string{"PATH": "/usr/bin:/bin"}[k] }}
		target, err := NewResolver(env).Resolve(context.Background(), &Profile{Resolver: "openssh"}, "a")
		var e *Error
		if target != nil || !errors.As(err, &e) || strings.Contains(e.Message, "\x1b") {
			t.Errorf("%s: %v, %v", name, target, err)
		}
	}
}

// TestDefaultFilesSameAsSSH gives ssh a home and a system directory of its own, which only a mount namespace can.
func TestDefaultFilesSameAsSSH(t *testing.T) {
	ssh := needSSH(t)
	for _, tt := range []struct {
		name  string
		files map[string]string
		hosts []string
	}{
		{"both", map[string]string{"home/.ssh/config": "Host a\n User user\n IdentityFile ~/.ssh/k\n", "etc/ssh_config": "Host *\n User system\n Port 7\n IdentityFile ~/.ssh/k\n IdentityFile ~/.ssh/s\n"}, []string{"a", "b"}},
		{"system only", map[string]string{"etc/ssh_config": "Include ssh_config.d/*.conf\nHost *\n GlobalKnownHostsFile /g\n", "etc/ssh_config.d/1.conf": "Host a\n Port 8\n", "etc/ssh_config.d/2": "User no\n"}, []string{"a", "b"}},
		{"user only", map[string]string{"home/.ssh/config": "Include d/*\nUser u\n", "home/.ssh/d/x": "ProxyJump gw\nHost gw\n ProxyJump none\n"}, []string{"a"}},
		{"match in the system's", map[string]string{"home/.ssh/config": "Host a\n HostName b\n", "etc/ssh_config": "Match host b\n User late\nMatch final all\n Port 9\n"}, []string{"a"}},
		{"system include with ~", map[string]string{"etc/ssh_config": "Include ~/x\nUser u\n"}, []string{"a"}},
		{"none", map[string]string{}, []string{"a", "10.0.0.1"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			writeAll(t, dir, map[string]string{"home/.ssh/": "", "etc/": ""}, dir)
			writeAll(t, dir, tt.files, dir)
			env, _ := sshCase{}.lay(t)
			wrapper := script(t, "#!/bin/sh\nexec unshare -rm sh -c 'mount --bind "+dir+"/home \"$0\" && mount --bind "+dir+"/etc /etc/ssh && exec "+ssh+" \"$@\"' "+env.Home+" \"$@\"\n")
			if out, err := exec.Command(wrapper, "-V").CombinedOutput(); err != nil {
				t.Skipf("no mount namespaces here (unshare -rm): %s", out)
			}
			// The builtin reads the files where they are; what it answers is moved to where ssh sees them.
			real := env.Home
			env.Getenv = func(k string) string {
				return map[string]string{"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": ""}[k]
			}
			for _, host := range tt.hosts {
				for _, kind := range []string{"builtin", "openssh"} {
					e := env
					e.Home, e.SystemConfig = filepath.Join(dir, "home"), filepath.Join(dir, "etc", "ssh_config")
					e.SSH = func() (string, error) { return wrapper, nil }
					got, err := NewResolver(e).Resolve(context.Background(), &Profile{Resolver: kind, Transport: "ssh"}, host)
					if err != nil {
						t.Logf("%s %s: %v", kind, host, err)
						continue
					}
					o := oracle{t, wrapper, env, "", destination{host: host}}
					move(got, e.Home, real, filepath.Dir(e.SystemConfig))
					if diff := o.compare(got); diff != "" {
						t.Errorf("%s %s: -ssh +ours\n%s", kind, host, diff)
					}
				}
			}
		})
	}
}

// move rewrites the paths of an answer from the test's directory to where ssh sees it.
func move(t *Target, home, real, etc string) {
	for _, list := range [][]string{t.IdentityFiles, t.CertificateFiles, t.UserKnownHosts, t.GlobalKnownHosts} {
		for i := range list {
			list[i] = strings.ReplaceAll(strings.ReplaceAll(list[i], home, real), etc, "/etc/ssh")
		}
	}
	for _, hop := range t.ProxyJump {
		move(hop, home, real, etc)
	}
}

// FuzzGuard: whatever the text, the builtin resolver answers or refuses with an *Error, starts nothing, and never
// answers a file in which a Match line has the word exec; splitting a line keeps its words.
func FuzzGuard(f *testing.F) {
	for _, c := range ownCases {
		f.Add(c.config)
	}
	f.Add("Match \"exec\" x\nHost a")
	f.Fuzz(func(t *testing.T, text string) {
		dir := t.TempDir()
		if strings.Contains(strings.ToLower(text), "include") {
			return // the files of this machine are not the fuzzer's
		}
		if err := os.WriteFile(filepath.Join(dir, "config"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		ssh, mark := filepath.Join(dir, "nothing"), ""
		env := Env{Home: dir, User: "me", SystemConfig: "/nonexistent/ssh_config", SSH: func() (string, error) { mark = ssh; return ssh, nil }}
		target, err := NewResolver(env).Resolve(context.Background(), &Profile{Resolver: "builtin", SSHConfig: filepath.Join(dir, "config")}, "a")
		var e *Error
		if (target == nil) == (err == nil) || err != nil && !errors.As(err, &e) {
			t.Fatalf("%v, %v", target, err)
		}
		if mark != "" {
			t.Fatal("the builtin resolver looked for ssh")
		}
		for _, line := range strings.Split(strings.ToLower(text), "\n") {
			if words := strings.Fields(line); target != nil && len(words) > 1 && words[0] == "match" && words[1] == "exec" {
				t.Fatalf("answered with %q in the file", line)
			}
		}
		if target != nil && (target.Port < 1 || target.Port > 65535 || target.HostName == "" || target.User == "" || strings.HasPrefix(target.HostName, "-")) {
			t.Fatalf("%+v", target)
		}
	})
}
