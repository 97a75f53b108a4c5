package schema

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestCanonical(t *testing.T) {
	t.Parallel()
	unwrapped := []string{NoteUnwrapped}
	repaired := []string{NoteRepaired}
	for _, c := range []struct {
		name, in string
		want     JSONText
		notes    []string
	}{
		{"A01 empty arguments", "", "{}", nil},
		{"A01 blank arguments", "  \n", "{}", nil},
		{"A01 no-break space", "\u00a0", "{}", nil},
		{"A02 null", "null", "{}", nil},
		{"A02 null with space", " null\n", "{}", nil},
		{"A02 the string null", `"null"`, "{}", unwrapped},
		{"A02 the empty string", `""`, "{}", unwrapped},
		{"A05 doubly encoded", `"{\"city\":\"Bengaluru\"}"`, `{"city":"Bengaluru"}`, unwrapped},
		{"A05 doubly encoded with spaces", ` " { \"n\" : 1.0 } " `, `{"n":1.0}`, unwrapped},
		{"A05 A22 doubly encoded surrogate", `"{\"a\":\"\\ud83d\"}"`, `{"a":"` + "\uFFFD" + `"}`, []string{NoteUnwrapped, NoteRepaired}},
		{"A06 nested strings stay strings", `{"files":"[{\"path\":\"a\"}]","note":"[1,2]"}`, `{"files":"[{\"path\":\"a\"}]","note":"[1,2]"}`, nil},
		{"A22 lone high surrogate", `{"a":"x\ud83dy"}`, `{"a":"x` + "\uFFFD" + `y"}`, repaired},
		{"A22 lone low surrogate", `{"a":"\udc00"}`, `{"a":"` + "\uFFFD" + `"}`, repaired},
		{"A22 two high surrogates", `{"a":"\ud83d\ud83d"}`, `{"a":"` + "\uFFFD\uFFFD" + `"}`, repaired},
		{"A22 surrogate before another escape", `{"a":"\ud83d\u0041"}`, `{"a":"` + "\uFFFD" + `A"}`, repaired},
		{"A22 a surrogate in a key", `{"\ud99c":1}`, `{"` + "\uFFFD" + `":1}`, repaired},
		{"A22 pair", `{"a":"\ud83d\ude42"}`, `{"a":"🙂"}`, nil},
		{"A22 invalid UTF-8", "{\"a\":\"\xff\xc3\"}", `{"a":"` + "\uFFFD\uFFFD" + `"}`, repaired},
		{"an encoded U+FFFD is nothing to repair", `{"a":"\ufffd"}`, `{"a":"` + "\uFFFD" + `"}`, nil},
		{"A23 escapes in their shortest form", `{"a":"\u00e9\/\u0041\u0022\u005C\u000A\u001B\u0000\t"}`, `{"a":"é/A\"\\\n\u001b\u0000\t"}`, nil},
		{"digits are kept", `{"a":1.0,"b":-0,"c":12345678901234567890.10,"d":1E+2}`, `{"a":1.0,"b":-0,"c":12345678901234567890.10,"d":1E+2}`, nil},
		{"order is kept", `{"b":1,"a":{"z":0,"y":[]}}`, `{"b":1,"a":{"z":0,"y":[]}}`, nil},
		{"white space", "\t{ \"a\" : [ 1 , 2 ] ,\r\n\"b\" : { } , \"c\":[ ]}\n", `{"a":[1,2],"b":{},"c":[]}`, nil},
		{"one name at two depths", `{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, `{"a":{"a":1},"b":[{"a":1},{"a":2}]}`, nil},
		{"literals", `{"a":[true,false,null]}`, `{"a":[true,false,null]}`, nil},
		{"as deep as may be", `{"a":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + "}", JSONText(`{"a":` + strings.Repeat("[", 511) + strings.Repeat("]", 511) + "}"), nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, notes, err := Canonical(c.in)
			if err != nil {
				t.Fatalf("error: %v", err)
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("text (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(c.notes, notes); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
		})
	}
}

func TestCanonicalErrors(t *testing.T) {
	t.Parallel()
	many := make([]string, 100)
	for i := range many {
		many[i] = `"k` + strconv.Itoa(i) + `":0`
	}
	for _, c := range []struct{ name, in, want string }{
		{"A03 array", `["a","b"]`, "arguments must be an object, got array"},
		{"A03 string", `"just text"`, "arguments must be an object, got string"},
		{"A03 number", `42`, "arguments must be an object, got number"},
		{"A03 boolean", ` true `, "arguments must be an object, got boolean"},
		{"A03 bare text", `just text`, "arguments are not valid JSON: at byte 0 expected a value, got 'j'"},
		{"A05 a string that holds an array", `"[1,2]"`, "arguments must be an object, got string holding array"},
		{"A05 triply encoded", strconv.Quote(strconv.Quote(`{"city":"x"}`)), "arguments must be an object, got string holding string"},
		{"A05 bad JSON inside", `"{\"a\":"`, "within the JSON string that the arguments are: arguments are not valid JSON: at byte 5 the text ends (cut off?), expected a value"},
		{"A07 A09 cut inside a string", `{"file_path":"y.md","content":"abc`, `arguments are not valid JSON: at byte 34 the text ends (cut off?), expected '"' to end the string`},
		{"A07 cut after a property", `{"a":1`, `arguments are not valid JSON: at byte 6 the text ends (cut off?), expected ',' or '}'`},
		{"A07 cut inside an escape", `{"a":"\`, `arguments are not valid JSON: at byte 7 the text ends (cut off?), expected the rest of an escape sequence`},
		{"A07 cut inside a literal", `{"a":tr`, `arguments are not valid JSON: at byte 5 expected a value, got 't'`},
		{"A24 raw line break", "{\"a\":\"x\ny\"}", `arguments are not valid JSON: at byte 7 a raw line break inside a string, expected it as \n`},
		{"A24 raw tab", "{\"a\":\"\t\"}", `arguments are not valid JSON: at byte 6 a raw tab inside a string, expected it as \t`},
		{"A24 raw NUL", "{\"a\":\"\x00\"}", `arguments are not valid JSON: at byte 6 a raw control character inside a string, expected it as \u0000`},
		{"A24 offsets count leading space", "  {\"a\"}", `arguments are not valid JSON: at byte 6 expected ':' after a property name, got '}'`},
		{"A24 trailing comma", `{"a":1,}`, `arguments are not valid JSON: at byte 7 expected a property name in double quotes, got '}'`},
		{"A24 single quotes", `{'a':1}`, `arguments are not valid JSON: at byte 1 expected a property name in double quotes, got '\''`},
		{"A24 comma in an array", `{"a":[1,]}`, `arguments are not valid JSON: at byte 8 expected a value, got ']'`},
		{"A24 missing comma", `{"a":[1 2]}`, `arguments are not valid JSON: at byte 8 expected ',' or ']', got '2'`},
		{"A24 two objects", `{"a":1}{"b":2}`, `arguments are not valid JSON: at byte 7 expected the end, got '{'`},
		{"A24 unknown escape", `{"a":"\x"}`, `arguments are not valid JSON: at byte 7 expected one of " \ / b f n r t u after a backslash, got 'x'`},
		{"A24 short unicode escape", `{"a":"\u00g0"}`, `arguments are not valid JSON: at byte 6 expected four hexadecimal digits after \u`},
		{"A24 leading zero", `{"a":01}`, `arguments are not valid JSON: at byte 6 expected ',' or '}', got '1'`},
		{"A24 bare minus", `{"a":-}`, `arguments are not valid JSON: at byte 6 expected a digit, got '}'`},
		{"A24 no fraction", `{"a":1.}`, `arguments are not valid JSON: at byte 7 expected a digit after the decimal point, got '}'`},
		{"A24 no exponent", `{"a":1e}`, `arguments are not valid JSON: at byte 7 expected a digit of the exponent, got '}'`},
		{"A24 Python", `{"a":True}`, `arguments are not valid JSON: at byte 5 expected a value, got 'T'`},
		{"A24 invalid byte", "{\xff}", `arguments are not valid JSON: at byte 1 expected a property name in double quotes, got byte 0xff`},
		{"text after a string", `"a" "b"`, `arguments are not valid JSON: at byte 3 expected the end, got ' '`},
		{"duplicate key", `{"a":1,"b":2,"a":3}`, `arguments are not valid JSON: at byte 13 the key "a" occurs a second time in its object`},
		{"duplicate key, nested", `{"x":[{"a":1,"\u0061":3}]}`, `arguments are not valid JSON: at byte 13 the key "a" occurs a second time in its object`},
		{"duplicate key of many", `{` + strings.Join(many, ",") + `,"k7":1}`, `the key "k7" occurs a second time in its object`},
		{"too deep", `{"a":` + strings.Repeat("[", 600), `at byte 516 expected at most 512 levels of nesting`},
		{"deep objects", strings.Repeat(`{"a":`, 600), `expected at most 512 levels of nesting`},
		{"huge exponent", `{"a":1e100000}`, `at byte 5 expected a number with at most 4 digits of exponent`},
		{"huge number", `{"a":` + strings.Repeat("9", 600) + `}`, `at byte 5 expected a number of at most 512 characters`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, notes, err := Canonical(c.in)
			if err == nil {
				t.Fatalf("no error, got %s", got)
			}
			if err.Type != InvalidArguments || !strings.Contains(err.Message, c.want) || got != "{}" || notes != nil {
				t.Errorf("got %q, notes %v, %v; want {}, none, %q", got, notes, err, c.want)
			}
		})
	}
}

// FuzzCanonical holds Canonical against encoding/json: what it takes, that takes with the same meaning, and the result
// is a fixed point. What it refuses, that refuses too, but for our own bounds.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		"", "null", `"null"`, `{"a":1}`, `{ "a" : [1, 2.50e-3, {"b": "\u00e9\ud83d"}] }`, `"{\"a\":\"\\ud83d\"}"`, "{\"a\":\"\xff\"}",
		`{"a":1,"a":2}`, `{"a":"\/\\\"\b\f\n\r\t"}`, `[1]`, `{"a":-0.0E+1}`, `{"a":"abc`, `{"":{"":[[],{}]}}`, benchSpaced,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, in string) {
		got, _, bad := Canonical(in)
		if !utf8.ValidString(string(got)) || !json.Valid([]byte(got)) || got[0] != '{' {
			t.Fatalf("%q: not a JSON object in UTF-8: %q", in, got)
		}
		if bad != nil {
			refusedForAReason(t, in, bad)
			return
		}
		if again, notes, err := Canonical(string(got)); err != nil || again != got || notes != nil {
			t.Fatalf("%q: not a fixed point: %q then %q, %v, %v", in, got, again, notes, err)
		}
		var compact bytes.Buffer
		if err := json.Compact(&compact, []byte(got)); err != nil || compact.String() != string(got) {
			t.Fatalf("%q: not compact: %q", in, got)
		}
		sameMeaning(t, in, string(got))
	})
}

