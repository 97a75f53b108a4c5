package schema

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// handoffDepth is the default of Handoff.MaxDepth.
const handoffDepth = 1

// WhyAttempt is the Why of the stop slot that the owner of a sub-agent's run writes when the time of the attempt is over.
const WhyAttempt = "the time of this attempt is over"

// Subagent returns the sub-agent whose tool has a name, nil when there is none.
func (g *Governance) Subagent(tool string) *Subagent {
	if g == nil {
		return nil
	}
	for i := range g.Subagents {
		if g.Subagents[i].ToolName() == tool {
			return &g.Subagents[i]
		}
	}
	return nil
}

// HandoffOf returns the policy that holds for a sub-agent: its own, or else that of the agent.
func (g *Governance) HandoffOf(s *Subagent) Handoff {
	switch {
	case s.Handoff != nil:
		return *s.Handoff
	case g != nil && g.Handoff != nil:
		return *g.Handoff
	}
	return Handoff{}
}

// handoffQueue is how long a sub-agent's call may wait to be taken, and its attempts to follow each other, in milliseconds.
const handoffQueue = 60_000

// HandoffWithin bounds the call of a sub-agent whose attempts have a timeout, waiting in the queue included, in milliseconds:
// one that nobody serves must not be waited for for ever. 0: there is no bound of its own.
func (g *Governance) HandoffWithin(tool string) int64 {
	s := g.Subagent(tool)
	if s == nil {
		return 0
	}
	h := g.HandoffOf(s)
	if h.TimeoutMS <= 0 {
		return 0
	}
	attempts := int64(1 + max(0, h.MaxRetries))
	if h.TimeoutMS > (maxWithin-handoffQueue)/attempts {
		return maxWithin
	}
	return attempts*h.TimeoutMS + handoffQueue
}

// maxWithin is the longest time that a time.Duration holds, in milliseconds.
const maxWithin = math.MaxInt64 / int64(time.Millisecond)

// ToolName is the name by which the model calls the sub-agent.
func (s *Subagent) ToolName() string { return cmp.Or(s.Name, SubagentName(s.Agent)) }

// Refuses says why the policy does not let a tool be called, "" when it does. depth is how many runs stand above the one
// that the call would start.
func (h *Handoff) Refuses(tool string, depth int) (why string) {
	limit := cmp.Or(h.MaxDepth, handoffDepth)
	switch {
	case slices.Contains(h.Denied, tool):
		return "tool is in deniedTools"
	case len(h.Allowed) > 0 && !slices.Contains(h.Allowed, tool):
		return "tool is not in allowedTools"
	case limit > 0 && depth > limit:
		return fmt.Sprintf("handoff depth %d exceeds maxDepth %d", depth, limit)
	case depth > MaxDepth:
		return fmt.Sprintf("handoff depth %d exceeds maxDepth %d", depth, MaxDepth)
	}
	return ""
}

// Denial is what the model reads behind DENIED when a handoff is refused.
func (h *Handoff) Denial(why string) string {
	if h.OnDenied == HandoffFallback {
		return WithFallback(why, h.Fallback)
	}
	return why
}

// WithFallback marks a fallback as what it is: it stands beside the failure and is not the sub-agent's answer.
func WithFallback(why, fallback string) string {
	if fallback == "" {
		return why
	}
	return why + fallbackMark + fallback
}

const fallbackMark = ". Fallback instead of the sub-agent's answer: "

// HasFallback tells whether a fallback stands in a text, as WithFallback puts it there.
func HasFallback(text string) bool { return strings.Contains(text, fallbackMark) }

// Handed is the output of a sub-agent's call, a JSON object.
type Handed struct {
	Subagent string `json:"subagent"` // id of the agent
	ToolName string `json:"toolName"` // as the model called it
	Output   string `json:"output"`   // what the agent answered
	Steps    int    `json:"steps"`    // turns of the attempt that answered
}
