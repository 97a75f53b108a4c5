// Package schema holds the words of Jetcrew: tools, calls, results, messages, turns and the facts of a run,
// their wire form, their identifiers, and what the model reads when a call fails.
//
// It owns the shape of what crosses a process border and the rules that need nothing but the value itself:
// encoding, normalising a model's calls, structural validation. It refuses to own anything that talks to a
// network, keeps state, or decides whether a call is permitted.
//
// A payload is a msgpack map (JSON is accepted everywhere) and is decoded without trusting its bytes:
//
//	data, _ := schema.Encode(&schema.Call{V: schema.Version, Run: schema.NewID(), Turn: 1, Tool: "read_file", Args: `{"path":"go.mod"}`})
//	var call schema.Call
//	err := schema.Decode(data, &call)
package schema
