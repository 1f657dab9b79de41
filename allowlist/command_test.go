package allowlist

import (
	"reflect"
	"strings"
	"testing"
)

// Nothing a caller holds changes the table or a Command.
func TestCommandCannotBeForged(t *testing.T) {
	before := Hash()
	c, err := Check(PVE, "/usr/sbin/qm", "list")
	if err != nil {
		t.Fatal(err)
	}
	c.Argv()[1] = "destroy"
	c.Form().Argv[1] = "destroy"
	Forms()[0].Argv[0] = "/bin/sh"
	if c.Line() != "/usr/sbin/qm list" || Hash() != before {
		t.Errorf("line %q, table changed: %v", c.Line(), Hash() != before)
	}
	words := []string{"/usr/sbin/qm", "list"}
	c, _ = Check(PVE, words...)
	words[1] = "destroy"
	if c.Line() != "/usr/sbin/qm list" {
		t.Errorf("line %q follows the caller's words", c.Line())
	}
	for i := range reflect.TypeFor[Command]().NumField() {
		if f := reflect.TypeFor[Command]().Field(i); f.IsExported() {
			t.Errorf("field %s is exported", f.Name)
		}
	}
}

func TestZeroCommandIsNothing(t *testing.T) {
	var c Command
	if !c.IsZero() || c.ID() != "" || c.Line() != "" || c.Wire(AsIs) != "" || c.Wire(ViaGate) != "" || c.Node() != "" || len(c.Argv()) != 0 {
		t.Errorf("the zero Command is %q, %q", c.ID(), c.Wire(AsIs))
	}
}

func TestNode(t *testing.T) {
	tests := []struct{ words, want string }{
		{"/usr/bin/pvesh --noproxy get /nodes/pve2/lxc/101/status/current --output-format json", "pve2"},
		{"/usr/sbin/qm list", ""},
		{"/usr/sbin/pct exec 101 -- df -P -k", ""},
	}
	for _, tt := range tests {
		c, err := Check(PVE, strings.Fields(tt.words)...)
		if err != nil || c.Node() != tt.want {
			t.Errorf("%s: got %q, %v, want %q", tt.words, c.Node(), err, tt.want)
		}
	}
	c, err := Check(PVE, "/bin/grep", "-asoE", keysPattern, "/etc/pve/nodes/pve2/lxc/101.conf")
	if err != nil || c.Node() != "" {
		t.Errorf("a file that every node shares: got %q, %v, want no node", c.Node(), err)
	}
}

func TestWire(t *testing.T) {
	const line = "/usr/sbin/qm list"
	tests := []struct {
		words  string
		become Become
		want   string
	}{
		{line, AsIs, "/usr/bin/timeout -k 2 20 " + line},
		{line, Sudo, "/usr/bin/timeout -k 2 20 /usr/bin/sudo -n -- " + line},
		{line, SudoAll, "/usr/bin/timeout -k 2 20 /usr/bin/sudo -n -- " + line},
		{line, ViaGate, line},
		{"/bin/echo pvelens-probe", Sudo, "/usr/bin/timeout -k 2 5 /bin/echo pvelens-probe"},
		{"/bin/echo pvelens-probe", SudoAll, "/usr/bin/timeout -k 2 5 /bin/echo pvelens-probe"},
		{"/bin/echo pvelens-probe", "bogus", "/usr/bin/timeout -k 2 5 /bin/echo pvelens-probe"},
		{"/usr/bin/tail -v -n +1 /etc/pve/sdn/pve-ipam-state.json", Sudo, "/usr/bin/timeout -k 2 10 /usr/bin/tail -v -n +1 /etc/pve/sdn/pve-ipam-state.json"},
		{"/usr/bin/tail -v -n +1 /etc/pve/sdn/pve-ipam-state.json", SudoAll, "/usr/bin/timeout -k 2 10 /usr/bin/sudo -n -- /usr/bin/tail -v -n +1 /etc/pve/sdn/pve-ipam-state.json"},
	}
	for _, tt := range tests {
		c, err := Check(PVE, strings.Fields(tt.words)...)
		if err != nil || c.Wire(tt.become) != tt.want {
			t.Errorf("%s %s: got %q, %v", tt.words, tt.become, c.Wire(tt.become), err)
		}
	}
}

