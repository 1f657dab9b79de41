package tools

import (
	"bytes"
	"context"
	"encoding/json"
	"reflect"

	"pvelens/tools/report"
)

// A Tool is one question that pvelens answers, for MCP clients and for people.
type Tool struct {
	Name        string // snake case, as MCP clients call it
	Title       string
	Description string
	Params      []Param
	Out         reflect.Type // the report's struct
	run         func(ctx context.Context, env *Env, raw json.RawMessage) (report.Tabler, error)
}

// Schema is the JSON Schema of the tool's arguments.
func (t Tool) Schema() map[string]any { return schema(t.Params) }

// Call decodes the arguments and answers. An error is an *Error.
func (t Tool) Call(ctx context.Context, env *Env, raw json.RawMessage) (report.Tabler, error) {
	r, err := t.run(ctx, env, raw)
	if err != nil {
		e := *AsError(err)
		report.Scrub(&e)
		return nil, &e
	}
	return r, nil
}

// common is what define needs to know of an input.
type common interface{ shared() Common }

func (c Common) shared() Common { return c }

// define makes a tool of an input struct, a report type and the function
// between them. The function gets an open session; define closes the report.
func define[In common, Out any, R interface {
	*Out
	report.Tabler
}](name, title, description string, run func(ctx context.Context, s *Session, in In) (R, error)) Tool {
	ps := params(reflect.TypeFor[In]())
	return Tool{
		Name: name, Title: title, Description: description, Params: ps, Out: reflect.TypeFor[Out](),
		run: func(ctx context.Context, env *Env, raw json.RawMessage) (report.Tabler, error) {
			var in In
			if err := decode(ps, raw, &in); err != nil {
				return nil, err
			}
			s, err := env.open(ctx, in.shared())
			if err != nil {
				return nil, err
			}
			defer s.close()
			r, err := run(s.ctx, s, in)
			if err != nil {
				return nil, err
			}
			s.finish(r.Head())
			report.Scrub(r)
			return r, nil
		},
	}
}

// Encode renders a report as compact JSON, without HTML escapes: the text that
// clients are given.
func Encode(v any) ([]byte, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimRight(b.Bytes(), "\n"), nil
}
