//go:build linux

package main

import (
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"pvelens/allowlist"
)

var pve1 = host{role: allowlist.PVE, name: "pve1"}

func TestJudge(t *testing.T) {
	const status = "/usr/bin/pvesh --noproxy get /nodes/pve1/lxc/101/status/current --output-format json"
	tests := []struct {
		name string
		host host
		line string
		want allowlist.Class
		id   string
	}{
		{"file form", pve1, "/usr/bin/tail -v -n +1 /etc/pve/sdn/pve-ipam-state.json", "", "sdn-ipam"},
		{"own node", pve1, status, "", "lxc-status"},
		{"another node", pve1, strings.Replace(status, "pve1", "pve2", 1), allowlist.BadSlot, ""},
		{"own node in other letters", pve1, strings.Replace(status, "pve1", "PVE1", 1), allowlist.BadSlot, ""},
		{"no host name", host{role: allowlist.PVE}, status, allowlist.BadSlot, ""},
		{"client only", pve1, "/bin/true lock-probe", allowlist.NoForm, ""},
		{"the client's prefix", pve1, "/usr/bin/timeout -k 2 20 /usr/sbin/qm list", allowlist.NoForm, ""},
		{"nothing", pve1, "", allowlist.Empty, ""},
		{"Docker form on a node", pve1, dockerVersion(t), allowlist.WrongRole, ""},
		{"Docker form elsewhere", host{role: allowlist.Both, name: "nas"}, dockerVersion(t), "", "host-docker-version"},
	}
	for _, tt := range tests {
		c, err := judge(tt.host, nil, tt.line)
		var r *allowlist.Refusal
		if tt.want == "" && (err != nil || c.ID() != tt.id) || tt.want != "" && (!errors.As(err, &r) || r.Class != tt.want || !c.IsZero()) {
			t.Errorf("%s: got %q, %v", tt.name, c.ID(), err)
		}
	}
}

// A file that every node of the cluster has may be read for another node.
func TestJudgeReadsFilesOfOtherNodes(t *testing.T) {
	for _, f := range allowlist.Forms() {
		if f.ID != "lxc-config" {
			continue
		}
		words := []string{f.Argv[0], f.Argv[1], f.Argv[2], "/etc/pve/nodes/pve3/lxc/101.conf"}
		if c, err := judge(pve1, words, "ignored"); err != nil || c.ID() != "lxc-config" {
			t.Errorf("got %q, %v", c.ID(), err)
		}
	}
}

func TestJudgeComparesWordsAsAnArray(t *testing.T) {
	for _, words := range [][]string{
		{"/usr/sbin/qm list"}, {"/usr/sbin/qm", "list", ""}, {"", "/usr/sbin/qm", "list"}, {"--", "/usr/sbin/qm", "list"},
		{"/usr/sbin/pct", "exec", "101 -- df", "-P", "-k"}, {"/usr/sbin/pct", "exec", "101", "-- df -P -k"}, {"--version", "x"}, {"-version"},
		{"/usr/sbin/qm", "list\n"}, {"/usr/sbin/qm", "list", "--full"}, {"/bin/true", "lock-probe"},
	} {
		if c, err := judge(pve1, words, "/usr/sbin/qm list"); err == nil {
			t.Errorf("%q: permitted as %s", words, c.ID())
		}
	}
	if c, err := judge(pve1, []string{"/usr/sbin/qm", "list"}, ""); err != nil || c.ID() != "qemu-list" {
		t.Errorf("got %q, %v", c.ID(), err)
	}
}

// Law: the gate permits what Check permits, rendered by Line, and nothing else,
// save the form for clients alone and a node that is not its own.
func FuzzJudge(f *testing.F) {
	for _, form := range allowlist.Forms() {
		f.Add(strings.Join(fill(form), "\x1f"))
	}
	for _, line := range hostileLines(f) {
		f.Add(line)
	}
	f.Fuzz(func(t *testing.T, s string) {
		words := strings.Split(s, "\x1f")
		for _, h := range []host{pve1, {role: allowlist.Both, name: "nas"}} {
			want, err := allowlist.Check(h.role, words...)
			permitted := err == nil && !want.Form().ClientOnly() && (want.Node() == "" || want.Node() == h.name)
			got, err := judge(h, words, "")
			if (err == nil) != permitted || permitted && !slices.Equal(got.Argv(), words) {
				t.Fatalf("words %q: %v, want permitted = %v", words, err, permitted)
			}
			if permitted {
				if got, err = judge(h, nil, want.Line()); err != nil || !slices.Equal(got.Argv(), words) {
					t.Fatalf("line %q: %v", want.Line(), err)
				}
			}
			if got, err = judge(h, nil, s); err == nil && got.Line() != s {
				t.Fatalf("line %q: permitted as %q", s, got.Line())
			}
		}
	})
}

func TestRefusalIsLoggedWithoutTheWords(t *testing.T) {
	syslog = filepath.Join(t.TempDir(), "log")
	log, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: syslog, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	_, refused := judge(pve1, nil, "/usr/sbin/pct exec 7777777777 -- df -P -k")
	logRefusal(refused, 41)
	b := make([]byte, 1024)
	n, err := log.Read(b)
	got := string(b[:n])
	for _, want := range []string{"<84>", " pvelens-gate[", "bad-slot", "form lxc-df", "{vmid}", "41 bytes"} {
		if err != nil || !strings.Contains(got, want) || strings.Contains(got, "7777") || strings.Contains(got, "\n") {
			t.Errorf("logged %q, %v, want %q", got, err, want)
		}
	}
}

func TestALogThatIsNotThereIsNotWaitedFor(t *testing.T) {
	syslog = filepath.Join(t.TempDir(), "none")
	logRefusal(errors.New("x"), 1)
}

// The gate is read whole: it is short, and it has no network and no C.
func TestTheGateIsSmall(t *testing.T) {
	files, err := filepath.Glob("*.go")
	lines := 0
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && !strings.HasSuffix(name, "_test.go") {
			lines += strings.Count(string(b), "\n")
		}
	}
	if err != nil || lines == 0 || lines > 300 {
		t.Errorf("%d lines, at most 300; %v", lines, err)
	}
	out, err := exec.Command("go", "list", "-deps", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	for dep := range strings.FieldsSeq(string(out)) {
		if slices.Contains([]string{"net", "net/http", "os/user", "runtime/cgo", "plugin", "log/syslog", "text/template"}, dep) {
			t.Errorf("needs %s", dep)
		}
		first, _, _ := strings.Cut(dep, "/")
		if strings.Contains(first, ".") || strings.HasPrefix(dep, "pvelens/") && dep != "pvelens/allowlist" && dep != "pvelens/cmd/pvelens-gate" {
			t.Errorf("needs %s", dep)
		}
	}
}
