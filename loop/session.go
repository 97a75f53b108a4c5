package loop

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// The calls of a sub-agent whose session is reused are runs of their own like all others, each of which goes on with the
// conversation of the one before:
//
//	parent   call 1.0 ─────────► result, ok ──► call 1.1 ──► result, failed ──► call 3.0
//	child    open ─► answer                     open (previous: of 1.0)         open (previous: of 1.0)
//
// Which one that is follows from the parent's facts alone, so whoever resumes the parent names the same. The conversation
// is copied into the open: it does not change any more, and is there as long as the run is.

// reuses tells whether a call is one of a sub-agent whose session is reused.
func (x *exchange) reuses(c *schema.TurnCall) bool {
	if !isHandoff(c) {
		return false
	}
	s := x.agent.cfg.Agent.Governance.Subagent(c.Tool)
	return s != nil && s.Session == schema.SessionReuse
}

// inSession returns the calls of a turn that are settled before call i starts, because they are of the same session; the
// last one first.
func (x *exchange) inSession(t *schema.Turn, i int) (before []int) {
	if !x.reuses(&t.Calls[i]) {
		return nil
	}
	for j := i - 1; j >= 0; j-- {
		if t.Calls[j].Tool == t.Calls[i].Tool && mayRun(&t.Calls[j]) {
			before = append(before, j)
		}
	}
	return before
}

// held tells whether call i waits for an earlier one of its session.
func (s *starter) held(i int) bool {
	return slices.ContainsFunc(s.inSession(s.order.turn, i), func(j int) bool { return s.order.slots[j] == nil })
}

// next takes the first call that may start from those that are ready; false: there is none.
func (s *starter) next() (i int, ok bool) {
	for at, i := range s.ready {
		if !s.held(i) {
			s.ready = slices.Delete(s.ready, at, at+1)
			return i, true
		}
	}
	return 0, false
}

// previous returns the run that call i goes on with, "" when it is the first one of its session. An error: how the
// one before it came out is not known.
func (s *starter) previous(i int) (run string, err error) {
	t := s.order.turn
	if !s.reuses(&t.Calls[i]) {
		return "", nil
	}
	for _, j := range s.inSession(t, i) {
		switch a := s.order.slots[j]; {
		case a.err != nil:
			return "", fmt.Errorf("call %d of its session: %w", j, a.err)
		case a.result.OK:
			return attemptOf(s.id, t.N, j, &a.result), nil
		}
	}
	for n := t.N - 1; n >= 1; n-- {
		before := s.state.Turn(n)
		for j := len(before.Calls) - 1; j >= 0; j-- {
			c, r := &before.Calls[j], s.state.Result(n, j)
			if c.Tool == t.Calls[i].Tool && isHandoff(c) && c.Queue == schema.QueueAgents && r != nil && r.OK {
				return attemptOf(s.id, n, j, r), nil
			}
		}
	}
	return "", nil
}

// attemptOf returns the run that answered a call.
func attemptOf(run string, turn, index int, r *schema.Result) string {
	return schema.ChildRun(run, turn, index, max(1, r.Spent.Attempts))
}

// forgotten stands in for a conversation that is not kept any more.
const forgotten = "[The tasks before this one are not kept any more.]"

// earlier puts the conversation that the call goes on with into o. It returns why the call may not start.
func (c *child) earlier(ctx context.Context, o *schema.Open) (*schema.Error, error) {
	if c.policy == nil || c.policy.Previous == "" {
		return nil, nil
	}
	facts, err := c.host.cfg.Journal.Facts(ctx, c.policy.Previous, 0)
	if err != nil {
		return nil, fmt.Errorf("read the session of call %s: %w", c.call, err)
	}
	m := memory.New()
	for _, f := range facts {
		if err := m.Apply(f); err != nil {
			c.host.cfg.Logger.Warn("a fact of a session was not read", "run", c.run.Run, "error", err)
		}
	}
	open := m.Open()
	switch {
	case open != nil && !c.follows(open):
		return &schema.Error{Type: schema.Denied, Message: "the run that this task goes on with is no earlier one of the same sub-agent"}, nil
	case open != nil && m.Answers() > 0: // which is written behind everything that the conversation holds
		o.Before = m.Conversation(handedOn(o.Agent))
	case c.run.Delivery <= maxUnknown: // a replica may be behind, and absence must not decide
		return nil, fmt.Errorf("the run %s that call %s goes on with is not readable yet", c.policy.Previous, c.call)
	default:
		o.Before = []schema.Message{{Role: schema.RoleUser, Text: forgotten}}
	}
	return nil, nil
}

// follows tells whether the call may go on with a run: one that worked on an earlier call of the same sub-agent of the
// same parent. Anything else would show one run's conversation to another, whoever published the call.
func (c *child) follows(open *schema.Open) bool {
	p, h := open.Parent, open.Handoff
	switch {
	case p == nil || h == nil || open.Agent == nil:
		return false
	case p.Run != c.call.Run || h.Name != c.policy.Name || open.Agent.ID != c.call.Tool:
		return false
	}
	return p.Turn < c.call.Turn || p.Turn == c.call.Turn && p.Index < c.call.Index
}

// handedOn is how many tokens of a conversation an agent goes on with: what fits into its context window where its
// compaction makes room, else half of that.
func handedOn(spec *schema.AgentSpec) int64 {
	window := cmp.Or(spec.Model.ContextWindow, schema.DefaultContextWindow)
	if spec.Compaction == nil {
		window /= 2
	}
	return window
}
