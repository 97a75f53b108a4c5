package schema

// The kinds of runs, Open.Kind.
const (
	RunAgent = "run"  // an agent's run
	RunCall  = "call" // one call outside any run
)

// Open is a run's first fact: everything that another orchestrator needs to carry the run on.
type Open struct {
	Payload
	Kind       string            `msgpack:"kind" json:"kind"`                                   // "run" or "call"
	Agent      *AgentSpec        `msgpack:"agent,omitempty" json:"agent,omitempty"`             // of a run
	Chain      string            `msgpack:"chain,omitempty" json:"chain,omitempty"`             // digest of the agent's code chain; empty: none
	Principal  Principal         `msgpack:"principal,omitempty" json:"principal,omitzero"`      // on whose behalf
	Parent     *CallRef          `msgpack:"parent,omitempty" json:"parent,omitempty"`           // the call that this run answers; absent: a run of its own
	Depth      int               `msgpack:"depth,omitempty" json:"depth,omitempty"`             // runs above this one
	Lineage    []string          `msgpack:"lineage,omitempty" json:"lineage,omitempty"`         // their ids, from the topmost
	Budget     Budget            `msgpack:"budget,omitempty" json:"budget,omitzero"`            // what it may spend, beside the limits of the agent
	Handoff    *Handover         `msgpack:"handoff,omitempty" json:"handoff,omitempty"`         // of a sub-agent's run
	Before     []Message         `msgpack:"before,omitempty" json:"before,omitempty"`           // the conversation that it goes on with: that of handoff.previous
	DeadlineMS int64             `msgpack:"deadline_ms,omitempty" json:"deadline_ms,omitempty"` // of the parent call, server clock, Unix ms
	Keep       bool              `msgpack:"keep,omitempty" json:"keep,omitempty"`               // stays open after its answer, for further messages
	Trace      map[string]string `msgpack:"trace,omitempty" json:"trace,omitempty"`             // W3C trace context of the run
	AtMS       int64             `msgpack:"at_ms,omitempty" json:"at_ms,omitempty"`             // Unix ms
}

// Handover says as which attempt of which sub-agent's call a run works.
type Handover struct {
	Name      string `msgpack:"name" json:"name"`                                 // of the tool, as the model of the parent called it
	Attempt   int    `msgpack:"attempt" json:"attempt"`                           // from 1
	Retries   int    `msgpack:"retries,omitempty" json:"retries,omitempty"`       // attempts that may follow the first one
	TimeoutMS int64  `msgpack:"timeout_ms,omitempty" json:"timeout_ms,omitempty"` // of one attempt, from its open on; 0: none of its own
	Fallback  string `msgpack:"fallback,omitempty" json:"fallback,omitempty"`     // what the parent reads beside the failure of the last attempt
	Session   string `msgpack:"session,omitempty" json:"session,omitempty"`       // reuse; absent: the run knows of no other one
	Previous  string `msgpack:"previous,omitempty" json:"previous,omitempty"`     // of a session that is reused: the run whose conversation this one goes on with; absent: it is the first one
	Spent     Spent  `msgpack:"spent,omitempty" json:"spent,omitzero"`            // by the attempts before
}

// CallRef names a call.
type CallRef struct {
	Run   string `msgpack:"run" json:"run"`                         // id of the run that asks
	Turn  int    `msgpack:"turn" json:"turn"`                       // from 1
	Index int    `msgpack:"index" json:"index"`                     // from 0
	Label string `msgpack:"label,omitempty" json:"label,omitempty"` // the provider's name for the call
}

// What a ctl slot says.
const (
	CtlOwn  = "own"
	CtlStop = "stop"
)

// WhyClose is the Why of a stop slot that closes a kept conversation as answered, once nothing waits for an answer.
const WhyClose = "close"

// Ctl is a numbered slot of control: who owns the run, or that it shall stop.
type Ctl struct {
	Payload
	Act      string `msgpack:"act" json:"act"`                               // "own" or "stop"
	Instance string `msgpack:"instance,omitempty" json:"instance,omitempty"` // who wrote it
	Seq      uint64 `msgpack:"seq,omitempty" json:"seq,omitempty"`           // own: WORK sequence of the message that brought the run; 0: none
	Why      string `msgpack:"why,omitempty" json:"why,omitempty"`           // stop
	AtMS     int64  `msgpack:"at_ms,omitempty" json:"at_ms,omitempty"`       // Unix ms
}

// Say is a message for the agent.
type Say struct {
	Payload
	Role   string `msgpack:"role" json:"role"`                         // "user" or "system"
	Text   string `msgpack:"text" json:"text"`                         // what is said
	Source string `msgpack:"source,omitempty" json:"source,omitempty"` // readers drop a repeated source
	AtMS   int64  `msgpack:"at_ms,omitempty" json:"at_ms,omitempty"`   // Unix ms
}

// Begin says that a worker is about to start a run-once call.
type Begin struct {
	Payload
	Instance string `msgpack:"instance" json:"instance"` // of the worker; it answers on its own-subject
	Delivery uint64 `msgpack:"delivery" json:"delivery"` // from the ack subject
	Seq      uint64 `msgpack:"seq" json:"seq"`           // WORK sequence, from the ack subject

	DeadlineMS int64 `msgpack:"deadline_ms,omitempty" json:"deadline_ms,omitempty"` // when its worker has ended it at the latest, server clock; 0: it does not say
}

// Back says that a worker gave a delivery back without having started it.
type Back struct {
	Payload
	Instance string `msgpack:"instance" json:"instance"`                 // of the worker
	Reason   string `msgpack:"reason,omitempty" json:"reason,omitempty"` // for people
}

