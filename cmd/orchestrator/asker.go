package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// asker asks at the terminal about calls that wait for a person, one after the other. Whoever answers elsewhere is heard
// too: the first verdict stands.
type asker struct {
	bus  *bus.Bus
	view *view.View
	out  io.Writer
	by   string

	elsewhere func(command string) string // the line that does it from another terminal
	lines     <-chan string               // what is typed

	mu   sync.Mutex
	open []question
	news chan struct{} // buffered 1
	at   *question     // whose prompt waits at the end of a line
}

// question is one call that waits.
type question struct {
	run  string
	turn int
	call loop.CallInfo
	ask  loop.ApprovalInfo
}

func (q *question) same(o question) bool {
	return q.run == o.run && q.turn == o.turn && q.call.Index == o.call.Index && q.ask.Ask == o.ask.Ask
}

// event notes what is asked and what is settled. It must not block.
func (a *asker) event(e loop.Event) {
	if e.Approval == nil {
		return
	}
	q := question{run: e.Run, turn: e.Turn, call: *e.Call, ask: *e.Approval}
	a.mu.Lock()
	defer a.mu.Unlock()
	if e.Type == loop.EventApprovalRequested {
		a.open = append(a.open, q)
	} else {
		a.drop(q)
	}
	select {
	case a.news <- struct{}{}:
	default:
	}
}

// leave ends the line of a prompt that e makes idle, so that what e says stands on a line of its own.
func (a *asker) leave(e loop.Event) {
	if e.Approval == nil || e.Type == loop.EventApprovalRequested {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at != nil && a.at.same(question{run: e.Run, turn: e.Turn, call: *e.Call, ask: *e.Approval}) {
		a.at = nil
		fmt.Fprintln(a.out)
	}
}

// drop wants a.mu held.
func (a *asker) drop(q question) {
	for i := range a.open {
		if a.open[i].same(q) {
			a.open = append(a.open[:i], a.open[i+1:]...)
			return
		}
	}
}

// first returns the question that is asked now.
func (a *asker) first() (question, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.open) == 0 {
		return question{}, false
	}
	return a.open[0], true
}

// run asks until ctx ends or nothing is typed any more. From a question on the view shows plain lines, until the next turn.
func (a *asker) run(ctx context.Context) {
	for {
		if q, ok := a.first(); ok {
			a.view.Suspend()
			if !a.ask(ctx, q) {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-a.news:
		}
	}
}

// ask asks one question until it is settled, here or elsewhere. false: there is nobody to ask.
func (a *asker) ask(ctx context.Context, q question) bool {
	for typed := true; typed; { // what was typed before the question is no answer to it
		select {
		case _, ok := <-a.lines:
			if !ok {
				return false
			}
		default:
			typed = false
		}
	}
	a.prompt(q)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-a.news:
			if now, ok := a.first(); !ok || !now.same(q) {
				return true
			}
		case line, ok := <-a.lines:
			if !ok {
				return false
			}
			a.mu.Lock()
			a.at = nil // the line is ended by who typed it
			a.mu.Unlock()
			if a.answer(ctx, q, strings.TrimSpace(line)) {
				a.mu.Lock()
				a.drop(q)
				a.mu.Unlock()
				return true
			}
			a.prompt(q)
		}
	}
}

func (a *asker) prompt(q question) {
	args := string(q.call.Args)
	if q.ask.Edited != "" {
		args = string(q.ask.Edited)
	}
	style := a.view.Style()
	fmt.Fprintf(a.out, "%s %d.%d %s %s\n", style.Bold("approve?"), q.turn, q.call.Index, view.Clean(q.call.Tool), view.Clean(args))
	if q.ask.Why != "" {
		fmt.Fprintf(a.out, "  %s\n", strings.ReplaceAll(view.Clean(q.ask.Why), "\n", "\n  "))
	}
	fmt.Fprintf(a.out, "  %s\n", style.Dim("or elsewhere: "+a.elsewhere(fmt.Sprintf("approvals approve %s %d.%d", q.run, q.turn, q.call.Index))))
	a.mu.Lock()
	defer a.mu.Unlock()
	fmt.Fprint(a.out, style.Bold("  y, n, n and why, or other arguments as JSON > "))
	a.at = &q
}

// answer writes the verdict that a line means; false: it means none, or it could not be written.
func (a *asker) answer(ctx context.Context, q question, line string) bool {
	v := schema.Verdict{Decision: schema.VerdictDeny, By: a.by}
	word, rest, _ := strings.Cut(line, " ")
	switch strings.ToLower(word) {
	case "y", "yes":
		if rest != "" {
			fmt.Fprintln(a.out, "  nothing is decided: y stands alone")
			return false
		}
		v.Decision = schema.VerdictApprove
	case "n", "no":
		v.Why = schema.CleanText(strings.TrimSpace(rest))
	default:
		if !strings.HasPrefix(line, "{") {
			if line != "" {
				fmt.Fprintln(a.out, "  nothing is decided: an answer begins with y, n or {")
			}
			return false
		}
		args, _, bad := schema.Canonical(line)
		if bad != nil {
			fmt.Fprintf(a.out, "  nothing is decided: %s\n", view.Clean(bad.Message))
			return false
		}
		v.Decision, v.Args = schema.VerdictApprove, args
	}
	switch err := a.decide(ctx, q, v); {
	case err == nil:
		return true
	case misfit(err) != nil:
		fmt.Fprintf(a.out, "  nothing is decided: %s\n", view.Clean(misfit(err).Message))
		return false
	case errors.Is(err, bus.ErrDecided), errors.Is(err, bus.ErrExpired), errors.Is(err, bus.ErrRunClosed):
		fmt.Fprintf(a.out, "  %v\n", err)
		return true
	default:
		fmt.Fprintf(a.out, "  %v\n", err)
		return false
	}
}

// decide writes the verdict on what was shown. Other arguments are checked against the tool, which only the whole question
// names.
func (a *asker) decide(ctx context.Context, q question, v schema.Verdict) error {
	seen := bus.Approval{
		Run: q.run, Turn: q.turn, Index: q.call.Index, Ask: q.ask.Ask, Digest: q.ask.Digest,
		Question: schema.Ask{ExpiresMS: q.ask.ExpiresMS},
	}
	if v.Args != "" {
		whole, err := a.bus.ApprovalOf(ctx, q.run, q.turn, q.call.Index)
		if err != nil {
			return err
		}
		seen.Question = whole.Question
	}
	return a.bus.Decide(ctx, seen, v)
}