func TestGood(t *testing.T) {
	const noFile = "/usr/bin/tail: cannot open '/proc/spl/kstat/zfs/arcstats' for reading: No such file or directory\n"
	tests := []struct {
		form   string
		exit   int
		stderr string
		want   bool
	}{
		{"qemu-list", 0, "", true},
		{"qemu-list", 0, "perl: warning: Setting locale failed.\n", true},
		{"qemu-list", 1, "", false},
		{"guest-configs", 1, "", true},
		{"guest-configs", 2, "", false},
		{"cluster-configs", 2, "", true},
		{"quorum", 2, "", true},
		{"quorum", 1, "", false},
		{"state", 0, "", true},
		{"state", 1, "", false},
		{"node-proc", 1, noFile, true},
		{"node-proc", 1, "tail: cannot open '/x' for reading: No such file or directory\n", true},
		{"node-proc", 1, "setlocale: warning\n" + noFile, true},
		{"node-proc", 1, noFile + "tail: cannot open '/etc/pve/.rrd' for reading: Permission denied\n", false},
		{"node-proc", 1, "bash: /usr/bin/tail: No such file or directory\n", false},
		{"node-proc", 127, noFile, false},
		{"lxc-cgroup", 1, "tail: error reading '/sys/fs/cgroup/lxc/101/cpu.pressure': Operation not supported\n", true},
		{"node-packages", 1, "dpkg-query: no packages found matching pve-kernel-*\n", true},
		{"node-packages", 1, "/usr/bin/dpkg-query: no packages found matching pve-kernel-*\n", true},
		{"node-packages", 1, "dpkg-query: error: failed to open package info file\n", false},
		{"node-packages", 2, "dpkg-query: no packages found matching pve-kernel-*\n", false},
		{"smart", 0, "", true},
		{"smart", 2, "", true},
		{"smart", 64, "", true},
		{"smart", 196, "", true},
		{"smart", 1, "", false},
		{"smart", 124, "", false},
		{"smart", 126, "", false},
		{"smart", 127, "", false},
		{"smart", 137, "", false},
		{"smart", -1, "", false},
	}
	for _, tt := range tests {
		for _, f := range forms {
			if f.ID == tt.form && f.Good(tt.exit, []byte(tt.stderr)) != tt.want {
				t.Errorf("%s: exit %d with %q: want good = %v", tt.form, tt.exit, tt.stderr, tt.want)
			}
		}
	}
}

// The hash moves with each thing that is enforced.
func TestHashCoversWhatIsEnforced(t *testing.T) {
	f := forms[0]
	for name, change := range map[string]func(*Form){
		"id":      func(f *Form) { f.ID += "x" },
		"role":    func(f *Form) { f.Role = Both },
		"rights":  func(f *Form) { f.Rights = Root },
		"effect":  func(f *Form) { f.Effect = Probe },
		"limit":   func(f *Form) { f.Limit++ },
		"cap":     func(f *Form) { f.Cap++ },
		"exits":   func(f *Form) { f.exits = zero },
		"partial": func(f *Form) { f.exits.partial = false },
		"words":   func(f *Form) { f.Argv = append(f.Argv, "x") },
		"joined":  func(f *Form) { f.Argv = argv{strings.Join(f.Argv, " ")} },
	} {
		g := f.clone()
		change(&g)
		if FormHash(g) == FormHash(f) {
			t.Errorf("%s: the form's hash stays", name)
		}
	}
	form, before := FormHash(forms[1]), Hash()
	for i := range slots {
		old := slots[i]
		for name, change := range map[string]func(*slot){
			"first": func(s *slot) { s.first += "-" }, "rest": func(s *slot) { s.rest += "/" }, "last": func(s *slot) { s.last += "-" },
			"min": func(s *slot) { s.min++ }, "max": func(s *slot) { s.max++ }, "repeat": func(s *slot) { s.repeat++ }, "rule": func(s *slot) { s.rule += "x" },
		} {
			if change(&slots[i]); Hash() == before {
				t.Errorf("%s: the hash does not cover %s", old.name, name)
			}
			slots[i] = old
		}
	}
	sudoWords[1] = "-N"
	if Hash() == before {
		t.Error("the hash does not cover the prefixes")
	}
	sudoWords[1] = "-n"
	if Hash() != before || FormHash(forms[1]) != form || len(before) != 64 {
		t.Errorf("the hash is not stable: %s, %s", before, Hash())
	}
}
