package main

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// types are the payloads and what they hold, in the order of the document.
func types() []reflect.Type {
	return []reflect.Type{
		reflect.TypeFor[schema.Call](), reflect.TypeFor[schema.Principal](), reflect.TypeFor[schema.Budget](),
		reflect.TypeFor[schema.Result](), reflect.TypeFor[schema.Spent](), reflect.TypeFor[schema.Error](),
		reflect.TypeFor[schema.Reference](), reflect.TypeFor[schema.Blob](),
		reflect.TypeFor[schema.Wake](), reflect.TypeFor[schema.Begin](), reflect.TypeFor[schema.Back](),
		reflect.TypeFor[schema.Open](), reflect.TypeFor[schema.CallRef](), reflect.TypeFor[schema.Handover](), reflect.TypeFor[schema.Message](), reflect.TypeFor[schema.MessageCall](), reflect.TypeFor[schema.AgentSpec](),
		reflect.TypeFor[schema.ModelSpec](), reflect.TypeFor[schema.Price](), reflect.TypeFor[schema.Limits](), reflect.TypeFor[schema.Parallel](), reflect.TypeFor[schema.Compaction](),
		reflect.TypeFor[schema.Governance](), reflect.TypeFor[schema.ToolSetting](), reflect.TypeFor[schema.FilterRule](), reflect.TypeFor[schema.Policy](),
		reflect.TypeFor[schema.PolicyRule](), reflect.TypeFor[schema.Subagent](), reflect.TypeFor[schema.Handoff](), reflect.TypeFor[schema.Above](),
		reflect.TypeFor[schema.Ctl](), reflect.TypeFor[schema.Say](),
		reflect.TypeFor[schema.Turn](), reflect.TypeFor[schema.TurnCall](), reflect.TypeFor[schema.Decision](),
		reflect.TypeFor[schema.Items](), reflect.TypeFor[schema.Usage](),
		reflect.TypeFor[schema.Sent](), reflect.TypeFor[schema.SentCall](), reflect.TypeFor[schema.Ask](), reflect.TypeFor[schema.Verdict](), reflect.TypeFor[schema.View](), reflect.TypeFor[schema.Fold](),
		reflect.TypeFor[schema.Answer](), reflect.TypeFor[schema.Close](),
		reflect.TypeFor[schema.Tool](), reflect.TypeFor[bus.Announcement](), reflect.TypeFor[bus.ToolSet](),
		reflect.TypeFor[bus.Cancel](), reflect.TypeFor[bus.OwnQuery](), reflect.TypeFor[bus.OwnReply](),
		reflect.TypeFor[bus.Progress](), reflect.TypeFor[bus.DeadLetter](),
	}
}

func typeNamed(name string) (reflect.Type, error) {
	for _, t := range types() {
		if t.String() == name {
			return t, nil
		}
	}
	return nil, fmt.Errorf("type %s is not part of the contract", name)
}

// field is one key of a payload.
type field struct {
	Key, Type, Meaning string
	Required           bool
}

// fieldsOf lists the keys of a payload in the order of the wire.
func (s *source) fieldsOf(t reflect.Type) ([]field, error) {
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous {
			fields = append(fields, field{"v", "int", fmt.Sprintf("version of the contract: %d", schema.Version), false})
			continue
		}
		key, opts, _ := strings.Cut(f.Tag.Get("msgpack"), ",")
		meaning := s.fields[t.String()+"."+f.Name]
		if meaning == "" {
			return nil, fmt.Errorf("field %s.%s has no comment that says what it means", t, f.Name)
		}
		required := !strings.Contains(opts, "omitempty")
		if t == reflect.TypeFor[schema.Call]() {
			required = callNeeds(key)
		}
		fields = append(fields, field{key, wireType(f.Type), meaning, required})
	}
	return fields, nil
}

// callNeeds asks the decoder whether a call may lack a key: a call may be written by hand.
func callNeeds(key string) bool {
	whole := map[string]any{"run": "r", "turn": 1, "index": 0, "tool": "t"}
	delete(whole, key)
	data, err := json.Marshal(whole)
	if err != nil {
		panic(err) // a map of strings and numbers
	}
	_, err = schema.DecodeCall(data)
	return err != nil
}

// wireType names a Go type as it stands on the wire.
func wireType(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return wireType(t.Elem())
	case reflect.Struct:
		return "map, [" + t.Name() + "](#" + strings.ToLower(t.Name()) + ")"
	case reflect.Map:
		return "map of " + wireType(t.Elem())
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return "bin"
		}
		return "list of " + wireType(t.Elem())
	case reflect.Float64:
		return "float"
	case reflect.Bool:
		return "bool"
	case reflect.String:
		if t == reflect.TypeFor[schema.JSONText]() {
			return "string holding JSON"
		}
		return "string"
	default:
		return strings.TrimSuffix(t.Kind().String(), "64")
	}
}
