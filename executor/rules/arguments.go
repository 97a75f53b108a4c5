package rules

import (
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"cel.dev/cel-go/common/types"
	"cel.dev/cel-go/common/types/ref"
	"cel.dev/cel-go/common/types/traits"

	"github.com/jetcrew/jetcrew/schema"
)

// arguments are a call's arguments as a map of CEL. A condition mostly looks at one or two of them, and decoding all costs
// several times what the condition does: a field is decoded when it is asked for, all of them when the map itself is.
type arguments struct {
	text  string        // valid JSON, an object
	asked int           // fields that were looked for in the text
	known [4]argument   // that were found there, for the next condition
	all   traits.Mapper // nil: nobody wanted all, or many
}

// argument is a field that was found.
type argument struct {
	name  string
	value ref.Val // nil: none, and none behind it
}

// maxAsked is how many fields are looked for one by one, each of which reads the text; a loop may look for any number.
const maxAsked = 8

var _ traits.Mapper = (*arguments)(nil)

// Find returns the value of a field. Of a key that occurs twice the last counts, as it does for decoders.
func (a *arguments) Find(key ref.Val) (v ref.Val, found bool) {
	name, ok := key.(types.String)
	if v, found = a.recall(string(name)); ok && found {
		return v, true
	}
	if a.asked++; !ok || a.asked > maxAsked {
		return a.whole().Find(key)
	}
	text := ""
	for k, value := range schema.Fields(schema.JSONText(a.text)) {
		if k == string(name) {
			text, found = string(value), true
		}
	}
	if !found {
		return nil, false
	}
	v = valueOfText(text)
	a.keep(string(name), v)
	return v, true
}

// recall returns a field that was found before.
func (a *arguments) recall(name string) (ref.Val, bool) {
	for _, k := range a.known {
		if k.value != nil && k.name == name {
			return k.value, true
		}
	}
	return nil, false
}

func (a *arguments) keep(name string, v ref.Val) {
	for i := range a.known {
		if a.known[i].value == nil {
			a.known[i] = argument{name, v}
			return
		}
	}
}

// Get returns the value of a field, or an error value.
func (a *arguments) Get(key ref.Val) ref.Val {
	if v, ok := a.Find(key); ok {
		return v
	}
	return a.whole().Get(key)
}

// Contains tells whether there is such a field.
func (a *arguments) Contains(key ref.Val) ref.Val { return a.whole().Contains(key) }

// ConvertToNative gives a Go value.
func (a *arguments) ConvertToNative(t reflect.Type) (any, error) { return a.whole().ConvertToNative(t) }

// ConvertToType gives a value of another type of CEL.
func (a *arguments) ConvertToType(t ref.Type) ref.Val { return a.whole().ConvertToType(t) }

// Equal compares with another value.
func (a *arguments) Equal(other ref.Val) ref.Val { return a.whole().Equal(other) }

// Iterator goes through the keys.
func (a *arguments) Iterator() traits.Iterator { return a.whole().Iterator() }

// Size counts the fields.
func (a *arguments) Size() ref.Val { return a.whole().Size() }

// Type is that of maps.
func (a *arguments) Type() ref.Type { return types.MapType }

// Value is the Go value.
func (a *arguments) Value() any { return a.whole().Value() }

// whole returns all arguments, decoded.
func (a *arguments) whole() traits.Mapper {
	if a.all == nil {
		fields := map[string]any{}
		_ = decode(a.text, &fields) // it is an object
		a.all = types.NewStringInterfaceMap(types.DefaultTypeAdapter, fields)
	}
	return a.all
}

// valueOfText is a JSON text as a value of CEL. A number that CEL cannot hold is an error value.
func valueOfText(text string) ref.Val {
	switch text[0] {
	case '"':
		return types.String(schema.Unquote(text))
	case 't':
		return types.True
	case 'f':
		return types.False
	case 'n':
		return types.NullValue
	case '{', '[':
		var v any
		if err := decode(text, &v); err != nil {
			return types.WrapErr(err)
		}
		return types.DefaultTypeAdapter.NativeToValue(v)
	}
	return number(text)
}

// number is an int if it is written as one that fits, else a double.
func number(text string) ref.Val {
	if !strings.ContainsAny(text, ".eE") {
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return types.Int(n)
		}
	}
	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return types.NewErr("the number is too large")
	}
	return types.Double(f)
}

// decode reads JSON; numbers stay what they are written as, so that an integer is one in conditions too.
func decode(text string, into any) error {
	dec := json.NewDecoder(strings.NewReader(text))
	dec.UseNumber()
	return dec.Decode(into)
}
