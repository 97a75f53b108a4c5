package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sourcegraph/conc/panics"

	"github.com/jetcrew/jetcrew/schema"
)

// order takes the results of a turn as they arrive and delivers them in call order: to the guards, the memory and
// the events. One goroutine uses it.
type order struct {
	x     *exchange
	turn  *schema.Turn
	slots []*arrival // by index of the call; nil: not there yet
	gates []gate     // of the calls' progress
	infos []CallInfo // of the events
	began time.Time
	next  int // the first one that is not delivered
	err   error
}

// newOrder announces all calls of the turn, in call order.
func newOrder(x *exchange, t *schema.Turn) *order {
	o := &order{
		x: x, turn: t, slots: make([]*arrival, len(t.Calls)), gates: make([]gate, len(t.Calls)),
		infos: make([]CallInfo, len(t.Calls)), began: time.Now(),
	}
	for i := range t.Calls {
		c := &t.Calls[i]
		o.gates[i].to = &x.events
		o.infos[i] = CallInfo{Index: i, Label: c.Label, Tool: c.Tool, Queue: c.Queue}
		if x.events.sink != nil {
			first := o.infos[i]
			first.Args, first.Action = c.Args, c.Decision.Action
			x.emit(Event{Type: EventToolCall, Turn: t.N, Call: &first})
		}
	}
	return o
}

// add takes one arrival and delivers what is next in order.
func (o *order) add(a arrival) {
	e := o.event(EventToolSettled, &a)
	e.ElapsedMS = time.Since(o.began).Milliseconds()
	o.x.handoffEnd(o.turn, &o.infos[a.i], e)
	o.gates[a.i].close(e)
	o.slots[a.i] = &a
	for o.next < len(o.slots) && o.slots[o.next] != nil {
		o.deliver(o.slots[o.next])
		o.next++
	}
}

func (o *order) deliver(a *arrival) {
	if a.err == nil {
		a.err = o.remember(a)
	}
	if a.err != nil && o.err == nil {
		o.err = a.err
	}
	e := o.event(EventToolResult, a)
	e.Text, _ = o.x.state.Text(o.turn.N, a.i)
	o.x.events.emit(e)
}

// remember puts a result into the memory, and before it the view, so that no prompt holds what a guard took away.
func (o *order) remember(a *arrival) error {
	c := &o.turn.Calls[a.i]
	if mayRun(c) {
		if err := o.view(c, a); err != nil {
			return err
		}
	}
	o.x.state.Put(schema.ResultKey(o.turn.N, a.i, c.Queue), &a.result)
	return nil
}

// view says what memory shall show: of a handoff that failed the fallback, if its policy has one, and whatever the guards
// make of it; each sees what those before it made of the text.
func (o *order) view(c *schema.TurnCall, a *arrival) error {
	seen, changed := a.result, false
	if text, ok := o.x.fallback(c, &a.result); ok {
		seen.Output, changed = text, true
	}
	for _, g := range o.x.agent.cfg.Guards {
		if text, ok := o.x.askSettle(g, c, seen); ok {
			seen.Output, changed = schema.CleanText(text), true
		}
	}
	if !changed {
		return nil
	}
	err := o.x.write(o.x.ctx, schema.ViewKey(o.turn.N, a.i), &schema.View{Text: seen.Output}, schema.Key{})
	if o.x.resuming && errors.Is(err, schema.ErrExists) {
		return nil // the earlier owner's stands, and is in the memory
	}
	return err
}

// askSettle asks one guard, which gets copies. A guard that panics may be the one that takes secrets out, so the
// output is withheld.
func (x *exchange) askSettle(g Guard, c *schema.TurnCall, r schema.Result) (text string, changed bool) {
	call := *c
	var catch panics.Catcher
	catch.Try(func() { text, changed = g.Settle(x.scene(context.WithoutCancel(x.ctx)), &call, &r) })
	if p := catch.Recovered(); p != nil {
		x.agent.cfg.Logger.Error("a guard panicked", "run", x.id, "tool", c.Tool, "panic", schema.Cut(fmt.Sprint(p.Value), maxPanic), "stack", string(p.Stack))
		return schema.DeniedText("a check of this call's result failed, so the output is withheld; the call did run"), true
	}
	return text, changed
}

func (o *order) event(typ EventType, a *arrival) Event {
	e := Event{Type: typ, Exchange: o.x.k, Turn: o.turn.N, Call: &o.infos[a.i]}
	if a.err != nil {
		e.Error = a.err.Error()
	} else {
		e.Result = &a.result
	}
	return e
}
