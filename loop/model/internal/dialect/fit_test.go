package dialect

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// strict is a rule with everything that some provider wants.
var strict = ToolRule{Description: 100, Argument: func(s string) bool { return !strings.Contains(s, "[") }, Arguments: "no brackets"}

// refused says why a provider would refuse a schema, in the way OpenAI and Anthropic do.
func refused(t *testing.T, text json.RawMessage) error {
	t.Helper()
	var root map[string]any
	if err := json.Unmarshal(text, &root); err != nil {
		return err
	}
	if _, ok := root["properties"].(map[string]any); !ok || root["type"] != "object" {
		return fmt.Errorf("no object with properties")
	}
	for _, k := range combining {
		if _, ok := root[k]; ok {
			return fmt.Errorf("%s at the top", k)
		}
	}
	if err := usable(schema.JSONText(text)); err != nil {
		return err
	}
	return refusedBelow(root)
}

func refusedBelow(v any) error {
	switch v := v.(type) {
	case map[string]any:
		if items, ok := v["items"]; takes(v["type"], "array") && v["prefixItems"] == nil {
			if _, isObject := items.(map[string]any); !ok || !isObject {
				return fmt.Errorf("an array without items")
			}
		}
		for k, one := range v {
			if one == nil && k != "default" && k != "const" {
				return fmt.Errorf("%s is null", k)
			}
			if err := refusedBelow(one); err != nil {
				return err
			}
		}
	case []any:
		for _, one := range v {
			if err := refusedBelow(one); err != nil {
				return err
			}
		}
	}
	return nil
}

