// Package schema holds the words of Jetcrew: tools, calls, results, messages, turns and the facts of a run,
// their wire form, their identifiers, and what the model reads when a call fails.
//
// It owns the shape of what crosses a process border and the rules that need nothing but the value itself:
// encoding, normalising a model's calls, structural validation. It refuses to own anything that talks to a
// network, keeps state, or decides whether a call is permitted.
//
// A payload is a msgpack map (JSON is accepted everywhere) and is decoded without trusting its bytes:
//
//	data, err := schema.Encode(&schema.Call{Run: schema.NewID(), Turn: 1, Tool: "read_file", Args: `{"path":"go.mod"}`})
//	…
//	call, err := schema.DecodeCall(data)
//
// What a model wrote becomes calls with Normalise, and is checked against the tool's schema with a Validator:
//
//	calls := schema.Normalise(1, []schema.RawCall{{ID: "a", Name: "read_file", Args: `{"file_path": "go.mod"}`}})
//	problem := schema.NewValidator().Check(tool, calls[0].Args) // missing property "path" (string) (got "file_path" instead)
package schema
