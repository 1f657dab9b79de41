package tools

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"pvelens/fixtures"
	"pvelens/fixtures/scenarios"
	"pvelens/tools/report"
)

// breaks says where a value does not fit a schema that uses type, properties,
// required and items, as ours do; "" when it fits. A field that the schema does
// not name breaks it too, and so does a null.
func breaks(schema map[string]any, v any, at string) string {
	kind, _ := schema["type"].(string)
	got, ok := "null", false
	switch v := v.(type) {
	case string:
		got, ok = "string", kind == "string"
	case bool:
		got, ok = "boolean", kind == "boolean"
	case float64:
		got, ok = "number", kind == "number" || kind == "integer" && v == math.Trunc(v)
	case []any:
		got, ok = "array", kind == "array"
		items, typed := schema["items"].(map[string]any)
		for i, item := range v {
			if item == nil {
				return fmt.Sprintf("%s[%d]: null", at, i)
			}
			if typed {
				if b := breaks(items, item, fmt.Sprintf("%s[%d]", at, i)); b != "" {
					return b
				}
			}
		}
	case map[string]any:
		got, ok = "object", kind == "object"
		props, typed := schema["properties"].(map[string]any)
		for name, item := range v {
			p, known := props[name].(map[string]any)
			switch {
			case !typed && item == nil:
				return at + "." + name + ": null"
			case typed && !known:
				return at + "." + name + ": not in the schema"
			case typed:
				if b := breaks(p, item, at+"."+name); b != "" {
					return b
				}
			}
		}
		required, _ := schema["required"].([]any)
		for _, name := range required {
			if _, there := v[name.(string)]; !there {
				return at + ": without " + name.(string)
			}
		}
	}
	if !ok {
		return fmt.Sprintf("%s: %s, want %s", at, got, kind)
	}
	return ""
}

func TestBreaks(t *testing.T) {
	schema := map[string]any{"type": "object", "required": []any{"a"}, "properties": map[string]any{"a": map[string]any{"type": "array", "items": map[string]any{"type": "integer"}}, "b": map[string]any{"type": "object"}}}
	for text, want := range map[string]string{
		`{"a":[1]}`:               "",
		`{"a":[1],"b":{"c":"x"}}`: "",
		`{}`:                      "r: without a",
		`{"a":[1.5]}`:             "r.a[0]: number, want integer",
		`{"a":null}`:              "r.a: null, want array",
		`{"a":[null]}`:            "r.a[0]: null",
		`{"a":[],"c":1}`:          "r.c: not in the schema",
		`{"a":[],"b":{"c":null}}`: "r.b.c: null",
		`{"a":{}}`:                "r.a: object, want array",
		`["a"]`:                   "r: array, want object",
	} {
		var v any
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			t.Fatal(err)
		}
		if got := breaks(schema, v, "r"); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestReportsFitTheirSchemas: what a tool answers fits the output schema that
// clients were given, whatever the cluster looks like.
func TestReportsFitTheirSchemas(t *testing.T) {
	unhurried(t)
	schemas := map[string]map[string]any{}
	for _, tool := range All() {
		b, err := json.Marshal(reportSchema(tool.Out))
		if err != nil {
			t.Fatal(err)
		}
		var s map[string]any
		if err := json.Unmarshal(b, &s); err != nil {
			t.Fatal(err)
		}
		schemas[tool.Name] = s
	}
	answered := map[string]int{}
	for _, name := range append([]string{"heimlabor", "nowhere"}, scenarios.Names()...) {
		sc := fixtures.Scenario{Clock: fixtures.DemoClock, Machines: fixtures.Heimlabor().Machines[1:]} // nobody answers
		if name != "nowhere" {
			sc = scenarios.Named(name)
		}
		env := replay(t, sc, fixtures.Options{})
		env.Tools = []string{"list_guests"}
		_, p := behind(t, env)
		p.Deadline = 5 * time.Second
		for _, tool := range All() {
			for _, args := range asked(t, env, tool) {
				r, err := call(t, env, tool.Name, args)
				if err != nil {
					continue // an error has no structured content
				}
				answered[tool.Name]++
				b, err := Encode(r)
				if err != nil {
					t.Fatal(err)
				}
				var v any
				if err := json.Unmarshal(b, &v); err != nil {
					t.Fatal(err)
				}
				if bad := breaks(schemas[tool.Name], v, tool.Name); bad != "" {
					t.Errorf("%s %s: %s", name, args, bad)
				}
			}
		}
	}
	for _, tool := range All() {
		if answered[tool.Name] < 3 {
			t.Errorf("%s answered %d times only", tool.Name, answered[tool.Name])
		}
	}
}

// asked are argument lists for a tool: its questions, and every guest of the
// cluster's list where it takes one.
func asked(t *testing.T, env *Env, tool Tool) []string {
	out := []string{`{}`, `{"detail":"detailed"}`}
	if q := questions[tool.Name]; q != "" {
		out = append(out, q)
	}
	for _, p := range tool.Params {
		switch {
		case p.Name == "limit":
			out = append(out, `{"limit":1,"offset":1000000}`)
		case p.Name == "guest" && p.Required:
			r, err := call(t, env, "list_guests", `{"limit":5}`)
			if err != nil {
				continue
			}
			for _, g := range r.(*report.GuestList).Items {
				out = append(out, fmt.Sprintf(`{"guest":%d}`, g.VMID))
			}
		case p.Name == "node" && p.Required:
			for _, n := range env.Completions("node", "") {
				out = append(out, strings.ReplaceAll(`{"node":"NODE"}`, "NODE", n))
			}
		case p.Name == "project" && p.Required:
			for _, n := range env.Completions("project", "") {
				out = append(out, strings.ReplaceAll(`{"project":"NAME"}`, "NAME", n))
			}
		}
	}
	return out
}