// Ask says that a call waits for a person. It holds digests of everything that the person decides about; what they
// stand for is in the turn.
type Ask struct {
	Payload
	Tool      string   `msgpack:"tool" json:"tool"`                         // as the model called it
	Target    string   `msgpack:"target,omitempty" json:"target,omitempty"` // as its queue knows it, where that differs
	Source    string   `msgpack:"source,omitempty" json:"source,omitempty"` // where the tool came from
	Queue     string   `msgpack:"queue" json:"queue"`                       // whose workers have it
	Args      string   `msgpack:"args" json:"args"`                         // digest of the exact arguments
	Bound     string   `msgpack:"bound,omitempty" json:"bound,omitempty"`   // digest of the bound values; empty: none
	Schema    string   `msgpack:"schema,omitempty" json:"schema,omitempty"` // digest of the tool's parameters
	Edited    JSONText `msgpack:"edited,omitempty" json:"edited,omitempty"` // the arguments, when they are not those of the turn
	Rule      string   `msgpack:"rule,omitempty" json:"rule,omitempty"`     // that asks
	Text      string   `msgpack:"text,omitempty" json:"text,omitempty"`     // why, for the person
	ExpiresMS int64    `msgpack:"expires_ms" json:"expires_ms"`             // from then on only a refusal counts; server clock, Unix ms
	AtMS      int64    `msgpack:"at_ms,omitempty" json:"at_ms,omitempty"`   // Unix ms
}

// The decisions of a verdict. Any other counts as VerdictDeny.
const (
	VerdictApprove = "approve"
	VerdictDeny    = "deny"
	VerdictExpired = "expired" // written by the owner: nobody decided in time, or the run was stopped
)

// Verdict is the decision on an ask. The first one stands.
type Verdict struct {
	Payload
	Decision string   `msgpack:"decision" json:"decision"`                 // approve, deny or expired
	Digest   string   `msgpack:"digest,omitempty" json:"digest,omitempty"` // of an approval: Ask.Digest of what was approved; another one approves nothing
	Args     JSONText `msgpack:"args,omitempty" json:"args,omitempty"`     // of an approval with other arguments, which are authorised anew
	By       string   `msgpack:"by,omitempty" json:"by,omitempty"`         // who decided
	Why      string   `msgpack:"why,omitempty" json:"why,omitempty"`       // for the model, when refused, and for the record
	AtMS     int64    `msgpack:"at_ms,omitempty" json:"at_ms,omitempty"`   // server clock, Unix ms; an approval without it is late
}

// Sent is the k-th dispatch of a turn.
type Sent struct {
	Payload
	Calls []SentCall `msgpack:"calls" json:"calls"` // one for each call that was published
}

// SentCall says under which WORK sequence a call was stored.
type SentCall struct {
	Index      int    `msgpack:"index" json:"index"`             // of the call within the turn
	Seq        uint64 `msgpack:"seq" json:"seq"`                 // WORK sequence
	DeadlineMS int64  `msgpack:"deadline_ms" json:"deadline_ms"` // server clock, Unix ms
}

// Reason is why an exchange ended.
type Reason string

// The reasons. A limit ends an exchange after one further turn without tools.
const (
	ReasonDone      Reason = "done"
	ReasonMaxSteps  Reason = "max_steps"
	ReasonWallClock Reason = "wall_clock"
	ReasonTokens    Reason = "max_tokens"
	ReasonCost      Reason = "max_cost"
	ReasonRepeat    Reason = "repeated_call"
	ReasonCancelled Reason = "cancelled"
	ReasonAuth      Reason = "model_auth"             // the provider refused the key
	ReasonContext   Reason = "model_context_overflow" // the prompt is larger than the model takes
	ReasonRefused   Reason = "model_refused"          // the model or its provider refused the request
	ReasonModel     Reason = "model_failed"           // the provider failed through all retries
	ReasonEnd       Reason = "transcript_end"         // a replayed transcript has no more turns
	ReasonNoTools   Reason = "tools_missing"          // a named tool has no worker
	ReasonAborted   Reason = "aborted"                // a tool failed whose failure ends the run
	ReasonBlocked   Reason = "prompt_blocked"         // a hook refused the message
)

// Answer is the end of an exchange.
type Answer struct {
	Payload
	Text   string `msgpack:"text" json:"text"`                       // what the agent answers
	Reason Reason `msgpack:"reason" json:"reason"`                   // why the exchange ended
	Error  string `msgpack:"error,omitempty" json:"error,omitempty"` // what went wrong, for people
	Turn   int    `msgpack:"turn" json:"turn"`                       // last turn of the exchange
	Say    int    `msgpack:"say,omitempty" json:"say,omitempty"`     // last say it answers
	Usage  Usage  `msgpack:"usage" json:"usage"`                     // of the exchange
	AtMS   int64  `msgpack:"at_ms,omitempty" json:"at_ms,omitempty"` // Unix ms
}

// Close is a run's last fact.
type Close struct {
	Payload
	State string `msgpack:"state" json:"state"`                     // reason of the last answer, or "stopped"
	Turns int    `msgpack:"turns" json:"turns"`                     // of the whole run
	Calls int    `msgpack:"calls" json:"calls"`                     // of the whole run
	Usage Usage  `msgpack:"usage" json:"usage"`                     // of the whole run
	AtMS  int64  `msgpack:"at_ms,omitempty" json:"at_ms,omitempty"` // Unix ms
}

// What the source of a say begins with that the run's own owner writes.
const (
	SourceCall  = "call:"  // the task of the call that started the run
	SourceLimit = "limit:" // a limit that is reached
	SourceRetry = "retry:" // the task of a further attempt; its run is woken by it
)

// SourceTranscript begins the source of a say that a recorded conversation holds; behind it stands its number there, from 1.
const SourceTranscript = "transcript:"
