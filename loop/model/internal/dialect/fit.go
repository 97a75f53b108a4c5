package dialect

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// ToolRule is what a provider takes of a tool, beside its name.
type ToolRule struct {
	Description int                  // characters of a tool's own description; what is longer goes on in that of its arguments; 0: any
	Argument    func(ok string) bool // whether an argument may have this name; nil: any
	Arguments   string               // the same in words
}

// Fitter writes tools in the form that a provider takes. It keeps what it has rewritten and is safe for concurrent use.
type Fitter struct {
	Rule ToolRule
	Max  int // tools in one request; 0: any number

	mu   sync.Mutex
	kept map[schema.JSONText]fitted
}

// DefaultMaxTools is how many tools a provider takes in one request: OpenAI refuses more, and others do badly with more.
const DefaultMaxTools = 128

// NoParameters are the parameters of a tool that takes any object.
var NoParameters = json.RawMessage(`{"type":"object","properties":{}}`)

type fitted struct {
	params *object // nil: the text is good as it is
	err    error
}

// maxKept bounds how many rewritten schemas are kept.
const maxKept = 1024

// Fitted is a tool in the form of a provider.
type Fitted struct {
	Name        string // of the tool, not yet of the provider
	Description string
	Parameters  json.RawMessage
}

// Fit returns the tools in their order, without those that the provider would refuse together with the whole request;
// unfit names these.
func (f *Fitter) Fit(tools []schema.Tool) (fit []Fitted, unfit []model.Unfit) {
	tools, over := model.Choose(tools, f.Max)
	fit = make([]Fitted, 0, len(tools))
	for _, t := range tools {
		one, err := f.fit(t)
		if err != nil {
			unfit = append(unfit, model.Unfit{Tool: t.Name, Source: t.Source, Why: err.Error()})
			continue
		}
		fit = append(fit, one)
	}
	for _, t := range over {
		unfit = append(unfit, model.Unfit{Tool: t.Name, Source: t.Source, Why: fmt.Sprintf("a request takes %d tools and there are %d", f.Max, len(tools)+len(over))})
	}
	return fit, unfit
}

func (f *Fitter) fit(t schema.Tool) (Fitted, error) {
	p := f.parameters(t.Parameters)
	if p.err != nil {
		return Fitted{}, p.err
	}
	out := Fitted{Name: t.Name, Description: schema.CleanText(t.Description), Parameters: json.RawMessage(t.Parameters)}
	head, tail := cutDescription(out.Description, f.Rule.Description)
	params := p.params
	if tail != "" {
		out.Description = head
		if params == nil {
			v, err := parseOrdered(string(t.Parameters))
			if err != nil {
				return Fitted{}, err
			}
			params, _ = v.(*object)
		}
		params = params.copied()
		own, _ := params.get("description").(string)
		params.set("description", strings.TrimSpace(tail+"\n"+own))
	}
	if params != nil {
		out.Parameters = Encode(params)
	}
	return out, nil
}

// cutDescription returns the beginning of a text that has at most max characters, and the rest.
func cutDescription(text string, max int) (head, tail string) {
	if max == 0 || utf8.RuneCountInString(text) <= max {
		return text, ""
	}
	const mark = " (continued at the arguments)"
	runes := []rune(text)
	at := max - len(mark)
	for i := at; i > at/2; i-- { // at a word's end, if there is one
		if runes[i] == ' ' || runes[i] == '\n' {
			at = i
			break
		}
	}
	return string(runes[:at]) + mark, strings.TrimSpace(string(runes[at:]))
}

func (f *Fitter) parameters(text schema.JSONText) fitted {
	f.mu.Lock()
	defer f.mu.Unlock()
	p, ok := f.kept[text]
	if !ok {
		if len(f.kept) >= maxKept || f.kept == nil {
			f.kept = make(map[schema.JSONText]fitted)
		}
		p.params, p.err = f.rewrite(text)
		f.kept[text] = p
	}
	return p
}

// rewrite returns the parameters in the provider's form, nil when they have it.
func (f *Fitter) rewrite(text schema.JSONText) (*object, error) {
	if trimmed := strings.TrimSpace(string(text)); trimmed == "" || trimmed == "null" {
		out := &object{}
		out.set("type", "object")
		out.set("properties", &object{})
		return out, nil
	}
	if err := usable(text); err != nil {
		return nil, err
	}
	v, err := parseOrdered(string(text))
	if err != nil {
		return nil, fmt.Errorf("its schema cannot be read: %w", err)
	}
	root, ok := v.(*object)
	if !ok {
		return nil, errors.New("its schema is no object")
	}
	w := newRewriter(root)
	out := w.top(w.schema(root))
	if err := f.checkArguments(out); err != nil {
		return nil, err
	}
	written := Encode(out)
	var same bytes.Buffer
	if json.Compact(&same, []byte(text)) == nil && bytes.Equal(same.Bytes(), written) {
		return nil, nil
	}
	if err := usable(schema.JSONText(written)); err != nil {
		return nil, fmt.Errorf("its schema cannot be said in the provider's form: %w", err)
	}
	return out, nil
}

// usable returns why a schema is none that arguments could be validated with.
func usable(text schema.JSONText) error {
	err := schema.CheckTool(&schema.Tool{Name: "tool", Description: "tool", Parameters: text})
	return cmp.Or(errors.Unwrap(err), err) // without the name of a tool that is none
}

func (f *Fitter) checkArguments(params *object) error {
	props, _ := params.get("properties").(*object)
	if f.Rule.Argument == nil || props == nil {
		return nil
	}
	for _, name := range props.keys {
		if !f.Rule.Argument(name) {
			return fmt.Errorf("the provider takes no argument of the name %q: %s", schema.Cut(name, 80), f.Rule.Arguments)
		}
	}
	return nil
}
