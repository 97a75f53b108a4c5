package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/panics"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// Host works on runs. Take is called concurrently, for one run at a time once; it returns what becomes of the message,
// and when ctx ends it hands the run back soon.
type Host interface {
	Take(ctx context.Context, m schema.RunMessage) schema.Taken
}

// Hosting says how a process serves the queue agents.
type Hosting struct {
	Slots  int           // runs at once; default 16
	Host   Host          // required
	Agents []schema.Tool // what others may call, see schema.AgentTool; calls of an agent that no process names here end as NoWorker when it is not begun soon
	Drain  time.Duration // after the end of ctx: for calls that run to settle before their runs are left to others; default 20 s
}

// Host serves the queue agents until ctx ends: it has every run that a message brings, and that no other instance
// works on, taken by h. Then it takes no further message, waits for what is handed back, and returns. A run is in
// progress, for others to see, as long as Take works on it; there is no deadline.
func (b *Bus) Host(ctx context.Context, h Hosting) error {
	h.Slots, h.Drain = cmp.Or(h.Slots, 16), cmp.Or(h.Drain, 20*time.Second)
	switch {
	case h.Host == nil:
		return errors.New("host agents: no host")
	case h.Slots < 1 || h.Slots > 4096:
		return fmt.Errorf("host agents: slots %d: want 1 to 4096", h.Slots)
	}
	_, err := b.awaitConsumer(ctx, schema.QueueAgents, 0)
	if err == nil {
		err = b.awaitWakeConsumers(ctx)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		return nil // told to end before it began: nothing was left
	case err != nil:
		return fmt.Errorf("host agents: %w", err)
	}
	b.Catalog() // says which agents others serve
	b.working.Do(func() { b.task(func() { b.keepInProgress(b.life) }) })
	s := &hosting{bus: b, Hosting: h, puller: newPuller(b, schema.QueueAgents, h.Slots, 0)}
	s.finished = make(chan struct{}, h.Slots+cap(s.puller.msgs))
	forwarding, stop := context.WithCancel(ctx)
	var wakes conc.WaitGroup
	for stream, cfg := range WakeConsumers(b.cfg.Prefix) {
		wakes.Go(func() { b.wakeUps(forwarding, stream, cfg) })
	}
	wakes.Go(func() { b.expireRuns(forwarding) })
	defer wakes.Wait()
	defer stop()
	if len(h.Agents) > 0 {
		defer b.announce(schema.QueueAgents, h.Slots, h.Agents).withdraw()
	}
	if err := s.run(ctx); err != nil {
		return fmt.Errorf("host agents: %w", err)
	}
	return nil
}

// hosting is the queue agents as this process serves it.
type hosting struct {
	Hosting
	bus      *Bus
	puller   *puller
	finished chan struct{} // one for each message that is done with
	open     sync.WaitGroup
}

func (s *hosting) run(ctx context.Context) error {
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	p := s.puller
	if err := p.watch(ctx); err != nil {
		return err
	}
	for {
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
			if p.take(m) {
				s.open.Add(1)
				if !s.bus.task(func() { s.handle(ctx, m) }) {
					s.open.Done() // the bus is closed: the next turn of the loop ends it
				}
			}
		case <-s.finished:
			p.demand.finished()
		case <-tick.C:
			err = p.watch(ctx)
		}
		if err != nil && ctx.Err() == nil {
			return err
		}
	}
}

// drain gives back what is buffered and waits for the runs to be handed back.
func (s *hosting) drain() error {
	s.puller.end(func(m *nats.Msg) {
		_ = s.bus.nc.Publish(m.Reply, nakAfter(0)) // AckWait does the same, later
	})
	done := make(chan struct{})
	go func() {
		s.open.Wait()
		close(done)
	}()
	late := time.NewTimer(s.Drain)
	defer late.Stop()
	for {
		select {
		case <-done:
			return s.bus.flushAcks()
		case <-s.finished:
		case <-late.C:
			n := s.leave()
			_ = s.bus.nc.FlushTimeout(publishTimeout) // AckWait does the same, later
			return fmt.Errorf("drain: calls have not settled within %v; runs left to other owners: %d", s.Drain, n)
		}
	}
}

// leave gives back the runs whose calls still run, and returns how many: another owner takes them, and this process's
// next write is refused.
func (s *hosting) leave() (n int) {
	t := &s.bus.table
	t.mu.Lock()
	defer t.mu.Unlock()
	for id, e := range t.entries {
		if e.queue == schema.QueueAgents {
			_ = s.bus.nc.Publish(e.reply, nakAfter(0)) // AckWait does the same, later
			delete(t.entries, id)
			n++
		}
	}
	return n
}

// errand is one message of the queue agents.
type errand struct {
	delivery
	host *hosting
	run  schema.RunMessage
}

