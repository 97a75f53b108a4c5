package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func fieldsOf(object string) (fields []string) {
	for name, value := range Fields(JSONText(object)) {
		fields = append(fields, fmt.Sprintf("%q: %s", name, value))
	}
	return fields
}

func TestFields(t *testing.T) {
	t.Parallel()
	for object, want := range map[string][]string{
		"{}":                                  nil,
		` { "a" : 1 , "b":[1,{"c":2}] } `:     {`"a": 1`, `"b": [1,{"c":2}]`},
		`{"a":"x,\"}{:","a":{"a":"]"}}`:       {`"a": "x,\"}{:"`, `"a": {"a":"]"}`},
		`{"\u0061\"":null,"":-1.5e3,"a:":""}`: {`"a\"": null`, `"": -1.5e3`, `"a:": ""`},
		"":                                    nil, "[1,2]": nil, `"a"`: nil, "7": nil, "null": nil, "{": nil, `{"a`: nil, `{"`: nil,
	} {
		if diff := cmp.Diff(want, fieldsOf(object)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
	}
	for range Fields(`{"a":1,"b":2}`) { // who has seen enough is asked no more
		break
	}
}

// decodedFields are the fields as the decoder of the standard library finds them.
func decodedFields(object string) (fields []string, err error) {
	dec := json.NewDecoder(strings.NewReader(object))
	if _, err := dec.Token(); err != nil {
		return nil, err
	}
	for dec.More() {
		name, err := dec.Token()
		if err != nil {
			return nil, err
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return nil, err
		}
		fields = append(fields, fmt.Sprintf("%q: %s", name, value))
	}
	return fields, nil
}

// FuzzFields: of a JSON object they are the decoder's; any other text does no harm.
func FuzzFields(f *testing.F) {
	for _, s := range []string{`{}`, `{"a":1,"b":{"c":[1,"}"]}}`, `{"\u00e9\n":"\"","x" : [ ] }`, `{"a":}`, `{"a`, `[{"a":1}]`, `{]}`, `{"a":1}}`, `{"a"1:,}`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, object string) {
		got := fieldsOf(object)
		if !json.Valid([]byte(object)) || !utf8.ValidString(object) || !strings.HasPrefix(strings.TrimSpace(object), "{") {
			return
		}
		want, err := decodedFields(object)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", object, diff)
		}
	})
}
