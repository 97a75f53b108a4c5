package schema

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Principal is on whose behalf a run acts.
type Principal struct {
	ID     string   `msgpack:"id,omitempty" json:"id,omitempty"`         // the user or service that acts
	Tenant string   `msgpack:"tenant,omitempty" json:"tenant,omitempty"` // the customer it belongs to
	Scopes []string `msgpack:"scopes,omitempty" json:"scopes,omitempty"` // its authority, each tool:, effect:, tenant:, spend:, from: or until: and a value; `and` begins a further authority that must allow too; absent: none is stated
}

// Budget is what a call and everything below it may still spend; 0 is no bound of its own.
type Budget struct {
	Steps  int     `msgpack:"steps,omitempty" json:"steps,omitempty"`   // model turns
	Tokens int64   `msgpack:"tokens,omitempty" json:"tokens,omitempty"` // input plus output
	Cost   float64 `msgpack:"cost,omitempty" json:"cost,omitempty"`     // in US dollars
}

// Spent is what an agent's call has used: its run, with all runs below it.
type Spent struct {
	Steps    int     `msgpack:"steps,omitempty" json:"steps,omitempty"`       // model turns
	Usage    Usage   `msgpack:"usage,omitempty" json:"usage,omitzero"`        // tokens
	Cost     float64 `msgpack:"cost,omitempty" json:"cost,omitempty"`         // in US dollars, as far as prices are known
	Attempts int     `msgpack:"attempts,omitempty" json:"attempts,omitempty"` // runs that the call itself took; absent: one
}

// Add returns the sum of both, with the attempts of s.
func (s Spent) Add(t Spent) Spent {
	return Spent{s.Steps + t.Steps, s.Usage.Add(t.Usage), s.Cost + t.Cost, s.Attempts}
}

// Call is one tool call as it is published on the work stream. Its identity is (Run, Turn, Index); Label is only
// the provider's name for it.
type Call struct {
	Payload
	Run        string    `msgpack:"run" json:"run"`                                   // id of the run that asks
	Turn       int       `msgpack:"turn" json:"turn"`                                 // from 1
	Index      int       `msgpack:"index" json:"index"`                               // from 0
	Label      string    `msgpack:"label,omitempty" json:"label,omitempty"`           // the provider's name for the call; callId of the TOOL_ERROR line
	Tool       string    `msgpack:"tool" json:"tool"`                                 // name of the tool, as its queue knows it
	As         string    `msgpack:"as,omitempty" json:"as,omitempty"`                 // name of the tool as the model called it, where that differs
	Source     string    `msgpack:"source,omitempty" json:"source,omitempty"`         // where the tool came from, such as the name of an MCP server
	Args       JSONText  `msgpack:"args" json:"args"`                                 // an object; absent: {}
	Bound      JSONText  `msgpack:"bound,omitempty" json:"bound,omitempty"`           // an object: values fixed on the server's side, never merged into Args
	Agent      string    `msgpack:"agent,omitempty" json:"agent,omitempty"`           // id of the agent that asks
	Principal  Principal `msgpack:"principal,omitempty" json:"principal,omitzero"`    // on whose behalf
	Effect     string    `msgpack:"effect,omitempty" json:"effect,omitempty"`         // of the tool, as the caller knows it
	Idempotent bool      `msgpack:"idempotent,omitempty" json:"idempotent,omitempty"` // may run more than once; absent: it is run-once
	TimeoutMS  int64     `msgpack:"timeout_ms,omitempty" json:"timeout_ms,omitempty"` // bound on running, in milliseconds
	Digest     string    `msgpack:"digest,omitempty" json:"digest,omitempty"`         // of the tool's schema
	Depth      int       `msgpack:"depth,omitempty" json:"depth,omitempty"`           // 0: called by a run that has no parent
	Lineage    []string  `msgpack:"lineage,omitempty" json:"lineage,omitempty"`       // ids of the runs above
	Budget     Budget    `msgpack:"budget,omitempty" json:"budget,omitzero"`          // what it may spend
	Previous   string    `msgpack:"previous,omitempty" json:"previous,omitempty"`     // of a sub-agent's call whose session is reused: the run that it goes on with
}

// DecodeCall reads a call and checks what every reader needs before it can even refuse it: run, turn, index and
// tool are there and well formed. Absent arguments are {}.
func DecodeCall(data []byte) (*Call, error) {
	c := Call{Turn: -1, Index: -1}
	if err := Decode(data, &c); err != nil {
		return nil, fmt.Errorf("call: %w", err)
	}
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("call: %w: %w", ErrPayload, err)
	}
	if c.Args == "" {
		c.Args = "{}"
	}
	return &c, nil
}

func (c *Call) check() error {
	switch {
	case !ValidID(c.Run):
		return fmt.Errorf("run %.80q: want 1 to 64 of A-Z, a-z, 0-9, '_', '-'", c.Run)
	case c.Turn > math.MaxInt32 || c.Index > math.MaxInt32: // no fact could name it
		return errors.New("turn or index is above 2147483647")
	case c.Turn < 0:
		return errors.New("turn is missing or negative")
	case c.Index < 0:
		return errors.New("index is missing or negative")
	case c.Tool == "":
		return errors.New("tool is missing")
	case c.Previous != "" && !ValidID(c.Previous): // its facts are read: a wildcard would mean those of all runs
		return fmt.Errorf("previous %.80q: want the id of a run", c.Previous)
	}
	if i := slices.IndexFunc(c.Lineage, func(run string) bool { return !ValidID(run) }); i >= 0 {
		return fmt.Errorf("lineage %.80q: want ids of runs", c.Lineage[i])
	}
	return nil
}

// Key of the one result of c when it ran on queue.
func (c *Call) ResultKey(queue string) Key { return ResultKey(c.Turn, c.Index, queue) }

// String returns the call's identity for logs and errors: run/turn.index.
func (c *Call) String() string { return fmt.Sprintf("%s/%d.%d", c.Run, c.Turn, c.Index) }
