package loop

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// Run is a run that this process owns. Its methods may be called from several goroutines; one exchange works at a
// time and the others wait for it.
type Run struct {
	agent   *Agent
	id      string
	own     int           // the ctl slot that makes this process the owner
	working chan struct{} // holds a token while an exchange or Close works
	state   *memory.Run
	seq     atomic.Uint64 // of the last fact written here: the barrier of a reading
	mark    atomic.Uint64 // of the last one of a control kind: the barrier of reading these
	events  emitter
	unwatch func()
	span    trace.Span // of the run, as long as this process has it
	pause   pause      // after a compaction that failed; likewise guarded
	warned  int        // the last say of which a Close said that it waits; who holds the token of working has it

	parked  *parking        // what the run waits for, once it is parked
	keepFor time.Duration   // of a conversation that is kept
	givenUp string          // why its owners were not replaced any more
	resumed bool            // taken over: facts of earlier owners may be there
	stays   bool            // taken over without a message that could be given back
	yield   <-chan struct{} // closed when the run shall be handed back; nil: never

	verdicts chan struct{} // buffered 1: a verdict was heard

	stopped, lost chan struct{} // closed when a stop, and when a newer owner or a close is heard
	heardStop     sync.Once
	heardLost     sync.Once

	endMu sync.Mutex
	end   error // why the run is over for this process; nil: it is not
}

func newRun(a *Agent, id string) *Run {
	return &Run{agent: a, id: id, working: make(chan struct{}, 1), state: memory.New(), verdicts: make(chan struct{}, 1), stopped: make(chan struct{}), lost: make(chan struct{}), yield: a.cfg.Yield}
}

// ID returns the run's id.
func (r *Run) ID() string { return r.id }

// State returns what is known of the run; it goes on to follow it.
func (r *Run) State() *memory.Run { return r.state }

// Messages returns the run's memory as the model would be asked with it now.
func (r *Run) Messages() []schema.Message { return r.state.Messages() }

// Say tells the agent something and works until it is answered. Several Says at once are answered one after the
// other, or together when the model saw both. Errors are those of Tell and Work.
func (r *Run) Say(ctx context.Context, text string) (schema.Answer, error) {
	if ctx.Err() != nil {
		return schema.Answer{}, r.errorf("say", context.Cause(ctx))
	}
	k, err := r.tell(ctx, schema.Say{Role: schema.RoleUser, Text: r.hookedPrompt(ctx, text), Source: schema.NewID()})
	if err != nil {
		return schema.Answer{}, err
	}
	if err := r.acquire(ctx); err != nil {
		return schema.Answer{}, r.errorf("say", err)
	}
	defer r.release()
	for {
		for n := 1; n <= r.state.Answers(); n++ {
			if a := r.state.Answer(n); a.Say >= k {
				return *a, nil // the exchange that was under way has answered it already
			}
		}
		// The first one may end what an earlier owner left, which knew nothing of k.
		if a, err := r.exchange(ctx); err != nil || a.Say >= k {
			return a, err
		}
	}
}

// Tell writes a user's message without working on it. ErrClosed: the run takes no more messages.
func (r *Run) Tell(ctx context.Context, text string) error {
	return r.TellOnce(ctx, schema.NewID(), text)
}

// TellOnce is Tell for a message that comes from a source: who writes it again after a resumption writes it once.
func (r *Run) TellOnce(ctx context.Context, source, text string) error {
	if ctx.Err() != nil {
		return r.errorf("say", context.Cause(ctx))
	}
	if r.said(source, r.state.Says()) {
		return nil
	}
	_, err := r.tell(ctx, schema.Say{Role: schema.RoleUser, Text: r.hookedPrompt(ctx, text), Source: source})
	return err
}

// Unfinished tells whether an exchange is to be worked on: a message waits, a turn has no answer, or a stop is to be
// carried out.
func (r *Run) Unfinished() bool {
	select {
	case <-r.stopped:
		return true
	default:
		return r.state.Pending() || r.state.Turns() >= r.unanswered()
	}
}

// Work runs one exchange: it asks the model with what the memory holds and goes on until an answer is written. When
// ctx ends, the run is stopped: its calls are cancelled and settle, it is closed, and the answer has the reason
// ReasonCancelled beside the error. While it waits for nothing but people to approve calls, it is left open instead, for
// whoever resumes it (ErrParked). Other errors are ErrStopped, ErrFenced, ErrClosed and trouble with the transport;
// after each of them the run is over for this process.
func (r *Run) Work(ctx context.Context) (schema.Answer, error) {
	if err := r.acquire(ctx); err != nil {
		return schema.Answer{}, r.errorf("work", err)
	}
	defer r.release()
	return r.exchange(ctx)
}

// tell writes a message under the next free number and returns that.
func (r *Run) tell(ctx context.Context, s schema.Say) (int, error) {
	s.Text, s.AtMS = schema.CleanText(s.Text), nowMS()
	for k := r.state.Says() + 1; ; k = max(k, r.state.Says()) + 1 {
		if err := r.ended(); err != nil {
			return 0, r.errorf("say", err)
		}
		err := r.write(ctx, schema.SayKey(k), &s, schema.CloseKey())
		switch {
		case err == nil:
			return k, nil
		case errors.Is(err, schema.ErrGuarded):
			return 0, r.errorf("say", ErrClosed)
		case !errors.Is(err, schema.ErrExists):
			return 0, r.errorf("say", err)
		}
		// Somebody else has this number: read what was said, for nothing behind a gap counts.
		if err := r.refresh(ctx); err != nil {
			return 0, r.errorf("say", err)
		}
	}
}

// heard takes a fact from the journal's watch. Others than ctl, say, verdict and close are left alone: results come from the
// dispatch, so that they enter the memory in order and behind the guards.
func (r *Run) heard(f schema.Fact) {
	switch f.Key.Kind {
	case schema.KindSay:
		r.apply(f)
	case schema.KindVerdict:
		r.apply(f)
		select {
		case r.verdicts <- struct{}{}:
		default:
		}
	case schema.KindClose:
		r.apply(f)
		r.heardLost.Do(func() { close(r.lost) })
	case schema.KindCtl:
		r.apply(f)
		r.heardCtl(f.Key.N)
	}
}

func (r *Run) heardCtl(k int) {
	switch c := r.state.Ctl(k); {
	case c == nil || k <= r.own:
	case c.Act == schema.CtlStop:
		r.heardStop.Do(func() { close(r.stopped) })
	default:
		r.heardLost.Do(func() { close(r.lost) })
	}
}

// refused says why a write that was guarded on the next ctl slot was refused: ErrStopped when only stops follow the
// own slot, else ErrFenced. When the reading shows nothing, the guard knew better, and ErrFenced is the answer that
// writes nothing more.
func (r *Run) refused(ctx context.Context) error {
	if err := r.refresh(ctx); err != nil {
		return err
	}
	if err := r.taken(); err != nil {
		return err
	}
	if r.state.Ctls() > r.own {
		return ErrStopped
	}
	return ErrFenced
}

// taken returns ErrFenced when a slot after the own one names another owner.
func (r *Run) taken() error {
	for k := r.own + 1; k <= r.state.Ctls(); k++ {
		if r.state.Ctl(k).Act != schema.CtlStop {
			return ErrFenced
		}
	}
	return nil
}

func (r *Run) acquire(ctx context.Context) error {
	select {
	case r.working <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if err := r.ended(); err != nil {
		r.release()
		return err
	}
	return nil
}

func (r *Run) release() { <-r.working }

func (r *Run) errorf(what string, err error) error {
	return fmt.Errorf("%s in run %s: %w", what, r.id, err)
}
