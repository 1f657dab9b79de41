package tools

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"pvelens/tools/report"
)

// Text is an argument that is text; an integer is taken as text.
type Text string

// Common are the arguments that every tool has.
type Common struct {
	Profile string `json:"profile,omitempty" help:"profile to ask; default: the configured one" max:"64"`
	Detail  string `json:"detail,omitempty" help:"how much to answer" enum:"concise,detailed" default:"concise"`
}

// Paged are the arguments of tools that answer with a list.
type Paged struct {
	Limit  int `json:"limit,omitempty" help:"most rows to return" min:"1" max:"500" default:"50"`
	Offset int `json:"offset,omitempty" help:"rows to skip" min:"0" max:"1000000"`
}

// A Param is one argument of a tool, read from a field's tags: help, enum, min
// and max (of a number; of text max is the length in bytes), default, required,
// and pos for the place on the command line.
type Param struct {
	Name     string // as in JSON: "guest"
	Type     string // "string", "text", "integer", "boolean", "list"
	Help     string
	Enum     []string
	Min, Max *int
	Default  string
	Required bool
	Pos      bool // may stand on the command line without its flag
	index    []int
}

// Flag is the argument's name on the command line.
func (p Param) Flag() string { return strings.ReplaceAll(p.Name, "_", "-") }

// Raw is a value as it is typed on a command line, as JSON: a number or a flag
// where one is wanted and given, else text, which set then judges.
func (p Param) Raw(v string) json.RawMessage {
	if _, err := strconv.ParseInt(v, 10, 64); err == nil && p.Type == "integer" || p.Type == "boolean" && (v == "true" || v == "false") {
		return json.RawMessage(v)
	}
	out, _ := json.Marshal(v)
	return out
}

// params reads the arguments of an input struct. It panics on a tag that is no
// number, which a test of every tool finds.
func params(t reflect.Type) []Param {
	var out []Param
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || f.Anonymous {
			continue
		}
		p := Param{Name: name, Help: f.Tag.Get("help"), Default: f.Tag.Get("default"), Required: f.Tag.Get("required") == "true", Pos: f.Tag.Get("pos") == "true", index: f.Index}
		switch {
		case f.Type == reflect.TypeFor[Text]():
			p.Type = "text"
		case f.Type.Kind() == reflect.String:
			p.Type = "string"
		case f.Type.Kind() == reflect.Int:
			p.Type = "integer"
		case f.Type.Kind() == reflect.Bool, f.Type == reflect.TypeFor[*bool]():
			p.Type = "boolean"
		default:
			panic("tools: argument " + name + " has an unknown type")
		}
		if e := f.Tag.Get("enum"); e != "" {
			p.Enum = strings.Split(e, ",")
		}
		p.Min, p.Max = tagNumber(f, "min"), tagNumber(f, "max")
		if p.Max == nil && (p.Type == "string" || p.Type == "text") && p.Enum == nil {
			p.Max = report.Ptr(200)
		}
		out = append(out, p)
	}
	return out
}

func tagNumber(f reflect.StructField, tag string) *int {
	s := f.Tag.Get(tag)
	if s == "" {
		return nil
	}
	n, err := strconv.Atoi(s)
	if err != nil {
		panic("tools: tag " + tag + " of " + f.Name + " is no number")
	}
	return &n
}

// decode fills in, a pointer to an input struct, from JSON arguments. It
// refuses unknown names, wrong types and values out of range, and names what
// was wanted.
func decode(ps []Param, raw json.RawMessage, in any) error {
	v := reflect.ValueOf(in).Elem()
	args := map[string]json.RawMessage{}
	if s := bytes.TrimSpace(raw); len(s) > 0 && !bytes.Equal(s, []byte("null")) {
		if err := json.Unmarshal(s, &args); err != nil {
			return errorf(report.InvalidArgument, "arguments must be one JSON object")
		}
	}
	for name := range args {
		if !slices.ContainsFunc(ps, func(p Param) bool { return p.Name == name }) {
			return errorf(report.InvalidArgument, "unknown argument %q", report.Clean(name)).hint("known arguments: %s", strings.Join(names(ps), ", "))
		}
	}
	for _, p := range ps {
		arg, ok := args[p.Name]
		if !ok || bytes.Equal(bytes.TrimSpace(arg), []byte("null")) {
			if p.Required {
				return errorf(report.InvalidArgument, "%s is required: %s", p.Name, p.Help)
			}
			if p.Default == "" {
				continue
			}
			arg = json.RawMessage(p.Default)
			if p.Type == "string" || p.Type == "text" {
				arg, _ = json.Marshal(p.Default)
			}
		}
		if err := p.set(v.FieldByIndex(p.index), arg); err != nil {
			return err
		}
	}
	return nil
}

