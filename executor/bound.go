package executor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
)

// Bound returns the values that were fixed on the server's side for the running call, from the context that its tool
// got; numbers are json.Number. It is empty, never nil, when there are none.
func Bound(ctx context.Context) map[string]any {
	call := CallOf(ctx)
	if call == nil {
		return map[string]any{}
	}
	values, err := Arguments(call.Bound)
	if err != nil {
		return map[string]any{} // not from a Set, which refuses such calls
	}
	return values
}

// BoundInto reads the bound values of the running call into a pointer to a struct. Values that the struct does not name
// are left alone; one that it names must be there, and no empty text, unless its tag says omitempty or omitzero: a tool that
// expects a tenant does not run for none. Its errors are denials.
func BoundInto(ctx context.Context, into any) error {
	t := reflect.TypeOf(into)
	if t == nil || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return errors.New("bound values: the tool reads them into something else than a struct")
	}
	text := emptyArgs
	if call := CallOf(ctx); call != nil && call.Bound != "" {
		text = call.Bound
	}
	var there map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &there); err != nil {
		return denied("what is bound to this call cannot be read")
	}
	if name := missing(t.Elem(), there); name != "" {
		return denied(fmt.Sprintf("this tool runs only with a value of %q that is set on the server's side", name))
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return denied("what is bound to this call is not what its tool expects: " + argsMessage(err))
	}
	return nil
}

// missing returns the first name that t requires and there lacks, "" if it lacks none.
func missing(t reflect.Type, there map[string]json.RawMessage) string {
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			if name := missing(f.Type, there); name != "" {
				return name
			}
			continue
		case !f.IsExported() || name == "-" || strings.Contains(options, "omitempty") || strings.Contains(options, "omitzero"):
			continue
		case name == "":
			name = f.Name
		}
		if value, ok := there[name]; !ok || string(value) == "null" || string(value) == `""` {
			return name
		}
	}
	return ""
}
