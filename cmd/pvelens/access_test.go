//go:build linux

package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"pvelens/allowlist"
	"pvelens/tools"
	"pvelens/tools/report"
	"pvelens/transport"
)

// logins are users of the node and how they get root.
var logins = []struct{ user, groups, sudoers, forced, shell string }{
	{user: "viewer", groups: "www-data", shell: "/run/programs/wire"},
	{user: "stranger", shell: "/bin/bash"},
	{user: "raiser", sudoers: "NOPASSWD: ALL"},
	{user: "asker", groups: "www-data", sudoers: "ALL"},
	{user: "other", groups: "www-data", sudoers: "NOPASSWD: " + allowlist.GatePath, forced: "/usr/local/libexec/other-gate"},
}

// nodes are two real nodes of one cluster, which calls a third one offline.
type nodes struct {
	t       *testing.T
	ports   map[string]int
	mu      sync.Mutex
	outputs map[string]string // everything that was printed, by who and what
	at      string            // the time that ages are judged at
}

// answer is what one run of the program printed.
type answer struct {
	code        int
	out, errs   string
	report      map[string]any
	problems    []problem
	complete    bool
	errorIsCode string
	errorHint   string
}

type problem struct{ Node, Code, Message, Hint string }

func startNodes(t *testing.T) *nodes {
	enterNode(t)
	n := &nodes{t: t, ports: map[string]int{"pve1": freePort(t), "pve3": freePort(t)}, outputs: map[string]string{}, at: time.Now().UTC().Format(time.RFC3339)}
	shell(t, `
		ssh-keygen -q -t ed25519 -N '' -C you@desk -f /run/client/id
		usermod -s /run/programs/wire root
		cp /run/client/id.pub /etc/ssh/keys/root
		sh cmd/pvelens/gate_install.sh --gate "$1/gate" --key "$(cat /run/client/id.pub)"
		install -m 0755 "$1/other-gate" /usr/local/libexec/other-gate
	`, os.Getenv(inside))
	for _, l := range logins {
		shell(t, `
			useradd -m -k /dev/null -b /run -s "$5" ${2:+-G "$2"} "$1"
			usermod -p '*' "$1"
			[ -z "$3" ] || printf '%s ALL=(root) %s\n' "$1" "$3" >"/etc/sudoers.d/$1"
			printf '%s%s\n' "${4:+restrict,command=\"$4\" }" "$(cat /run/client/id.pub)" >"/etc/ssh/keys/$1"
			chmod -f 0440 /etc/sudoers.d/* || :
			visudo -cq
		`, l.user, l.groups, l.sudoers, l.forced, cmp.Or(l.shell, "/bin/sh"))
	}
	config, hosts := "", ""
	hostKey, err := os.ReadFile("/etc/ssh/ssh_host_ed25519_key.pub")
	if err != nil {
		t.Fatal(err)
	}
	for _, node := range slices.Sorted(maps.Keys(n.ports)) {
		startNode(t, node, n.ports[node])
		config += fmt.Sprintf("Host %s\n  HostName 127.0.0.1\n  Port %d\n  IdentityFile /run/client/id\n  IdentitiesOnly yes\n  IdentityAgent none\n  UserKnownHostsFile /run/client/known_hosts\n", node, n.ports[node])
		hosts += fmt.Sprintf("[127.0.0.1]:%d %s", n.ports[node], hostKey)
	}
	putFile(t, "/run/client/ssh_config", config)
	putFile(t, "/run/client/known_hosts", hosts)
	return n
}

// as returns who asks: the program with a profile for this user.
func (n *nodes) as(user, become string) *client {
	home := fmt.Sprintf("/run/client/%s-%s", user, become)
	putFile(n.t, home+"/profiles.toml", fmt.Sprintf("[profiles.real]\nnodes = [\"pve1\", \"pve3\"]\nssh_user = %q\nbecome = %q\nssh_config = \"/run/client/ssh_config\"\nconnect_timeout = \"20s\"\ndeadline = \"60s\"\npermitted_networks = [\"192.168.20.0/24\"]\n", user, become))
	return &client{n, user + ", become " + become, home}
}

