package looptest

import (
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/jetcrew/jetcrew/loop"
)

// Events collects an event stream; Add is the sink.
type Events struct {
	mu   sync.Mutex
	list []loop.Event
}

// Add appends an event.
func (e *Events) Add(ev loop.Event) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.list = append(e.list, ev)
}

// List returns the events so far.
func (e *Events) List() []loop.Event {
	e.mu.Lock()
	defer e.mu.Unlock()
	return append([]loop.Event(nil), e.list...)
}

// Of returns the events of one type.
func (e *Events) Of(t loop.EventType) []loop.Event {
	var of []loop.Event
	for _, ev := range e.List() {
		if ev.Type == t {
			of = append(of, ev)
		}
	}
	return of
}

// Lines returns the stream in short form, one event a line: its type, and of a call its index.
func (e *Events) Lines() string {
	var b strings.Builder
	for _, ev := range e.List() {
		b.WriteString(string(ev.Type))
		if ev.Call != nil {
			fmt.Fprintf(&b, " %d", ev.Call.Index)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// Check returns an error when the events of one run break what the stream promises: gapless numbers, every start with
// its end, calls and results in call order, no result before it has settled, nothing after run_end.
func Check(events []loop.Event) error {
	c := checker{}
	for i, ev := range events {
		if ev.Seq != uint64(i+1) {
			return fmt.Errorf("event %d has the number %d", i+1, ev.Seq)
		}
		if err := c.next(ev); err != nil {
			return fmt.Errorf("event %d, %s: %w", ev.Seq, ev.Type, err)
		}
	}
	if c.state != "over" {
		return fmt.Errorf("the stream ends in state %q", c.state)
	}
	return nil
}

// checker follows the stream through its states: "", run, step, compact, model, calls, over.
type checker struct {
	state          string
	calls, results int
	steps          int
	settled        map[int]bool
	handed         map[int]bool // handoffs of the turn that have begun, and whether they have ended
}

// moves are the events that lead from one state to another.
var moves = map[string]map[loop.EventType]string{
	"":        {loop.EventRunStart: "run"},
	"run":     {loop.EventStepStart: "step", loop.EventFinalOutput: "run", loop.EventError: "run", loop.EventRunEnd: "over"},
	"step":    {loop.EventToolCall: "calls", loop.EventCompactionStart: "compact", loop.EventModelRequest: "model", loop.EventError: "step", loop.EventFinalOutput: "step", loop.EventStepEnd: "run"},
	"compact": {loop.EventModelRetry: "compact", loop.EventCompactionEnd: "step"},
	"model":   {loop.EventModelRetry: "model", loop.EventModelDelta: "model", loop.EventModelResponse: "calls"},
	"calls": {
		loop.EventToolCall: "calls", loop.EventApprovalRequested: "calls", loop.EventApprovalSettled: "calls", loop.EventToolProgress: "calls", loop.EventToolSettled: "calls", loop.EventToolResult: "calls",
		loop.EventHandoffStart: "calls", loop.EventHandoffEnd: "calls",
		loop.EventCompactionStart: "compact", loop.EventError: "step", loop.EventFinalOutput: "step", loop.EventStepEnd: "run",
	},
}

func (c *checker) next(ev loop.Event) error {
	to, ok := moves[c.state][ev.Type]
	if !ok {
		return fmt.Errorf("not in state %q", c.state)
	}
	if to != "calls" && c.results != c.calls {
		return fmt.Errorf("%d of %d calls have a result", c.results, c.calls)
	}
	if ev.Type == loop.EventStepStart {
		c.steps++
	}
	if c.state == "step" && to == "calls" && c.steps > 1 {
		return errors.New("only the first step may go on with an earlier owner's turn")
	}
	c.state = to
	if ev.Type == loop.EventStepStart || ev.Type == loop.EventModelRequest {
		c.calls, c.results, c.settled, c.handed = 0, 0, make(map[int]bool), make(map[int]bool)
	}
	return c.call(ev)
}

func (c *checker) call(ev loop.Event) error {
	switch ev.Type {
	case loop.EventToolCall:
		if ev.Call.Index != c.calls || len(c.settled) > 0 {
			return fmt.Errorf("call %d is out of order", ev.Call.Index)
		}
		c.calls++
	case loop.EventToolSettled:
		if c.settled[ev.Call.Index] {
			return fmt.Errorf("call %d has settled twice", ev.Call.Index)
		}
		if ended, ok := c.handed[ev.Call.Index]; ok && !ended {
			return fmt.Errorf("call %d has settled before its handoff has ended", ev.Call.Index)
		}
		c.settled[ev.Call.Index] = true
	case loop.EventHandoffStart, loop.EventHandoffEnd:
		ended, ok := c.handed[ev.Call.Index]
		if end := ev.Type == loop.EventHandoffEnd; end != ok || ended {
			return fmt.Errorf("the handoff of call %d has begun: %t, ended: %t", ev.Call.Index, ok, ended)
		}
		c.handed[ev.Call.Index] = ok
	case loop.EventToolProgress:
		if c.settled[ev.Call.Index] {
			return fmt.Errorf("call %d has settled already", ev.Call.Index)
		}
	case loop.EventToolResult:
		if ev.Call.Index != c.results || !c.settled[ev.Call.Index] {
			return fmt.Errorf("result %d is out of order", ev.Call.Index)
		}
		c.results++
	}
	return nil
}
