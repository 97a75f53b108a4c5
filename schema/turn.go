package schema

// Usage counts tokens of a model's answer.
type Usage struct {
	Input      int64 `msgpack:"input,omitempty" json:"input,omitempty"`             // tokens of the prompt
	Output     int64 `msgpack:"output,omitempty" json:"output,omitempty"`           // tokens of the answer
	CacheRead  int64 `msgpack:"cache_read,omitempty" json:"cache_read,omitempty"`   // part of input that came from the provider's cache
	CacheWrite int64 `msgpack:"cache_write,omitempty" json:"cache_write,omitempty"` // part of input that was put there
}

// Total is what a token limit counts.
func (u Usage) Total() int64 { return u.Input + u.Output }

// Add returns the sum of both.
func (u Usage) Add(v Usage) Usage {
	return Usage{u.Input + v.Input, u.Output + v.Output, u.CacheRead + v.CacheRead, u.CacheWrite + v.CacheWrite}
}

// Items are a provider's own pieces of an answer, such as signed reasoning, that must be sent back unchanged to that
// provider and to no other.
type Items struct {
	Provider string `msgpack:"provider" json:"provider"` // who gave them
	Data     []byte `msgpack:"data" json:"data"`         // opaque
}

// RawCall is a tool call as a model gave it, before anything was decided about it.
type RawCall struct {
	ID   string
	Name string
	Args string // JSON text; empty when the model gave none
}

// Finish is why a model ended its answer, in the words of OpenAI's chat completions.
type Finish string

// The reasons to end an answer.
const (
	FinishStop    Finish = "stop"
	FinishCalls   Finish = "tool_calls"
	FinishLength  Finish = "length"         // cut by the output limit
	FinishRefused Finish = "content_filter" // the model or its provider refused
)

// Turn is the fact of the model's n-th answer with everything that was decided about its calls. Resuming a run
// replays these decisions, it does not take them again.
type Turn struct {
	Payload
	N         int        `msgpack:"n" json:"n"`                                       // from 1
	Own       int        `msgpack:"own" json:"own"`                                   // ctl slot of the owner that wrote it
	Say       int        `msgpack:"say" json:"say"`                                   // last say that the model saw
	Fold      int        `msgpack:"fold,omitempty" json:"fold,omitempty"`             // last fold that the model saw
	Model     string     `msgpack:"model,omitempty" json:"model,omitempty"`           // as the provider names it
	Text      string     `msgpack:"text,omitempty" json:"text,omitempty"`             // of the answer
	Items     *Items     `msgpack:"items,omitempty" json:"items,omitempty"`           // to be sent back unchanged
	Finish    Finish     `msgpack:"finish,omitempty" json:"finish,omitempty"`         // why the model ended its answer
	Usage     Usage      `msgpack:"usage" json:"usage"`                               // of this answer
	Calls     []TurnCall `msgpack:"calls,omitempty" json:"calls,omitempty"`           // in the order of the model
	StartedMS int64      `msgpack:"started_ms,omitempty" json:"started_ms,omitempty"` // model request, Unix ms
	EndedMS   int64      `msgpack:"ended_ms,omitempty" json:"ended_ms,omitempty"`     // end of its answer, Unix ms
}

// TurnCall is one call of a turn: its index in Turn.Calls is its slot for ever.
type TurnCall struct {
	Label      string   `msgpack:"label" json:"label"`                               // the provider's id, made unique within the turn
	Tool       string   `msgpack:"tool" json:"tool"`                                 // name of the tool
	Target     string   `msgpack:"target,omitempty" json:"target,omitempty"`         // what its queue calls the tool, when the model sees another name
	Source     string   `msgpack:"source,omitempty" json:"source,omitempty"`         // where the tool came from
	Raw        string   `msgpack:"raw,omitempty" json:"raw,omitempty"`               // arguments as the model wrote them, when they differ from Args
	Args       JSONText `msgpack:"args" json:"args"`                                 // canonical: always an object, even when the call is invalid
	Bound      JSONText `msgpack:"bound,omitempty" json:"bound,omitempty"`           // values fixed on the server's side
	Queue      string   `msgpack:"queue" json:"queue"`                               // QueueNone when Decision holds the outcome
	Effect     string   `msgpack:"effect,omitempty" json:"effect,omitempty"`         // of the tool
	Idempotent bool     `msgpack:"idempotent,omitempty" json:"idempotent,omitempty"` // absent: run-once
	TimeoutMS  int64    `msgpack:"timeout_ms,omitempty" json:"timeout_ms,omitempty"` // the tool's own bound on running
	WithinMS   int64    `msgpack:"within_ms,omitempty" json:"within_ms,omitempty"`   // bound on waiting plus running, from publish
	Digest     string   `msgpack:"digest,omitempty" json:"digest,omitempty"`         // of the tool's schema
	Notes      []string `msgpack:"notes,omitempty" json:"notes,omitempty"`           // what normalising changed, such as "arguments unwrapped"
	Aborts     bool     `msgpack:"aborts,omitempty" json:"aborts,omitempty"`         // its failure ends the run
	Budget     Budget   `msgpack:"budget,omitempty" json:"budget,omitzero"`          // of an agent's call: its share of what the run may still spend
	Decision   Decision `msgpack:"decision" json:"decision"`                         // taken once; resuming replays it
}

// Action is what was decided about a call.
type Action string

// The decisions. All but ActionAllow and ActionAsk hold the call's outcome.
const (
	ActionAllow    Action = "allow"
	ActionAsk      Action = "ask"      // it runs when a verdict approves exactly this call
	ActionInvalid  Action = "invalid"  // structure; the model reads TOOL_ERROR
	ActionDeny     Action = "deny"     // the model reads DENIED
	ActionGuide    Action = "guide"    // the model reads GUIDANCE
	ActionRedirect Action = "redirect" // the model reads REDIRECT
)

// Decision is what was decided about a call before it was published, and by which rule. The zero Decision is not
// valid on the wire; readers treat an unknown action as a denial.
type Decision struct {
	Action Action    `msgpack:"action" json:"action"`                 // one of the actions; an unknown one is a denial
	Rule   string    `msgpack:"rule,omitempty" json:"rule,omitempty"` // that decided
	Text   string    `msgpack:"text,omitempty" json:"text,omitempty"` // reason, feedback, suggestion or error message
	Type   ErrorType `msgpack:"type,omitempty" json:"type,omitempty"` // with ActionInvalid
}

// Outcome returns the result that d means for call c; ok is false when the call may run, be it after a verdict.
func (d Decision) Outcome(c *Call) (r Result, ok bool) {
	switch d.Action {
	case ActionAllow, ActionAsk:
		return Result{}, false
	case ActionInvalid:
		return c.Fail(d.Type, d.Text), true
	case ActionGuide:
		return c.stopped(GuidanceText(d.Text)), true
	case ActionRedirect:
		return c.stopped(RedirectText(d.Text)), true
	default:
		return c.stopped(DeniedText(d.Text)), true
	}
}

func (c *Call) stopped(text string) Result {
	return Result{Run: c.Run, Turn: c.Turn, Index: c.Index, Output: CleanText(text), Error: &Error{Type: Denied, Message: CleanText(text)}}
}
