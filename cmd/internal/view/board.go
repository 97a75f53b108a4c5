package view

import (
	"time"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// board is what is known of the turn under way: plain data without goroutines.
type board struct {
	turn    int
	began   time.Time
	asking  bool // the model is being asked
	retry   string
	text    string   // what the model has said so far in this turn, all of it when it has calls
	notes   []string // what else happened in this turn, for the live view
	calls   []*call
	arrived int // how many calls have settled
	ended   time.Time
}

// call is one call of the turn.
type call struct {
	turn    int
	info    loop.CallInfo
	worker  string // instance that has it, or that settled it; empty: nobody knows
	orphan  bool   // its worker died, and nobody is known to have it
	since   time.Time
	said    string // its last word before its result
	shown   time.Time
	settled bool
	arrival int // its place in the order of arrival, from 1
	result  *schema.Result
	lost    string // the transport's error
	text    string // what memory holds
	stored  bool   // in the memory
}

func (b *board) reset(turn int) { *b = board{turn: turn} }

// apply takes the next event.
func (b *board) apply(e loop.Event) {
	switch e.Type {
	case loop.EventStepStart:
		b.reset(e.Turn)
		b.began = e.Time
	case loop.EventModelRequest:
		b.asking, b.retry = true, "" // a retry may have been that of a summary
	case loop.EventModelRetry:
		b.retry, b.text = e.Error, ""
	case loop.EventModelDelta:
		b.text += e.Text
	case loop.EventModelResponse:
		b.asking, b.retry, b.text = false, "", e.Text
	case loop.EventToolCall:
		b.calls = append(b.calls, &call{turn: e.Turn, info: *e.Call, since: e.Time})
	case loop.EventToolProgress, loop.EventToolSettled, loop.EventToolResult:
		b.applyCall(e)
	case loop.EventStepEnd:
		b.ended = e.Time
	}
}

func (b *board) applyCall(e loop.Event) {
	c := b.call(e.Turn, e.Call.Index)
	if c == nil {
		return
	}
	switch e.Type {
	case loop.EventToolProgress:
		c.said = e.Text
	case loop.EventToolSettled:
		b.arrived++
		c.settled, c.arrival, c.result, c.lost = true, b.arrived, e.Result, e.Error
		if e.Result != nil && e.Result.Worker != "" {
			c.worker = e.Result.Worker
		}
	case loop.EventToolResult:
		c.stored, c.text = true, e.Text
	}
}

// call returns a call of the turn under way, nil if it is none.
func (b *board) call(turn, index int) *call {
	if turn != b.turn || index < 0 || index >= len(b.calls) {
		return nil
	}
	return b.calls[index]
}

// working notes who has a call. It returns the call if that is news.
func (b *board) working(turn, index int, instance string) *call {
	c := b.call(turn, index)
	if c == nil || c.settled || c.worker == instance || instance == "" {
		return nil
	}
	c.worker, c.orphan = instance, false
	return c
}

// gone forgets who has the calls of a worker that died.
func (b *board) gone(instance string) {
	for _, c := range b.calls {
		if !c.settled && c.worker == instance {
			c.worker, c.orphan, c.said, c.shown = "", true, "", time.Time{}
		}
	}
}

// underWay tells whether a turn has begun and not ended.
func (b *board) underWay() bool { return b.turn != 0 && b.ended.IsZero() }

// waitsFor returns the first call that is not in the memory yet, nil if all are.
func (b *board) waitsFor() *call {
	for _, c := range b.calls {
		if !c.settled {
			return c
		}
	}
	return nil
}

// ok tells whether a settled call succeeded.
func (c *call) ok() bool { return c.result != nil && c.result.OK }

// ran returns how long the call ran in milliseconds, 0 if it never started.
func (c *call) ran() int64 {
	if c.result == nil || c.result.StartedMS == 0 {
		return 0
	}
	return max(0, c.result.EndedMS-c.result.StartedMS)
}