// odd are schemas that made some provider refuse a whole request, with arguments they take and others they do not.
var odd = []struct {
	name, schema string
	good, bad    []string
	loose        bool // what stands only in the description does not refuse
}{
	{"no parameters", ``, []string{`{}`, `{"a":1}`}, nil, false},
	{"parameters null", `null`, []string{`{}`, `{"a":1}`}, nil, false},
	{"only a type", `{"type":"object"}`, []string{`{}`, `{"a":1}`}, nil, false},
	{"no type", `{"properties":{"a":{"type":"string"}}}`, []string{`{}`, `{"a":"x","b":1}`}, []string{`{"a":1}`}, false},
	{"array without items", `{"type":"object","properties":{"a":{"type":"array"}}}`, []string{`{"a":[1,"x"]}`}, []string{`{"a":1}`}, false},
	{"list of types", `{"type":"object","properties":{"a":{"type":["array","null"]}}}`, []string{`{"a":[1]}`, `{"a":null}`}, []string{`{"a":1}`}, false},
	{"top anyOf", `{"type":"object","anyOf":[{"properties":{"url":{"type":"string"}},"required":["url"]},{"properties":{"id":{"type":"integer"}},"required":["id"]}]}`, []string{`{"url":"x"}`, `{"id":1}`, `{"id":1,"more":2}`}, []string{`{"id":"x"}`, `{}`}, true},
	{"top anyOf beside properties", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}],"additionalProperties":false}`, []string{`{"a":"x"}`, `{"b":"x"}`}, []string{`{"c":1}`}, true},
	{"top oneOf of closed objects", `{"oneOf":[{"type":"object","properties":{"a":{"type":"string"},"k":{"const":1}},"required":["k"],"additionalProperties":false},{"type":"object","properties":{"k":{"const":2}},"required":["k"],"additionalProperties":false}]}`, []string{`{"a":"x","k":1}`, `{"k":2}`}, []string{`{"k":3}`, `{"k":2,"z":1}`, `{"a":"x"}`}, true},
	{"top allOf", `{"allOf":[{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]},{"type":"object","properties":{"b":{"type":"integer"}}}]}`, []string{`{"a":"x"}`, `{"a":"x","b":1,"c":2}`}, []string{`{}`, `{"a":1}`, `{"a":"x","b":"y"}`}, false},
	{"top not and enum", `{"type":"object","properties":{"a":{"type":"string"}},"not":{"required":["b"]}}`, []string{`{"a":"x"}`}, []string{`{"a":1}`}, true},
	{"references", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x","description":"An a."}},"required":["a"],"$defs":{"x":{"type":"array","items":{"$ref":"#/$defs/y"}},"y":{"type":"string"}}}`, []string{`{"a":["x"]}`}, []string{`{}`, `{"a":[1]}`}, false},
	{"reference with a constraint beside it", `{"type":"object","properties":{"a":{"$ref":"#/$defs/x","maxLength":3}},"$defs":{"x":{"type":"string"}}}`, []string{`{"a":"abc"}`}, []string{`{"a":"abcd"}`, `{"a":1}`}, false},
	{"recursive references", `{"type":"object","properties":{"tree":{"$ref":"#/$defs/node"}},"$defs":{"node":{"type":"object","properties":{"name":{"type":"string"},"below":{"type":"array","items":{"$ref":"#/$defs/node"}}}}}}`, []string{`{"tree":{"name":"a","below":[{"name":"b"}]}}`}, []string{`{"tree":{"below":[{"name":1}]}}`}, false},
	{"the top is a reference", `{"$ref":"#/$defs/args","$defs":{"args":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}`, []string{`{"a":"x"}`}, []string{`{}`, `{"a":1}`}, false},
	{"the top is recursive", `{"$ref":"#/$defs/args","$defs":{"args":{"type":"object","properties":{"a":{"$ref":"#/$defs/args"},"n":{"type":"integer"}}}}}`, []string{`{"a":{"a":{"n":1}}}`}, []string{`{"n":"x"}`, `{"a":{"n":"x"}}`}, false},
	{"a reference to the top", `{"type":"object","properties":{"n":{"type":"integer"},"below":{"$ref":"#"}}}`, []string{`{"n":1,"below":{"n":2}}`}, []string{`{"below":{"n":"x"}}`}, false},
	{"no required", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}}}`, []string{`{}`, `{"b":"x"}`}, nil, false},
	{"open object", `{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":{}}`, []string{`{"a":"x","b":[1]}`}, []string{`{"a":1}`}, false},
	{"nested open object", `{"type":"object","properties":{"a":{"type":"object","additionalProperties":{}}}}`, []string{`{"a":{"b":1}}`}, []string{`{"a":1}`}, false},
	{"typed additional properties", `{"type":"object","properties":{},"additionalProperties":{"type":"string"}}`, []string{`{"b":"x"}`}, []string{`{"b":1}`}, false},
	{"yes and no as schemas", `{"type":"object","properties":{"a":true,"b":false}}`, []string{`{"a":1}`}, []string{`{"b":1}`}, false},
	{"tuple of draft 7", `{"$schema":"http://json-schema.org/draft-07/schema#","type":"object","properties":{"a":{"type":"array","items":[{"type":"string"},{"type":"integer"}],"additionalItems":false}}}`, []string{`{"a":["x",1]}`}, []string{`{"a":[1]}`, `{"a":["x",1,2]}`}, false},
	{"exclusive bound of draft 4", `{"$schema":"http://json-schema.org/draft-04/schema#","type":"object","properties":{"a":{"type":"number","minimum":0,"exclusiveMinimum":true,"maximum":9,"exclusiveMaximum":false}}}`, []string{`{"a":1}`, `{"a":9}`}, []string{`{"a":0}`, `{"a":10}`}, false},
	{"list of types at the top", `{"type":["object","null"],"properties":{"a":{"type":"string"}}}`, []string{`{"a":"x"}`}, []string{`{"a":1}`}, false},
	{"digits", `{"type":"object","properties":{"a":{"type":"number","maximum":1.10,"default":12345678901234567890}}}`, []string{`{"a":1.1}`}, []string{`{"a":1.2}`}, false},
}

