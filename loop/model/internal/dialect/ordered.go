package dialect

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
)

// object is a JSON object whose keys keep their order: models read the properties of a schema in the order in which
// its author put them.
type object struct {
	keys []string
	at   map[string]any
}

func (o *object) get(key string) any { return o.at[key] }

func (o *object) set(key string, v any) {
	if o.at == nil {
		o.at = map[string]any{}
	}
	if _, ok := o.at[key]; !ok {
		o.keys = append(o.keys, key)
	}
	o.at[key] = v
}

func (o *object) drop(key string) {
	if _, ok := o.at[key]; ok {
		delete(o.at, key)
		o.keys = slices.DeleteFunc(o.keys, func(k string) bool { return k == key })
	}
}

func (o *object) has(key string) bool { _, ok := o.at[key]; return ok }

// copied returns an object with the same values.
func (o *object) copied() *object {
	out := &object{}
	for _, k := range o.keys {
		out.set(k, o.at[k])
	}
	return out
}

// MarshalJSON writes the keys in their order.
func (o *object) MarshalJSON() ([]byte, error) { return o.append(nil), nil }

func (o *object) append(b []byte) []byte {
	b = append(b, '{')
	for i, k := range o.keys {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(append(b, Encode(k)...), ':')
		b = appendValue(b, o.at[k])
	}
	return append(b, '}')
}

// appendValue is here since an encoder would look through all that is nested once for each level above it.
func appendValue(b []byte, v any) []byte {
	switch v := v.(type) {
	case *object:
		return v.append(b)
	case []any:
		b = append(b, '[')
		for i, one := range v {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendValue(b, one)
		}
		return append(b, ']')
	}
	return append(b, Encode(v)...)
}

// parseOrdered reads JSON text into *object, []any, string, json.Number, bool and nil.
func parseOrdered(text string) (any, error) {
	dec := json.NewDecoder(bytes.NewReader([]byte(text)))
	dec.UseNumber()
	return readValue(dec)
}

func readValue(dec *json.Decoder) (any, error) {
	tok, err := dec.Token()
	if err != nil {
		return nil, err
	}
	switch tok {
	case json.Delim('{'):
		return readObject(dec)
	case json.Delim('['):
		list := []any{}
		for dec.More() {
			v, err := readValue(dec)
			if err != nil {
				return nil, err
			}
			list = append(list, v)
		}
		_, err := dec.Token()
		return list, err
	}
	return tok, nil
}

func readObject(dec *json.Decoder) (any, error) {
	o := &object{}
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, err
		}
		name, ok := key.(string)
		if !ok {
			return nil, errors.New("a key is no string")
		}
		v, err := readValue(dec)
		if err != nil {
			return nil, err
		}
		o.set(name, v)
	}
	_, err := dec.Token()
	return o, err
}
