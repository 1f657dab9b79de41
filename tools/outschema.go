package tools

import (
	"reflect"
	"strings"
)

// reportSchema renders a report type as the JSON Schema that MCP clients are
// given: its fields and those of its rows. What lies deeper is a plain object,
// and only the outermost level says which fields are always there, to keep the
// list of tools small.
func reportSchema(t reflect.Type) map[string]any {
	props := map[string]any{}
	var required []string
	for _, f := range reflect.VisibleFields(t) {
		name, opts, ok := jsonName(f)
		if !ok {
			continue
		}
		depth := 0
		if name == "items" {
			depth = 1
		}
		props[name] = fieldSchema(f.Type, depth)
		if !strings.Contains(opts, "omit") {
			required = append(required, name)
		}
	}
	return map[string]any{"type": "object", "properties": props, "required": required}
}

func jsonName(f reflect.StructField) (name, opts string, ok bool) {
	name, opts, _ = strings.Cut(f.Tag.Get("json"), ",")
	return name, opts, name != "" && name != "-" && f.IsExported()
}

// fieldSchema renders a field's type, structs as deep as depth.
func fieldSchema(t reflect.Type, depth int) map[string]any {
	switch t.Kind() {
	case reflect.Pointer:
		return fieldSchema(t.Elem(), depth)
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Int, reflect.Int64, reflect.Int32:
		return map[string]any{"type": "integer"}
	case reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice:
		if depth == 0 && t.Elem().Kind() == reflect.Struct {
			return map[string]any{"type": "array"}
		}
		return map[string]any{"type": "array", "items": fieldSchema(t.Elem(), depth)}
	}
	if t.Kind() != reflect.Struct || depth == 0 {
		return map[string]any{"type": "object"}
	}
	props := map[string]any{}
	for _, f := range reflect.VisibleFields(t) {
		if name, _, ok := jsonName(f); ok {
			props[name] = fieldSchema(f.Type, depth-1)
		}
	}
	return map[string]any{"type": "object", "properties": props}
}
