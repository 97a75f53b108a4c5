package main

import (
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// example returns a payload as the code writes it.
func example(name string) (string, error) {
	call := &schema.Call{
		Run: "0192-demo", Turn: 1, Index: 0, Label: "call_1", Tool: "read_file", Args: `{"path":"go.mod"}`, Idempotent: true, TimeoutMS: 30000,
	}
	result := call.Done("module example\n")
	result.Worker, result.Delivery, result.QueuedMS = "0193-worker", 1, 2
	result.StartedMS, result.EndedMS = 1767225600000, 1767225600007
	switch name {
	case "call":
		return asJSON(call)
	case "call msgpack":
		return asHex(call)
	case "result":
		return asJSON(&result)
	case "tool error":
		return "```\n" + call.Fail(schema.ToolFailed, "open go.mod: no such file").Output + "\n```", nil
	}
	return "", fmt.Errorf("no example %q", name)
}

func asJSON(p schema.Encodable) (string, error) {
	if _, err := schema.Encode(p); err != nil { // sets the version
		return "", err
	}
	text, err := plainJSON(p, "")
	return "```json\n" + text + "\n```", err
}

// asHex writes 32 bytes a line.
func asHex(p schema.Encodable) (string, error) {
	data, err := schema.Encode(p)
	var b strings.Builder
	for len(data) > 0 {
		n := min(32, len(data))
		b.WriteString(hex.EncodeToString(data[:n]) + "\n")
		data = data[n:]
	}
	return "```\n" + b.String() + "```", err
}