func names(ps []Param) []string {
	var out []string
	for _, p := range ps {
		out = append(out, p.Name)
	}
	slices.Sort(out)
	return out
}

func (p Param) set(f reflect.Value, arg json.RawMessage) error {
	bad := errorf(report.InvalidArgument, "%s must be %s", p.Name, p.want())
	arg = bytes.TrimSpace(arg)
	switch p.Type {
	case "integer":
		n, ok := whole(arg)
		if !ok || p.Min != nil && n < *p.Min || p.Max != nil && n > *p.Max {
			return bad
		}
		f.SetInt(int64(n))
	case "boolean":
		var b bool
		if json.Unmarshal(arg, &b) != nil {
			return bad
		}
		if f.Kind() == reflect.Pointer {
			f.Set(reflect.ValueOf(&b))
		} else {
			f.SetBool(b)
		}
	default:
		var s string
		if json.Unmarshal(arg, &s) != nil {
			n, ok := whole(arg)
			if p.Type != "text" || !ok {
				return bad
			}
			s = strconv.Itoa(n)
		}
		s = strings.TrimSpace(s)
		if p.Max != nil && len(s) > *p.Max || p.Enum != nil && !slices.Contains(p.Enum, s) || p.Required && s == "" || s != report.Clean(s) {
			return bad
		}
		f.SetString(s)
	}
	return nil
}

// whole reads a JSON number without a fraction. Some clients send 102.0 for 102.
func whole(arg json.RawMessage) (int, bool) {
	var n int
	if json.Unmarshal(arg, &n) == nil {
		return n, true
	}
	var x float64
	if json.Unmarshal(arg, &x) != nil || x != math.Trunc(x) || math.Abs(x) > 1<<53 {
		return 0, false
	}
	return int(x), true
}

// want says in words which values p takes.
func (p Param) want() string {
	switch {
	case p.Enum != nil:
		return "one of " + strings.Join(p.Enum, ", ")
	case p.Type == "integer" && p.Min != nil && p.Max != nil:
		return fmt.Sprintf("a whole number from %d to %d", *p.Min, *p.Max)
	case p.Type == "integer":
		return "a whole number"
	case p.Type == "boolean":
		return "true or false"
	case p.Required:
		return fmt.Sprintf("text of 1 to %d printable characters: %s", *p.Max, p.Help)
	}
	return fmt.Sprintf("text of at most %d printable characters: %s", *p.Max, p.Help)
}

// everywhere are the arguments that the server's instructions explain once for
// all tools: clients pay for each word in each tool's schema.
var everywhere = []string{"profile", "detail", "limit", "offset"}

// schema renders the arguments as the JSON Schema that MCP clients are given.
// decode enforces more than it says, and names every argument when one is
// unknown.
func schema(ps []Param) map[string]any {
	props := map[string]any{}
	required := []string{}
	for _, p := range ps {
		props[p.Name] = p.schema()
		if p.Required {
			required = append(required, p.Name)
		}
	}
	out := map[string]any{"type": "object", "properties": props}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

func (p Param) schema() map[string]any {
	s := map[string]any{"type": p.Type}
	if p.Type == "text" {
		s["type"] = []string{"string", "integer"}
	}
	if p.Enum != nil {
		s = map[string]any{"enum": p.Enum} // the words say the type
	}
	if p.Type == "integer" && p.Max != nil && p.Name != "offset" {
		s["maximum"] = *p.Max
	}
	if slices.Contains(everywhere, p.Name) {
		return s
	}
	s["description"] = p.brief()
	if p.Type == "integer" {
		if p.Min != nil {
			s["minimum"] = *p.Min
		}
		if p.Default != "" {
			s["default"] = json.RawMessage(p.Default)
		}
	}
	return s
}

// naming is how guests and nodes are named. It stands in the instructions, so a
// filter need not say it again to clients.
var naming = strings.NewReplacer(": VMID, exact name, or CLUSTER/VMID", "", ": VMID or exact name", "",
	": PVE name, SSH destination or FQDN", "", " (PVE name, SSH destination or FQDN)", "")

func (p Param) brief() string {
	if p.Required {
		return p.Help
	}
	return naming.Replace(p.Help)
}
