package schema_test

import (
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// What a model wrote becomes calls with unique labels and canonical arguments, which are checked against the schema.
func Example() {
	calls := schema.Normalise(1, []schema.RawCall{
		{ID: "a", Name: "read_file", Args: `{ "path": "go.mod" }`},
		{ID: "a", Name: "Read_File", Args: `{"file_path": "go.mod"}`},
		{Name: "python", Args: `print("hi")`},
	})
	tool := &schema.Tool{Name: "read_file", Parameters: `{"type":"object","properties":{"path":{"type":"string"}},"required":["path"]}`}
	v := schema.NewValidator()
	for _, c := range calls {
		name, ok := schema.Resolve(c.Tool, []string{"read_file"})
		switch {
		case c.Decision.Action != schema.ActionAllow:
			fmt.Println(c.Label, c.Decision.Text)
		case !ok:
			fmt.Println(c.Label, schema.Unknown(c.Tool, []string{"read_file"}))
		default:
			fmt.Println(c.Label, name, c.Args, v.Check(tool, c.Args))
		}
	}
	// Output:
	// a read_file {"path":"go.mod"} <nil>
	// a_1 read_file {"file_path":"go.mod"} InvalidArguments: missing property "path" (string) (got "file_path" instead)
	// tool_step_1_2 arguments are not valid JSON: at byte 0 expected a value, got 'p'
}

func ExampleDecodeCall() {
	data, err := schema.Encode(&schema.Call{Run: "r-1", Turn: 1, Tool: "read_file", Args: `{"path":"go.mod"}`})
	if err != nil {
		fmt.Println(err)
		return
	}
	call, err := schema.DecodeCall(data)
	fmt.Println(call, call.Tool, call.Args, err)
	// Output: r-1/1.0 read_file {"path":"go.mod"} <nil>
}
