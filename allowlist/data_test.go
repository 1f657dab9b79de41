package allowlist

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"slices"
	"strings"
	"testing"
)

// The table's files hold data: nothing in them can run, and nothing is fetched
// from elsewhere.
func TestTableIsData(t *testing.T) {
	for _, name := range []string{"allowlist.go", "templates.go"} {
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, what := range notData(f) {
			t.Errorf("%s: holds a %s, want data only", name, what)
		}
	}
}

func TestNotDataSeesCode(t *testing.T) {
	const src = `package p
import "os"
func f() {}
var a = f()
var b = func() {}
var c = <-d`
	f, err := parser.ParseFile(token.NewFileSet(), "", src, 0)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"import", "function", "call", "function literal", "receive or address"}
	if got := notData(f); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func notData(f *ast.File) (found []string) {
	ast.Inspect(f, func(n ast.Node) bool {
		switch n.(type) {
		case *ast.ImportSpec:
			found = append(found, "import")
		case *ast.FuncDecl:
			found = append(found, "function")
		case *ast.FuncLit:
			found = append(found, "function literal")
		case *ast.CallExpr:
			found = append(found, "call")
		case *ast.UnaryExpr:
			found = append(found, "receive or address")
		}
		return true
	})
	return found
}

func TestIDsAreUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, f := range forms {
		if seen[f.ID] {
			t.Errorf("%s: twice in the table", f.ID)
		}
		seen[f.ID] = true
		if f.ID == "" || strings.Trim(f.ID, alpha[26:]+"-") != "" {
			t.Errorf("%q: an identity is lower-case letters and hyphens", f.ID)
		}
	}
	if !seen[ClientOnly] {
		t.Errorf("no form %s", ClientOnly)
	}
}

func TestColumnsAreFilled(t *testing.T) {
	for _, f := range forms {
		if !slices.Contains([]Role{PVE, Docker, Both}, f.Role) ||
			!slices.Contains([]Rights{Any, WWWData, Root}, f.Rights) ||
			!slices.Contains([]Effect{None, Cache, Probe, Activates, Agent}, f.Effect) {
			t.Errorf("%s: role %q, rights %q, effect %q: not in the lists", f.ID, f.Role, f.Rights, f.Effect)
		}
		if f.Limit < 1 || f.Limit > 60 || f.Cap < kib || f.Cap > 64*mib || len(f.exits.codes) == 0 || f.exits.codes[0] != 0 {
			t.Errorf("%s: limit %d s, cap %d bytes, exits %s", f.ID, f.Limit, f.Cap, f.Exits())
		}
		if f.Reveals == "" || f.Why == "" {
			t.Errorf("%s: says not what it reveals, or why", f.ID)
		}
	}
}

// A slot stands only as a path segment or its head, and is one that exists.
func TestSlotsStandAlone(t *testing.T) {
	for _, f := range forms {
		for i, word := range f.Argv {
			if strings.HasPrefix(word, `{"`) || strings.HasPrefix(word, "^") || word == packageFormat {
				continue // a template or a pattern, which is literal
			}
			for segment := range strings.SplitSeq(word, "/") {
				s, suffix := slotOf(segment)
				if strings.ContainsAny(suffix, "{}") {
					t.Errorf("%s: word %d: %q holds no known slot at its head", f.ID, i, segment)
				}
				if s != nil && suffix != "" && strings.Contains(s.first+s.rest, suffix[:1]) {
					t.Errorf("%s: word %d: %q: the suffix could be part of the value", f.ID, i, segment)
				}
				if s != nil && s.repeat > 0 && i != len(f.Argv)-1 {
					t.Errorf("%s: word %d: %s may stand only last", f.ID, i, s.name)
				}
			}
			if hasSlot(word) && quote(word) != "'"+word+"'" && strings.Trim(word, alnum+"_./:,@+-{}") != "" {
				t.Errorf("%s: word %d: %q would need quotes beside its slot", f.ID, i, word)
			}
		}
	}
}

// No slot admits the head of an option, a blank, a quote or a separator.
func TestSlotsAdmitNoSyntax(t *testing.T) {
	for _, s := range slots {
		if strings.Contains(s.first, "-") || strings.ContainsAny(s.first+s.rest, " \t\n\"'`$;&|<>(){}[]*?!~#\\/=%^") {
			t.Errorf("%s: admits syntax", s.name)
		}
		for _, set := range []string{s.first, s.rest, s.last} {
			for i := range len(set) {
				if quote("a"+set[i:i+1]) != "a"+set[i:i+1] {
					t.Errorf("%s: admits %q, which needs quotes", s.name, set[i])
				}
			}
		}
		if s.rule == "" || s.min < 1 || s.max < s.min {
			t.Errorf("%s: rule %q, length %d to %d", s.name, s.rule, s.min, s.max)
		}
	}
}

var programs = strings.Fields(`
	/bin/grep /bin/df /bin/ip /bin/ping /bin/date /bin/echo /bin/true
	/sbin/lvs /sbin/zpool /sbin/zfs /sbin/bridge
	/usr/bin/tail /usr/bin/stat /usr/bin/dpkg-query /usr/bin/pvesh /usr/bin/journalctl
	/usr/sbin/pct /usr/sbin/qm /usr/sbin/smartctl /usr/sbin/corosync-quorumtool
	` + GatePath)

