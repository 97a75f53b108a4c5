package bus

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	pullExpires   = 10 * time.Second // a process that stands still draws deliveries until then, each lost for AckWait
	pullHeartbeat = 5 * time.Second
	pullSilence   = 2*pullHeartbeat + 2*time.Second // without a sign of life: ask anew
	pullPause     = 500 * time.Millisecond          // after the server refused a request
	pullIdle      = 5 * time.Second                 // without a delivery: see whether something waits
)

// demand is how many messages a worker may still ask for: never more than its free slots. It is plain arithmetic, so
// that it can be tested without a server.
type demand struct {
	slots   int
	lost    int // slots that handlers hold which were given up
	running int // messages being worked on
	leaving int // messages whose results are on their way to the stream: they hold no slot, but as many as there are slots are enough
	asked   int // messages that the server still owes
}

// want returns how many messages to ask for now. Small requests are put together until a quarter of the slots is free,
// but a worker never waits without a request.
func (d *demand) want() int {
	free := d.slots - d.lost - d.running - d.asked
	if free <= 0 || d.leaving >= d.slots || d.asked > 0 && free < max(1, d.slots/4) {
		return 0
	}
	return free
}

func (d *demand) delivered() { d.running++; d.asked = max(0, d.asked-1) }

// late takes a message that an earlier subscription had asked for: nothing of what is owed now has come.
func (d *demand) late() { d.running++ }

func (d *demand) finished() { d.running-- }

// expired takes back n messages of a request that ended unserved.
func (d *demand) expired(n int) { d.asked = max(0, d.asked-n) }

// puller asks the consumer of a queue for messages. It is used from one goroutine. nats.go's own loops can stop for
// half a minute with messages pending, so this one watches for signs of life and asks anew.
type puller struct {
	bus     *Bus
	queue   string
	atOnce  int    // calls of the queue that may be under way over all workers, when its consumer was last seen; 0: any number
	subject string // where requests go
	msgs    chan *nats.Msg
	demand  demand

	sub     *nats.Subscription
	inbox   string
	closed  chan struct{} // the subscription has passed on its last message
	epoch   uint64        // reconnects of the connection when the subscription began
	alive   time.Time     // last sign of life
	looked  time.Time     // last delivery, or look for what waits
	resume  time.Time     // no request before
	created bool          // the consumer was seen
}

func newPuller(b *Bus, queue string, slots, atOnce int) *puller {
	return &puller{
		bus: b, queue: queue, atOnce: atOnce, subject: "$JS.API.CONSUMER.MSG.NEXT." + b.names.work() + "." + queue,
		msgs: make(chan *nats.Msg, slots+16), demand: demand{slots: slots},
	}
}

// start begins a new subscription; what the server owed to the old one comes back as a redelivery.
func (p *puller) start() error {
	if p.sub != nil {
		_ = p.sub.Unsubscribe() // fails only on a closed connection
	}
	p.inbox = nats.NewInbox()
	p.closed = make(chan struct{})
	msgs, closed := p.msgs, p.closed
	sub, err := p.bus.nc.Subscribe(p.inbox, func(m *nats.Msg) { msgs <- m })
	if err != nil {
		return fmt.Errorf("pull from %s: %w", p.queue, err)
	}
	sub.SetClosedHandler(func(string) { close(closed) })
	p.sub, p.demand.asked = sub, 0
	p.epoch, p.alive, p.looked = p.bus.nc.Stats().Reconnects, time.Now(), time.Now()
	return nil
}

// pull asks for what is wanted.
func (p *puller) pull() error {
	n := p.demand.want()
	if n == 0 || time.Now().Before(p.resume) {
		return nil
	}
	body, err := json.Marshal(map[string]any{"batch": n, "expires": pullExpires, "idle_heartbeat": pullHeartbeat})
	if err != nil {
		return err
	}
	if err := p.bus.nc.PublishRequest(p.subject, p.inbox, body); err != nil {
		p.resume = time.Now().Add(pullPause)
		return nil // disconnected: the watchdog starts anew
	}
	if p.demand.asked == 0 {
		p.alive = time.Now()
	}
	p.demand.asked += n
	return nil
}

