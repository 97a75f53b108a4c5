package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/sourcegraph/conc"

	"github.com/jetcrew/jetcrew/schema"
)

// Config says how to reach the bus. The zero Config connects to nats://127.0.0.1:4222.
type Config struct {
	URL      string        // default nats://127.0.0.1:4222; several, separated by commas, for a cluster
	Options  []nats.Option // further options of the connection, such as credentials or an in-process server; its handlers are the bus's own
	Prefix   string        // default DefaultPrefix
	Instance string        // id of this process start; default a fresh one
	Replicas int           // of streams that this process creates; default 1
	Grace    time.Duration // after a deadline, until the owner of a call that began gives it up; default 3 s; exceeds clock error, publish time and the grace of a tool that ignores its end
	Logger   *slog.Logger  // default slog.Default()
}

func (c Config) withDefaults() (Config, error) {
	c.URL = cmp.Or(c.URL, nats.DefaultURL)
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	c.Instance = cmp.Or(c.Instance, schema.NewID())
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Grace = cmp.Or(c.Grace, 3*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if !schema.ValidID(c.Prefix) {
		return c, fmt.Errorf("prefix %q: want 1 to 64 of A-Z, a-z, 0-9, '_', '-'", c.Prefix)
	}
	if !schema.ValidID(c.Instance) {
		return c, fmt.Errorf("instance %q: want 1 to 64 of A-Z, a-z, 0-9, '_', '-'", c.Instance)
	}
	return c, nil
}

// Bus is a connection to the bus. It is safe for concurrent use. Close ends it.
type Bus struct {
	cfg   Config
	names names
	nc    *nats.Conn
	js    jetstream.JetStream
	clock clock
	log   *slog.Logger

	workTemplate   string // of the subjects of calls, for spans
	resultTemplate string // of the subjects of results

	life  context.Context // ends with Close, and the goroutines below with it
	stop  context.CancelFunc
	tasks conc.WaitGroup
	begin sync.Mutex // held while a task is started or Close forbids it: none may start while Close waits

	working sync.Once // the first Serve starts what keeps calls in progress
	catalog struct {
		once sync.Once
		*Catalog
	}
	strays atomic.Int64  // results of unknown calls
	broken atomic.Int64  // when the connection was last lost, or known to be there again, Unix nanoseconds; 0: never
	breaks atomic.Uint64 // reconnections that this process has heard of

	contact contact
	room    room

	unservedAfter time.Duration // unservedAfter, or less in tests

	mu      sync.Mutex
	feeds   map[string]*feed // by run
	buckets map[string]bool  // of the object store, those that are known to exist
	table   table
	acks    acks
	done    struct { // acknowledgements that are about to be sent
		mu      sync.Mutex
		replies []string
	}

	changed chan struct{} // the connection came back or a reader was too slow: look again
	once    sync.Once
}

// Connect reaches the server, creates the streams that are missing and refuses those whose settings would break the
// protocol, with the difference spelled out. ctx bounds the whole.
func Connect(ctx context.Context, cfg Config) (*Bus, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("connect bus: %w", err)
	}
	b := &Bus{cfg: cfg, names: names{cfg.Prefix}, log: cfg.Logger, feeds: map[string]*feed{}, buckets: map[string]bool{}, changed: make(chan struct{}, 1), unservedAfter: unservedAfter}
	b.workTemplate = cfg.Prefix + ".work.{queue}.{lane}"
	b.resultTemplate = cfg.Prefix + ".run.{run}.result.{turn}.{index}.{queue}"
	b.table.entries = map[callID]*entry{}
	b.clock.moved = make(chan struct{}, 1)
	b.life, b.stop = context.WithCancel(context.Background())
	if b.nc, err = nats.Connect(cfg.URL, b.options()...); err != nil {
		return nil, fmt.Errorf("connect bus: %s: %w", shown(cfg.URL), err)
	}
	if err := b.setUp(ctx); err != nil {
		b.nc.Close()
		return nil, fmt.Errorf("connect bus: %w", err)
	}
	b.task(func() { b.clock.keep(b.life, b) })
	b.task(func() { b.lookAgain(b.life) })
	b.task(func() { b.expireAcks(b.life) })
	return b, nil
}

