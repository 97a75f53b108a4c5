package anthropic

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// shown sends tools and returns what the provider gets of them by name, and what was left out.
func shown(t *testing.T, tools ...schema.Tool) (got map[string]map[string]any, unfit []model.Unfit) {
	t.Helper()
	e := jsonAnswer(`{"type":"message","model":"m-1","content":[{"type":"text","text":"ok"}],"stop_reason":"end_turn"}`)
	r, err := ask(t, e, false, model.Request{Tools: tools})
	if err != nil {
		t.Fatal(err)
	}
	got = map[string]map[string]any{}
	list, _ := e.got["tools"].([]any)
	for _, one := range list {
		tool := one.(map[string]any)
		got[tool["name"].(string)] = tool
	}
	return got, r.Unfit
}

func TestA17NamesStayTheSame(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("n", 70)
	all := []schema.Tool{{Name: "notion.search"}, {Name: "notion_search"}, {Name: "管理/删除"}, {Name: long + "-a"}, {Name: long + "-b"}}
	among, _ := shown(t, all...)
	if len(among) != 5 || among["notion_search"] == nil {
		t.Fatalf("names %v", among)
	}
	for _, tool := range all {
		alone, _ := shown(t, tool)
		for name := range alone {
			if among[name] == nil || len(name) > 64 {
				t.Errorf("alone %q is sent as %q", tool.Name, name)
			}
		}
	}
}

func TestA18NeverMoreThanTheCap(t *testing.T) {
	t.Parallel()
	var tools []schema.Tool
	for i := range 200 {
		tools = append(tools, schema.Tool{Name: "t" + string(rune('a'+i%26)) + string(rune('a'+i/26)), Source: "server"})
	}
	tools = append(tools, schema.Tool{Name: "zz_own"})
	got, unfit := shown(t, tools...)
	if len(got) != 128 || len(unfit) != 73 || got["zz_own"] == nil {
		t.Errorf("%d tools are sent, %d named", len(got), len(unfit))
	}
}

func TestA19OneOddToolDoesNotStopTheOthers(t *testing.T) {
	t.Parallel()
	got, unfit := shown(
		t,
		schema.Tool{Name: "brackets", Source: "store", Parameters: `{"type":"object","properties":{"filter[id]":{"type":"string"}}}`},
		schema.Tool{Name: "nested", Parameters: `{"type":"object","properties":{"a":{"type":"object","properties":{"filter[id]":{"type":"string"}}}}}`},
		schema.Tool{Name: "union", Parameters: `{"type":"object","oneOf":[{"required":["a"]},{"required":["b"]}]}`},
		schema.Tool{Name: "broken", Parameters: `{"type":"object","properties":[]}`},
	)
	if len(got) != 2 || got["nested"] == nil || got["union"] == nil {
		t.Errorf("sent %v", got)
	}
	if len(unfit) != 2 || unfit[0].Tool != "brackets" || unfit[0].Source != "store" || !strings.Contains(unfit[0].Why, "filter[id]") || unfit[1].Tool != "broken" {
		t.Errorf("unfit %+v", unfit)
	}
	schemaOf := got["union"]["input_schema"].(map[string]any)
	if schemaOf["oneOf"] != nil || !strings.Contains(schemaOf["description"].(string), "oneOf") {
		t.Errorf("union: %v", schemaOf)
	}
}

func TestA20OptionalsStayOptional(t *testing.T) {
	t.Parallel()
	got, unfit := shown(t, schema.Tool{Name: "x", Parameters: `{"type":"object","properties":{"id":{"type":"string"},"a":{"type":"string"}},"required":["id"],"additionalProperties":{}}`})
	want := map[string]any{
		"type": "object", "required": []any{"id"}, "additionalProperties": true,
		"properties": map[string]any{"id": map[string]any{"type": "string"}, "a": map[string]any{"type": "string"}},
	}
	if diff := cmp.Diff(want, got["x"]["input_schema"]); diff != "" || len(unfit) > 0 {
		t.Errorf("%s, unfit %+v", diff, unfit)
	}
}
