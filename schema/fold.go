package schema

import (
	"errors"
	"fmt"
)

// The strategies of a compaction.
const (
	CompactWindow  = "window"  // earlier turns are left out of the prompt
	CompactSummary = "summary" // a model's summary stands in for them
)

// What sets a compaction off, Fold.Trigger.
const (
	TriggerRatio    = "context_ratio"    // the prompt fills the wanted part of the model's context window
	TriggerTurns    = "max_turns"        // so many turns stand in the prompt
	TriggerOverflow = "context_overflow" // the provider found the prompt too large
)

// DefaultContextWindow stands in for a context window that ModelSpec does not say, in tokens.
const DefaultContextWindow = 128_000

// defaultPreserve is how many of the newest turns a compaction keeps when Compaction does not say it.
const defaultPreserve = 4

// Compaction says when an agent's memory is compacted, and how. A prompt that the provider finds too large is compacted
// whatever the triggers are.
type Compaction struct {
	Strategy     string  `msgpack:"strategy" json:"strategy"`                               // window or summary
	ContextRatio float64 `msgpack:"context_ratio,omitempty" json:"context_ratio,omitempty"` // trigger: part of the context window that the prompt fills, in (0, 1]; 0: none
	MaxTurns     int     `msgpack:"max_turns,omitempty" json:"max_turns,omitempty"`         // trigger: turns in the prompt, at least 2; 0: none
	Preserve     int     `msgpack:"preserve,omitempty" json:"preserve,omitempty"`           // newest turns that stay as they are, if they fit; 0: 4, or one less than max_turns
}

// Keep is Preserve with its default.
func (c *Compaction) Keep() int {
	switch {
	case c.Preserve > 0:
		return c.Preserve
	case c.MaxTurns > 0:
		return min(defaultPreserve, c.MaxTurns-1)
	}
	return defaultPreserve
}

// Check returns what is wrong with c; nil is no compaction, and fine.
func (c *Compaction) Check() error {
	switch {
	case c == nil:
		return nil
	case c.Strategy != CompactWindow && c.Strategy != CompactSummary:
		return fmt.Errorf("compaction: strategy %.40q: want %s or %s", c.Strategy, CompactWindow, CompactSummary)
	case !(c.ContextRatio >= 0 && c.ContextRatio <= 1): // NaN too
		return errors.New("compaction: the context ratio is not in (0, 1]")
	case c.MaxTurns < 0 || c.MaxTurns == 1 || c.Preserve < 0:
		return errors.New("compaction: want max turns of at least 2 and no negative number")
	case c.MaxTurns > 0 && c.Keep() >= c.MaxTurns:
		return errors.New("compaction: it must keep fewer turns than set it off")
	}
	return nil
}

// Fold is a compaction of everything up to turn n, the number of its key: the prompt goes on with turn n+1. The one
// with the highest number counts. Number 0 compacts the conversation that the run's open brings, and no turn.
type Fold struct {
	Payload
	N        int    `msgpack:"n" json:"n"`                             // last turn that is compacted
	Own      int    `msgpack:"own" json:"own"`                         // ctl slot of the owner that wrote it
	Strategy string `msgpack:"strategy" json:"strategy"`               // window or summary
	Trigger  string `msgpack:"trigger" json:"trigger"`                 // context_ratio, max_turns or context_overflow
	Turns    int    `msgpack:"turns" json:"turns"`                     // turns there were when it was written
	Say      int    `msgpack:"say" json:"say"`                         // last say that is compacted; later ones stay
	Text     string `msgpack:"text,omitempty" json:"text,omitempty"`   // the summary
	Model    string `msgpack:"model,omitempty" json:"model,omitempty"` // that wrote the summary, as the provider names it
	Usage    Usage  `msgpack:"usage" json:"usage"`                     // of the summary's request
	AtMS     int64  `msgpack:"at_ms,omitempty" json:"at_ms,omitempty"` // Unix ms
}
