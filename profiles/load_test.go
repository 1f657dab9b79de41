package profiles

import (
	"errors"
	"net/netip"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

func ptr(f float64) *float64 { return &f }

const wholeFile = `default = "homelab"
[profiles.homelab]
nodes              = ["pve1", "root@pve2", "ssh://root@[2001:db8::1]:2222"]
docker_hosts       = ["nas"]
ssh_user           = "root"
ssh_config         = "~/.ssh/config"
resolver           = "builtin"
allow_local_commands = true
transport          = "controlmaster"
become             = "sudo"
permitted_networks = ["10.0.0.0/24", "2001:db8::/64"]
connect_timeout    = "2s"
deadline           = "1m"
ignore             = ["GUEST_AGENT_OFF", "SNAPSHOT_OLD:101"]
[profiles.homelab.thresholds]
STORAGE_FULL = { warning = 85, critical = 95.5 }
ZPOOL_FULL = { critical = 90 }
[profiles.small]
nodes = ["one"]
`

func TestLoad(t *testing.T) {
	want := map[string]*Profile{
		"homelab": {
			Name: "homelab", Nodes: []string{"pve1", "root@pve2", "ssh://root@[2001:db8::1]:2222"}, DockerHosts: []string{"nas"}, SSHUser: "root",
			SSHConfig: "~/.ssh/config", Resolver: "builtin", AllowLocalCommands: true, Transport: "controlmaster", Become: "sudo",
			PermittedNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24"), netip.MustParsePrefix("2001:db8::/64")},
			ConnectTimeout:    2 * time.Second, Deadline: time.Minute, Ignore: []string{"GUEST_AGENT_OFF", "SNAPSHOT_OLD:101"},
			Thresholds: map[string]Limits{"STORAGE_FULL": {ptr(85), ptr(95.5)}, "ZPOOL_FULL": {nil, ptr(90)}},
		},
		"small": {Name: "small", Nodes: []string{"one"}, Resolver: "auto", Transport: "ssh", Become: "none", ConnectTimeout: 5 * time.Second, Deadline: 20 * time.Second},
	}
	cfg, err := parse("p.toml", []byte(wholeFile))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, cfg.Profiles, cmpopts.EquateComparable(netip.Prefix{})); diff != "" || cfg.Default != "homelab" {
		t.Errorf("default %q, -want +got\n%s", cfg.Default, diff)
	}
}

