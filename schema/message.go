package schema

// Roles of a message, as in OpenAI's chat form.
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleTool      = "tool"
)

// Message is one entry of an agent's memory, as a model client gets it. An assistant message with k calls is
// followed by exactly k tool messages in call order.
type Message struct {
	Role  string        `msgpack:"role" json:"role"`                       // system, user, assistant or tool
	Text  string        `msgpack:"text,omitempty" json:"text,omitempty"`   // what is said
	Calls []MessageCall `msgpack:"calls,omitempty" json:"calls,omitempty"` // assistant
	Items *Items        `msgpack:"items,omitempty" json:"items,omitempty"` // assistant: to be sent back unchanged to the provider that gave them
	Label string        `msgpack:"label,omitempty" json:"label,omitempty"` // tool: label of the call it answers
	Name  string        `msgpack:"name,omitempty" json:"name,omitempty"`   // tool: name of the tool
	Error bool          `msgpack:"error,omitempty" json:"error,omitempty"` // tool: the call failed
}

// MessageCall is a call of an assistant message. Args is always a JSON object.
type MessageCall struct {
	Label string `msgpack:"label" json:"label"` // the provider's name for the call
	Name  string `msgpack:"name" json:"name"`   // of the tool
	Args  string `msgpack:"args" json:"args"`   // an object, as JSON text
}
