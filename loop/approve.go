package loop

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

const (
	askFor    = 24 * time.Hour  // how long a question waits where the policy does not say
	lookEvery = 5 * time.Second // how often verdicts are looked for that were not heard of
	maxAsks   = 20              // questions about one call: rules that change each time must not go on for ever
)

// fate is what a verdict has made of a call.
type fate struct {
	refused *schema.Result  // it does not run; nil: it does
	args    schema.JSONText // that it runs with; empty: those of the turn
	digest  string          // of the tool's parameters; empty: that of the turn
}

// questions are the calls of a turn about which a person is asked. One goroutine uses them.
//
//	asked ── approved ── authorised anew ── allowed ──────────────► to be started
//	  ▲                         └── asks for another reason ──┐
//	  └───────────────────────────────────────────────────────┘
//	asked ── refused; expired or stopped, which the owner writes ─► DENIED, Cancelled
type questions struct {
	x       *exchange
	turn    *schema.Turn
	tools   []schema.Tool // as they are now; read when the first verdict is there
	fates   map[int]fate
	waiting map[int]int // by call: the number of the question
	untold  []Event     // about questions that wait since a moment ago
	begun   map[int]bool
	tick    *time.Ticker
	due     *time.Timer // of the next question to expire
}

func newQuestions(x *exchange, t *schema.Turn) (*questions, error) {
	q := &questions{x: x, turn: t}
	if !asks(t) {
		return q, nil
	}
	if err := q.readBegun(); err != nil {
		return nil, err
	}
	q.fates, q.waiting = map[int]fate{}, map[int]int{}
	q.tick, q.due = time.NewTicker(lookEvery), time.NewTimer(time.Hour)
	return q, nil
}

// readBegun learns which calls an earlier owner has had started: nothing is decided about them any more.
func (q *questions) readBegun() error {
	if !q.x.resuming {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(q.x.ctx), writeBound)
	defer cancel()
	facts, err := q.x.agent.cfg.Journal.Facts(ctx, q.x.id, 0, schema.KindBegin, schema.KindSent)
	if err != nil {
		return fmt.Errorf("read starts of calls: %w", err)
	}
	q.begun = map[int]bool{}
	for _, f := range facts {
		var s schema.Sent
		switch {
		case f.Key.N != q.turn.N:
		case f.Key.Kind == schema.KindBegin: // under another queue than that of the call it is a stranger's
			if i := f.Key.I; i < len(q.turn.Calls) && f.Key.Queue == q.turn.Calls[i].Queue {
				q.begun[i] = true
			}
		case schema.Decode(f.Data, &s) == nil:
			for _, c := range s.Calls {
				q.begun[c.Index] = true
			}
		}
	}
	return nil
}

// asks tells whether a person is asked about a call of the turn.
func asks(t *schema.Turn) bool {
	for i := range t.Calls {
		if t.Calls[i].Decision.Action == schema.ActionAsk {
			return true
		}
	}
	return false
}

func (q *questions) end() {
	if q.tick != nil {
		q.tick.Stop()
		q.due.Stop()
	}
}

// concern tells whether call i has to be considered before it may start.
func (q *questions) concern(i int) bool {
	return q.turn.Calls[i].Decision.Action == schema.ActionAsk && q.x.state.Result(q.turn.N, i) == nil
}

// consider takes call i as far as it goes without waiting: to its fate (settled), or to a question that is open. An error is
// trouble with the journal.
func (q *questions) consider(i int) (settled bool, err error) {
	n, state := q.turn.N, q.x.state
	for {
		ask, k := state.Ask(n, i)
		if ask == nil {
			if q.x.stop.calls.Err() != nil {
				return q.refuse(i, schema.Cancelled, "not started: the run was stopped"), nil
			}
			if err := q.write(i, 1, schema.NewAsk(&q.turn.Calls[i], q.turn.Calls[i].Decision, "")); err != nil {
				return false, err
			}
			continue
		}
		v := state.Verdict(n, i, k)
		switch {
		case v != nil:
		case q.x.stop.calls.Err() != nil:
			err = q.close(i, k, "the run was stopped before anybody decided")
		case nowMS() >= ask.ExpiresMS:
			err = q.close(i, k, "")
		default:
			q.wait(i, k, ask)
			return false, nil
		}
		if err != nil {
			return false, err
		}
		if v == nil {
			continue
		}
		if done, err := q.weigh(i, k, ask, v); done || err != nil {
			return done, err
		}
	}
}

// write asks question k about call i. Another owner may have asked it before.
func (q *questions) write(i, k int, a *schema.Ask) error {
	expires := askFor
	if g := q.x.agent.cfg.Agent.Governance; g != nil && g.Policy != nil && g.Policy.ExpiresMS > 0 {
		expires = time.Duration(g.Policy.ExpiresMS) * time.Millisecond
	}
	a.AtMS = nowMS()
	a.ExpiresMS = a.AtMS + expires.Milliseconds()
	key := schema.AskKey(q.turn.N, i, k)
	err := q.x.write(q.x.ctx, key, a, schema.Key{})
	if errors.Is(err, schema.ErrExists) {
		err = q.reread(key)
	}
	return err
}

// close writes the owner's verdict on a question that nobody has decided. If somebody has, that one stands.
func (q *questions) close(i, k int, why string) error {
	key := schema.VerdictKey(q.turn.N, i, k)
	err := q.x.write(q.x.ctx, key, &schema.Verdict{Decision: schema.VerdictExpired, Why: why, AtMS: nowMS()}, schema.Key{})
	if errors.Is(err, schema.ErrExists) {
		err = q.reread(key)
	}
	return err
}