type client struct {
	*nodes
	name, home string
}

// ask runs the program.
func (c *client) ask(ctx context.Context, words ...string) answer {
	vars := map[string]string{"PVELENS_HOME": c.home, "XDG_STATE_HOME": c.home + "/state", "HOME": "/root", "PATH": os.Getenv("PATH")}
	var out, errs bytes.Buffer
	a := answer{code: run(ctx, words, stdio{in: os.Stdin, out: &out, err: &errs}, func(name string) string { return vars[name] })}
	a.out, a.errs = out.String(), errs.String()
	if slices.Contains(words, "--json") {
		a.read(out.Bytes())
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.outputs[c.name+": "+strings.Join(words, " ")] = a.out + a.errs
	return a
}

func (a *answer) read(out []byte) {
	var head struct {
		Complete bool
		Problems []problem
		Error    struct{ Code, Hint string }
	}
	if json.Unmarshal(out, &head) != nil || json.Unmarshal(out, &a.report) != nil {
		return
	}
	a.complete, a.problems, a.errorIsCode, a.errorHint = head.Complete, head.Problems, head.Error.Code, head.Error.Hint
	for _, key := range []string{"complete", "problems", "collected_at", "profile", "sources"} {
		delete(a.report, key)
	}
}

// denied are the problems and the error that say that rights are missing.
func (a answer) denied() (out []problem) {
	for _, p := range a.problems {
		if p.Code == "PERMISSION_DENIED" {
			out = append(out, p)
		}
	}
	if a.errorIsCode == "PERMISSION_DENIED" {
		out = append(out, problem{Code: a.errorIsCode, Message: a.errs, Hint: a.errorHint})
	}
	return out
}

// questions are what every tool is asked; tools that come later are asked for
// guest 101 or node pve1 where they want one.
func questions() [][]string {
	special := map[string][][]string{
		"get_guest_config":      {{"102", "--detail", "detailed"}, {"110"}, {"200"}},
		"check_ip_availability": {{"192.168.20.77"}},
		"backup_coverage":       {{}, {"--archives=false"}},
		"find_free_address":     {{"192.168.20.0/24"}},
		"list_guests":           {{}, {"--detail", "detailed"}},
		"list_snapshots":        {{}, {"203"}},
		"list_addresses":        {{}},
		"inspect_compose_stack": {{"--guest", "102"}},
		"list_guest_containers": {{"102"}},
		"find_containers":       {{"immich"}},
		"get_guest_status":      {{"101"}, {"200"}},
	}
	out := [][]string{}
	all := tools.All()
	slow := []string{"check_ip_availability", "find_free_address"} // these wait for a VM's agent, so they begin
	slices.SortStableFunc(all, func(a, b tools.Tool) int {
		return cmp.Compare(slices.Index(slow, b.Name), slices.Index(slow, a.Name))
	})
	for _, t := range all {
		name := strings.ReplaceAll(t.Name, "_", "-")
		for _, words := range special[t.Name] {
			out = append(out, append([]string{name}, words...))
		}
		if special[t.Name] != nil || name == "capabilities" {
			continue
		}
		words := []string{name}
		for _, p := range t.Params {
			if p.Required {
				words = append(words, map[string]string{"guest": "101", "node": "pve1"}[p.Name])
			}
		}
		out = append(out, words)
	}
	return out
}

// crowd is how many questions are asked at once.
var crowd = make(chan bool, 10)

// everything asks all tools, or only some.
func (c *client) everything(ctx context.Context, only ...string) map[string]answer {
	out := map[string]answer{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, q := range questions() {
		if len(only) > 0 && !slices.Contains(only, q[0]) {
			continue
		}
		crowd <- true
		wg.Go(func() {
			defer func() { <-crowd }()
			a := c.ask(ctx, append(slices.Clone(q), "--json", "--at", c.at)...)
			mu.Lock()
			defer mu.Unlock()
			out[strings.Join(q, " ")] = a
		})
	}
	wg.Wait()
	return out
}

func TestAccessLevels(t *testing.T) {
	if !inNamespace(t, map[string]string{"sshd": "openssh-server", "ssh-keygen": "openssh-client", "sudo": "sudo", "visudo": "sudo", "bash": "bash", "dpkg-query": "dpkg", "getent": "libc-bin"}) {
		return
	}
	n := startNodes(t)
	keepFresh(t)
	said := map[string]map[string]answer{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, who := range []*client{n.as("root", "none"), n.as("viewer", "none"), n.as("stranger", "none"), n.as("raiser", "sudo"), n.as("asker", "sudo"), n.as("pvelens", "gate")} {
		only := []string{}
		if who.name == "asker, become sudo" { // with files alike, the rest is as for viewer
			only = []string{"list-guests", "list-storage", "list-backups", "get-guest-status", "list-guest-containers", "storage-health", "cluster-health"}
		}
		wg.Go(func() {
			all := who.everything(t.Context(), only...)
			mu.Lock()
			defer mu.Unlock()
			said[who.name] = all
		})
	}
	wg.Wait()
	truth := said["root, become none"]
	t.Run("root", func(t *testing.T) { n.root(t, truth) })
	t.Run("rights", func(t *testing.T) {
		for name, check := range map[string]func(*testing.T){
			"www-data":           func(t *testing.T) { n.wwwData(t, said["viewer, become none"], truth) },
			"no group":           func(t *testing.T) { n.noGroup(t, said["stranger, become none"]) },
			"sudo":               func(t *testing.T) { n.sudo(t, said["raiser, become sudo"], truth) },
			"sudo with password": func(t *testing.T) { n.sudoPassword(t, said["asker, become sudo"], truth) },
			"gate":               func(t *testing.T) { n.gate(t, said["pvelens, become gate"], truth) },
			"another gate":       n.otherGate,
			"no gate":            n.noGate,
		} {
			t.Run(name, func(t *testing.T) { t.Parallel(); check(t) })
		}
	})
	t.Run("no sudo", n.noSudo)
	t.Run("cancelled", n.cancelled)
	t.Run("secrets", n.secrets)
}

// moving are the tools whose numbers are the machine's own at that moment: its
// clock and its filesystems.
var moving = []string{"get-node-capacity", "cluster-health", "storage-health", "list-storage", "check-ip-availability", "find-free-address", "guest-health-summary", "config-audit", "get-guest-status"}

// same compares what two users were told, apart from what moves.
func same(q string, a, b map[string]any) string {
	still := func(m map[string]any) any {
		if tool, _, _ := strings.Cut(q, " "); slices.Contains(moving, tool) {
			return frozen(m)
		}
		return m
	}
	return gocmp.Diff(still(b), still(a))
}

// frozen puts 0 for every number, and one time for every time.
func frozen(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, e := range v {
			out[k] = frozen(e)
		}
		return out
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, frozen(e))
		}
		return out
	case float64:
		return 0.0
	case string:
		if _, err := strconv.ParseFloat(v, 64); err == nil {
			return "0"
		}
		if _, err := time.Parse(time.RFC3339, v); err == nil {
			return "a time"
		}
	}
	return v
}

