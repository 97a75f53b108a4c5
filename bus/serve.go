package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/sourcegraph/conc"

	"github.com/jetcrew/jetcrew/schema"
)

// Server has tools and executes calls of them. Both methods are called concurrently.
type Server interface {
	// Tools returns the definitions that workers of the queue announce.
	Tools() []schema.Tool
	// Execute runs one call until its context ends. A Pending is no result yet.
	Execute(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending)
}

// loser is a Server that gives up handlers which ignore the end of their calls. Each of them holds a slot until it
// returns after all.
type loser interface {
	// Abandoned returns how many they are now. It is called often, and from one goroutine.
	Abandoned() int64
}

// changer is a Server whose tools change while it is served.
type changer interface {
	// Changed receives when Tools returns others than before. It is read by one goroutine.
	Changed() <-chan struct{}
}

// Worker says how a process serves a queue.
type Worker struct {
	Queue    string
	Slots    int           // calls at once, with those that Tools gave up and that still run, without those whose results are on their way; default 1
	Limit    int           // calls of the queue at once over all of its workers, who must agree; 0: what the queue has, or none
	Tools    Server        // required
	Drain    time.Duration // after the end of ctx: for running calls to finish before they are cancelled; default 20 s
	Attempts int           // starts of one call before it is given up; default 3
}

func (w Worker) withDefaults() (Worker, error) {
	w.Slots = cmp.Or(w.Slots, 1)
	w.Drain = cmp.Or(w.Drain, 20*time.Second)
	w.Attempts = cmp.Or(w.Attempts, 3)
	switch {
	case w.Tools == nil:
		return w, errors.New("worker without tools")
	case w.Slots < 1 || w.Slots > 4096:
		return w, fmt.Errorf("slots %d: want 1 to 4096", w.Slots)
	case w.Attempts < 1:
		return w, fmt.Errorf("attempts %d: want at least 1", w.Attempts)
	case checkAtOnce(w.Limit) != nil:
		return w, checkAtOnce(w.Limit)
	}
	return w, schema.CheckQueue(w.Queue)
}

// Serve works on the calls of a queue until ctx ends, then drains: it takes no further call, hands back at once what
// has not started, lets the running calls finish within w.Drain, and cancels those that do not. It returns after every
// acknowledgement has reached the server; the error says what was left, or is a LimitError.
func (b *Bus) Serve(ctx context.Context, w Worker) error {
	w, err := w.withDefaults()
	if err == nil {
		w.Limit, err = b.awaitConsumer(ctx, w.Queue, w.Limit)
		if err != nil && ctx.Err() != nil {
			return nil // told to end before it began: nothing was left
		}
	}
	if err != nil {
		return fmt.Errorf("serve %s: %w", w.Queue, err)
	}
	b.working.Do(func() { b.task(func() { b.keepInProgress(b.life) }) })
	if w.Limit > 0 {
		b.Catalog() // says whether others have a tool
	}
	s := newService(b, w)
	announced := s.bus.announce(s.worker.Queue, s.worker.Slots, w.Tools.Tools())
	defer announced.withdraw()
	s.renew = announced.renew
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("serve %s: %w", w.Queue, err)
	}
	return nil
}

// service is one queue served by this process.
type service struct {
	bus      *Bus
	worker   Worker
	tools    atomic.Pointer[map[string]schema.Tool]
	renew    func([]schema.Tool) // announces other tools
	puller   *puller
	jobs     chan *nats.Msg // to handlers that have nothing to do
	retire   func()         // ends these
	finished chan struct{}  // one for each slot that is free again
	leaving  atomic.Int64   // messages whose results are on their way to the stream
	fewer    chan struct{}  // these are fewer than the slots again
	handlers conc.WaitGroup
	open     sync.WaitGroup // messages that are not done with: a handler leaves the last word to the stream

	// Two contexts: the one of Serve stops taking work, this one stops the work that runs.
	work   context.Context
	cancel context.CancelCauseFunc
}

