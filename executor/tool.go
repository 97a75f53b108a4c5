package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Tool is a definition and the code that runs it. Run gets a call whose Args satisfy the definition's Parameters and
// returns the text that the model reads. Run must be safe for concurrent use and should return when ctx ends. An
// error that wraps a *schema.Error decides the type of the failure; any other is ToolFailed.
type Tool struct {
	schema.Tool
	Run func(ctx context.Context, call *schema.Call) (string, error)

	err    error  // why the tool cannot be used; NewSet reports it
	origin string // where it comes from, for people; empty: a function of the program
}

// where says where the tool comes from.
func (t *Tool) where() string {
	if t.origin == "" {
		return "a function of your own"
	}
	return t.origin
}

// Option sets what a tool declares about itself.
type Option func(*Tool)

// Idempotent declares that the tool may run more than once for one call. Without it a call runs at most once.
func Idempotent() Option { return func(t *Tool) { t.Idempotent = true } }

// Effect declares what the tool does to the world, one of schema.EffectRead and its siblings. Without it the tool
// counts as destructive.
func Effect(effect string) Option { return func(t *Tool) { t.Effect = effect } }

// Timeout bounds one run of the tool; it is kept in whole milliseconds. Without it only the call's deadline holds.
func Timeout(d time.Duration) Option { return func(t *Tool) { t.TimeoutMS = d.Milliseconds() } }

// Func makes a tool of a Go function. The parameters are the JSON Schema of In, a struct: its json tags name the
// properties (omitempty and omitzero make one optional) and its jsonschema tags describe them, as in
// github.com/invopop/jsonschema. A string that fn returns is the output as it stands; anything else is rendered as
// JSON. What is wrong with In is reported by NewSet.
func Func[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) Tool {
	t := Tool{Tool: schema.Tool{Name: name, Description: description}}
	t.Parameters, t.err = parametersOf[In]()
	decode := decodeArgs
	if t.err == nil {
		decode = decoderOf(reflect.TypeFor[In]())
	}
	t.Run = func(ctx context.Context, call *schema.Call) (string, error) {
		var in In
		if err := decode(call.Args, &in); err != nil {
			return "", err
		}
		out, err := fn(ctx, in)
		if err != nil {
			return "", err
		}
		return render(out)
	}
	for _, opt := range opts {
		opt(&t)
	}
	return t
}

// Dynamic makes a tool of a definition and a handler of untyped arguments, whose numbers are json.Number. A string
// that the handler returns is the output as it stands; anything else is rendered as JSON. A definition without name
// or description, or whose Parameters are no JSON Schema of an object, is an error.
func Dynamic(def schema.Tool, handler func(ctx context.Context, args map[string]any) (any, error)) (Tool, error) {
	run := func(ctx context.Context, call *schema.Call) (string, error) {
		args := map[string]any{}
		if err := decodeArgs(call.Args, &args); err != nil {
			return "", err
		}
		out, err := handler(ctx, args)
		if err != nil {
			return "", err
		}
		return render(out)
	}
	t := Tool{Tool: def, Run: run}
	if handler == nil {
		return Tool{}, fmt.Errorf("tool %q: no handler", def.Name)
	}
	if err := t.check(); err != nil {
		return Tool{}, err
	}
	return t, nil
}

func (t *Tool) check() error {
	switch {
	case t.err != nil:
		return fmt.Errorf("tool %q: %w", t.Name, t.err)
	case t.Run == nil:
		return fmt.Errorf("tool %q: nothing to run", t.Name)
	case t.TimeoutMS < 0:
		return fmt.Errorf("tool %q: timeout of %d ms is negative", t.Name, t.TimeoutMS)
	}
	return schema.CheckTool(&t.Tool)
}

// render returns what a model reads of a tool's value.
func render(v any) (string, error) {
	if s, ok := v.(string); ok {
		return s, nil
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return "", errNotJSON
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// errNotJSON replaces the encoder's error, whose text names Go types.
var errNotJSON = errors.New("the tool's result cannot be rendered as JSON")
