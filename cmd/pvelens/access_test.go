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
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	"pvelens/allowlist"
	"pvelens/tools"
	"pvelens/transport"
)

// logins are users of the node and how they get root.
var logins = []struct{ user, groups, sudoers, forced string }{
	{user: "viewer", groups: "www-data"},
	{user: "stranger"},
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
		usermod -s /run/programs/shell root
		cp /run/client/id.pub /etc/ssh/keys/root
		sh cmd/pvelens/gate_install.sh --gate "$1/gate" --key "$(cat /run/client/id.pub)"
		usermod -s /run/programs/shell pvelens
		install -m 0755 "$1/other-gate" /usr/local/libexec/other-gate
	`, os.Getenv(inside))
	for _, l := range logins {
		shell(t, `
			useradd -m -k /dev/null -b /run -s /run/programs/shell ${2:+-G "$2"} "$1"
			usermod -p '*' "$1"
			[ -z "$3" ] || printf '%s ALL=(root) %s\n' "$1" "$3" >"/etc/sudoers.d/$1"
			printf '%s%s\n' "${4:+restrict,command=\"$4\" }" "$(cat /run/client/id.pub)" >"/etc/ssh/keys/$1"
			chmod -f 0440 /etc/sudoers.d/* || :
			visudo -cq
		`, l.user, l.groups, l.sudoers, l.forced)
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
		"get_guest_config":      {{"101"}, {"102", "--detail", "detailed"}, {"110"}, {"200"}, {"220"}},
		"check_ip_availability": {{"192.168.20.77"}},
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

// everything asks all tools.
func (c *client) everything(ctx context.Context) map[string]answer {
	out := map[string]answer{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, q := range questions() {
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
	said := map[string]map[string]answer{}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for _, who := range []*client{n.as("root", "none"), n.as("viewer", "none"), n.as("stranger", "none"), n.as("raiser", "sudo"), n.as("asker", "sudo"), n.as("pvelens", "gate")} {
		wg.Go(func() {
			all := who.everything(t.Context())
			mu.Lock()
			defer mu.Unlock()
			said[who.name] = all
		})
	}
	wg.Wait()
	truth := said["root, become none"]
	t.Run("root", func(t *testing.T) { n.root(t, truth) })
	t.Run("www-data", func(t *testing.T) { n.wwwData(t, said["viewer, become none"], truth) })
	t.Run("no group", func(t *testing.T) { n.noGroup(t, said["stranger, become none"]) })
	t.Run("sudo", func(t *testing.T) { n.sudo(t, said["raiser, become sudo"], truth) })
	t.Run("sudo with password", func(t *testing.T) { n.sudoPassword(t, said["asker, become sudo"], truth) })
	t.Run("gate", func(t *testing.T) { n.gate(t, said["pvelens, become gate"], truth) })
	t.Run("another gate", n.otherGate)
	t.Run("no gate", n.noGate)
	t.Run("no sudo", n.noSudo)
	t.Run("cancelled", n.cancelled)
	t.Run("secrets", n.secrets)
}

// moving are the tools whose numbers are the machine's own at that moment.
var moving = []string{"get-node-capacity", "cluster-health", "storage-health", "list-storage", "check-ip-availability", "find-free-address", "guest-health-summary"}

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
		if tool, _, _ := strings.Cut(q, " "); len(tools) > 0 && !slices.Contains(tools, tool) {
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

// wwwData: files are enough for the inventory and all that is configured.
func (n *nodes) wwwData(t *testing.T, said, truth map[string]answer) {
	asRoot(t, said, truth, "list-nodes", "list-guests", "get-guest-config", "list-snapshots", "snapshot-audit", "plan-node-evacuation", "config-audit", "pending-updates", "recent-tasks")
	faithful(t, said, truth)
	fmt.Println(n.as("viewer", "none").ask(t.Context(), "doctor").out)
	fmt.Println(n.as("viewer", "none").ask(t.Context(), "capabilities").out)
	for q, a := range said {
		fmt.Printf("%s: %d complete %v %s\n", q, a.code, a.complete, a.errs)
		for _, p := range a.problems {
			fmt.Println("   ", p)
		}
	}
}

func (n *nodes) noGroup(t *testing.T, said map[string]answer) {
	for q, a := range said {
		if a.errorIsCode != "PERMISSION_DENIED" || !strings.Contains(a.errorHint, "www-data") {
			t.Errorf("%s: %s %v", q, a.errs, a.problems)
		}
	}
	fmt.Println(n.as("stranger", "none").ask(t.Context(), "doctor").out)
	fmt.Println(n.as("stranger", "none").ask(t.Context(), "capabilities").out)
	fmt.Println(said["list-guests"].errs)
}
func (n *nodes) sudo(t *testing.T, said, truth map[string]answer) {
	asRoot(t, said, truth)
	fmt.Println(n.as("raiser", "sudo").ask(t.Context(), "doctor").out)
}
func (n *nodes) sudoPassword(t *testing.T, said, truth map[string]answer) {
	asRoot(t, said, truth, "list-nodes", "list-guests", "get-guest-config", "list-snapshots", "snapshot-audit", "plan-node-evacuation", "config-audit", "pending-updates", "recent-tasks")
	faithful(t, said, truth)
	fmt.Println(n.as("asker", "sudo").ask(t.Context(), "doctor").out)
	fmt.Println(n.as("stranger", "sudo").ask(t.Context(), "doctor").out)
	fmt.Println(said["list-backups"].problems)
}
func (n *nodes) gate(t *testing.T, said, truth map[string]answer) {
	asRoot(t, said, truth)
	fmt.Println(n.as("pvelens", "gate").ask(t.Context(), "doctor").out)
}
func (n *nodes) otherGate(t *testing.T) {
	fmt.Println(n.as("other", "gate").ask(t.Context(), "doctor").out)
}
func (n *nodes) noGate(t *testing.T) {
	fmt.Println(n.as("viewer", "gate").ask(t.Context(), "doctor").out)
	fmt.Println(n.as("pvelens", "none").ask(t.Context(), "doctor").out)
}
func (n *nodes) noSudo(t *testing.T) {
	shell(t, `mv /usr/bin/sudo /usr/bin/sudo.away`)
	defer shell(t, `mv /usr/bin/sudo.away /usr/bin/sudo`)
	fmt.Println(n.as("viewer", "sudo").ask(t.Context(), "doctor").out)
	fmt.Println(n.as("raiser", "sudo").ask(t.Context(), "doctor").out)
	fmt.Println(n.as("pvelens", "gate").ask(t.Context(), "doctor").out)
	fmt.Println(n.as("pvelens", "gate").ask(t.Context(), "list-backups"))
}
func (n *nodes) cancelled(t *testing.T) {}

// secrets: what is planted in the node's files came over no wire.
func (n *nodes) secrets(t *testing.T) {
	b, err := os.ReadFile("../../fixtures/secrets/planted.txt")
	if err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob("/run/wire/*")
	audits, _ := filepath.Glob("/run/client/*/state/pvelens/audit.jsonl")
	for _, file := range append(files, audits...) {
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

var _ = exec.Command
var _ transport.Code
