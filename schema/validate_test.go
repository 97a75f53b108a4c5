package schema

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

const (
	readSchema JSONText = `{"type":"object","properties":{"path":{"type":"string","pattern":"\\S"},"limit":{"type":"integer","minimum":1,"maximum":1000}},"required":["path"],"additionalProperties":false}`
	pingSchema JSONText = `{"type":"object","properties":{}}`
	fileSchema JSONText = `{"type":"object","properties":{"files":{"type":"array","minItems":1,"items":{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}},"note":{"type":"string"},"meta":{"type":"object"}}}`
	// bashSchema has the form in which a tool states rules that depend on another property.
	bashSchema JSONText = `{"type":"object","properties":{
		"action":{"enum":["exec","start","status","logs","stop","write","list"],"default":"exec"},
		"command":{"type":"string","pattern":"\\S"},"processId":{"type":"string","minLength":1}},
		"allOf":[
		{"if":{"properties":{"action":{"enum":["exec","start"]}}},"then":{"required":["command"]}},
		{"if":{"properties":{"action":{"enum":["status","logs","stop","write"]}},"required":["action"]},"then":{"required":["processId"]}}]}`
)

func TestCheckAccepts(t *testing.T) {
	t.Parallel()
	v := NewValidator()
	for _, c := range []struct {
		name         string
		params, args JSONText
	}{
		{"A01 no arguments for a tool without any", pingSchema, "{}"},
		{"A01 empty arguments", pingSchema, ""},
		{"no schema", "", `{"x":1}`},
		{"null schema", "null", `{"x":1}`},
		{"only a type", `{"type":"object"}`, `{"x":1}`},
		{"A20 optionals omitted", readSchema, `{"path":"a"}`},
		{"A20 an extra key of an open object", fileSchema, `{"extra":1}`},
		{"A06 a string stays a string", fileSchema, `{"note":"[1,2]"}`},
		{"integer", readSchema, `{"path":"a","limit":1000}`},
		{"integer written as a decimal", readSchema, `{"path":"a","limit":10.0}`},
		{"large digits", `{"type":"object","properties":{"n":{"type":"integer"}}}`, `{"n":123456789012345678901234567890}`},
		{"bash exec by default", bashSchema, `{"command":"ls"}`},
		{"bash list", bashSchema, `{"action":"list"}`},
		{"bash stop", bashSchema, `{"action":"stop","processId":"p"}`},
		{"type list", `{"type":["object","null"],"properties":{"a":{"type":["array","null"]}}}`, `{"a":null}`},
		{"anyOf at the top", `{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{"b":1}`},
		{"recursive $ref", `{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","properties":{"next":{"$ref":"#/$defs/n"}}}}}`, `{"next":{"next":{}}}`},
		{"draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"t":{"type":"array","items":[{"type":"string"}]}}}`, `{"t":["a",1]}`},
		{"format", `{"type":"object","properties":{"d":{"type":"string","format":"date"}}}`, `{"d":"2026-02-28"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if err := v.Check(&Tool{Name: "x", Parameters: c.params}, c.args); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	v := NewValidator()
	for _, c := range []struct {
		name         string
		params, args JSONText
		want         string
	}{
		{"A01 missing path", readSchema, "{}", `missing property "path" (string)`},
		{"A02 null for read", readSchema, "", `missing property "path" (string)`},
		{"A03 not an object", readSchema, `["a"]`, `arguments must be an object, got array`},
		{"A05 never unwrapped here", readSchema, `"{\"path\":\"a\"}"`, `arguments must be an object, got string`},
		{
			"A06 a nested array as a string", fileSchema, `{"files":"[{\"path\":\"a\"}]","note":"[1,2]"}`,
			`"files": expected array, got string holding JSON of the array: send the array itself`,
		},
		{"A06 a nested object as a string", fileSchema, `{"meta":"{}"}`, `"meta": expected object, got string holding JSON of the object: send the object itself`},
		{"A24 number for string", `{"type":"object","properties":{"query":{"type":"string"}}}`, `{"query":5}`, `"query": expected string, got number 5`},
		{
			"A24 the wrong key", readSchema, `{"file_path":"a"}`,
			`missing property "path" (string) (got "file_path" instead); unknown property "file_path", did you mean "path"?`,
		},
		{"A24 raw line break", readSchema, "{\"path\":\"a\nb\"}", `arguments are not valid JSON: at byte 10 a raw line break inside a string, expected it as \n`},
		{"duplicate keys published directly", readSchema, `{"path":"a","path":"b"}`, `arguments are not valid JSON: at byte 12 the key "path" occurs a second time in its object`},
		{"unknown key, nothing alike", readSchema, `{"path":"a","zzz":1}`, `unknown property "zzz", expected "limit", "path"`},
		{"unknown key of a tool without any", `{"type":"object","additionalProperties":false}`, `{"a":1}`, `unknown property "a", expected no properties`},
		{"blank", readSchema, `{"path":" "}`, `"path": must not be blank`},
		{"several", readSchema, `{"path":7,"limit":0}`, `"limit": expected at least 1, got 0; "path": expected string, got number 7`},
		{"too large", readSchema, `{"path":"a","limit":1e9}`, `"limit": expected at most 1000, got 1e9`},
		{"fraction", readSchema, `{"path":"a","limit":1.5}`, `"limit": expected integer, got number 1.5`},
		{"in an array", fileSchema, `{"files":[{"path":"a"},{"path":true}]}`, `"files[1].path": expected string, got boolean`},
		{"missing in an array", fileSchema, `{"files":[{"paht":"a"}]}`, `in "files[0]": missing property "path" (string) (got "paht" instead)`},
		{"too few", fileSchema, `{"files":[]}`, `"files": expected at least 1 elements, got 0`},
		{"bash without anything", bashSchema, `{}`, `missing property "command" (string), wanted when "action" is absent`},
		{"bash start", bashSchema, `{"action":"start"}`, `missing property "command" (string), wanted when "action" is "start"`},
		{"bash write", bashSchema, `{"action":"write"}`, `missing property "processId" (string), wanted when "action" is "write"`},
		{"bash blank command", bashSchema, `{"command":"\t"}`, `"command": must not be blank`},
		{"bash empty process", bashSchema, `{"action":"stop","processId":""}`, `"processId": must not be empty`},
		{
			"bash unsupported action", bashSchema, `{"action":"Exec","command":"a"}`,
			`"action": expected one of "exec", "start", "status", "logs", "stop", "write", "list", got "Exec"`,
		},
		{"const", `{"properties":{"a":{"const":"x"}}}`, `{"a":"y"}`, `"a": expected "x", got "y"`},
		{
			"long enum", `{"properties":{"a":{"enum":["one","two","three","four","five","six","seven","eight","nine","ten"]}}}`, `{"a":"Nine"}`,
			`"a": expected one of "one", "two", "three", "four", "five", "six", "seven", "eight" and 2 more, got "Nine", did you mean "nine"?`,
		},
		{"pattern", `{"properties":{"a":{"pattern":"^[a-z]+$"}}}`, `{"a":"A"}`, `"a": expected a string that matches ^[a-z]+$, got "A"`},
		{"format", `{"properties":{"d":{"format":"date"}}}`, `{"d":"2026-02-31"}`, `"d": expected a string of format date, got "2026-02-31"`},
		{
			"length", `{"properties":{"a":{"minLength":3},"b":{"maxLength":1}}}`, `{"a":"é","b":"éé"}`,
			`"a": expected at least 3 characters, got 1; "b": expected at most 1 characters, got 2`,
		},
		{
			"bounds", `{"properties":{"a":{"exclusiveMinimum":0},"b":{"exclusiveMaximum":0.5},"c":{"multipleOf":0.25}}}`, `{"a":0,"b":1,"c":0.3}`,
			`"a": expected more than 0, got 0; "b": expected less than 0.5, got 1; "c": expected a multiple of 0.25, got 0.3`,
		},
		{"unique", `{"properties":{"a":{"uniqueItems":true}}}`, `{"a":[1,2,1.0]}`, `"a": expected different elements, but 0 and 2 are equal`},
		{"contains", `{"properties":{"a":{"contains":{"type":"string"}}}}`, `{"a":[1]}`, `"a": none of the elements is of the kind that is required`},
		{
			"contains bounds", `{"properties":{"a":{"contains":{"type":"string"},"minContains":2},"b":{"contains":{"type":"string"},"maxContains":1}}}`, `{"a":["x"],"b":["x","y"]}`,
			`"a": expected at least 2 elements of the required kind, got 1; "b": expected at most 1 elements of the restricted kind, got 2`,
		},
		{"too many", `{"maxProperties":1,"properties":{"a":{"maxItems":1}}}`, `{"a":[1,2],"b":1}`, `"a": expected at most 1 elements, got 2; expected at most 1 properties, got 2`},
		{
			"draft 7 tuples", `{"$schema":"http://json-schema.org/draft-07/schema#","properties":{"a":{"items":[{}],"additionalItems":false}},"dependencies":{"a":["b"]}}`, `{"a":[1,2]}`,
			`"a": has 1 elements too many; missing property "b", wanted together with "a"`,
		},
		{"a type list of a missing property", `{"properties":{"a":{"type":["string","null"]}},"required":["a"]}`, `{}`, `missing property "a" (string or null)`},
		{
			"alternatives of two types of forms", `{"properties":{"a":{"oneOf":[{"type":"string"},{"type":"object","required":["x"]}]}}}`, `{"a":{}}`,
			`in "a": missing property "x" (the closest of 2 accepted forms)`,
		},
		{"if without properties", `{"if":{"required":["a"]},"then":{"required":["b"]}}`, `{"a":1}`, `missing property "b"`},
		{"objects in an enum", `{"properties":{"a":{"enum":[{"x":1},true,null]}}}`, `{"a":[]}`, `"a": expected one of object, true, null, got array`},
		{"number of properties", `{"minProperties":1}`, `{}`, `expected at least 1 properties, got 0`},
		{"property names", `{"propertyNames":{"pattern":"^x"}}`, `{"a":1}`, `the property name "a" is not allowed`},
		{"false", `{"properties":{"a":false}}`, `{"a":1}`, `"a": not allowed here`},
		{"not", `{"not":{"required":["a"]}}`, `{"a":1}`, `has a form that is excluded`},
		{"dependent", `{"dependentRequired":{"a":["b"]}}`, `{"a":1}`, `missing property "b", wanted together with "a"`},
		{"unevaluated", `{"properties":{"a":true},"unevaluatedProperties":false}`, `{"b":1}`, `"b": not allowed here`},
		{"alternative types", `{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}}}`, `{"a":1}`, `"a": expected string or null, got number 1`},
		{
			"the closest alternative", `{"oneOf":[{"properties":{"kind":{"const":"a"}},"required":["kind","x","y"]},{"properties":{"kind":{"const":"b"},"z":{"type":"integer"}},"required":["kind","z"]}]}`,
			`{"kind":"b"}`, `missing property "z" (integer) (the closest of 2 accepted forms)`,
		},
		{"two alternatives at once", `{"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `{"a":1,"b":1}`, `fits more than one of the accepted forms, expected exactly one`},
		{
			"through a reference", `{"$ref":"#/$defs/n","$defs":{"n":{"properties":{"url":{"type":"string"}},"required":["url"]}}}`, `{"uri":"a"}`,
			`missing property "url" (string) (got "uri" instead)`,
		},
		{
			"else", `{"properties":{"a":{"type":"integer"},"b":{"type":"string"}},"if":{"properties":{"a":{"const":1}},"required":["a"]},"else":{"required":["b"]}}`, `{"a":2}`,
			`missing property "b" (string), wanted when "a" is 2`,
		},
		{"a number nobody can hold", `{"properties":{"a":{"minimum":1}}}`, JSONText(`{"a":` + strings.Repeat("9", 513) + `}`), `arguments are not valid JSON: at byte 5 expected a number of at most 512 characters`},
		{"a schema without end", `{"$ref":"#"}`, `{}`, `does not fit the tool's schema`},
		{"an unusable schema", `{"type":"strin"}`, `{}`, `the tool's own schema is unusable: arguments are an object, the schema's type is "strin"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := v.Check(&Tool{Name: "x", Parameters: c.params}, c.args)
			if err == nil {
				t.Fatal("accepted")
			}
			if err.Type != InvalidArguments || err.Message != c.want {
				t.Errorf("got  %v\nwant %s", err, c.want)
			}
			noGoTypes(t, err.Message)
		})
	}
}

// noGoTypes fails if a message shows how we are made (A24).
func noGoTypes(t *testing.T, msg string) {
	t.Helper()
	if m := regexp.MustCompile(`map\[|interface|\*?kind\.|json\.|Go |jsonschema|float64|tool:///`).FindString(msg); m != "" {
		t.Errorf("%q shows %q", msg, m)
	}
}

func TestCheckBoundsItsMessage(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&b, `"%d%s":"%s",`, i, strings.Repeat("\u00fc", 500), strings.Repeat("x", 500))
	}
	err := NewValidator().Check(&Tool{Parameters: readSchema}, JSONText("{"+b.String()+`"path":1}`))
	if err == nil || len(err.Message) > maxText || !utf8.ValidString(err.Message) || !strings.Contains(err.Message, "more problems") {
		t.Errorf("got %.300v", err)
	}
}

func TestCheckTool(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "schema.json")
	if err := os.WriteFile(secret, []byte(`{"type":"string"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name string
		tool Tool
		want string // "": it is fine
	}{
		{"plain", Tool{Name: "read_file", Description: "Reads.", Parameters: readSchema}, ""},
		{"A17 dots and other signs", Tool{Name: "notion.search/管理-x", Description: "Searches."}, ""},
		{"rules", Tool{Name: "bash", Description: "Runs.", Parameters: bashSchema}, ""},
		{"blank name", Tool{Name: " ", Description: "x"}, "tool: the name is blank"},
		{"space around the name", Tool{Name: "a\n", Description: "x"}, `tool "a\n": a name has no white space around it`},
		{"NUL in the name", Tool{Name: "a\x00b", Description: "x"}, `tool "a\x00b": a name has no white space`},
		{"long name", Tool{Name: strings.Repeat("x", 257), Description: "x"}, "has more than 256 bytes"},
		{"blank description", Tool{Name: "a", Description: "\t"}, `tool "a": the description is blank`},
		{"not JSON", Tool{Name: "a", Description: "x", Parameters: `{"type":`}, `tool "a": parameters: not valid JSON: at byte 8 the text ends`},
		{"not an object", Tool{Name: "a", Description: "x", Parameters: `true`}, "a schema must be an object, got boolean"},
		{"schema of a string", Tool{Name: "a", Description: "x", Parameters: `{"type":"string"}`}, `arguments are an object, the schema's type is "string"`},
		{"unknown type", Tool{Name: "a", Description: "x", Parameters: `{"properties":{"a":{"type":"strin"}}}`}, `not a JSON Schema: at /properties/a/type: expected one of "array"`},
		{"bad keyword", Tool{Name: "a", Description: "x", Parameters: `{"required":"a"}`}, "not a JSON Schema: at /required: expected array, got string"},
		{"bad pattern", Tool{Name: "a", Description: "x", Parameters: `{"properties":{"a":{"pattern":"("}}}`}, "at /properties/a/pattern: expected a valid regex"},
		{"negative length", Tool{Name: "a", Description: "x", Parameters: `{"properties":{"a":{"minLength":-1}}}`}, "not a JSON Schema: at /properties/a/minLength: invalid minimum"},
		{"file reference", Tool{Name: "a", Description: "x", Parameters: JSONText(`{"properties":{"a":{"$ref":"file://` + secret + `"}}}`)}, "a schema may not refer to anything outside itself"},
		{"web reference", Tool{Name: "a", Description: "x", Parameters: `{"properties":{"a":{"$ref":"http://127.0.0.1/s"}}}`}, "a schema may not refer to anything outside itself"},
		{"own metaschema", Tool{Name: "a", Description: "x", Parameters: `{"$schema":"http://127.0.0.1/s"}`}, "a schema may not refer to anything outside itself"},
		{"dangling reference", Tool{Name: "a", Description: "x", Parameters: `{"$ref":"#/$defs/a"}`}, "parameters: "},
		{"endless reference", Tool{Name: "a", Description: "x", Parameters: `{"$ref":"#"}`}, "the schema refers to itself without end"},
		{"too large", Tool{Name: "a", Description: "x", Parameters: JSONText(`{"title":"` + strings.Repeat("x", maxSchemaText) + `"}`)}, "at most 1048576 are taken"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := CheckTool(&c.tool)
			if c.want == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			} else {
				noGoTypes(t, err.Error())
			}
		})
	}
}