// faithful: an answer that is not root's says that rights are missing, and what
// to do; no answer is different in silence.
func faithful(t *testing.T, said, truth map[string]answer) {
	t.Helper()
	for q, a := range said {
		differs := same(q, a.report, truth[q].report)
		for _, p := range a.denied() {
			if p.Hint == "" {
				t.Errorf("%s: no hint: %v", q, p)
			}
		}
		switch {
		case a.errorIsCode != "" && a.errorIsCode != truth[q].errorIsCode && len(a.denied()) == 0:
			t.Errorf("%s: %s", q, a.errs)
		case a.errorIsCode == "" && differs != "" && (a.complete || len(a.denied()) == 0):
			t.Errorf("%s: complete %v, problems %v, but not what root is told:\n%s", q, a.complete, a.problems, differs)
		}
	}
}

// asRoot: an answer is root's.
func asRoot(t *testing.T, said, truth map[string]answer, tools ...string) {
	t.Helper()
	for q, a := range said {
		if tool, _, _ := strings.Cut(q, " "); len(tools) > 0 && !slices.Contains(tools, tool) && !slices.Contains(tools, q) {
			continue
		}
		if d := same(q, a.report, truth[q].report); d != "" || a.complete != truth[q].complete || !reflect.DeepEqual(a.problems, truth[q].problems) {
			t.Errorf("%s: complete %v, problems %v\n%s%s", q, a.complete, a.problems, a.errs, d)
		}
	}
}