func TestLoadErrors(t *testing.T) {
	const head = "[profiles.a]\nnodes = [\"x\"]\n"
	for _, tt := range []struct{ name, in, want, hint string }{
		{"unknown key at the top", "colour = 1\n", "p.toml:1:1: colour: unknown key", "default"},
		{"unknown key", head + "node = ['y']\n", "p.toml:3:1: profiles.a.node: unknown key", "nodes, docker_hosts"},
		{"another letter case", "[profiles.a]\nNodes = ['y']\n", "p.toml:2:1: profiles.a.Nodes: unknown key", ""},
		{"unknown limit", head + "[profiles.a.thresholds]\nA = { warn = 1 }\n", "p.toml:4:7: profiles.a.thresholds.warn: unknown key", "warning, critical"},
		{"text for a list", "[profiles.a]\nnodes = \"x\"\n", "p.toml:2:9: profiles.a.nodes: want a list of SSH destinations", ""},
		{"number in a list", "[profiles.a]\nnodes = [\"x\", 5]\n", "p.toml:2:15: profiles.a.nodes: want a list", ""},
		{"number for a duration", head + "connect_timeout = 5\n", "p.toml:3:19: profiles.a.connect_timeout: want a duration", ""},
		{"no unit", head + "deadline = '20'\n", `p.toml:3:1: profiles.a.deadline: "20" is no duration`, "20s"},
		{"negative duration", head + "deadline = '-1s'\n", "p.toml:3:1: profiles.a.deadline: \"-1s\" is out of range", ""},
		{"deadline below connect", head + "deadline = '3s'\n", "p.toml:3:1: profiles.a.deadline: deadline (3s) is below connect_timeout (5s)", ""},
		{"connect above deadline", head + "connect_timeout = '1m'\n", "p.toml:3:1: profiles.a.connect_timeout: deadline (20s) is below", ""},
		{"text for a flag", head + "allow_local_commands = 'yes'\n", "p.toml:3:24: profiles.a.allow_local_commands: want true or false", ""},
		{"unknown word", head + "become = 'doas'\n", `p.toml:3:1: profiles.a.become: unknown word "doas"`, `"none", "sudo" or "gate"`},
		{"word in capitals", head + "resolver = 'Auto'\n", `unknown word "Auto"`, ""},
		{"wide network", head + "permitted_networks = ['10.0.0.0/8']\n", "p.toml:3:1: profiles.a.permitted_networks: entry 1: \"10.0.0.0/8\" is wider than /16", ""},
		{"wide IPv6 network", head + "permitted_networks = ['10.0.0.0/16', '2001:db8::/48']\n", "entry 2: \"2001:db8::/48\" is wider", ""},
		{"all of IPv4 in IPv6", head + "permitted_networks = ['::ffff:10.0.0.0/104']\n", "write the IPv4 network", ""},
		{"address for a network", head + "permitted_networks = ['10.0.0.1']\n", "is no network", ""},
		{"host bits", head + "permitted_networks = ['10.0.0.1/24']\n", "the network is 10.0.0.0/24", ""},
		{"loopback", head + "permitted_networks = ['127.0.0.0/16']\n", "no network of hosts", ""},
		{"ignore shape", head + "ignore = ['snapshot']\n", "p.toml:3:1: profiles.a.ignore: entry 1: \"snapshot\" is neither", ""},
		{"ignore with a path", head + "ignore = ['A:guest/101']\n", "is neither CODE", ""},
		{"ignore without segment", head + "ignore = ['A:']\n", "is neither CODE", ""},
		{"threshold of an unknown shape", head + "thresholds = { A = 5 }\n", "want ", ""},
		{"threshold list", head + "thresholds = { A = [1, 2] }\n", "p.toml:3:20: ", ""},
		{"threshold without limits", head + "thresholds = { A = {} }\n", "p.toml:3:16: profiles.a.thresholds.A: neither warning nor critical", ""},
		{"threshold as text", head + "thresholds = { A = { warning = '5' } }\n", "p.toml:3:32: ", ""},
		{"threshold not a number", head + "thresholds = { A = { warning = nan } }\n", "NaN is no limit", ""},
		{"threshold below zero", head + "thresholds = { A = { critical = -1 } }\n", "p.toml:3:22: profiles.a.thresholds.A.critical: -1 is no limit", ""},
		{"threshold code", head + "thresholds = { storage_full = { critical = 1 } }\n", "a finding's code is upper case", ""},
		{"demo", "[profiles.demo]\nnodes = ['x']\n", "p.toml:1:11: profiles.demo: this name is reserved", ""},
		{"odd name", "[profiles.\"a b\"]\nnodes = ['x']\n", "a profile's name is", ""},
		{"no host", "[profiles.a]\n", "p.toml:1:11: profiles.a: no host", ""},
		{"destination with a dash", "[profiles.a]\nnodes = ['-oProxyCommand=x']\n", "p.toml:2:1: profiles.a.nodes: entry 1:", ""},
		{"user with a dash", head + "ssh_user = '-x'\n", "is no user name", ""},
		{"destination twice", "[profiles.a]\nnodes = ['x', 'x']\n", "stands here twice", ""},
		{"empty destination", "[profiles.a]\nnodes = ['']\n", "entry 1:", ""},
		{"relative ssh_config", head + "ssh_config = 'config'\n", "is neither absolute nor below ~/", ""},
		{"default of nobody", "default = 'b'\n" + head, `p.toml:1:1: default: "b" names no profile of this file; it has a`, ""},
		{"key twice", head + "nodes = ['y']\n", "p.toml:3:1: not TOML: ", ""},
		{"table twice", head + "[profiles.a]\n", "p.toml:3:", ""},
		{"not TOML", "[profiles\n", "p.toml:1:10: not TOML: ", ""},
		{"profiles as a list", "[[profiles]]\nnodes = ['x']\n", "p.toml:1:3: profiles: want tables", ""},
		{"profile as a number", "[profiles]\na = 3\n", "p.toml:2:5: profiles.a: want a table", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			cfg, err := parse("p.toml", []byte(tt.in))
			var e *Error
			if cfg != nil || !errors.As(err, &e) || e.Code != codeConfig {
				t.Fatalf("got %v, %v", cfg, err)
			}
			if !strings.Contains(e.Message, tt.want) || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("got  %s (%s)\nwant %s (%s)", e.Message, e.Hint, tt.want, tt.hint)
			}
		})
	}
}

func TestLoadRefusesFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "profiles.toml")
	check := func(name, want string) {
		t.Helper()
		_, err := Load(path)
		var e *Error
		if !errors.As(err, &e) || e.Code != codeConfig || !strings.Contains(e.Message, path+": "+want) {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	check("absent", "no such file; it is $PVELENS_HOME/profiles.toml")
	if err := os.WriteFile(path, []byte(wholeFile), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, mode := range []os.FileMode{0o600, 0o644, 0o400} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		if _, err := Load(path); err != nil {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	for _, mode := range []os.FileMode{0o620, 0o602, 0o666, 0o777} {
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		check("writable", "others can write it")
	}
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if os.Getuid() == 0 {
		if err := os.Chown(path, 12345, -1); err != nil {
			t.Fatal(err)
		}
		check("another user's", "owned by another user (uid 12345)")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o700); err != nil {
		t.Fatal(err)
	}
	check("directory", "not a regular file")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if runtime.GOOS == "linux" {
		if err := syscall.Mkfifo(path, 0o600); err != nil {
			t.Fatal(err)
		}
		check("fifo", "not a regular file")
	}
}

func TestPath(t *testing.T) {
	for _, tt := range []struct {
		name string
		env  map[string]string
		want string
	}{
		{"home", nil, "/home/u/.config/pvelens/profiles.toml"},
		{"xdg", map[string]string{"XDG_CONFIG_HOME": "/x"}, "/x/pvelens/profiles.toml"},
		{"relative xdg", map[string]string{"XDG_CONFIG_HOME": "x"}, "/home/u/.config/pvelens/profiles.toml"},
		{"own", map[string]string{"XDG_CONFIG_HOME": "/x", "PVELENS_HOME": "/p"}, "/p/profiles.toml"},
	} {
		if got := Path(func(k string) string { return tt.env[k] }, "/home/u"); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.name, got, tt.want)
		}
	}
}

func TestSelect(t *testing.T) {
	cfg := func(preset string, names ...string) *Config {
		c := &Config{Path: "p.toml", Default: preset, Profiles: map[string]*Profile{}}
		for _, n := range names {
			c.Profiles[n] = &Profile{Name: n}
		}
		return c
	}
	for _, tt := range []struct {
		name string
		cfg  *Config
		ask  string
		want string
		code string
		text string
	}{
		{"the only one", cfg("", "a"), "", "a", "", ""},
		{"the default", cfg("b", "a", "b"), "", "b", "", ""},
		{"named", cfg("b", "a", "b"), "a", "a", "", ""},
		{"none", cfg(""), "", "", codeConfig, "pvelens init"},
		{"two and no default", cfg("", "b", "a"), "", "", codeConfig, "2 profiles and no default: a, b"},
		{"unknown", cfg("", "b", "a"), "c", "", codeNotFound, "Profiles here: a, b"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, err := tt.cfg.Select(tt.ask)
			if tt.code == "" {
				if err != nil || p.Name != tt.want {
					t.Errorf("got %v, %v", p, err)
				}
				return
			}
			var e *Error
			if !errors.As(err, &e) || e.Code != tt.code || !strings.Contains(e.Message+" "+e.Hint, tt.text) {
				t.Errorf("got %v, want %s %s", err, tt.code, tt.text)
			}
		})
	}
}

