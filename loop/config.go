package loop

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// finalTurn is the default of Config.FinalTurn.
const finalTurn = 30 * time.Second

// Config is what an Agent is made of. Agent, Model, Principal and either Bus or Journal and Dispatcher are required.
type Config struct {
	Agent      schema.AgentSpec
	Model      Model
	Journal    Journal
	Dispatcher Dispatcher
	Bus        interface { // sets Journal and Dispatcher where they are nil
		Journal
		Dispatcher
	}
	Outputs  Outputs  // default: Bus, if it is one; nil: what is left out of a long output stays unread
	Registry Registry // nil: no tools
	Guards   []Guard
	// InputFilters change what sub-agents are told, by the names of their tools.
	InputFilters map[string]InputFilter
	Hooks        Hooks            // around prompts and model requests
	Listener     Listener         // hears of tool calls; nil: nobody does
	Chain        string           // names the guards and hooks that are code, such as a version; only a process with the same one goes on with a run
	Events       func(Event)      // gets the runs' events, see Event; one that panics misses that event; nil: nobody listens
	Principal    schema.Principal // on whose behalf the runs act, and what it may do; required, of a Host by each run's message
	Instance     string           // id of this process; default: that of Bus, or a fresh id
	Logger       *slog.Logger     // default: nothing is logged
	FinalTurn    time.Duration    // bound on the turn that follows a limit; default 30 s
	Yield        <-chan struct{}  // closed when runs shall be left as they are, for a process that resumes them; nil: never
	NoLimits     bool             // no limit of Agent.Limits and no repeat limit applies: for replaying a transcript
}

// withDefaults fills in what may be left out.
func (c Config) withDefaults() Config {
	if c.Bus != nil {
		if c.Journal == nil {
			c.Journal = c.Bus
		}
		if c.Dispatcher == nil {
			c.Dispatcher = c.Bus
		}
		if c.Outputs == nil {
			c.Outputs, _ = c.Bus.(Outputs)
		}
		// Who asks whether a run's owner is alive asks for it by this name, on the bus.
		if named, ok := c.Bus.(interface{ Instance() string }); ok && c.Instance == "" {
			c.Instance = named.Instance()
		}
	}
	if c.Instance == "" {
		c.Instance = schema.NewID()
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.FinalTurn == 0 {
		c.FinalTurn = finalTurn
	}
	return c
}

// validate names everything that is missing or wrong, not only the first.
func (c Config) validate() error {
	l, compaction, scopes := c.Agent.Limits, c.Agent.Compaction.Check(), schema.CheckScopes(c.Principal.Scopes)
	subagents := checkSubagents(&c.Agent)
	checks := []struct {
		bad bool
		say string
	}{
		{c.Agent.ID == "", "Agent.ID is missing"},
		{c.Model == nil, "Model is missing"},
		{c.Journal == nil, "Journal is missing (or set Bus)"},
		{c.Dispatcher == nil, "Dispatcher is missing (or set Bus)"},
		{c.Principal.ID == "", "Principal.ID is missing: on whose behalf do the runs act?"},
		{len(c.Principal.Scopes) == 0, "Principal.Scopes are missing: what may be done on its behalf? such as tool:read_*, or tool:* for every tool"},
		{scopes != nil, fmt.Sprintf("Principal.Scopes: %v", scopes)},
		{!schema.ValidID(c.Instance), fmt.Sprintf("Instance %.80q: want 1 to 64 of A-Z, a-z, 0-9, '_', '-'", c.Instance)},
		{c.FinalTurn < 0, "FinalTurn is negative"},
		{l.MaxSteps < 0 || l.WallClockMS < 0 || l.MaxTokens < 0, "a limit of Agent.Limits is negative (0 is no limit)"},
		{slices.Contains(c.Guards, nil), "a guard is nil"},
		{c.Agent.Model.ContextWindow < 0, "Agent.Model.ContextWindow is negative"},
		{l.MaxCost < 0 || l.MaxCost > 0 && c.Agent.Model.Price == schema.Price{}, "Agent.Limits.MaxCost takes a price, Agent.Model.Price, and is not negative"},
		{subagents != "", "Agent.Governance: " + subagents},
		{compaction != nil, fmt.Sprintf("Agent.Compaction: %v", compaction)},
	}
	var errs []error
	for _, check := range checks {
		if check.bad {
			errs = append(errs, errors.New(check.say))
		}
	}
	return errors.Join(errs...)
}