// reread reads the facts, among which must be one that is known to be there.
func (q *questions) reread(key schema.Key) error {
	if err := q.x.refresh(q.x.ctx); err != nil {
		return err
	}
	ask, k := q.x.state.Ask(key.N, key.I)
	if key.Kind == schema.KindAsk && (ask == nil || k < key.K) || key.Kind == schema.KindVerdict && q.x.state.Verdict(key.N, key.I, key.K) == nil {
		return fmt.Errorf("fact %s of run %s is not readable yet", key, q.x.id)
	}
	return nil
}

// weigh says what verdict v on question k means for call i; done is false when another question was asked.
func (q *questions) weigh(i, k int, ask *schema.Ask, v *schema.Verdict) (done bool, err error) {
	q.heed(i, k, ask, v)
	args, ok := v.Approves(q.x.id, schema.VerdictKey(q.turn.N, i, k), ask)
	if !ok {
		if q.x.stop.calls.Err() != nil && v.Decision == schema.VerdictExpired {
			return q.refuse(i, schema.Cancelled, "not started: "+v.Refusal(ask)), nil
		}
		return q.refuse(i, schema.Denied, v.Refusal(ask)), nil
	}
	if q.begun[i] {
		q.settle(i, fate{args: cmp.Or(args, ask.Edited), digest: ask.Schema})
		return true, nil
	}
	if q.x.stop.calls.Err() != nil && !q.x.resuming { // of a taken run an earlier owner may have started it
		return q.refuse(i, schema.Cancelled, "not started: the run was stopped"), nil
	}
	if !ask.About(&q.turn.Calls[i]) { // nobody has approved this call, whatever they were shown
		d := q.turn.Calls[i].Decision
		return q.again(i, k, &q.turn.Calls[i], d)
	}
	c, d := q.judge(i, cmp.Or(args, ask.Edited))
	switch {
	case d.Action == schema.ActionInvalid && args != "": // whoever wrote them could not check them: the verdict is not the call's last word
		asked := q.turn.Calls[i]
		asked.Args, asked.Digest = cmp.Or(ask.Edited, asked.Args), ask.Schema
		d = schema.Decision{Action: schema.ActionAsk, Rule: ask.Rule, Text: "the other arguments of the last answer do not fit: " + d.Text}
		return q.again(i, k, &asked, d)
	case d.Ends():
		return q.outcome(i, d), nil
	case c.Digest != ask.Schema:
		d = schema.Decision{Action: schema.ActionAsk, Rule: ask.Rule, Text: "the tool has changed since it was asked about"}
		return q.again(i, k, c, d)
	case d.Action == schema.ActionAsk && !schema.RulesCovered(d.Rule, ask.Rule):
		return q.again(i, k, c, d)
	}
	q.settle(i, fate{args: c.Args, digest: c.Digest})
	return true, nil
}

// again asks the next question about a call.
func (q *questions) again(i, k int, c *schema.TurnCall, d schema.Decision) (done bool, err error) {
	if k >= maxAsks {
		return q.refuse(i, schema.Denied, "it was asked about too often"), nil
	}
	edited := c.Args
	if edited == q.turn.Calls[i].Args {
		edited = ""
	}
	return false, q.write(i, k+1, schema.NewAsk(c, d, edited))
}

// judge returns the call as it would run, and what is decided about it now.
func (q *questions) judge(i int, args schema.JSONText) (*schema.TurnCall, schema.Decision) {
	c, bad := q.final(i, args)
	if bad != nil {
		return c, invalid(bad)
	}
	return c, q.x.authorise(c)
}

// final returns the call as it would run: with the arguments of the verdict, for the tool as it is now. A person's arguments
// pass the same checks as a model's.
func (q *questions) final(i int, args schema.JSONText) (*schema.TurnCall, *schema.Error) {
	c := q.turn.Calls[i]
	if args != "" && args != c.Args {
		canonical, _, err := schema.Canonical(string(args))
		if err != nil {
			return nil, err
		}
		c.Args = canonical
	}
	tool := named(c.Tool, q.current())
	if tool == nil {
		return &c, nil // whoever still has it checks it
	}
	c.Digest = tool.Digest
	return &c, q.x.check(&c, tool)
}

// current returns the tools as they are now, as far as they can be read.
func (q *questions) current() []schema.Tool {
	if q.tools == nil {
		var err error
		if q.tools, err = q.x.tools(q.x.stop.model, ""); err != nil {
			q.x.agent.cfg.Logger.Warn("tools not read again before a call that was approved", "run", q.x.id, "error", err)
		}
	}
	return q.tools
}

// heed tells of the verdict on a question that was waited for here.
func (q *questions) heed(i, k int, ask *schema.Ask, v *schema.Verdict) {
	if q.waiting[i] != k {
		return
	}
	a := q.approval(i, k, ask)
	a.Decision, a.By, a.Why = v.Decision, v.By, v.Why
	q.x.emit(Event{Type: EventApprovalSettled, Turn: q.turn.N, Call: q.info(i), Approval: a})
}

func (q *questions) refuse(i int, t schema.ErrorType, text string) bool {
	if t == schema.Denied {
		return q.outcome(i, schema.Decision{Action: schema.ActionDeny, Rule: "approval", Text: text})
	}
	r := q.x.call(q.turn, i).Fail(t, text)
	q.settle(i, fate{refused: &r})
	return true
}

// outcome settles call i by a decision that lets it not run.
func (q *questions) outcome(i int, d schema.Decision) bool {
	r, _ := d.Outcome(q.x.call(q.turn, i))
	q.settle(i, fate{refused: &r})
	return true
}

func (q *questions) settle(i int, f fate) {
	if f.refused != nil {
		f.refused.EndedMS = nowMS()
	}
	q.fates[i] = f
	delete(q.waiting, i)
	if len(q.waiting) > 0 {
		q.due.Reset(time.Until(q.expiry()))
	}
}