// root is the measure of all others: only the offline node is missing.
func (n *nodes) root(t *testing.T, truth map[string]answer) {
	for q, a := range truth {
		if a.errorIsCode != "" || len(a.denied()) > 0 {
			t.Errorf("%s: %s%v", q, a.errs, a.problems)
		}
	}
}

// filesOnly are the questions for which the files of /etc/pve are enough.
var filesOnly = []string{"list-nodes", "list-guests", "get-guest-config", "list-snapshots", "snapshot-audit", "list-addresses", "plan-node-evacuation", "backup-coverage --archives=false", "get-node-capacity", "pending-updates", "recent-tasks"}

// rootOnly are those that root alone answers in full.
var rootOnly = []string{"get-guest-status", "list-backups", "list-guest-containers", "inspect-compose-stack", "storage-health", "find-containers", "check-ip-availability"}

// withoutRoot: files are enough for the inventory and all that is configured; what
// needs root says so, and in the list of storages only reasons are missing.
func withoutRoot(t *testing.T, said, truth map[string]answer, hint string) {
	t.Helper()
	asRoot(t, said, truth, filesOnly...)
	faithful(t, said, truth)
	for q, a := range said {
		tool, _, _ := strings.Cut(q, " ")
		if slices.Contains(rootOnly, tool) && (len(a.denied()) == 0 || a.complete) {
			t.Errorf("%s: complete %v, problems %v", q, a.complete, a.problems)
		}
		for _, p := range a.denied() {
			if tool != "cluster-health" && tool != "config-audit" && !strings.Contains(p.Hint, hint) {
				t.Errorf("%s: %v, want the hint %q", q, p, hint)
			}
		}
	}
	got, want := rowsOf(said["list-storage"]), rowsOf(truth["list-storage"])
	n := min(len(got), len(want)) // reasons take place in an answer, whose size is limited
	if d := gocmp.Diff(want[:n], got[:n]); d != "" || n < 20 {
		t.Errorf("list-storage: %d rows\n%s", n, d)
	}
}

// rowsOf are the storages, apart from numbers and why one is inactive.
func rowsOf(a answer) (rows []any) {
	items, _ := a.report["items"].([]any)
	for _, r := range items {
		row := frozen(r).(map[string]any)
		if row["active"] != true {
			delete(row, "reason")
		}
		rows = append(rows, row)
	}
	return rows
}

// doctor returns how each step ended on pve1, by the step's name, and what people
// are shown; both nodes must be alike.
func (c *client) doctor(t *testing.T, code int) (steps map[string]string, shown string) {
	t.Helper()
	a := c.ask(t.Context(), "doctor", "--json")
	var d report.Doctor
	if err := json.Unmarshal([]byte(a.out), &d); err != nil || len(d.Nodes) != 2 || a.code != code {
		t.Fatalf("%s: exit %d, want %d: %v\n%s%s", c.name, a.code, code, err, a.out, a.errs)
	}
	var text strings.Builder
	for _, table := range d.Tables() {
		if err := table.Write(&text); err != nil {
			t.Fatal(err)
		}
	}
	var both [2]map[string]string
	for i, n := range d.Nodes {
		both[i] = map[string]string{}
		for _, s := range n.Steps {
			both[i][s.Name] = s.Status + ": " + s.Message + " (" + s.Hint + ")"
		}
		delete(both[i], "ssh_config")
	}
	if d := gocmp.Diff(both[0], both[1]); d != "" && !strings.Contains(d, "ssh pve") {
		t.Errorf("%s: pve1 and pve3 differ:\n%s", c.name, d)
	}
	t.Logf("%s\n%s", c.name, text.String())
	return both[0], text.String()
}

