package executor_test

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// desk has methods of all kinds.
type desk struct{ unit string }

func (d *desk) QueryWeather(_ context.Context, in city) (string, error) {
	return in.Name + " 20 " + d.unit, nil
}

func (d *desk) ReadHTTPPage(context.Context, struct{}) (map[string]int, error) {
	return map[string]int{"status": 200}, nil
}
func (d *desk) Fail(context.Context, struct{}) (string, error) { return "", errClosed }
func (d *desk) DropEverything(context.Context, struct{}) (string, error) {
	return "dropped", nil
}
func (d *desk) NoContext(struct{}) (string, error)              { return "", nil }
func (d *desk) NoError(context.Context, struct{}) string        { return "" }
func (d *desk) Text(context.Context, string) (string, error)    { return "", nil }
func (d *desk) Many(context.Context, ...string) (string, error) { return "", nil }
func (d *desk) hidden(context.Context, struct{}) (string, error) {
	return "", nil
}

var errClosed = errors.New("the desk is closed")

func TestMethods(t *testing.T) {
	t.Parallel()
	d := &desk{unit: "degrees"}
	_, _ = d.hidden(t.Context(), struct{}{})
	tools, err := executor.Methods(d, map[string]executor.Method{
		"QueryWeather": {Description: "Weather.", Options: []executor.Option{executor.Idempotent(), executor.Effect(schema.EffectRead)}},
		"ReadHTTPPage": {Description: "Reads."},
		"Fail":         {Description: "Fails.", Name: "give_up"},
	})
	if err != nil {
		t.Fatal(err)
	}
	set := quiet(t, tools...)
	var got []string
	for _, tool := range set.Tools() {
		got = append(got, tool.Name)
	}
	if diff := cmp.Diff([]string{"give_up", "query_weather", "read_http_page"}, got); diff != "" {
		t.Errorf("only what is listed is a tool: %s", diff)
	}
	weather, _ := set.Lookup("query_weather")
	if !weather.Idempotent || weather.Effect != schema.EffectRead || !json.Valid([]byte(weather.Parameters)) {
		t.Errorf("%+v", weather)
	}
	for _, tt := range []struct {
		tool, args string
		want       outcome
	}{
		{"query_weather", `{"name":"Rome"}`, outcome{OK: true, Output: "Rome 20 degrees"}},
		{"read_http_page", ``, outcome{OK: true, Output: `{"status":200}`}},
		{"give_up", ``, outcome{Type: schema.ToolFailed, Output: "the desk is closed"}},
	} {
		if got := execute(t, set, call(tt.tool, tt.args)); got != tt.want {
			t.Errorf("%s: %+v, want %+v", tt.tool, got, tt.want)
		}
	}
	if got := execute(t, set, call("query_weather", `{"nam":"Rome"}`)); got.Type != schema.InvalidArguments {
		t.Errorf("got %+v", got)
	}
	if got := execute(t, set, call("drop_everything", ``)); got.Type != schema.UnknownTool {
		t.Errorf("a method that is not listed ran: %+v", got)
	}
}

func TestMethodsRefuses(t *testing.T) {
	t.Parallel()
	var none *desk
	tests := []struct {
		name   string
		value  any
		method string
		want   []string
	}{
		{"no such method", &desk{}, "QueryWether", []string{`"QueryWether"`, "no such method", "QueryWeather"}},
		{"not exported", &desk{}, "hidden", []string{"exported"}},
		{"of the pointer only", desk{}, "QueryWeather", []string{"pointer"}},
		{"no context", &desk{}, "NoContext", []string{"func(context.Context, In) (Out, error)"}},
		{"no error", &desk{}, "NoError", []string{"NoError", "func(context.Context, In) (Out, error)"}},
		{"arguments are no object", &desk{}, "Text", []string{"object"}},
		{"variadic", &desk{}, "Many", []string{"func(context.Context, In) (Out, error)"}},
		{"nil", nil, "X", []string{"nil"}},
		{"nil pointer", none, "QueryWeather", []string{"nil"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := executor.Methods(tt.value, map[string]executor.Method{tt.method: {Description: "d"}})
			mentions(t, err, tt.want...)
		})
	}
	_, err := executor.Methods(&desk{}, map[string]executor.Method{"QueryWeather": {}, "NoError": {Description: "d"}})
	mentions(t, err, "description is blank", "NoError")
}
