package anthropic

import (
	"encoding/json"
	"regexp"
	"strings"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/loop/model/internal/dialect"
	"github.com/jetcrew/jetcrew/schema"
)

// idRule is what the protocol takes as the id of a call.
var idRule = dialect.IDRule{Max: 64, OK: dialect.WordChar}

// maxTokens is the bound on an answer when the options name none; the protocol wants one.
const maxTokens = 4096

// toolRule is what the protocol takes of a tool. One argument of another name has the whole request refused.
var toolRule = dialect.ToolRule{
	Argument:  func(name string) bool { return argumentName.MatchString(name) },
	Arguments: "want 1 to 64 of A-Z, a-z, 0-9, '_', '.', '-'",
}

var argumentName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

type object = map[string]any

func encodeRequest(name string, req *model.Request, fit []dialect.Fitted, names *dialect.Names) ([]byte, error) {
	body := object{"model": name, "max_tokens": maxTokens}
	system, rest := split(req.Messages)
	if system != "" {
		body["system"] = []object{textBlock(schema.CleanText(system))}
	}
	body["messages"] = messages(rest, names)
	if req.Delta != nil {
		body["stream"] = true
	}
	if err := dialect.Merge(body, req.Options); err != nil {
		return nil, err
	}
	addTools(body, req, fit, names)
	return dialect.Encode(body), nil
}

// addTools writes what the model may call. Without tools the provider still wants to know those that the history
// calls, so they are declared and forbidden.
func addTools(body object, req *model.Request, fit []dialect.Fitted, names *dialect.Names) {
	if len(fit) > 0 {
		body["tools"] = tools(fit, names)
		return
	}
	delete(body, "tool_choice") // an error without tools
	if called := calledTools(req.Messages); len(called) > 0 {
		body["tools"] = tools(called, names)
		body["tool_choice"] = object{"type": "none"}
	}
}

func calledTools(msgs []schema.Message) []dialect.Fitted {
	var out []dialect.Fitted
	seen := map[string]bool{}
	for _, m := range msgs {
		for _, c := range m.Calls {
			if !seen[c.Name] {
				seen[c.Name] = true
				out = append(out, dialect.Fitted{Name: c.Name, Parameters: dialect.NoParameters})
			}
		}
	}
	return out
}

func tools(in []dialect.Fitted, names *dialect.Names) []object {
	out := make([]object, len(in))
	for i, t := range in {
		out[i] = object{"name": names.Encode(t.Name), "input_schema": t.Parameters}
		if t.Description != "" {
			out[i]["description"] = t.Description
		}
	}
	return out
}

// split takes the system messages from the beginning; the protocol has a field of its own for them.
func split(msgs []schema.Message) (system string, rest []schema.Message) {
	var texts []string
	for len(msgs) > 0 && msgs[0].Role == schema.RoleSystem {
		if strings.TrimSpace(msgs[0].Text) != "" {
			texts = append(texts, msgs[0].Text)
		}
		msgs = msgs[1:]
	}
	return strings.Join(texts, "\n\n"), msgs
}

// turn is a message of the protocol: all that one side says until the other speaks.
type turn struct {
	Role    string   `json:"role"`
	Content []object `json:"content"`
}

func messages(in []schema.Message, names *dialect.Names) []turn {
	var out []turn
	say := func(role string, blocks ...object) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
			return
		}
		out = append(out, turn{role, blocks})
	}
	for i, e := range dialect.History(in, names, idRule) {
		if e.Role == schema.RoleAssistant {
			if i == 0 {
				say(schema.RoleUser, textBlock("(the conversation begins)")) // the first message must be the user's
			}
			say(schema.RoleAssistant, assistantBlocks(e)...)
		} else if text := userText(e); text != "" {
			say(schema.RoleUser, textBlock(text))
		}
		for j, r := range e.Results {
			say(schema.RoleUser, resultBlock(e.Calls[j].ID, r))
		}
	}
	if len(out) == 0 {
		say(schema.RoleUser, textBlock("(no message)"))
	}
	return out
}

// userText returns what stands in a user's message: a later system message too, marked, since older models take such a
// message only at the beginning.
func userText(e dialect.Entry) string {
	text := strings.TrimSpace(e.Text)
	if e.Role == schema.RoleSystem && text != "" {
		return "[system] " + text
	}
	return text
}

func assistantBlocks(e dialect.Entry) []object {
	blocks, ok := restore(e)
	if !ok {
		blocks = append(blocks, spoken(e.Text)...)
		for _, c := range e.Calls {
			blocks = append(blocks, callBlock(c))
		}
	}
	if len(blocks) == 0 {
		blocks = spoken(dialect.NoAnswer)
	}
	return blocks
}

// spoken returns a text block, or none for blank text, which the provider refuses.
func spoken(text string) []object {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []object{textBlock(strings.TrimRight(text, " \t\r\n"))}
}

func textBlock(text string) object { return object{"type": "text", "text": text} }

func callBlock(c dialect.Call) object {
	return object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": json.RawMessage(c.Args)}
}

func resultBlock(id string, r dialect.Result) object {
	b := object{"type": "tool_result", "tool_use_id": id, "content": []object{textBlock(r.Text)}}
	if r.Error {
		b["is_error"] = true
	}
	return b
}
