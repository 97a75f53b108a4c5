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
	Role  string
	Text  string
	Calls []MessageCall // assistant
	Items *Items        // assistant: to be sent back unchanged to the provider that gave them
	Label string        // tool: label of the call it answers
	Name  string        // tool: name of the tool
	Error bool          // tool: the call failed
}

// MessageCall is a call of an assistant message. Args is always a JSON object.
type MessageCall struct {
	Label string
	Name  string
	Args  string
}