// status reads a message that is no delivery: a heartbeat, or the end of a request.
func (p *puller) status(m *nats.Msg) {
	p.alive = time.Now()
	code := m.Header.Get("Status")
	if code == "100" {
		return
	}
	if n, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages")); err == nil {
		p.demand.expired(n)
		return
	}
	// The request was refused, or its consumer went away: nothing is owed any more.
	p.bus.log.Warn("pull refused", "queue", p.queue, "status", code, "description", m.Header.Get("Description"))
	p.created = false
	p.alive = time.Time{}
	p.resume = time.Now().Add(pullPause)
}

// watch starts anew after a reconnect, a refusal, or when the server was silent for too long.
func (p *puller) watch(ctx context.Context) error {
	if !p.bus.nc.IsConnected() || time.Now().Before(p.resume) {
		return nil
	}
	silent := p.demand.asked > 0 && time.Since(p.alive) > pullSilence
	stuck := p.created && p.stuck(ctx)
	if !silent && !stuck && p.created && p.epoch == p.bus.nc.Stats().Reconnects {
		return nil
	}
	if silent || stuck {
		p.bus.log.Warn("pull loop got nothing, asking anew", "queue", p.queue, "waiting", stuck)
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	atOnce, err := p.bus.ensureConsumer(ctx, p.queue, p.atOnce)
	if err != nil {
		p.resume = time.Now().Add(pullPause)
		p.bus.log.Warn("pull loop cannot reach its consumer yet", "queue", p.queue, "error", err)
		return nil
	}
	p.created, p.atOnce = true, atOnce // somebody may have changed the limit: then it is that which a lost consumer gets again
	return p.start()
}

// stuck tells whether nothing has come for a while though messages wait: a consumer that lost its leader may keep a
// request, and its heartbeats, without ever serving it. One whose limit is reached has nothing to give.
func (p *puller) stuck(ctx context.Context) bool {
	if p.demand.asked == 0 || time.Since(p.looked) < pullIdle {
		return false
	}
	p.looked = time.Now()
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	c, err := p.bus.js.Consumer(ctx, p.bus.names.work(), p.queue)
	if err != nil {
		return false
	}
	info := c.CachedInfo()
	p.atOnce = max(0, info.Config.MaxAckPending)
	return info.NumPending > 0 && (p.atOnce == 0 || info.NumAckPending < p.atOnce)
}

// take counts a message and tells whether it is a delivery. What an earlier subscription still passed on is worked on
// too, but says nothing about the requests of this one.
func (p *puller) take(m *nats.Msg) bool {
	late := m.Sub != p.sub
	switch {
	case !isDelivery(m):
		if !late {
			p.status(m)
		}
		return false
	case late:
		p.demand.late()
	default:
		p.alive = time.Now()
		p.looked = p.alive
		p.demand.delivered()
	}
	return true
}

// isDelivery tells a message of the stream, whatever status it may bring, from a status of the server's.
func isDelivery(m *nats.Msg) bool {
	return m.Header.Get("Status") == "" || len(m.Data) > 0 || strings.HasPrefix(m.Reply, ackPrefix)
}

// end ends the subscription and calls back for each delivery that was on its way. The server has processed the end of
// our interest before one is given back, so it cannot come to this process again.
func (p *puller) end(back func(*nats.Msg)) {
	if p.sub == nil || p.sub.Drain() != nil {
		return // not connected: AckWait gives them back
	}
	late := time.NewTimer(publishTimeout)
	defer late.Stop()
	untilClosed(p.msgs, p.closed, late.C, func(m *nats.Msg) {
		if isDelivery(m) {
			back(m)
		}
	})
}

// untilClosed calls f for every message up to the last one before closed, or until late.
func untilClosed(msgs <-chan *nats.Msg, closed <-chan struct{}, late <-chan time.Time, f func(*nats.Msg)) {
	for {
		select {
		case m := <-msgs:
			f(m)
		case <-closed: // nothing comes any more, but what has come may still lie there
			for len(msgs) > 0 {
				f(<-msgs)
			}
			return
		case <-late:
			return
		}
	}
}