func TestA19SchemasKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	v := schema.NewValidator()
	for _, tt := range odd {
		t.Run("A19 "+tt.name, func(t *testing.T) {
			t.Parallel()
			f := Fitter{Rule: strict}
			fit, unfit := f.Fit([]schema.Tool{{Name: "x", Description: "X.", Parameters: schema.JSONText(tt.schema)}})
			if len(unfit) > 0 {
				t.Fatalf("unfit: %+v", unfit)
			}
			sent := fit[0].Parameters
			if err := refused(t, sent); err != nil {
				t.Fatalf("a provider refuses it: %v\n%s", err, sent)
			}
			shown, own := &schema.Tool{Parameters: schema.JSONText(sent)}, &schema.Tool{Parameters: schema.JSONText(tt.schema)}
			for _, args := range tt.good {
				if err := v.Check(own, schema.JSONText(args)); err != nil {
					t.Fatalf("the test is wrong: %s: %v", args, err)
				}
				if err := v.Check(shown, schema.JSONText(args)); err != nil {
					t.Errorf("%s is refused by what is shown: %v\n%s", args, err, sent)
				}
			}
			for _, args := range tt.bad {
				if v.Check(own, schema.JSONText(args)) == nil {
					t.Fatalf("the test is wrong: %s is good", args)
				}
				if v.Check(shown, schema.JSONText(args)) == nil && !tt.loose {
					t.Errorf("%s is not refused any more\n%s", args, sent)
				}
			}
			if tt.loose && !strings.Contains(string(sent), "must also fit") {
				t.Errorf("what is left out is not said: %s", sent)
			}
		})
	}
}

func TestA19WhatIsShown(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, schema, want string }{
		{"a good schema stays as it is written", `{"type":"object", "properties":{"b":{"type":"string"},"a":{}}}`, `{"type":"object", "properties":{"b":{"type":"string"},"a":{}}}`},
		{"alternatives are named", odd[6].schema, `"properties":{"url":{"type":"string"},"id":{"type":"integer"}}`},
		{"the order of properties", `{"properties":{"z":true,"a":true}}`, `"properties":{"z":{},"a":{}}`},
		{"an open object is not closed", odd[18].schema, `"additionalProperties":true`},
		{"references are replaced", odd[11].schema, `{"type":"array","items":{"type":"string"},"description":"An a."}`},
		{"digits", odd[25].schema, `"maximum":1.10,"default":12345678901234567890`},
	} {
		f := Fitter{Rule: strict}
		fit, unfit := f.Fit([]schema.Tool{{Name: "x", Parameters: schema.JSONText(tt.schema)}})
		if len(unfit) > 0 || !strings.Contains(string(fit[0].Parameters), tt.want) {
			t.Errorf("%s: %s, unfit %+v", tt.name, fit, unfit)
		}
	}
}

func TestA19OthersKeepWorking(t *testing.T) {
	t.Parallel()
	tools := []schema.Tool{
		{Name: "ok", Parameters: `{"type":"object","properties":{"a":{"type":"string"}}}`},
		{Name: "text", Parameters: `oops`},
		{Name: "no_object", Parameters: `{"type":"string"}`},
		{Name: "null_keyword", Parameters: `{"type":"object","properties":{"a":null}}`},
		{Name: "fetches", Parameters: `{"type":"object","properties":{"a":{"$ref":"https://example.com/a.json"}}}`},
		{Name: "endless", Parameters: `{"$ref":"#/$defs/a","$defs":{"a":{"$ref":"#/$defs/a"}}}`},
		{Name: "brackets", Source: "store", Parameters: `{"type":"object","properties":{"filter[id]":{"type":"string"}}}`},
		{Name: "fine", Parameters: ``},
	}
	f := Fitter{Rule: strict}
	for range 2 { // the second time from what is kept
		fit, unfit := f.Fit(tools)
		var shown []string
		for _, one := range fit {
			shown = append(shown, one.Name)
		}
		if strings.Join(shown, " ") != "ok fine" {
			t.Errorf("shown %q", shown)
		}
		for i, u := range unfit {
			if u.Tool != tools[i+1].Name || u.Source != tools[i+1].Source || u.Why == "" {
				t.Errorf("unfit %+v", u)
			}
		}
		if len(unfit) != 6 {
			t.Errorf("unfit %+v", unfit)
		}
	}
}