// wants compares a step with the parts that it must have.
func wants(t *testing.T, steps map[string]string, name string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(steps[name], p) {
			t.Errorf("%s: %q, want %q", name, steps[name], p)
		}
	}
}

// levels returns each node's level and forms that are missing, by what they need.
func (c *client) levels(t *testing.T) (levels []string, missing map[string]int) {
	t.Helper()
	var l struct {
		Items []struct {
			Level                    string
			FormsWorking, FormsTotal int
			Missing                  []struct{ Form, Needs, Gives string }
		}
	}
	a := c.ask(t.Context(), "capabilities", "--json")
	if err := json.Unmarshal([]byte(a.out), &l); err != nil {
		t.Fatalf("%v\n%s%s", err, a.out, a.errs)
	}
	missing = map[string]int{}
	for _, i := range l.Items {
		levels = append(levels, i.Level)
		for _, m := range i.Missing {
			missing[m.Needs]++
			if m.Gives == "" || m.Form == "" {
				t.Errorf("%s: %v", c.name, m)
			}
		}
	}
	return levels, missing
}

// formsThatNeed counts the forms for nodes that need rights, on both nodes.
func formsThatNeed(r allowlist.Rights) (n int) {
	for _, f := range allowlist.Forms() {
		if f.Role != allowlist.Docker && f.Rights == r {
			n += 2
		}
	}
	return n
}

// withoutRootWork is what doctor says of a login that reads files.
func withoutRootWork() string {
	root := formsThatNeed(allowlist.Root) / 2
	all := root + (formsThatNeed(allowlist.WWWData)+formsThatNeed(allowlist.Any))/2 - 3 // the probes and the gate's version apart
	return fmt.Sprintf("%d of %d work", all-root, all)
}

func (n *nodes) wwwData(t *testing.T, said, truth map[string]answer) {
	withoutRoot(t, said, truth, "install-script")
	viewer := n.as("viewer", "none")
	steps, shown := viewer.doctor(t, exitOK)
	wants(t, steps, "rights", "warn: www-data", "no root", "pvelens gate install-script")
	wants(t, steps, "gate", "ok: none")
	for _, want := range []string{"root would give:", "backups: archives", withoutRootWork(), "the same are missing as on pve1"} {
		if !strings.Contains(shown, want) {
			t.Errorf("doctor does not show %q", want)
		}
	}
	levels, missing := viewer.levels(t)
	if !slices.Equal(levels, []string{"www-data", "www-data"}) || !maps.Equal(missing, map[string]int{"root": formsThatNeed(allowlist.Root)}) {
		t.Errorf("levels %v, missing %v", levels, missing)
	}
}

func (n *nodes) noGroup(t *testing.T, said map[string]answer) {
	for q, a := range said {
		if a.errorIsCode != "PERMISSION_DENIED" || !strings.Contains(a.errorHint, "group www-data") || strings.Contains(a.errs, "pmxcfs") {
			t.Errorf("%s: %s %v", q, a.errs, a.problems)
		}
	}
	stranger := n.as("stranger", "none")
	steps, shown := stranger.doctor(t, exitIncomplete)
	wants(t, steps, "rights", "fail: ", "/etc/pve", "group www-data")
	if !strings.Contains(shown, "www-data would give:") || !strings.Contains(shown, "guest-configs: every guest's configuration") {
		t.Errorf("doctor does not show what www-data would give:\n%s", shown)
	}
	levels, missing := stranger.levels(t)
	if !slices.Equal(levels, []string{"any", "any"}) || !maps.Equal(missing, map[string]int{"root": formsThatNeed(allowlist.Root), "www-data": formsThatNeed(allowlist.WWWData)}) {
		t.Errorf("levels %v, missing %v", levels, missing)
	}
}