// shown returns addresses without the users, passwords and tokens in them.
func shown(urls string) string {
	list := strings.Split(urls, ",")
	for i, u := range list {
		if at := strings.LastIndex(u, "@"); at >= 0 {
			scheme, _, ok := strings.Cut(u, "://")
			list[i] = u[at+1:]
			if ok {
				list[i] = scheme + "://" + list[i]
			}
		}
	}
	return strings.Join(list, ",")
}

func (b *Bus) setUp(ctx context.Context) (err error) {
	if b.js, err = jetstream.New(b.nc); err != nil {
		return err
	}
	if err := b.ensureStreams(ctx); err != nil {
		return err
	}
	if err := b.listenLeader(); err != nil {
		return err
	}
	if err := b.clock.sync(ctx, b); err != nil { // its answers say that the server knows of the subscription too
		return err
	}
	if err := b.listenAcks(); err != nil {
		return err
	}
	return b.listenWorker()
}

func (b *Bus) options() []nats.Option {
	defaults := []nats.Option{
		nats.Name("jetcrew " + b.cfg.Instance),
		nats.MaxReconnects(-1),
		nats.ReconnectWait(250 * time.Millisecond),
		nats.ReconnectJitter(250*time.Millisecond, 250*time.Millisecond),
		nats.PingInterval(10 * time.Second),
		nats.MaxPingsOutstanding(2),
	}
	own := []nats.Option{
		// A publish into a cut connection must fail, not wait in a buffer and look as if it had succeeded.
		nats.ReconnectBufSize(-1),
		nats.ReconnectHandler(b.reconnected),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			b.broken.Store(time.Now().UnixNano())
			if err != nil {
				b.log.Warn("bus disconnected", "error", err)
			}
		}),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			b.log.Warn("bus error", "error", err)
			if errors.Is(err, nats.ErrSlowConsumer) {
				b.poke()
			}
		}),
	}
	return slices.Concat(defaults, b.cfg.Options, own)
}

// reconnected goes on after a break: answers that were under way will not come any more, live messages were missed.
func (b *Bus) reconnected(nc *nats.Conn) {
	breaks := nc.Stats().Reconnects // before the time, which is behind all of them
	b.broken.Store(time.Now().UnixNano())
	b.breaks.Store(breaks)
	b.log.Warn("bus reconnected")
	b.giveUpAcks(time.Now())
	b.contact.silent.Store(0)
	b.clock.ask()
	b.poke()
}

// unbrokenSince tells whether the connection was there all the while since t. nats.go tells of a break and of its end later
// than it shows them: until reconnected has heard of every reconnection that the connection counts, nothing is known.
func (b *Bus) unbrokenSince(t time.Time) bool {
	return b.nc.IsConnected() && b.nc.Stats().Reconnects == b.breaks.Load() && b.broken.Load() < t.UnixNano()
}

func (b *Bus) poke() {
	select {
	case b.changed <- struct{}{}:
	default:
	}
}

// task starts f on a goroutine that Close waits for; false: the bus is closed, f does not run.
func (b *Bus) task(f func()) bool {
	b.begin.Lock()
	defer b.begin.Unlock()
	if b.life.Err() != nil {
		return false
	}
	b.tasks.Go(f)
	return true
}

// Instance returns the id of this process start.
func (b *Bus) Instance() string { return b.cfg.Instance }

// Now returns the time on the clock of the work stream's leader, on which deadlines are written.
func (b *Bus) Now() time.Time { return b.clock.now() }

// Close ends the bus at once: calls that wait end with an error. It is safe to call twice.
func (b *Bus) Close() {
	b.once.Do(func() {
		b.sendAcks()
		b.nc.Close() // first, so that what ends by the next line writes no result that a worker which dies would not write
		b.begin.Lock()
		b.stop()
		b.begin.Unlock()
		b.tasks.Wait()
	})
}
