package schema

// AgentSpec is a resolved agent: what its file says, with defaults filled in. It travels in a run's open fact.
type AgentSpec struct {
	ID           string    `msgpack:"id" json:"id"`                                         // its tool name for those who hand off to it
	Name         string    `msgpack:"name,omitempty" json:"name,omitempty"`                 // for people; the id where it is empty
	Model        ModelSpec `msgpack:"model" json:"model"`                                   // what answers
	Instructions string    `msgpack:"instructions,omitempty" json:"instructions,omitempty"` // the system prompt
	Tools        []string  `msgpack:"tools,omitempty" json:"tools,omitempty"`               // names, globs, or queue/name
	Limits       Limits    `msgpack:"limits" json:"limits"`                                 // of an exchange
	Parallel     Parallel  `msgpack:"parallel" json:"parallel"`                             // how the calls of a turn are executed

	Compaction *Compaction `msgpack:"compaction,omitempty" json:"compaction,omitempty"` // of the memory; absent: never
	Governance *Governance `msgpack:"governance,omitempty" json:"governance,omitempty"` // absent: every call of its tools may run
}

// ModelSpec names a model.
type ModelSpec struct {
	Provider string   `msgpack:"provider" json:"provider"`                   // openai, anthropic or replay
	Name     string   `msgpack:"name" json:"name"`                           // as the provider calls it
	Options  JSONText `msgpack:"options,omitempty" json:"options,omitempty"` // an object of request options, such as temperature

	ContextWindow int64 `msgpack:"context_window,omitempty" json:"context_window,omitempty"` // tokens that a request may hold; 0: 128000

	Price Price `msgpack:"price,omitempty" json:"price,omitzero"` // what it costs; absent: nobody counts
}

// Price is what a model costs, in US dollars for a million tokens.
type Price struct {
	Input  float64 `msgpack:"input,omitempty" json:"input,omitempty"`   // of the prompt
	Output float64 `msgpack:"output,omitempty" json:"output,omitempty"` // of the answer
}

// Cost returns what an answer cost, in US dollars.
func (p Price) Cost(u Usage) float64 {
	return (float64(u.Input)*p.Input + float64(u.Output)*p.Output) / 1e6
}

// Limits bound one exchange (MaxTokens: the whole run). 0 is no limit.
type Limits struct {
	MaxSteps    int   `msgpack:"max_steps" json:"max_steps"`         // model turns; default 20
	WallClockMS int64 `msgpack:"wall_clock_ms" json:"wall_clock_ms"` // default 300000
	MaxTokens   int64 `msgpack:"max_tokens" json:"max_tokens"`       // input plus output

	MaxCost float64 `msgpack:"max_cost,omitempty" json:"max_cost,omitempty"` // of the whole run, in US dollars; it takes a price
}

// DefaultLimits are the limits of an agent that sets none: 20 steps, 5 minutes, any number of tokens.
func DefaultLimits() Limits { return Limits{MaxSteps: 20, WallClockMS: 300_000} }

// Parallel says how the calls of one turn are executed.
type Parallel struct {
	Calls     bool  `msgpack:"calls" json:"calls"`                               // parallelToolCalls: false is one after another
	Max       int   `msgpack:"max,omitempty" json:"max,omitempty"`               // maxParallelToolCalls: at most so many under way; ≤ 0: no cap
	TimeoutMS int64 `msgpack:"timeout_ms,omitempty" json:"timeout_ms,omitempty"` // toolCallTimeoutMillis, each call from its publish; ≤ 0: none
}
