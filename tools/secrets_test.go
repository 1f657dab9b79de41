package tools

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"pvelens/allowlist"
	"pvelens/fixtures"
)

// rerooted runs the real grep and tail on a root full of planted secrets, and
// asks base for what is not a file.
type rerooted struct {
	root string
	base fixtures.Source
}

func (r rerooted) Answer(c allowlist.Command) (fixtures.Answer, bool) {
	argv := c.Argv()
	if argv[0] != "/bin/grep" && argv[0] != "/usr/bin/tail" {
		return r.base.Answer(c)
	}
	etc := false
	for i, w := range argv[1:] {
		if strings.HasPrefix(w, "/etc/") || strings.HasPrefix(w, "/var/") {
			argv[i+1], etc = r.root+w, true
		}
	}
	if !etc {
		return r.base.Answer(c)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run()
	back := func(b []byte) []byte { return bytes.ReplaceAll(b, []byte(r.root), nil) }
	return fixtures.Answer{Stdout: back(out.Bytes()), Stderr: back(errs.Bytes()), Exit: cmd.ProcessState.ExitCode()}, true
}

// TestNoPlantedSecretComesOut asks every tool, in every detail, of a node full
// of planted secrets, and looks for them in answers, errors and the audit log.
func TestNoPlantedSecretComesOut(t *testing.T) {
	root, err := filepath.Abs("../fixtures/secrets/root")
	if err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("../fixtures/secrets/planted.txt")
	if err != nil {
		t.Fatal(err)
	}
	planted := strings.Split(strings.TrimSpace(string(b)), "\n")
	rest := agentRest
	agentRest = 0
	t.Cleanup(func() { agentRest = rest })
	sc := fixtures.Heimlabor()
	sc.Machines[0].Source = rerooted{root, fixtures.HeimlaborPVE1()}
	env := replay(t, sc, fixtures.Options{})
	args := map[string][]string{
		"get_guest_config": {`"guest":"101"`, `"guest":"102"`, `"guest":"106"`, `"guest":"107"`, `"guest":"201"`, `"guest":"202"`, `"guest":"203"`},
		"get_guest_status": {`"guest":"102"`, `"guest":"200"`}, "guest_health_summary": {`"guest":"102"`, `"guest":"200"`},
		"inspect_compose_stack": {`"guest":"102","project":"media"`}, "find_containers": {`"name":"jelly"`},
		"check_ip_availability": {`"address":"192.168.20.101"`}, "find_free_address": {`"network":"192.168.20.0/24"`},
		"plan_node_evacuation": {`"node":"pve1"`},
	}
	for _, tool := range All() {
		for _, detail := range []string{"concise", "detailed"} {
			for _, a := range append(args[tool.Name], "")[:max(1, len(args[tool.Name]))] {
				text := ""
				r, err := call(t, env, tool.Name, `{"detail":"`+detail+`"`+strings.TrimSuffix(","+a, ",")+`}`)
				if err != nil {
					text = err.Error()
				} else if out, err := Encode(r); err == nil {
					text = string(out)
					for _, table := range r.Tables() {
						var b strings.Builder
						_ = table.Write(&b)
						text += b.String()
					}
				}
				for _, s := range planted {
					if strings.Contains(text, s) {
						t.Errorf("%s %s %s: %q comes out", tool.Name, detail, a, s)
					}
				}
			}
		}
	}
	cluster, _ := behind(t, env)
	seen := 0
	for _, n := range cluster.Nodes {
		seen += len(n.Seen())
	}
	if seen < 50 {
		t.Errorf("only %d commands were run, so this proved little", seen)
	}
}
