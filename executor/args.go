package executor

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"github.com/invopop/jsonschema"

	"github.com/jetcrew/jetcrew/schema"
)

// parametersOf returns the JSON Schema of In as one piece: no $id, no $defs, since providers refuse references.
func parametersOf[In any]() (schema.JSONText, error) { return parametersOfType(reflect.TypeFor[In]()) }

func parametersOfType(t reflect.Type) (p schema.JSONText, err error) {
	if err := checkType(t, nil); err != nil {
		return "", fmt.Errorf("arguments: %w", err)
	}
	defer func() {
		// The reflector panics on types that JSON does not have, such as a channel.
		if v := recover(); v != nil {
			err = fmt.Errorf("arguments: %v: %v", t, v)
		}
	}()
	r := jsonschema.Reflector{Anonymous: true, DoNotReference: true, Mapper: mapType}
	s := r.ReflectFromType(t)
	s.Version = ""
	text, err := json.Marshal(s)
	if err != nil {
		return "", fmt.Errorf("arguments: %v: %w", t, err)
	}
	return schema.JSONText(text), nil
}

var numberType = reflect.TypeFor[json.Number]()

func mapType(t reflect.Type) *jsonschema.Schema {
	if t == numberType {
		return &jsonschema.Schema{Type: "number"} // the reflector takes its underlying string
	}
	return nil
}

// checkType refuses what the reflector would follow for ever: a type that contains itself.
func checkType(t reflect.Type, above []reflect.Type) error {
	for _, a := range above {
		if a == t {
			return fmt.Errorf("%v contains itself; use Dynamic with a schema of your own", t)
		}
	}
	above = append(above, t)
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return checkType(t.Elem(), above)
	case reflect.Struct:
		for f := range t.Fields() {
			if !f.IsExported() && !f.Anonymous || f.Tag.Get("json") == "-" {
				continue
			}
			if err := checkType(f.Type, above); err != nil {
				return err
			}
		}
	}
	return nil
}

// decodePlain reads arguments into a type whose shape is all that can be wrong: the validator has refused unknown fields,
// and no number goes into an interface, where it would lose digits. It takes half the time of decodeArgs, which then
// says what is wrong.
func decodePlain(args schema.JSONText, into any) error {
	if json.Unmarshal([]byte(args), into) == nil {
		return nil
	}
	return decodeArgs(args, into)
}

// decoderOf returns what reads arguments into a value of t.
func decoderOf(t reflect.Type) func(args schema.JSONText, into any) error {
	if isPlain(t) {
		return decodePlain
	}
	return decodeArgs
}

// isPlain tells whether values of t hold no interface and nothing that decodes itself.
func isPlain(t reflect.Type) bool {
	if reflect.PointerTo(t).Implements(unmarshalerType) {
		return false
	}
	switch t.Kind() {
	case reflect.Interface:
		return false
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return isPlain(t.Elem())
	case reflect.Struct:
		for f := range t.Fields() {
			if !isPlain(f.Type) {
				return false
			}
		}
	}
	return true
}

var unmarshalerType = reflect.TypeFor[json.Unmarshaler]()

// decodeArgs reads a call's arguments strictly into a pointer. Validation came before it, so what fails here is what
// a JSON Schema cannot say of a Go type; the error is for the model and names no Go type.
func decodeArgs(args schema.JSONText, into any) error {
	dec := json.NewDecoder(strings.NewReader(string(args)))
	dec.UseNumber()
	dec.DisallowUnknownFields()
	err := dec.Decode(into)
	if err == nil {
		_, err = dec.Token()
		if errors.Is(err, io.EOF) {
			return nil
		}
		err = errors.New("arguments must be one JSON object; there is text after it")
	}
	return &schema.Error{Type: schema.InvalidArguments, Message: argsMessage(err)}
}

func argsMessage(err error) string {
	var wrongType *json.UnmarshalTypeError
	var syntax *json.SyntaxError
	switch {
	case errors.As(err, &wrongType):
		return typeMessage(wrongType)
	case errors.As(err, &syntax):
		return fmt.Sprintf("arguments are not JSON: %s at byte %d", strings.TrimPrefix(syntax.Error(), "json: "), syntax.Offset)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return "arguments are not JSON: they end too early"
	}
	return strings.TrimPrefix(err.Error(), "json: ") // an unknown field, or the type's own UnmarshalJSON
}

func typeMessage(e *json.UnmarshalTypeError) string {
	field := "arguments"
	if e.Field != "" {
		field = fmt.Sprintf("field %q", e.Field)
	}
	return fmt.Sprintf("%s: expected %s, got %s", field, jsonName(e.Type), e.Value)
}

// jsonName says in words of JSON what a Go type takes.
func jsonName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of at most %d bits", t.Bits())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("a non-negative integer of at most %d bits", t.Bits())
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Pointer:
		return jsonName(t.Elem())
	}
	return "an object"
}