func TestProgramsAreFixed(t *testing.T) {
	for _, f := range forms {
		list := programs
		if f.Role == Docker && f.Argv[0][0] != '/' {
			list = []string{"docker", "podman"}
		}
		if !slices.Contains(list, f.Argv[0]) {
			t.Errorf("%s: runs %q", f.ID, f.Argv[0])
		}
	}
	for _, words := range []argv{timeoutWords, sudoWords} {
		if !slices.Contains([]string{"/usr/bin/timeout", "/usr/bin/sudo"}, words[0]) {
			t.Errorf("prefix %q", words)
		}
	}
}

// What follows a program is what shows, never what changes.
func TestVerbsShow(t *testing.T) {
	verbs := map[string][]string{
		"/usr/bin/pvesh":     {"--noproxy get"},
		"/usr/sbin/pct":      {"list", "exec {vmid}"},
		"/usr/sbin/qm":       {"list", "guest exec"},
		"/sbin/zpool":        {"status", "list"},
		"/sbin/zfs":          {"list"},
		"/sbin/bridge":       {"-j vlan show"},
		"/bin/ip":            {"-j -d addr show", "-j neigh show", "-j route show"},
		"/usr/bin/tail":      {"-v -n"},
		"/usr/bin/stat":      {"--format="},
		"/usr/sbin/smartctl": {"-n standby -i -H -A -j"},
		"docker":             {"ps -a", "container inspect --format", "version --format", "--version"},
		"podman":             {"ps -a", "container inspect --format"},
	}
	inside := []string{"df -P -k", "docker --host unix:///var/run/docker.sock ps -a", "docker --host unix:///var/run/docker.sock container inspect --format",
		"docker --host unix:///var/run/docker.sock version --format", "docker --version", "grep -oE ^[0-9]+ [0-9]+ [0-9]+:[0-9]+ [^ ]+ [^ ]+ /proc/self/mountinfo", "podman ps -a", "podman container inspect --format"}
	for _, f := range forms {
		rest := strings.Join(f.Argv[1:], " ")
		if list := verbs[f.Argv[0]]; list != nil && !slices.ContainsFunc(list, func(v string) bool { return strings.HasPrefix(rest, v) }) {
			t.Errorf("%s: %s %.40s", f.ID, f.Argv[0], rest)
		}
		if !strings.Contains(rest, "exec {vmid}") {
			continue
		}
		_, nested, _ := strings.Cut(rest, " -- ")
		if !slices.ContainsFunc(inside, func(v string) bool { return strings.HasPrefix(nested, v) }) {
			t.Errorf("%s: runs in a guest %.40s", f.ID, nested)
		}
	}
}

// Files that hold secrets are read by a grep that lists keys, or not at all.
func TestFilesOfForms(t *testing.T) {
	filtered := strings.Fields("/etc/pve/storage.cfg /etc/pve/datacenter.cfg /etc/pve/user.cfg /etc/pve/corosync.conf /etc/pve/jobs.cfg /etc/vzdump.conf /etc/apt /etc/pve/nodes")
	never := strings.Fields("/etc/pve/priv /etc/shadow /root /home /etc/ssh /etc/pve/sdn/ipams.cfg /etc/pve/sdn/dns.cfg /etc/pve/sdn/controllers.cfg /etc/subscription /etc/apt/auth.conf")
	for _, f := range forms {
		for _, word := range f.Argv[1:] {
			if path.Clean(word) != word && strings.HasPrefix(word, "/") {
				t.Errorf("%s: %s is not in its shortest form", f.ID, word)
			}
			for _, p := range never {
				if word == p || strings.HasPrefix(word, p+"/") {
					t.Errorf("%s: reads %s", f.ID, word)
				}
			}
			if strings.HasPrefix(word, "--include") && strings.Contains(word, "priv") || strings.Contains(word, "/priv") {
				t.Errorf("%s: %s", f.ID, word)
			}
			for _, p := range filtered {
				if (word == p || strings.HasPrefix(word, p+"/")) && f.Argv[0] != "/bin/grep" {
					t.Errorf("%s: %s reads %s whole", f.ID, f.Argv[0], word)
				}
			}
		}
		if f.Argv[0] == "/bin/grep" && strings.HasPrefix(f.Argv[1], "-r") && slices.ContainsFunc(f.Argv, under("/etc/pve")) && !slices.Contains(f.Argv, "--exclude-dir=priv") {
			t.Errorf("%s: descends into priv", f.ID)
		}
	}
}

func under(dir string) func(string) bool {
	return func(word string) bool { return word == dir || strings.HasPrefix(word, dir+"/") }
}

// No argv matches two forms, whatever stands in their slots.
func TestFormsAreDisjoint(t *testing.T) {
	for i, f := range forms {
		for _, g := range forms[:i] {
			if unify(f.Argv, g.Argv) {
				t.Errorf("%s and %s match the same words", f.ID, g.ID)
			}
		}
	}
}

func unify(a, b argv) bool {
	if len(a) > len(b) {
		a, b = b, a
	}
	if len(a) < len(b) && repeats(a[len(a)-1]) == 0 {
		return false
	}
	for i := range b {
		if !unifyWord(a[min(i, len(a)-1)], b[i]) {
			return false
		}
	}
	return true
}

func unifyWord(p, q string) bool {
	ps, qs := strings.Split(p, "/"), strings.Split(q, "/")
	if !hasSlot(p) && !hasSlot(q) || len(ps) != len(qs) {
		return p == q
	}
	for i := range ps {
		if s, _ := slotOf(ps[i]); s != nil {
			continue
		}
		if s, _ := slotOf(qs[i]); s == nil && ps[i] != qs[i] {
			return false
		}
	}
	return true
}
