package schema

import "strings"

// Effects of a tool on the world, from the least to the most. An unknown effect counts as destructive.
const (
	EffectRead        = "read"        // changes nothing
	EffectWrite       = "write"       // changes what can be changed back
	EffectNetwork     = "network"     // reaches other systems
	EffectDestructive = "destructive" // cannot be undone
)

// The tools by which a model reaches what its provider does not take all of: one finds definitions, the other calls what
// was found.
const (
	ToolFindTools = "find_tools"
	ToolCallTool  = "call_tool"
)

// Tool is the definition of a tool: what the model sees of it and how it is run.
type Tool struct {
	Name        string   `msgpack:"name" json:"name"`                                 // as the model calls it, up to 256 bytes
	Description string   `msgpack:"description" json:"description"`                   // for the model
	Parameters  JSONText `msgpack:"parameters" json:"parameters"`                     // JSON Schema 2020-12 of the arguments, an object; empty: any object
	Idempotent  bool     `msgpack:"idempotent,omitempty" json:"idempotent,omitempty"` // may run more than once for one call; absent is the safe answer
	Effect      string   `msgpack:"effect,omitempty" json:"effect,omitempty"`         // on the world; absent or unknown counts as destructive
	TimeoutMS   int64    `msgpack:"timeout_ms,omitempty" json:"timeout_ms,omitempty"` // bound on running, in milliseconds; 0: none of its own
	Source      string   `msgpack:"source,omitempty" json:"source,omitempty"`         // where the tool came from, such as the name of an MCP server
	Target      string   `msgpack:"target,omitempty" json:"target,omitempty"`         // what its queue calls it, when the model is shown another name; empty: Name
	Queue       string   `msgpack:"queue,omitempty" json:"queue,omitempty"`           // queue whose workers have it
	Digest      string   `msgpack:"digest,omitempty" json:"digest,omitempty"`         // Digest of Parameters
}

// WithDigest returns t with its Digest computed from Parameters.
func (t Tool) WithDigest() Tool {
	t.Digest = Digest([]byte(t.Parameters))
	return t
}

// SubagentName returns the name of the tool by which an agent is shown as a sub-agent: subagent_ and its id in lower case,
// where each run of other signs than letters, digits, '_' and '-' is one '_'.
func SubagentName(agent string) string {
	name := []byte("subagent_")
	for _, c := range []byte(strings.ToLower(agent)) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			c = '_'
		}
		if c != '_' || name[len(name)-1] != '_' {
			name = append(name, c)
		}
	}
	return strings.TrimRight(string(name), "_")
}