func TestWriteFirst(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "pvelens")
	path := filepath.Join(dir, "profiles.toml")
	want := &Profile{
		Name: "lab", Nodes: []string{"pve1", "u@pve2"}, DockerHosts: []string{"nas"}, SSHUser: "root", Resolver: "auto", Transport: "ssh", Become: "sudo",
		PermittedNetworks: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/24")}, ConnectTimeout: 3 * time.Second, Deadline: 20 * time.Second, Ignore: []string{"A:1"},
	}
	if err := WriteFirst(path, want); err != nil {
		t.Fatal(err)
	}
	cfg, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	got, err := cfg.Select("")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateComparable(netip.Prefix{})); diff != "" {
		t.Errorf("-written +read\n%s", diff)
	}
	for name, mode := range map[string]os.FileMode{path: 0o600, dir: 0o700} {
		if info, err := os.Stat(name); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, want mode %o", name, info.Mode(), mode)
		}
	}
	before := readFile(t, path)
	var e *Error
	if err := WriteFirst(path, &Profile{Nodes: []string{"other"}}); !errors.As(err, &e) || !strings.Contains(e.Message, "exists already") {
		t.Errorf("second write: %v", err)
	}
	if after := readFile(t, path); string(before) != string(after) {
		t.Error("the file was changed")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestWriteFirstWritesNothingBad(t *testing.T) {
	dir := t.TempDir()
	for _, p := range []*Profile{{}, {Nodes: []string{"-x"}}, {Name: "demo", Nodes: []string{"x"}}, {Nodes: []string{"a\"b"}}} {
		if err := WriteFirst(filepath.Join(dir, "profiles.toml"), p); err == nil {
			t.Errorf("%+v was written", p)
		}
	}
	dangling := filepath.Join(dir, "dangling")
	if err := os.Symlink(filepath.Join(dir, "nowhere"), dangling); err != nil {
		t.Fatal(err)
	}
	if err := WriteFirst(dangling, &Profile{Nodes: []string{"x"}}); err == nil {
		t.Error("a dangling link was followed")
	}
	if entries, _ := os.ReadDir(dir); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

// FuzzLoad: a file is refused with an *Error, or every profile of it obeys the rules, and reading it again gives the same.
func FuzzLoad(f *testing.F) {
	f.Add([]byte(wholeFile))
	f.Add([]byte("[profiles.a]\nnodes=['x']\nthresholds.A.warning=1e3\n"))
	f.Add([]byte("profiles.a.nodes=['x']\n[profiles.a.thresholds.B]\ncritical=0x10\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		cfg, err := parse("p.toml", data)
		if err != nil {
			var e *Error
			if !errors.As(err, &e) || !strings.HasPrefix(e.Message, "p.toml:") {
				t.Fatalf("%v is no *Error with its place", err)
			}
			return
		}
		for name, p := range cfg.Profiles {
			if name != p.Name || name == "demo" || len(p.Nodes)+len(p.DockerHosts) == 0 || p.ConnectTimeout <= 0 || p.Deadline < p.ConnectTimeout {
				t.Fatalf("%q: %+v", name, p)
			}
			for _, d := range append(p.Nodes, p.DockerHosts...) {
				if strings.HasPrefix(d, "-") || strings.ContainsAny(d, " \n;$`'\"") {
					t.Fatalf("destination %q", d)
				}
			}
			for _, n := range p.PermittedNetworks {
				if n != n.Masked() || n.Addr().Is4() && n.Bits() < 16 || n.Addr().Is6() && n.Bits() < 64 {
					t.Fatalf("network %s", n)
				}
			}
		}
		again, err := parse("p.toml", data)
		if diff := cmp.Diff(cfg, again, cmpopts.EquateComparable(netip.Prefix{})); err != nil || diff != "" {
			t.Fatalf("read again: %v %s", err, diff)
		}
	})
}
