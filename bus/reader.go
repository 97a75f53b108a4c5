package bus

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	readerLook      = 500 * time.Millisecond // how often a reader that nothing comes to sees whether it may still wait
	readerHeartbeat = 3 * time.Second
	readerSilence   = 2*readerHeartbeat + time.Second // without a message: begin anew
)

// Errors that have a reader begin anew.
var (
	errSilent  = errors.New("nothing is heard of the consumer")
	errSkipped = errors.New("messages were lost on the way")
	errAnew    = errors.New("the connection was made anew")
)

// reader hears what a consumer sends to it. It tells deliveries from statuses by where they are acknowledged: the client
// library takes a message that a stranger has given a header Status and no payload for the server's word. It is used from
// one goroutine.
type reader struct {
	nc    *nats.Conn
	ctx   context.Context // of the one call that reads
	stop  context.CancelFunc
	sub   *nats.Subscription
	msgs  chan *nats.Msg
	epoch uint64 // reconnects of the connection when the reader began
	heard time.Time
	look  *time.Ticker
}

// listen begins to hear. Who calls it calls end.
func (b *Bus) listen(ctx context.Context) (*reader, error) {
	r := &reader{nc: b.nc, msgs: make(chan *nats.Msg), epoch: b.nc.Stats().Reconnects, heard: time.Now()}
	r.ctx, r.stop = context.WithCancel(ctx)
	var err error
	r.sub, err = b.nc.Subscribe(nats.NewInbox(), func(m *nats.Msg) {
		select {
		case r.msgs <- m:
		case <-r.ctx.Done():
		}
	})
	if err != nil {
		r.stop()
		return nil, err
	}
	r.look = time.NewTicker(readerLook)
	return r, nil
}

func (r *reader) end() {
	r.look.Stop()
	r.stop()
	_ = r.sub.Unsubscribe() // fails only on a closed connection
}

// next waits for a delivery or a status.
func (r *reader) next() (*nats.Msg, error) {
	for {
		select {
		case <-r.ctx.Done():
			return nil, r.ctx.Err()
		case m := <-r.msgs:
			r.heard = time.Now()
			return m, nil
		case <-r.look.C:
			switch {
			case r.nc.Stats().Reconnects != r.epoch:
				return nil, errAnew
			case time.Since(r.heard) > readerSilence:
				return nil, errSilent
			}
		}
	}
}

// received takes the deliveries of a consumer that is pulled from, until something breaks. The server owes up to atOnce.
func (b *Bus) received(ctx context.Context, stream, consumer string, atOnce int, take func(*nats.Msg, origin) error) error {
	r, err := b.listen(ctx)
	if err != nil {
		return err
	}
	defer r.end()
	for owed := 0; ; {
		if owed <= atOnce/2 {
			body := fmt.Appendf(nil, `{"batch":%d,"expires":%d,"idle_heartbeat":%d}`, atOnce-owed, pullExpires, readerHeartbeat)
			if err := r.nc.PublishRequest("$JS.API.CONSUMER.MSG.NEXT."+stream+"."+consumer, r.sub.Subject, body); err != nil {
				return err
			}
			owed = atOnce
		}
		m, err := r.next()
		if err != nil {
			return err
		}
		if o, err := parseOrigin(m); err == nil {
			if err := take(m, o); err != nil {
				return err
			}
			owed = max(0, owed-1)
			r.heard = time.Now() // it may have taken a while
			continue
		}
		status := m.Header.Get("Status")
		if status == "100" {
			continue
		}
		left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages")) // of a request that ended
		if err != nil {
			return fmt.Errorf("pull from %s: the server answers %s %s", consumer, status, m.Header.Get("Description"))
		}
		owed = max(0, owed-left)
	}
}
