package loop

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

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
	asking     map[int]int             // that wait for a verdict: the number of the question
	open       map[int]bool            // calls of any queue that have not arrived
	started    map[int]bool            // of open: a dispatch waits for the result
	news       chan schema.SentCall
	leave      chan struct{}
}

// newNursery returns nil when the turn waits for nobody, or its owner has no message to give back.
func (x *exchange) newNursery(t *schema.Turn) (*nursery, error) {
	if !x.resumed || x.stays || !waits(t) {
		return nil, nil
	}
	n := &nursery{
		x: x, turn: t, sent: map[int]schema.SentCall{}, placed: map[int]schema.SentCall{}, asking: map[int]int{}, open: map[int]bool{}, started: map[int]bool{},
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

// waits tells whether the turn has calls that can wait for days: of agents, or those that a person is asked about.
func waits(t *schema.Turn) bool { return callsAgents(t) || asks(t) }

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

// asks notes that call i waits for the verdict on question k.
func (n *nursery) asks(i, k int) {
	if n != nil {
		n.open[i], n.asking[i] = true, k
	}
}

// answered notes that call i does not wait for a verdict any more.
func (n *nursery) answered(i int) {
	if n != nil {
		delete(n.asking, i)
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
		_, placed := n.placed[i]
		if _, asks := n.asking[i]; !placed && !asks {
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
	for i, k := range n.asking {
		p.await = append(p.await, schema.VerdictKey(n.turn.N, i, k))
		if ask, _ := x.state.Ask(n.turn.N, i); ask != nil {
			p.earlier(time.UnixMilli(ask.ExpiresMS))
		}
	}
	for i := range n.open {
		if _, asks := n.asking[i]; asks {
			continue
		}
		p.await = append(p.await, schema.ResultKey(n.turn.N, i, schema.QueueAgents))
		if s := n.placed[i]; s.Seq > 0 { // a child that was stopped ends without being reminded
			p.earlier(time.UnixMilli(s.DeadlineMS))
		}
	}
	x.parked = p
	return ErrParked
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

// waited is how long a settled turn waited for agents or people alone: that time counts against no limit of the exchange.
func (x *exchange) waited(t *schema.Turn) time.Duration {
	busy, last := t.EndedMS, int64(0)
	for i := range t.Calls {
		if at := x.askedUntil(t, i); at > 0 {
			last = max(last, at)
			continue
		}
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

// askedUntil returns when the waiting for people about call i was over, in Unix milliseconds: when it was published or
// refused, or now. 0: nobody was asked.
func (x *exchange) askedUntil(t *schema.Turn, i int) int64 {
	if t.Calls[i].Decision.Action != schema.ActionAsk {
		return 0
	}
	switch r := x.state.Result(t.N, i); {
	case r == nil:
		return nowMS()
	case r.StartedMS > 0:
		return r.StartedMS - r.QueuedMS
	default:
		_, k := x.state.Ask(t.N, i)
		v := x.state.Verdict(t.N, i, k)
		if v == nil {
			return r.EndedMS
		}
		return max(r.EndedMS, min(v.AtMS, nowMS())) // whoever decides sets the time
	}
}

// excuse moves the end of the wall clock by what a turn waited for agents or people.
func (x *exchange) excuse(t *schema.Turn) {
	if !x.until.IsZero() && waits(t) {
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