// handle takes one message to its end.
func (s *hosting) handle(ctx context.Context, m *nats.Msg) {
	defer func() {
		s.finished <- struct{}{}
		s.open.Done()
	}()
	o, err := parseOrigin(m)
	if err != nil {
		s.bus.log.Warn("message is no delivery", "queue", schema.QueueAgents, "error", err)
		return
	}
	e := &errand{host: s}
	e.delivery = delivery{
		service: &service{bus: s.bus, worker: Worker{Queue: schema.QueueAgents}}, origin: o, msg: m, received: time.Now(),
	}
	data, err := s.bus.errandData(ctx, m.Data)
	if err != nil && !errors.Is(err, ErrNoBlob) {
		s.bus.log.Warn("message not read, it comes again", "queue", schema.QueueAgents, "seq", o.seq, "error", err)
		e.nak(ownedDelay())
		return
	}
	if err == nil {
		e.run, err = readErrand(data, o)
	}
	if err != nil {
		e.bury(err.Error())
		return
	}
	if ms, err := strconv.ParseInt(m.Header.Get(HeaderDeadline), 10, 64); err == nil {
		e.run.Deadline = time.UnixMilli(ms)
	}
	if c := e.run.Call; c != nil && c.Turn > 0 {
		e.run.Unserved = s.bus.unserved(c.Tool, time.Now().Add(o.stored.Sub(s.bus.Now())))
	}
	e.work(ctx)
}

// readErrand reads a wake-up or a call.
func readErrand(data []byte, o origin) (schema.RunMessage, error) {
	m := schema.RunMessage{Seq: o.seq, Delivery: o.delivery}
	var w schema.Wake
	if err := schema.Decode(data, &w); err == nil && w.Wake {
		if !schema.ValidID(w.Run) {
			return m, fmt.Errorf("wake-up: run %.80q is no id", w.Run)
		}
		m.Run = w.Run
		return m, nil
	}
	c, err := schema.DecodeCall(data)
	if err != nil {
		return m, err
	}
	m.Call, m.Run = c, startedBy(c)
	return m, nil
}

// startedBy returns the run that a call on the queue agents is.
func startedBy(c *schema.Call) string {
	if c.Turn == 0 {
		return c.Run
	}
	return c.StartKey(schema.QueueAgents).Run
}

// othersMay is how many deliveries of a message may find nobody who can work on it before somebody is told.
const othersMay = 5

// noDeadline is for a run, which has none.
var noDeadline = time.Unix(math.MaxInt32, 0)

// work has the run taken unless somebody works on it.
func (e *errand) work(ctx context.Context) {
	b := e.bus
	slot := &entry{
		id: callID{run: e.run.Run}, queue: schema.QueueAgents, seq: e.seq, reply: e.msg.Reply, deadline: noDeadline,
		cancel: func(error) {}, // a run is stopped by a fact; the hint is for its calls
	}
	if present := b.table.add(slot); present != nil {
		e.nak(ownedDelay())
		return
	}
	defer b.table.drop(slot)
	owned, next, err := b.owned(ctx, e.run.Run, e.seq)
	switch {
	case err != nil && ctx.Err() != nil: // this process takes no more runs
		e.nak(0)
		return
	case err != nil:
		b.log.Warn("run not taken, it comes again", "run", e.run.Run, "error", err)
		e.nak(ownedDelay())
		return
	case owned:
		e.nak(ownedDelay())
		return
	}
	slot.active.Store(true)
	e.run.Slot = next // whoever takes the run in the meantime has it
	taken := e.take(tracing.Extract(ctx, e.msg.Header))
	if taken.Act == schema.TakenParked {
		e.park(ctx, taken, slot)
		return
	}
	e.settle(taken)
}

// maxPanic bounds what is logged of a panic's value, in bytes: it may hold arguments.
const maxPanic = 1024

// take has the host work on the run. One that panics has lost the run, and says so at once, not when the bus is closed.
func (e *errand) take(ctx context.Context) (t schema.Taken) {
	var catch panics.Catcher
	catch.Try(func() { t = e.host.Host.Take(ctx, e.run) })
	if p := catch.Recovered(); p != nil {
		e.bus.log.Error("the work on a run panicked", "run", e.run.Run, "panic", schema.Cut(fmt.Sprint(p.Value), maxPanic), "stack", string(p.Stack))
		return schema.Taken{Act: schema.TakenLeave, Reason: "the work on it panicked"}
	}
	return t
}

func (e *errand) settle(t schema.Taken) {
	switch t.Act {
	case schema.TakenDone:
		e.ack()
	case schema.TakenBusy:
		if t.After > 0 || !e.handOn() {
			e.nak(t.After)
		}
	case schema.TakenCannot:
		level := slog.LevelInfo // another process may be able to
		if e.run.Delivery > othersMay {
			level = slog.LevelWarn
		}
		e.bus.log.Log(context.Background(), level, "run handed back", "run", e.run.Run, "reason", t.Reason)
		e.nak(t.After)
	case schema.TakenDead:
		e.bury(t.Reason)
	default:
		e.bus.log.Info("run left to another owner", "run", e.run.Run, "reason", t.Reason)
	}
}

// handOn has another message bring the run, since owners of the same one count as lost. It returns false when it could not.
func (e *errand) handOn() bool {
	if !e.held() || e.bus.Wake(e.run.Run) != nil {
		return false
	}
	e.reply(ackDone)
	return true
}
