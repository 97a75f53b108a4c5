package executor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/jetcrew/jetcrew/schema"
)

// Journal records facts of runs and reads them. It is safe for concurrent use; a bus is one.
type Journal interface {
	// Append records payload as the fact key of run, once; unless names a fact that must be absent (the zero Key: none).
	// schema.ErrExists and schema.ErrGuarded say that it is not recorded; any other error is trouble with the transport.
	Append(ctx context.Context, run string, key schema.Key, payload schema.Encodable, unless schema.Key) (seq uint64, err error)
	// Facts returns the facts of run of the given kinds in stored order. It may be behind: upto 0 is no barrier.
	Facts(ctx context.Context, run string, upto uint64, kinds ...schema.Kind) ([]schema.Fact, error)
}

// Bounds on what a local call waits for.
const (
	localTimeout = 300 * time.Second      // of a call that has no bound of its own
	localRetry   = time.Second            // before a call is tried again that does not say when
	recordWithin = 2 * time.Minute        // of recording one fact
	lookAgain    = 100 * time.Millisecond // between two looks for a result that is known to be there
)

// LocalConfig sets up a Local.
type LocalConfig struct {
	Journal  Journal // required: where begins and results are recorded
	Instance string  // id of this process; default: that of Journal, or a fresh one
}

// Local runs the calls of one set in this process, with the same facts as a worker's: a run-once call begins once
// whoever carries the run on, and each call gets one recorded result. Every process that may own the run needs the set:
// calls of its queue reach no other.
//
//	call ── run-once: begin ── refused by a result ──────────────► that result
//	 │                  └───── refused by a begin, mine: wait ───► its result
//	 │                                             another's ────► OutcomeUnknown
//	 └───── Execute, again while Pending and there is time ──────► result
type Local struct {
	set      *Set
	journal  Journal
	instance string
	calls    conc.WaitGroup // of every call under way

	mu      sync.Mutex
	running map[string]chan struct{} // by the identity of a call; closed when it has settled
}

// NewLocal returns what runs the calls of set here.
func (c LocalConfig) NewLocal(set *Set) (*Local, error) {
	if set == nil || c.Journal == nil {
		return nil, errors.New("local executor: a set and a journal are needed")
	}
	if named, ok := c.Journal.(interface{ Instance() string }); ok && c.Instance == "" {
		c.Instance = named.Instance()
	}
	if c.Instance = cmp.Or(c.Instance, schema.NewID()); !schema.ValidID(c.Instance) {
		return nil, fmt.Errorf("local executor: instance %.80q: want 1 to 64 of A-Z, a-z, 0-9, '_', '-'", c.Instance)
	}
	return &Local{set: set, journal: c.Journal, instance: c.Instance, running: make(map[string]chan struct{})}, nil
}

// Start begins decided calls, in their order, and returns; each one's Done gets its one recorded result, or trouble
// with the journal. The end of a call's context cancels it.
func (l *Local) Start(calls ...schema.Dispatch) {
	for _, d := range calls {
		c := &localCall{Local: l, Dispatch: d, since: time.Now()}
		l.calls.Go(c.run)
	}
}

// Wait returns when no call is under way any more; nothing may be started meanwhile.
func (l *Local) Wait() { l.calls.Wait() }

// localCall is one call on its way.
type localCall struct {
	*Local
	schema.Dispatch
	since time.Time
}

// run settles the call, whatever a wrapper or the journal does.
func (c *localCall) run() {
	r, err := schema.Result{}, fmt.Errorf("local call %s: it ended without an outcome", c.Call)
	defer func() {
		if v := recover(); v != nil {
			p := newPanicError(v)
			c.set.guard.logPanic(c.Ctx, c.Call, p)
			err = fmt.Errorf("local call %s: %w", c.Call, p)
		}
		c.Done(r, err)
	}()
	r, err = c.settle(c)
}

// settle takes a call to its recorded result.
func (l *Local) settle(c *localCall) (schema.Result, error) {
	ready, mine := l.enter(c.Call.String())
	if !mine { // an earlier owner of the run, in this process, had it started
		<-ready
		return c.result(context.WithoutCancel(c.Ctx))
	}
	defer l.leave(c.Call.String(), ready)
	ctx, cancel := context.WithTimeout(c.Ctx, c.bound())
	defer cancel()
	switch {
	case c.Ctx.Err() != nil:
		return c.notStarted(schema.Cancelled, "not started: the call was cancelled")
	case c.Within < 0:
		return c.notStarted(schema.Timeout, "not started: its time has passed")
	case !c.runOnce():
		return c.execute(ctx)
	}
	switch err := c.begin(); {
	case errors.Is(err, schema.ErrGuarded):
		return c.result(ctx)
	case errors.Is(err, schema.ErrExists):
		return c.unknown()
	case err != nil:
		return schema.Result{}, fmt.Errorf("local call %s: %w", c.Call, err)
	}
	return c.execute(ctx)
}

func (l *Local) enter(id string) (ready chan struct{}, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ready := l.running[id]; ready != nil {
		return ready, false
	}
	ready = make(chan struct{})
	l.running[id] = ready
	return ready, true
}

func (l *Local) leave(id string, ready chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.running, id)
	close(ready)
}

// bound is how long the call may wait and run.
func (c *localCall) bound() time.Duration {
	return cmp.Or(max(c.Within, 0), time.Duration(max(c.Call.TimeoutMS, 0))*time.Millisecond, localTimeout)
}

func (c *localCall) runOnce() bool {
	tool, found := c.set.Lookup(c.Call.Tool)
	return !c.Call.Idempotent || found && !tool.Idempotent
}

func (c *localCall) key() schema.Key { return c.Call.ResultKey(c.Queue) }

func (c *localCall) begin() error {
	return c.append(schema.BeginKey(c.Call.Turn, c.Call.Index, c.Queue), &schema.Begin{Instance: c.instance, Delivery: 1}, c.key())
}

// append records a fact; it outlives the call's context, since a late result must still be written.
func (c *localCall) append(key schema.Key, p schema.Encodable, unless schema.Key) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Ctx), recordWithin)
	defer cancel()
	_, err := c.journal.Append(ctx, c.Call.Run, key, p, unless)
	return err
}

// execute runs the call until it has an outcome, and records it.
func (c *localCall) execute(ctx context.Context) (schema.Result, error) {
	started := time.Now()
	for {
		r, pending := c.set.Execute(ctx, c.Call)
		if pending == nil {
			r.StartedMS, r.QueuedMS = started.UnixMilli(), max(0, started.Sub(c.since).Milliseconds())
			return c.record(r)
		}
		if !pause(ctx, cmp.Or(time.Duration(pending.RetryAfterMS)*time.Millisecond, localRetry)) {
			r = c.Call.Fail(schema.ToolFailed, pending.Reason)
			r.StartedMS = started.UnixMilli()
			return c.record(r)
		}
	}
}

// pause waits for d; false: ctx ends before.
func pause(ctx context.Context, d time.Duration) bool {
	if until, ok := ctx.Deadline(); ok && time.Until(until) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