// sameMeaning compares by encoding/json, for inputs that are an object themselves.
func sameMeaning(t *testing.T, in, got string) {
	want, err := decodeNumbers(in)
	if _, isObject := want.(map[string]any); !isObject && err == nil {
		return
	}
	if err != nil && strings.TrimSpace(in) != "" {
		t.Fatalf("%q: taken, but encoding/json says %v", in, err)
	}
	if have, err := decodeNumbers(got); err == nil && strings.TrimSpace(in) != "" {
		if diff := cmp.Diff(want, have); diff != "" {
			t.Fatalf("%q: meaning changed (-want +got):\n%s", in, diff)
		}
	}
	if have, perr := parseObject(JSONText(in)); perr == nil && strings.TrimSpace(in) != "" {
		if diff := cmp.Diff(want, any(have)); diff != "" {
			t.Fatalf("%q: parsed differently (-want +got):\n%s", in, diff)
		}
	}
}

func decodeNumbers(in string) (v any, err error) {
	dec := json.NewDecoder(strings.NewReader(in))
	dec.UseNumber()
	if err = dec.Decode(&v); err == nil && dec.More() {
		err = strconv.ErrSyntax
	}
	return v, err
}

func refusedForAReason(t *testing.T, in string, bad *Error) {
	if bad.Type != InvalidArguments || len(bad.Message) > 512 || !utf8.ValidString(bad.Message) {
		t.Fatalf("%q: error %+v", in, bad)
	}
	for _, bound := range []string{"a second time", "levels of nesting", "exponent", "characters", "must be an object", "within the JSON string"} {
		if strings.Contains(bad.Message, bound) {
			return
		}
	}
	if json.Valid([]byte(in)) {
		t.Fatalf("%q: refused with %q, but encoding/json takes it", in, bad.Message)
	}
}
