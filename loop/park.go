package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// errParked ends the work on a run that waits for nothing but other runs, or for a message. It holds no slot meanwhile.
var errParked = errors.New("the run is parked: it waits for other agents or for a message")

// nursery keeps track of the calls of one turn that are runs of their own, so that the turn can be left when nothing
// else of it is under way. A nil nursery is that of an owner who stays.
//
//	started ──► placed (stored in the work stream, or the child's stop stands) ──► left, when all that run are placed
type nursery struct {
	x          *exchange
	turn       *schema.Turn
	sent       map[int]schema.SentCall // that stand in a sent fact
	placed     map[int]schema.SentCall // that go on without this process
	dispatches int                     // sent facts of the turn
	open       map[int]bool            // calls of any queue that have not arrived
	started    map[int]bool            // of open: a dispatch waits for the result
	news       chan schema.SentCall
	leave      chan struct{}
}

// newNursery returns nil when the turn calls no agent, or its owner has no message to give back.
func (x *exchange) newNursery(t *schema.Turn) (*nursery, error) {
	if !x.resumed || x.stays || !callsAgents(t) {
		return nil, nil
	}
	n := &nursery{
		x: x, turn: t, sent: map[int]schema.SentCall{}, placed: map[int]schema.SentCall{}, open: map[int]bool{}, started: map[int]bool{},
		news: make(chan schema.SentCall, 4*len(t.Calls)), leave: make(chan struct{}),
	}
	if !x.resuming {
		return n, nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(x.ctx), writeBound)
	defer cancel()
	facts, err := x.agent.cfg.Journal.Facts(ctx, x.id, 0, schema.KindSent)
	if err != nil {
		return nil, fmt.Errorf("read dispatches: %w", err)
	}
	for _, f := range facts {
		var s schema.Sent
		if f.Key.N != t.N || schema.Decode(f.Data, &s) != nil {
			continue
		}
		n.dispatches = max(n.dispatches, f.Key.K)
		for _, c := range s.Calls {
			n.sent[c.Index] = c
		}
	}
	return n, nil
}

func callsAgents(t *schema.Turn) bool {
	for i := range t.Calls {
		if t.Calls[i].Queue == schema.QueueAgents {
			return true
		}
	}
	return false
}

// begin notes that call i is under way. It tells whether the call is left alone: an earlier owner had it stored, and
// its deadline is not over.
func (n *nursery) begin(i int, stopped bool) (alone bool) {
	if n == nil {
		return false
	}
	n.open[i] = true
	s, ok := n.sent[i]
	if ok && !stopped && nowMS() < s.DeadlineMS {
		n.placed[i] = s
		return true
	}
	n.started[i] = n.turn.Calls[i].Queue == schema.QueueAgents
	return false
}

// attach has the dispatch of call i heard.
func (n *nursery) attach(i int, d *schema.Dispatch) {
	if n == nil || !n.started[i] {
		return
	}
	d.Leave = n.leave
	d.Placed = func(index int, seq uint64, deadline time.Time) {
		select {
		case n.news <- schema.SentCall{Index: index, Seq: seq, DeadlineMS: deadline.UnixMilli()}:
		default: // it has said so often enough
		}
	}
}

func (n *nursery) arrived(i int) {
	if n != nil {
		delete(n.open, i)
	}
}

func (n *nursery) heard() <-chan schema.SentCall {
	if n == nil {
		return nil
	}
	return n.news
}

// idle tells whether nothing of the turn is under way but what goes on without this process.
func (n *nursery) idle() bool {
	if n == nil || len(n.open) == 0 {
		return false
	}
	for i := range n.open {
		if _, ok := n.placed[i]; !ok {
			return false
		}
	}
	return true
}

// park leaves the calls that are open, having written which of them the work stream has. Whoever has lost the run must
// not give its message away.
func (n *nursery) park() error {
	x := n.x
	if why := context.Cause(x.stop.model); errors.Is(why, ErrFenced) || errors.Is(why, ErrClosed) {
		return why
	}
	if err := n.writeSent(); err != nil {
		return err
	}
	p := &parking{says: x.state.Says()}
	for i := range n.open {
		p.await = append(p.await, schema.ResultKey(n.turn.N, i, schema.QueueAgents))
		if s := n.placed[i]; s.Seq > 0 { // a child that was stopped ends without being reminded
			p.earlier(time.UnixMilli(s.DeadlineMS))
		}
	}
	x.parked = p
	return errParked
}

// writeSent writes the next dispatch of the turn: what no dispatch names yet.
func (n *nursery) writeSent() error {
	s := &schema.Sent{}
	for i := range n.turn.Calls {
		c, ok := n.placed[i]
		if _, known := n.sent[i]; ok && !known && c.Seq > 0 && n.open[i] {
			s.Calls = append(s.Calls, c)
		}
	}
	if len(s.Calls) == 0 {
		return nil
	}
	for k := n.dispatches + 1; ; k++ {
		err := n.x.write(n.x.ctx, schema.SentKey(n.turn.N, k), s, schema.Key{})
		if !errors.Is(err, schema.ErrExists) {
			return err
		}
	}
}

// parking says what a parked run waits for.
type parking struct {
	at    time.Time // zero: for ever
	await []schema.Key
	says  int // messages that were considered
}

func (p *parking) earlier(t time.Time) {
	if p.at.IsZero() || t.Before(p.at) {
		p.at = t
	}
}

// parkedTaken is what becomes of the message of a run that is parked: messages and stops wake it too.
func (r *Run) parkedTaken() schema.Taken {
	await := append(r.parked.await, schema.SayKey(r.parked.says+1), schema.CtlKey(r.own+1))
	return schema.Taken{Act: schema.TakenParked, At: r.parked.at, Await: await}
}

// waited is how long a settled turn waited for agents alone: that time counts against no limit of the exchange.
func (x *exchange) waited(t *schema.Turn) time.Duration {
	busy, last := t.EndedMS, int64(0)
	for i := range t.Calls {
		r := x.state.Result(t.N, i)
		switch {
		case r == nil:
		case t.Calls[i].Queue == schema.QueueAgents:
			last = max(last, r.EndedMS)
		default:
			busy = max(busy, r.EndedMS)
		}
	}
	return time.Duration(max(0, last-busy)) * time.Millisecond
}

// excuse moves the end of the wall clock by what a turn waited for agents.
func (x *exchange) excuse(t *schema.Turn) {
	if !x.until.IsZero() && callsAgents(t) {
		x.until = x.until.Add(x.waited(t))
	}
}

// keeps tells whether the run stays open for messages after the first says, and until when.
func (r *Run) keeps(says int) bool {
	a := r.state.Answer(r.state.Answers())
	if !r.state.Open().Keep || a == nil {
		return false
	}
	until := time.UnixMilli(a.AtMS).Add(r.keepFor)
	if !time.Now().Before(until) {
		return false
	}
	r.parked = &parking{at: until, says: says}
	return true
}