func TestA19ManyReferencesStayBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"type":"object","properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{`)
	for i := range 40 { // each level names the next one twice: 2^40 when all are replaced
		fmt.Fprintf(&b, `"d%d":{"type":"object","properties":{"l":{"$ref":"#/$defs/d%[2]d"},"r":{"$ref":"#/$defs/d%[2]d"}}},`, i, i+1)
	}
	b.WriteString(`"d40":{"type":"string"}}}`)
	f := Fitter{}
	fit, unfit := f.Fit([]schema.Tool{{Name: "x", Parameters: schema.JSONText(b.String())}})
	if len(unfit) > 0 || len(fit[0].Parameters) > 1<<20 {
		t.Errorf("%d tools, unfit %+v", len(fit), unfit)
	}
}

func TestDescriptionThatIsTooLong(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("wörd ", 60) + "end"
	f := Fitter{Rule: strict}
	for _, params := range []schema.JSONText{"", `{"type":"object","properties":{},"description":"Own."}`} {
		fit, _ := f.Fit([]schema.Tool{{Name: "x", Description: long, Parameters: params}, {Name: "y", Description: "short", Parameters: params}})
		var p struct{ Description string }
		if err := json.Unmarshal(fit[0].Parameters, &p); err != nil {
			t.Fatal(err)
		}
		if n := utf8.RuneCountInString(fit[0].Description); n > 100 || !utf8.ValidString(fit[0].Description) {
			t.Errorf("%d characters: %q", n, fit[0].Description)
		}
		head, _, _ := strings.Cut(fit[0].Description, " (continued")
		if got := head + " " + p.Description; !strings.HasPrefix(strings.TrimSpace(got), long) {
			t.Errorf("something is lost: %q", got)
		}
		if strings.Contains(string(fit[1].Parameters), "wörd") {
			t.Errorf("the other tool got it: %s", fit[1].Parameters)
		}
	}
}

func TestA18ARequestTakesSoMany(t *testing.T) {
	t.Parallel()
	f := Fitter{Max: 3}
	tools := []schema.Tool{{Name: "d", Source: "s"}, {Name: "c", Source: "s"}, {Name: "own"}, {Name: "a", Source: "s"}}
	fit, unfit := f.Fit(tools)
	if len(fit) != 3 || len(unfit) != 1 || unfit[0].Tool != "d" || !strings.Contains(unfit[0].Why, "3") {
		t.Errorf("%+v, %+v", fit, unfit)
	}
	var _ []model.Unfit = unfit
}

func FuzzRewrite(f *testing.F) {
	for _, tt := range odd {
		f.Add(tt.schema, `{"a":1}`)
	}
	v := schema.NewValidator()
	f.Fuzz(func(t *testing.T, text, args string) {
		fitter := Fitter{}
		fit, unfit := fitter.Fit([]schema.Tool{{Name: "x", Parameters: schema.JSONText(text)}})
		if len(unfit) > 0 {
			return
		}
		own, shown := &schema.Tool{Parameters: schema.JSONText(text)}, &schema.Tool{Parameters: schema.JSONText(fit[0].Parameters)}
		if v.Check(shown, "{}") != nil && v.Check(own, "{}") == nil {
			t.Errorf("{} is refused by what is shown:\n%s\n%s", text, fit[0].Parameters)
		}
		if usable(shown.Parameters) != nil {
			t.Errorf("what is shown is no schema: %s", shown.Parameters)
		}
	})
}
