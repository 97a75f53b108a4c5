package dialect

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// ours are the options that are for Jetcrew. No provider sees them.
var ours = []string{
	"parallelToolCalls", "maxParallelToolCalls", "toolCallTimeoutMillis", "contextWindow",
	"parallel_tool_calls", "max_parallel_tool_calls", "tool_call_timeout_millis", "context_window",
}

// reserved are the request fields that the clients write themselves.
var reserved = []string{"model", "messages", "system", "tools", "stream"}

// Merge adds an agent's model options to the fields of a request; an option replaces a field of the same name.
// Options that are Jetcrew's own are left out. An option that is not the agent's to set is a model.Error of kind
// BadRequest.
func Merge(fields map[string]any, options schema.JSONText) error {
	if strings.TrimSpace(string(options)) == "" {
		return nil
	}
	var opts map[string]json.RawMessage
	if err := json.Unmarshal([]byte(options), &opts); err != nil {
		return &model.Error{Kind: model.BadRequest, Message: "the model's options are not a JSON object; correct them in the agent file", Err: err}
	}
	for _, name := range slices.Sorted(maps.Keys(opts)) {
		if slices.Contains(ours, name) {
			continue
		}
		if slices.Contains(reserved, name) {
			return &model.Error{Kind: model.BadRequest, Message: fmt.Sprintf("the option %q is written by the agent itself; remove it from the model's options", name)}
		}
		fields[name] = opts[name]
	}
	return nil
}

// Encode returns v as JSON without HTML escapes, so that a provider counts the characters the author wrote. Its values
// are maps, strings and JSON text, which always encode.
func Encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(fmt.Sprintf("encode a model request: %v", err))
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