func newService(b *Bus, w Worker) *service {
	s := &service{bus: b, worker: w, puller: newPuller(b, w.Queue, w.Slots, w.Limit)}
	s.know(w.Tools.Tools())
	s.jobs = make(chan *nats.Msg)
	s.retire = sync.OnceFunc(func() { close(s.jobs) })
	s.finished = make(chan struct{}, w.Slots+cap(s.puller.msgs))
	s.fewer = make(chan struct{}, 1)
	s.work, s.cancel = context.WithCancelCause(b.life)
	return s
}

// know makes tools those of the calls that come. Those that run go on.
func (s *service) know(tools []schema.Tool) {
	byName := make(map[string]schema.Tool, len(tools))
	for _, t := range tools {
		byName[t.Name] = t
	}
	s.tools.Store(&byName)
}

func (s *service) run(ctx context.Context) error {
	defer s.cancel(nil)
	defer s.retire()
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	p := s.puller
	if err := p.watch(ctx); err != nil {
		return err
	}
	tools, loses := s.worker.Tools.(loser)
	var changed <-chan struct{} // nil: they do not change
	if c, ok := s.worker.Tools.(changer); ok {
		changed = c.Changed()
	}
	for {
		if loses {
			p.demand.lost = int(tools.Abandoned())
		}
		p.demand.leaving = int(s.leaving.Load())
		if err := p.pull(); err != nil {
			return err
		}
		var err error
		select {
		case <-ctx.Done():
			return s.drain()
		case <-s.bus.life.Done():
			return nats.ErrConnectionClosed
		case m := <-p.msgs:
			s.got(m)
		case <-s.finished:
			p.demand.finished()
		case <-s.fewer:
		case <-changed:
			s.know(s.worker.Tools.Tools())
			s.renew(s.worker.Tools.Tools())
		case <-tick.C:
			err = p.watch(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

func (s *service) got(m *nats.Msg) {
	if !s.puller.take(m) {
		return
	}
	s.open.Add(1)
	select {
	case s.jobs <- m:
	default:
		s.handlers.Go(func() { s.handler(m) })
	}
}

// handler works on m, then on what comes: its stack has grown, and a new goroutine's would have to grow again.
func (s *service) handler(m *nats.Msg) {
	for ok := true; ok; m, ok = <-s.jobs {
		s.handle(m)
	}
}

// done ends the work on one message that holds a slot.
func (s *service) done() {
	s.finished <- struct{}{}
	s.open.Done()
}

// leave frees the slot of a message whose result is about to be sent.
func (s *service) leave() {
	s.leaving.Add(1)
	s.finished <- struct{}{}
}

// left ends the work on one message that holds no slot any more.
func (s *service) left() {
	if s.leaving.Add(-1) == int64(s.worker.Slots)-1 {
		select {
		case s.fewer <- struct{}{}:
		default:
		}
	}
	s.open.Done()
}

// drainSlack is how long cancelled calls may take to settle before the drain ends without them.
const drainSlack = 10 * time.Second

// drain gives back what is buffered, waits for what runs, and cancels it when the time is over.
func (s *service) drain() error {
	s.handBack()
	done := make(chan struct{})
	s.retire()
	go func() {
		s.open.Wait()
		s.handlers.Wait()
		close(done)
	}()
	late := time.NewTimer(s.worker.Drain)
	defer late.Stop()
	for {
		select {
		case <-done:
			return s.bus.flushAcks()
		case <-s.finished:
		case <-late.C:
			if s.work.Err() != nil {
				return fmt.Errorf("drain: %d calls did not end within %v of being cancelled", s.bus.table.count(s.worker.Queue), drainSlack)
			}
			s.cancel(&schema.Error{Type: schema.Cancelled, Message: "the worker is shutting down"})
			late.Reset(drainSlack)
		}
	}
}

// handBack returns the messages that were on their way.
func (s *service) handBack() {
	var back conc.WaitGroup
	defer back.Wait()
	s.puller.end(func(m *nats.Msg) { back.Go(func() { s.giveBack(m) }) })
}

func (s *service) giveBack(m *nats.Msg) {
	if d, err := s.read(m); err == nil {
		d.back("the worker is shutting down", 0)
	}
}