// A digest is what somebody claims about a tool: it must not select another tool's schema.
func TestCheckIgnoresTheDigest(t *testing.T) {
	t.Parallel()
	v := NewValidator()
	open := Tool{Name: "a", Parameters: pingSchema}.WithDigest()
	strict := Tool{Name: "b", Parameters: readSchema, Digest: open.Digest}
	if v.Check(&open, "{}") != nil || v.Check(&strict, "{}") == nil {
		t.Error("a lying digest selected the wrong schema")
	}
}

func TestValidatorIsBoundedAndConcurrent(t *testing.T) {
	t.Parallel()
	v := NewValidator()
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := range maxSchemas {
				params := JSONText(fmt.Sprintf(`{"type":"object","required":["k%d"]}`, i*(1+w%2)))
				key := fmt.Sprintf("k%d", i*(1+w%2))
				if v.Check(&Tool{Parameters: params}, JSONText(`{"`+key+`":1}`)) != nil || v.Check(&Tool{Parameters: params}, "{}") == nil {
					t.Errorf("schema %s: wrong answer", params)
				}
			}
		})
	}
	wg.Wait()
	if n := len(v.young) + len(v.old); n > 2*maxSchemas {
		t.Errorf("%d schemas are kept", n)
	}
}

// The fast way may only confirm what the library confirms.
func TestShapeAgreesWithTheLibrary(t *testing.T) {
	t.Parallel()
	schemas := []JSONText{
		readSchema, fileSchema, pingSchema, benchTool.Parameters,
		`{"type":["object","null"],"properties":{"a":{"type":["integer","null"],"minimum":-3},"b":{"enum":["x","y"]},"path":{"minLength":2,"maxLength":3},"files":{"items":{"type":"number","maximum":2}}}}`,
		`{"properties":{"a":{"maximum":2,"minLength":1,"required":["z"]},"note":{"type":"boolean"},"limit":{"type":["string","number"]}},"required":["a"]}`,
	}
	var compiledAll []*compiled
	for _, s := range schemas {
		c := compile(s)
		if c.err != nil || c.shape == nil {
			t.Fatalf("%s: %v, shape %v", s, c.err, c.shape)
		}
		compiledAll = append(compiledAll, c)
	}
	rapid.Check(t, func(t *rapid.T) {
		c := compiledAll[rapid.IntRange(0, len(compiledAll)-1).Draw(t, "schema")]
		args := drawObject(t, 2)
		obj, bad := parseObject(JSONText(args))
		if bad != nil {
			t.Fatal(bad)
		}
		if err := c.check(obj); c.shape.fits(obj) && err != nil {
			t.Fatalf("%s confirmed, but: %v", args, err)
		}
	})
}

