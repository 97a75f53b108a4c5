package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Errors of deciding about a call.
var (
	// ErrNoAsk: nobody is asked about the call.
	ErrNoAsk = errors.New("nobody is asked about this call")
	// ErrDecided: there is a verdict already, and the first one stands.
	ErrDecided = errors.New("it is decided already")
	// ErrExpired: the time in which the call could be approved is over.
	ErrExpired = errors.New("the time to approve it is over")
)

// Approval is a question about a call of a run: the last one that was asked.
type Approval struct {
	Run       string
	Agent     string // that wants the call
	Principal schema.Principal
	Turn      int // from 1
	Index     int // from 0
	Ask       int // number of the question, from 1
	Question  schema.Ask
	Args      schema.JSONText // exactly what would run
	Bound     schema.JSONText // beside the arguments; empty: nothing
	Digest    string          // what an approval names
	Verdict   *schema.Verdict // nil: it is not decided
	Closed    bool            // the run is
}

// Approvals returns the questions that are open, newest first, while they are asked for. After an error nothing follows.
func (b *Bus) Approvals(ctx context.Context) iter.Seq2[Approval, error] {
	return func(yield func(Approval, error) bool) {
		var last *asked // many questions may be of one run
		for group, err := range b.backwards(ctx, b.names.runs(), b.names.prefix+".run.*."+string(schema.KindAsk)+".>") {
			var asks []schema.Fact
			if err == nil {
				asks, err = b.undecided(ctx, group)
			}
			if err != nil {
				yield(Approval{}, fmt.Errorf("list approvals: %w", err))
				return
			}
			for _, f := range asks {
				if last == nil || last.run != f.Run {
					last = b.askedIn(ctx, f.Run)
				}
				a, err := b.approvalIn(last, f.Key.N, f.Key.I)
				if errors.Is(err, schema.ErrPayload) { // nobody can answer it, and it must not hide the others
					b.log.Warn("question cannot be read", "run", f.Run, "fact", f.Key.String(), "error", err)
					continue
				}
				if errors.Is(err, ErrNoRun) || errors.Is(err, ErrNoAsk) || err == nil && (a.Verdict != nil || a.Closed || a.Ask != f.Key.K) {
					continue // a stranger's, or it is over
				}
				if !yield(a, err) || err != nil {
					return
				}
			}
		}
	}
}

// undecided returns the asks among stored messages that have no verdict.
func (b *Bus) undecided(ctx context.Context, group []stored) (asks []schema.Fact, err error) {
	var subjects []string
	for _, m := range group {
		f, err := b.fact(m.subject, "run", m.data, m.seq, m.at)
		if err != nil || f.Key.Kind != schema.KindAsk {
			continue // a stranger's
		}
		asks = append(asks, f)
		subjects = append(subjects, b.names.fact(f.Run, schema.VerdictKey(f.Key.N, f.Key.I, f.Key.K)))
	}
	if len(asks) == 0 {
		return nil, nil
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	verdicts, err := b.multiGet(ctx, subjects)
	decided := map[string]bool{}
	for _, v := range verdicts {
		decided[b.names.fact(v.Run, v.Key)] = true
	}
	open := asks[:0]
	for i, f := range asks {
		if !decided[subjects[i]] {
			open = append(open, f)
		}
	}
	return open, err
}

// ApprovalOf returns the last question about call i of turn n. ErrNoAsk, ErrNoRun, or trouble with the transport.
func (b *Bus) ApprovalOf(ctx context.Context, run string, n, i int) (Approval, error) {
	return b.approvalIn(b.askedIn(ctx, run), n, i)
}

// asked is what a run has about its questions.
type asked struct {
	run   string
	open  *schema.Open
	facts []schema.Fact
	err   error // it could not be read
}

func (b *Bus) askedIn(ctx context.Context, run string) *asked {
	r := &asked{run: run}
	if r.open, r.err = b.opened(ctx, run); r.err == nil {
		r.facts, r.err = b.Facts(ctx, run, 0, schema.KindTurn, schema.KindAsk, schema.KindVerdict, schema.KindClose)
	}
	return r
}

func (b *Bus) approvalIn(r *asked, n, i int) (Approval, error) {
	a := Approval{Run: r.run, Turn: n, Index: i}
	if err := b.readApproval(r, &a); err != nil {
		return a, fmt.Errorf("approval of call %s/%d.%d: %w", r.run, n, i, err)
	}
	return a, nil
}

func (b *Bus) readApproval(r *asked, a *Approval) (err error) {
	if r.err != nil {
		return r.err
	}
	a.Principal = r.open.Principal
	if r.open.Agent != nil {
		a.Agent = r.open.Agent.ID
	}
	var call *schema.TurnCall
	asks, verdicts := map[int][]byte{}, map[int][]byte{}
	for _, f := range r.facts {
		switch of := f.Key; {
		case of.Kind == schema.KindClose:
			a.Closed = true
		case of.N != a.Turn:
		case of.Kind == schema.KindTurn:
			call, err = turnCall(f.Data, a.Index)
		case of.I != a.Index:
		case of.Kind == schema.KindVerdict:
			verdicts[of.K] = f.Data
		default:
			asks[of.K] = f.Data
		}
		if err != nil {
			return fmt.Errorf("fact %s: %w", f.Key, err)
		}
	}
	for asks[a.Ask+1] != nil { // as the owner counts: one behind a gap is a stranger's
		a.Ask++
	}
	if a.Ask > 0 {
		if err := schema.Decode(asks[a.Ask], &a.Question); err != nil {
			return fmt.Errorf("fact %s: %w", schema.AskKey(a.Turn, a.Index, a.Ask), err)
		}
	}
	if a.Ask == 0 || call == nil {
		return ErrNoAsk
	}
	a.Args, a.Bound = cmp.Or(a.Question.Edited, call.Args), call.Bound
	a.Digest = a.Question.Digest(a.Run, schema.AskKey(a.Turn, a.Index, a.Ask))
	if data, ok := verdicts[a.Ask]; ok {
		a.Verdict = &schema.Verdict{Decision: schema.VerdictDeny}
		if err := schema.Decode(data, a.Verdict); err != nil {
			b.log.Warn("verdict cannot be read", "run", a.Run, "turn", a.Turn, "index", a.Index, "error", err)
		}
	}
	return nil
}

func turnCall(data []byte, i int) (*schema.TurnCall, error) {
	var t schema.Turn
	if err := schema.Decode(data, &t); err != nil {
		return nil, err
	}
	if i < 0 || i >= len(t.Calls) {
		return nil, ErrNoAsk
	}
	return &t.Calls[i], nil
}

// Expires returns until when the call can be approved.
func (a *Approval) Expires() time.Time { return time.UnixMilli(a.Question.ExpiresMS) }
