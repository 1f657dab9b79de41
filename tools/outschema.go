package tools

import (
	"reflect"
	"strings"
)

// outSchema renders a report type as the JSON Schema that MCP clients are
// given. Structs deeper than depth are plain objects, to keep the list of tools
// small.
func outSchema(t reflect.Type, depth int) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return outSchema(t.Elem(), depth)
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Int32:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		if depth == 0 {
			return map[string]any{"type": "array"}
		}
		return map[string]any{"type": "array", "items": outSchema(t.Elem(), depth-1)}
	case reflect.Struct:
		if depth > 0 {
			return objectSchema(t, depth-1)
		}
	}
	return map[string]any{"type": "object"}
}

func objectSchema(t reflect.Type, depth int) map[string]any {
	props := map[string]any{}
	var required []string
	for _, f := range reflect.VisibleFields(t) {
		name, opts, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" || name == "-" || !f.IsExported() {
			continue
		}
		props[name] = outSchema(f.Type, depth)
		if !strings.Contains(opts, "omit") {
			required = append(required, name)
		}
	}
	out := map[string]any{"type": "object", "properties": props}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}