// sudo: root forms go through it, and files too where the user is not in the
// group, which is learned once.
func (n *nodes) sudo(t *testing.T, said, truth map[string]answer) {
	asRoot(t, said, truth)
	raiser := n.as("raiser", "sudo")
	steps, _ := raiser.doctor(t, exitOK)
	wants(t, steps, "rights", "ok: root, through sudo")
	if levels, missing := raiser.levels(t); !slices.Equal(levels, []string{"sudo", "sudo"}) || len(missing) > 0 {
		t.Errorf("levels %v, missing %v", levels, missing)
	}
	log := shell(t, `tr -s '\n ' ' ' </run/sudo.log`)
	for program, used := range map[string]bool{"/usr/sbin/pct": true, "/usr/bin/pvesh": true, "/usr/bin/tail": true, "/bin/grep": true, "/bin/df": false, "/bin/ip": false, "/bin/echo": false} {
		if got := regexp.MustCompile(` raiser : [^:]*; COMMAND=` + program + ` `).MatchString(log); got != used {
			t.Errorf("%s ran through sudo: %v", program, got)
		}
	}
	before := len(raiser.audit(t))
	raiser.ask(t.Context(), "list-guests")
	tried := map[string]int{}
	for _, l := range raiser.audit(t)[before:] {
		if l.Event == "done" && l.Form != "probe" {
			tried[l.Node+" "+l.Form]++
		}
	}
	if want := map[string]int{"pve1 state": 2, "pve3 state": 2, "pve1 guest-configs": 1, "pve1 pools": 1, "pve1 ha-state": 1}; !maps.Equal(tried, want) {
		t.Errorf("asked %v, want %v", tried, want)
	}
}

func (n *nodes) sudoPassword(t *testing.T, said, truth map[string]answer) {
	withoutRoot(t, said, truth, "NOPASSWD")
	asker := n.as("asker", "sudo")
	steps, shown := asker.doctor(t, exitOK)
	wants(t, steps, "rights", "warn: www-data", "a password is required", "NOPASSWD")
	if !strings.Contains(shown, withoutRootWork()) {
		t.Errorf("doctor counts wrong:\n%s", shown)
	}
	if levels, _ := asker.levels(t); !slices.Equal(levels, []string{"www-data", "www-data"}) {
		t.Errorf("levels %v", levels)
	}
	// Neither the group nor a rule.
	steps, _ = n.as("stranger", "sudo").doctor(t, exitIncomplete)
	wants(t, steps, "rights", "fail: ", "a password is required", "group www-data")
	if a := n.as("stranger", "sudo").ask(t.Context(), "list-guests", "--json"); a.errorIsCode != "PERMISSION_DENIED" || !strings.Contains(a.errorHint, "NOPASSWD") {
		t.Errorf("list-guests: %s", a.errs)
	}
}

func (n *nodes) noSudo(t *testing.T) {
	shell(t, `mv /usr/bin/sudo /usr/bin/sudo.away`)
	defer shell(t, `mv /usr/bin/sudo.away /usr/bin/sudo`)
	for _, c := range []struct {
		user, become, status string
		code                 int
	}{{"viewer", "sudo", "warn: www-data", exitOK}, {"raiser", "sudo", "fail: ", exitIncomplete}, {"pvelens", "gate", "warn: www-data", exitOK}} {
		who := n.as(c.user, c.become)
		steps, _ := who.doctor(t, c.code)
		wants(t, steps, "rights", c.status, "sudo is not installed on the node", "apt install sudo")
		if c.user == "viewer" {
			continue
		}
		a := who.ask(t.Context(), "list-backups", "--json")
		if len(a.denied()) == 0 || a.complete || !strings.Contains(a.out, "sudo is not installed") {
			t.Errorf("%s: %s%s", who.name, a.out, a.errs)
		}
	}
}

