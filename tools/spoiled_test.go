package tools

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
)

// An output that came in part, not at all or as something else may change an
// answer, but then the answer is not complete and says why.
func TestSpoiledOutputsAreToldFrom(t *testing.T) {
	calls := []struct{ tool, args string }{
		{"list_nodes", `{}`}, {"get_node_capacity", `{}`}, {"list_guests", `{}`}, {"list_storage", `{}`}, {"list_snapshots", `{}`}, {"list_backups", `{}`},
		{"get_guest_config", `{"guest":101}`}, {"get_guest_status", `{"guest":101}`}, {"guest_health_summary", `{"guest":101}`},
	}
	// What prints nothing where there is nothing: a runtime without containers, a
	// journal without messages.
	mayBeEmpty := []string{"lxc-docker-ps", "lxc-podman-ps", "storage-reasons"}
	kinds := map[string]fixtures.Kind{"half": fixtures.HalfOutput, "nothing": fixtures.NoOutput, "junk": fixtures.JunkOutput, "timed out": fixtures.TimedOut}
	for _, c := range calls {
		ask := func(o fixtures.Options) (rest string, complete bool, problems int, used map[string]int) {
			env := replay(t, scenarios.Named("pve8-single"), o)
			r, err := call(t, env, c.tool, c.args)
			if err != nil {
				return "", false, 1, nil
			}
			b, err := Encode(r)
			if err != nil {
				t.Fatal(err)
			}
			var m map[string]any
			if err := json.Unmarshal(b, &m); err != nil {
				t.Fatal(err)
			}
			complete, problems = m["complete"].(bool), len(m["problems"].([]any))
			delete(m, "complete")
			delete(m, "problems")
			b, _ = json.Marshal(m)
			return string(b), complete, problems, forms(t, env)
		}
		whole, _, before, used := ask(fixtures.Options{})
		for _, form := range slices.Sorted(maps.Keys(used)) {
			for name, kind := range kinds {
				if kind == fixtures.NoOutput && slices.Contains(mayBeEmpty, form) {
					continue
				}
				got, complete, problems, _ := ask(fixtures.Options{Faults: map[string]fixtures.Fault{"": {Kind: kind, Form: form}}})
				if got != whole && (complete || problems <= before) {
					t.Errorf("%s with %s %s: another answer, complete %v, %d problems", c.tool, name, form, complete, problems)
				}
			}
		}
	}
}
