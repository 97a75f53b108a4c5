package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// The floor: what any design on this bus must do for a call, written with nats.go and nothing else. The call is
// published asynchronously and acknowledged; a worker gets it, writes the write-once result, which is republished to
// the caller, and acknowledges. A run-once call's begin is one further write-once publish before the result.

const (
	rawWork    = "RAW_WORK"
	rawFacts   = "RAW_FACTS"
	rawDurable = "raw"
)

// rawSetUp creates the floor's streams and consumer.
func rawSetUp(ctx context.Context, js jetstream.JetStream, replicas int) error {
	streams := []jetstream.StreamConfig{
		{Name: rawWork, Subjects: []string{"raw.work.>"}, Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew},
		{
			Name: rawFacts, Subjects: []string{"raw.fact.>"}, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true,
			MaxMsgsPerSubject: 1, AllowDirect: true,
			RePublish: &jetstream.RePublish{Source: "raw.fact.>", Destination: "raw.live.>"},
		},
	}
	for _, s := range streams {
		s.Replicas = replicas
		if _, err := js.CreateOrUpdateStream(ctx, s); err != nil {
			return err
		}
	}
	_, err := js.CreateOrUpdateConsumer(ctx, rawWork, jetstream.ConsumerConfig{
		Durable: rawDurable, AckPolicy: jetstream.AckExplicitPolicy, AckWait: 6 * time.Second, MaxAckPending: -1,
	})
	return err
}

// rawWorker answers every call with a payload of the same size.
func rawWorker(ctx context.Context, nc *nats.Conn, slots, replicas int) error {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(10_000))
	if err != nil {
		return err
	}
	if err := rawSetUp(ctx, js, replicas); err != nil {
		return err
	}
	cons, err := js.Consumer(ctx, rawWork, rawDurable)
	if err != nil {
		return err
	}
	answer := []byte(payload)
	cc, err := cons.Consume(func(m jetstream.Msg) {
		id, once := strings.CutPrefix(m.Headers().Get("Id"), "once.")
		if once {
			begin := writeOnce("raw.fact.begin."+id, []byte(`{"instance":"raw","delivery":1,"seq":1}`))
			begin.Header["Nats-Expected-Last-Subject-Sequence-Subject"] = []string{"raw.fact.result." + id}
			rawThen(js, begin, func() { rawResult(js, id, answer, m) })
			return
		}
		rawResult(js, id, answer, m)
	}, jetstream.PullMaxMessages(slots))
	if err != nil {
		return err
	}
	defer cc.Stop()
	fmt.Println("ready")
	waitTerm(ctx)
	return nil
}

func rawResult(js jetstream.JetStream, id string, answer []byte, m jetstream.Msg) {
	rawThen(js, writeOnce("raw.fact.result."+id, answer), func() { _ = m.Ack() })
}

// undecided is what a cluster answers while another write to the subject is under way.
const undecided = 10164

// rawThen publishes m and goes on when the stream has it.
func rawThen(js jetstream.JetStream, m *nats.Msg, then func()) {
	f, err := js.PublishMsgAsync(m)
	if err != nil {
		panic(err)
	}
	go func() {
		select {
		case <-f.Ok():
			then()
		case err := <-f.Err():
			switch api := (*jetstream.APIError)(nil); {
			case !errors.As(err, &api):
				panic(err)
			case api.ErrorCode == undecided:
				rawThen(js, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data}, then) // m has a reply subject by now
			} // else it was delivered twice, and written by the other delivery
		}
	}()
}

func writeOnce(subject string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{"Nats-Expected-Last-Subject-Sequence": {"0"}}}
}

// raw is the floor as a caller.
type raw struct {
	js   jetstream.JetStream
	once bool
	run  int

	mu   sync.Mutex
	open map[string]chan struct{}
	next int
}

func newRaw(ctx context.Context, nc *nats.Conn, once bool, replicas int) (*raw, error) {
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncMaxPending(10_000))
	if err != nil {
		return nil, err
	}
	if err := rawSetUp(ctx, js, replicas); err != nil {
		return nil, err
	}
	r := &raw{js: js, once: once, run: int(time.Now().UnixNano()), open: map[string]chan struct{}{}}
	_, err = nc.Subscribe("raw.live.result."+strconv.Itoa(r.run)+".>", r.hear)
	return r, err
}

func (r *raw) hear(m *nats.Msg) {
	id := strings.TrimPrefix(m.Subject, "raw.live.result.")
	r.mu.Lock()
	done := r.open[id]
	delete(r.open, id)
	r.mu.Unlock()
	if done != nil {
		close(done)
	}
}

// publish begins one call; the channel is closed when its result is there.
func (r *raw) publish() (<-chan struct{}, error) {
	done := make(chan struct{})
	r.mu.Lock()
	r.next++
	id := strconv.Itoa(r.run) + "." + strconv.Itoa(r.next)
	r.open[id] = done
	r.mu.Unlock()
	header := id
	if r.once {
		header = "once." + id
	}
	_, err := r.js.PublishMsgAsync(&nats.Msg{Subject: "raw.work.0", Data: []byte(payload), Header: nats.Header{"Id": {header}}})
	return done, err
}

func (r *raw) one(n int) ([]time.Duration, error) { return r.batches(n, 1) }

func (r *raw) batches(n, size int) ([]time.Duration, error) {
	times := make([]time.Duration, 0, n)
	for range n {
		start := time.Now()
		open := make([]<-chan struct{}, size)
		for i := range open {
			var err error
			if open[i], err = r.publish(); err != nil {
				return nil, err
			}
		}
		for _, done := range open {
			<-done
		}
		times = append(times, time.Since(start))
	}
	return times, nil
}

func (r *raw) flood(calls, outstanding int) (time.Duration, error) {
	free := make(chan struct{}, outstanding)
	start := time.Now()
	var wg sync.WaitGroup
	for range calls {
		free <- struct{}{}
		done, err := r.publish()
		if err != nil {
			return 0, err
		}
		wg.Go(func() {
			<-done
			<-free
		})
	}
	wg.Wait()
	return time.Since(start), nil
}
