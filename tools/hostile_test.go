package tools

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"pvelens/allowlist"
	"pvelens/fixtures"
	"pvelens/tools/report"
)

// evil drives a terminal, turns text around and hides: an erase sequence, a
// right-to-left override, a zero-width blank and an 8-bit control sequence.
const evil = "\x1b[2J\u202egnp\u200b\u009b31m"

// spoiled answers like base, with evil text in every line or JSON string of the
// forms that spoils names.
type spoiled struct {
	base   fixtures.Source
	spoils func(form string) bool
	spoil  func([]byte) []byte
}

func (s spoiled) Answer(c allowlist.Command) (fixtures.Answer, bool) {
	a, ok := s.base.Answer(c)
	if ok && s.spoils(c.ID()) {
		a.Stdout, a.Stderr = s.spoil(a.Stdout), s.spoil(a.Stderr)
	}
	return a, ok
}

func evilLines(b []byte) []byte {
	return bytes.ReplaceAll(b, []byte("\n"), []byte(evil+"\n"))
}

// evilWords puts evil text behind every blank or colon of plain text.
func evilWords(b []byte) []byte {
	return bytes.ReplaceAll(bytes.ReplaceAll(b, []byte(": "), []byte(": x"+evil)), []byte("name="), []byte("name=x"+evil))
}

// evilStrings puts evil text into every JSON string value, or into every line of
// what is no JSON.
func evilStrings(b []byte) []byte {
	var v any
	if json.Unmarshal(b, &v) != nil {
		return evilLines(b)
	}
	out, err := json.Marshal(evilIn(v))
	if err != nil {
		panic(err)
	}
	return out
}

func evilIn(v any) any {
	switch v := v.(type) {
	case string:
		return v + evil
	case []any:
		for i := range v {
			v[i] = evilIn(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = evilIn(v[k])
		}
	}
	return v
}

// questions are arguments that make every tool ask all it can of heimlabor.
var questions = map[string]string{
	"get_guest_config":      `{"guest":102,"detail":"detailed"}`,
	"get_guest_status":      `{"guest":102,"detail":"detailed"}`,
	"guest_health_summary":  `{"guest":102,"detail":"detailed"}`,
	"check_ip_availability": `{"address":"192.168.20.77","detail":"detailed"}`,
	"find_free_address":     `{"network":"192.168.20.0/24","detail":"detailed"}`,
	"inspect_compose_stack": `{"project":"media","detail":"detailed"}`,
	"find_containers":       `{"name":"a","detail":"detailed"}`,
	"plan_node_evacuation":  `{"node":"pve1","detail":"detailed"}`,
}

// TestHostileNodesTexts: whatever a node prints, and in whichever place, nothing
// that drives a terminal or hides reaches a report, an error, a table or a
// completion.
func TestHostileNodesTexts(t *testing.T) {
	unhurried(t)
	state := func(form string) bool { return form == "state" }
	others := func(form string) bool { return form != "state" }
	for _, v := range []struct {
		name   string
		spoils func(string) bool
		spoil  func([]byte) []byte
	}{
		{"lines", others, evilLines},
		{"words", others, evilWords},
		{"strings", others, evilStrings},
		{"paths", others, func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("/etc/pve/nodes/pve"), []byte("/etc/pve/nodes/"+evil+"pve"))
		}},
		{"nodename", state, func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"pve1"`), []byte(`"pve1\u001b[2J\u202e\u200b"`))
		}},
		{"cluster name", state, func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"heimlabor"`), []byte(`"heimlabor\u001b[2J\u202e\u200b"`))
		}},
		{"addresses", state, func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"ip": "`), []byte(`"ip": "\u001b[2J\u202e\u200b`))
		}},
		{"guest types", state, func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte(`"lxc"`), []byte(`"lxc\u001b[2J\u202e\u200b"`))
		}},
		{"live lines", state, func(b []byte) []byte {
			return bytes.ReplaceAll(b, []byte("running"), []byte("running"+evil))
		}},
	} {
		t.Run(v.name, func(t *testing.T) {
			sc := fixtures.Heimlabor()
			for i, m := range sc.Machines {
				if m.Source != nil {
					sc.Machines[i].Source = spoiled{m.Source, v.spoils, v.spoil}
				}
			}
			env := replay(t, sc, fixtures.Options{})
			for _, tool := range All() {
				args := questions[tool.Name]
				if args == "" {
					args = `{"detail":"detailed"}`
				}
				r, err := call(t, env, tool.Name, args)
				var seen strings.Builder
				if err != nil {
					seen.WriteString(err.Error())
				} else {
					b, err := Encode(r)
					if err != nil {
						t.Fatal(err)
					}
					seen.Write(b)
					for _, table := range r.Tables() {
						if err := table.Write(&seen); err != nil {
							t.Fatal(err)
						}
					}
				}
				harmless(t, tool.Name, seen.String())
			}
			for _, argument := range []string{"guest", "node", "project"} {
				harmless(t, "completions of "+argument, strings.Join(env.Completions(argument, ""), " "))
			}
		})
	}
}

func harmless(t *testing.T, where, text string) {
	t.Helper()
	for _, bad := range []string{"\x1b", `\u001b`, "\u202e", "\u200b", "\u009b"} {
		if i := strings.Index(text, bad); i >= 0 {
			t.Errorf("%s: %q in …%q", where, bad, text[max(0, i-80):min(len(text), i+20)])
			return
		}
	}
}

// TestAHostileNodeName: a node that calls itself what is no host name is an
// error, and its name is in no command.
func TestAHostileNodeName(t *testing.T) {
	for _, name := range []string{"../x", "-x", "pve1/../../priv", "a b", "$(id)", "pve1;id", strings.Repeat("a", 64), "пве1", "pve1\u200b"} {
		quoted, _ := json.Marshal(name)
		members := `{"nodename":` + string(quoted) + `,"version":1,"cluster":{"name":"c","version":1,"nodes":1,"quorate":1},"nodelist":{` + string(quoted) + `:{"id":1,"online":1,"ip":"10.0.0.1"}}}`
		vmlist := `{"version":1,"ids":{"100":{"node":` + string(quoted) + `,"type":"lxc","version":1}}}`
		env := replay(t, scenario(fixtures.Machine{Name: "n", Role: allowlist.PVE, Source: instead{nil, map[string]fixtures.Answer{"state": printed(stateOf(members, vmlist, ""))}}}), fixtures.Options{})
		for _, tool := range []string{"list_nodes", "list_guests", "get_node_capacity", "list_storage"} {
			r, err := call(t, env, tool, `{}`)
			if err == nil {
				b, _ := Encode(r)
				t.Errorf("%s, a node named %q: %s", tool, name, b)
			} else if e := AsError(err); e.Code != report.Internal || strings.Contains(e.Message, name) {
				t.Errorf("%s, a node named %q: %v", tool, name, err)
			}
		}
	}
}
