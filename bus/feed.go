package bus

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/schema"
)

// lookPage is how many open slots are looked up in one request.
const lookPage = 256

// feed hears the republished facts of one run. It lives while somebody watches the run or has a call open in it.
// Live messages are hints: what is missed is looked up again every few seconds and after every break.
type feed struct {
	bus   *Bus
	run   string
	users int // guarded by Bus.mu
	subs  []*nats.Subscription

	speaking sync.Mutex // held while hearers are called, so that stop can wait for them

	mu      sync.Mutex
	open    map[schema.Key]*owner // by the key of the awaited result
	turn    int                   // the newest one of which a call was awaited
	past    map[schema.Key]bool   // results of it that are settled: a second copy of one is no stray
	hearers map[int]func(schema.Fact)
	nextID  int
}

// join returns the run's feed and counts the caller as a user of it until leave.
func (b *Bus) join(run string) (*feed, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if f := b.feeds[run]; f != nil {
		f.users++
		return f, nil
	}
	f := &feed{bus: b, run: run, users: 1, open: map[schema.Key]*owner{}, past: map[schema.Key]bool{}, hearers: map[int]func(schema.Fact){}}
	for subject, handle := range map[string]nats.MsgHandler{
		b.names.live(run):                          f.hear,
		b.names.prefix + ".progress." + run + ".>": f.hearProgress,
	} {
		sub, err := b.nc.Subscribe(subject, handle)
		if err != nil {
			f.unsubscribe()
			return nil, fmt.Errorf("hear run %s: %w", run, err)
		}
		f.subs = append(f.subs, sub)
	}
	b.feeds[run] = f
	return f, nil
}

func (b *Bus) leave(f *feed) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f.users--
	if f.users == 0 {
		delete(b.feeds, f.run)
		f.unsubscribe()
	}
}

func (f *feed) unsubscribe() {
	for _, s := range f.subs {
		_ = s.Unsubscribe() // fails only on a closed connection, where nothing is left to end
	}
}

// Watch calls heard for every ctl, say, begin, verdict and close fact of run that is stored from now on, in the order of arrival and from one goroutine,
// until stop is called, which returns when heard is not running any more and so must not be called by it. A fact may
// be missed while the connection is broken: facts decide, this only hints.
func (b *Bus) Watch(_ context.Context, run string, heard func(schema.Fact)) (stop func(), err error) {
	f, err := b.join(run)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	id := f.nextID
	f.nextID++
	f.hearers[id] = heard
	f.mu.Unlock()
	return sync.OnceFunc(func() {
		f.mu.Lock()
		delete(f.hearers, id)
		f.mu.Unlock()
		f.speaking.Lock() // whoever was called before has returned
		defer f.speaking.Unlock()
		b.leave(f)
	}), nil
}

func (f *feed) hear(m *nats.Msg) {
	fact, err := f.bus.fact(m.Subject, "live", m.Data, 0, time.Time{})
	if err != nil {
		return // a stranger's subject: it is no fact
	}
	stored := stamp(m, headerSequence)
	if stored == "" {
		return // no stream sent it. Who forges the header too is kept out by permissions
	}
	switch fact.Key.Kind {
	case schema.KindResult:
		f.settle(fact.Key, fact.Data)
		return
	case schema.KindCtl, schema.KindSay, schema.KindBegin, schema.KindVerdict, schema.KindClose:
	default:
		return
	}
	fact.Seq, _ = strconv.ParseUint(stored, 10, 64) // 0 when a stranger sent it
	if at, err := time.Parse(time.RFC3339Nano, stamp(m, "Nats-Time-Stamp")); err == nil {
		fact.Time = at
	}
	if err := f.bus.referredFact(f.bus.life, &fact); err != nil {
		return // it was only a hint
	}
	f.speaking.Lock()
	defer f.speaking.Unlock()
	for _, heard := range f.listeners() {
		heard(fact)
	}
}

func (f *feed) listeners() []func(schema.Fact) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Collect(maps.Values(f.hearers))
}

func (f *feed) settle(key schema.Key, data []byte) {
	f.mu.Lock()
	o := f.open[key]
	first := o != nil && !o.settled
	if first {
		o.settled = true
	}
	stray := o == nil && !f.past[key] && f.awaits(key.N)
	f.mu.Unlock()
	switch {
	case first:
		o.heard(data)
	case stray:
		f.bus.stray(f.run, key, data)
	}
}

// awaits tells whether a call of the turn is open. mu is held.
func (f *feed) awaits(turn int) bool {
	for key, o := range f.open {
		if key.N == turn && !o.settled {
			return true
		}
	}
	return false
}

// stray counts a result that answers no call made here, in a turn of which others are awaited. What this process wrote
// itself, of a call it has done with, is none.
func (b *Bus) stray(run string, key schema.Key, data []byte) {
	if r, err := schema.DecodeResult(data); err == nil && r.Worker == b.cfg.Instance {
		return
	}
	b.strays.Add(1)
	b.log.Warn("result of an unknown call ignored", "run", run, "fact", key.String())
}

// Strays returns how many results this process ignored: those that answer no call it made, in turns of which it
// awaited others.
func (b *Bus) Strays() int64 { return b.strays.Load() }

// expect registers the slot of a result before the call is published.
func (f *feed) expect(o *owner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.open[o.key] = o
	if o.key.N > f.turn {
		f.turn = o.key.N
		clear(f.past)
	}
}

func (f *feed) forget(key schema.Key) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.open, key)
	if key.N == f.turn {
		f.past[key] = true
	}
}

// lookAgain reads the slots of all open calls, every few seconds and whenever a live message may have been lost, until
// ctx ends.
func (b *Bus) lookAgain(ctx context.Context) {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			b.eachFeed((*feed).giveUp)
			return
		case <-tick.C:
		case <-b.changed:
		}
		b.eachFeed(func(f *feed) { f.lookUp(ctx) })
	}
}

func (b *Bus) eachFeed(do func(*feed)) {
	b.mu.Lock()
	feeds := slices.Collect(maps.Values(b.feeds))
	b.mu.Unlock()
	for _, f := range feeds {
		do(f)
	}
}

// giveUp ends the calls that wait on a bus that is closed.
func (f *feed) giveUp() {
	for _, o := range f.waiting() {
		o.hurry()
	}
}

// waiting returns the calls whose result was not heard yet.
func (f *feed) waiting() (open []*owner) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, o := range f.open {
		if !o.settled {
			open = append(open, o)
		}
	}
	return open
}

func (f *feed) lookUp(ctx context.Context) {
	var keys []schema.Key
	for _, o := range f.waiting() {
		keys = append(keys, o.key)
	}
	for page := range slices.Chunk(keys, lookPage) {
		if err := f.lookPage(ctx, page); err != nil && ctx.Err() == nil {
			f.bus.log.Warn("look up open calls", "run", f.run, "error", err)
			return
		}
	}
}

// lookPage settles what it finds. Not finding proves nothing, so a replica that is behind does no harm.
func (f *feed) lookPage(ctx context.Context, keys []schema.Key) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	subjects := make([]string, len(keys))
	for i, k := range keys {
		subjects[i] = f.bus.names.fact(f.run, k)
	}
	facts, err := f.bus.multiGet(ctx, subjects)
	for _, fact := range facts {
		f.settle(fact.Key, fact.Data)
	}
	return err
}
