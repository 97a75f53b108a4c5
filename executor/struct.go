package executor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/jetcrew/jetcrew/schema"
)

// Method describes an exported method that shall be a tool.
type Method struct {
	Name        string   // default: the method's name in snake_case
	Description string   // for the model; required
	Options     []Option // what the tool declares about itself
}

// Methods makes tools of those methods of v that are listed, and of no others. A method has the form
// func(ctx context.Context, in In) (Out, error), as the function of Func; v must be safe for concurrent use. A listed
// method that does not exist, that is not exported, or that has another form is an error; all errors are reported.
// The tools come in the order of the methods' names.
func Methods(v any, list map[string]Method) ([]Tool, error) {
	value := reflect.ValueOf(v)
	if !value.IsValid() || value.Kind() == reflect.Pointer && value.IsNil() {
		return nil, errors.New("methods as tools: the value is nil")
	}
	var tools []Tool
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(list)) {
		t, err := methodTool(value, name, list[name])
		if err != nil {
			errs = append(errs, fmt.Errorf("method %q of %v: %w", name, value.Type(), err))
			continue
		}
		tools = append(tools, t)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return tools, nil
}

func methodTool(value reflect.Value, name string, m Method) (Tool, error) {
	fn := value.MethodByName(name)
	if !fn.IsValid() {
		return Tool{}, noMethod(value, name)
	}
	if err := checkForm(fn.Type()); err != nil {
		return Tool{}, err
	}
	in := fn.Type().In(1)
	params, err := parametersOfType(in)
	if err != nil {
		return Tool{}, err
	}
	if m.Name == "" {
		m.Name = snakeCase(name)
	}
	t := Tool{
		Tool:   schema.Tool{Name: m.Name, Description: m.Description, Parameters: params},
		Run:    caller(fn, in),
		origin: fmt.Sprintf("method %s of %v", name, value.Type()),
	}
	for _, opt := range m.Options {
		opt(&t)
	}
	return t, t.check()
}

// noMethod says why there is no such method, where that can be known.
func noMethod(value reflect.Value, name string) error {
	if value.Kind() != reflect.Pointer {
		if _, ok := reflect.PointerTo(value.Type()).MethodByName(name); ok {
			return errors.New("only a pointer has it; pass one")
		}
	}
	if name != "" && !unicode.IsUpper([]rune(name)[0]) {
		return errors.New("only exported methods can be tools, and their names begin with a capital letter")
	}
	var have []string
	for m := range value.Type().Methods() {
		have = append(have, m.Name)
	}
	return fmt.Errorf("there is no such method, there are %q", have)
}

var (
	contextType = reflect.TypeFor[context.Context]()
	errorType   = reflect.TypeFor[error]()
)

func checkForm(fn reflect.Type) error {
	if fn.NumIn() == 2 && !fn.IsVariadic() && fn.In(0) == contextType && fn.NumOut() == 2 && fn.Out(1) == errorType {
		return nil
	}
	return fmt.Errorf("it is a %v; a tool is a func(context.Context, In) (Out, error)", fn)
}

// caller returns the code of a tool that is a method with arguments of the type in.
func caller(fn reflect.Value, in reflect.Type) func(context.Context, *schema.Call) (string, error) {
	decode := decoderOf(in)
	return func(ctx context.Context, call *schema.Call) (string, error) {
		args := reflect.New(in)
		if err := decode(call.Args, args.Interface()); err != nil {
			return "", err
		}
		out := fn.Call([]reflect.Value{reflect.ValueOf(ctx), args.Elem()})
		if err, _ := out[1].Interface().(error); err != nil {
			return "", err
		}
		return render(out[0].Interface())
	}
}

// snakeCase returns a Go name as a tool's: QueryWeather is query_weather, ReadHTTPPage is read_http_page.
func snakeCase(name string) string {
	in := []rune(name)
	var b strings.Builder
	for i, r := range in {
		if i > 0 && unicode.IsUpper(r) && (!unicode.IsUpper(in[i-1]) || i+1 < len(in) && unicode.IsLower(in[i+1])) && in[i-1] != '_' {
			b.WriteByte('_')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