func (n *nodes) gate(t *testing.T, said, truth map[string]answer) {
	asRoot(t, said, truth)
	gate := n.as("pvelens", "gate")
	steps, _ := gate.doctor(t, exitOK)
	wants(t, steps, "gate", "ok: locked", "same table")
	wants(t, steps, "rights", "ok: root, through the gate")
	if levels, missing := gate.levels(t); !slices.Equal(levels, []string{"gate", "gate"}) || len(missing) > 0 {
		t.Errorf("levels %v, missing %v", levels, missing)
	}
	// A profile that does not know of the gate.
	steps, _ = n.as("pvelens", "none").doctor(t, exitIncomplete)
	wants(t, steps, "login", "fail: CONFIG", "gate", `set become = "gate"`)
}

func (n *nodes) otherGate(t *testing.T) {
	steps, shown := n.as("other", "gate").doctor(t, exitOK)
	wants(t, steps, "gate", "warn: locked", "another table", "differ: clock, quorum, uptime", "install the gate of this release")
	if !strings.Contains(shown, "the gate on the node refuses quorum") {
		t.Errorf("doctor does not say that quorum is refused:\n%s", shown)
	}
}

// noGate: the profile counts on a gate, but the key reaches a shell.
func (n *nodes) noGate(t *testing.T) {
	steps, _ := n.as("viewer", "gate").doctor(t, exitIncomplete)
	wants(t, steps, "gate", "fail: ", "reaches a shell", "no lock", "pvelens gate install-script")
	wants(t, steps, "rights", "warn: www-data")
}

// cancelled: after a call that was given up, nothing of it runs on the node.
func (n *nodes) cancelled(t *testing.T) {
	putFile(t, "/run/hang", "/usr/sbin/corosync-quorumtool\n")
	defer os.Remove("/run/hang")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan answer, 1)
	go func() { ended <- n.as("pvelens", "gate").ask(ctx, "cluster-health", "--json") }()
	running := func() string {
		out, _ := exec.Command("/bin/sh", "-c", `cd /proc; for p in $(cat /run/hung 2>/dev/null); do [ ! -d $p ] || echo "program $p"; done; grep -ls pvelens-gate [0-9]*/comm`).Output()
		return string(out)
	}
	waitFor(t, 20*time.Second, "the program that hangs to start", func() bool { return strings.Contains(running(), "program") })
	cancel()
	waitFor(t, 3*time.Second, "everything to end after the call was cancelled", func() bool { return running() == "" })
	if a := <-ended; a.code == exitOK {
		t.Errorf("cancelled: exit %d: %s", a.code, a.out)
	}
}

func waitFor(t *testing.T, limit time.Duration, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !so(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited %v for %s", limit, what)
		}
	}
}

// audit reads the lines that this user's runs left.
func (c *client) audit(t *testing.T) (lines []transport.AuditLine) {
	t.Helper()
	b, err := os.ReadFile(c.home + "/state/pvelens/audit.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	for line := range bytes.Lines(b) {
		var l transport.AuditLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	return lines
}

// secrets: what is planted in the node's files came over no wire.
func (n *nodes) secrets(t *testing.T) {
	b, err := os.ReadFile("../../fixtures/secrets/planted.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("/run/wire/*")
	audits, _ := filepath.Glob("/run/client/*/state/pvelens/audit.jsonl")
	for _, file := range append(append(files, audits...), "/run/sudo.log") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		n.outputs[file] = string(text)
	}
	for secret := range strings.Lines(string(b)) {
		for where, text := range n.outputs {
			if strings.Contains(text, strings.TrimSpace(secret)) {
				t.Errorf("%q is in %s", strings.TrimSpace(secret), where)
			}
		}
	}
}