func drawObject(t *rapid.T, depth int) string {
	keys := rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a", "b", "z", "path", "limit", "files", "note", "meta"}), 0, 5, rapid.ID[string]).Draw(t, "keys")
	var parts []string
	for _, k := range keys {
		parts = append(parts, fmt.Sprintf("%q:%s", k, drawValue(t, depth)))
	}
	return "{" + strings.Join(parts, ",") + "}"
}

func drawValue(t *rapid.T, depth int) string {
	scalars := []string{"null", "true", "0", "1", "-3", "-4", "2.0", "2.5", "1e3", "12345678901234567890", `""`, `" "`, `"x"`, `"éé"`, `"yes"`, `"\u00a0"`, `"\u000b"`}
	switch n := rapid.IntRange(0, 5).Draw(t, "kind"); {
	case depth > 0 && n == 0:
		return drawObject(t, depth-1)
	case depth > 0 && n == 1:
		return "[" + drawValue(t, depth-1) + "," + drawObject(t, 0) + "]"
	}
	return rapid.SampledFrom(scalars).Draw(t, "scalar")
}

// FuzzCheck: no schema and no arguments bring the process down, and the message stays readable.
func FuzzCheck(f *testing.F) {
	for _, s := range []JSONText{readSchema, fileSchema, bashSchema, `{"$ref":"#"}`, `{"anyOf":[{"$ref":"#"},{"type":"object"}]}`} {
		f.Add(string(s), `{"path":1,"files":[{}],"action":"x"}`)
	}
	f.Fuzz(func(t *testing.T, params, args string) {
		if len(params) > 4096 || len(args) > 4096 {
			return
		}
		tool := &Tool{Name: "x", Description: "x", Parameters: JSONText(params)}
		_ = CheckTool(tool)
		err := NewValidator().Check(tool, JSONText(args))
		if err != nil && (len(err.Message) > 3*maxText || !utf8.ValidString(err.Message)) {
			t.Fatalf("%q, %q: message %q", params, args, err.Message)
		}
	})
}
