package bus

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/schema"
)

// Headers by which a message waits in the stream of timers until it is due.
const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

// Wake has somebody look after a run that nobody works on: it publishes a wake-up on the queue agents. A wake-up too
// many does no harm.
func (b *Bus) Wake(run string) error {
	data, err := schema.Encode(&schema.Wake{Run: run, Wake: true})
	if err == nil {
		_, err = b.publish(&nats.Msg{Subject: b.names.workSubject(schema.QueueAgents), Data: data})
	}
	if err != nil {
		return fmt.Errorf("wake run %s: %w", run, err)
	}
	return nil
}

// wakeAt has a run woken at a time on the server's clock, instead of at any time set before.
func (b *Bus) wakeAt(run string, at time.Time) error {
	if far := time.Now().Add(longest); at.After(far) { // RFC 3339 has years of four digits
		at = far
	}
	h := nats.Header{
		headerSchedule:       {"@at " + at.UTC().Format(time.RFC3339Nano)},
		headerScheduleTarget: {b.names.timerDue(run)},
	}
	if _, err := b.publish(&nats.Msg{Subject: b.names.timerSet(run), Header: h, Data: []byte(run)}); err != nil {
		return fmt.Errorf("set timer of run %s: %w", run, err)
	}
	return nil
}

// WakeConsumers returns the settings of the two durable consumers that all orchestrators share: whoever gets one of
// their messages wakes the run that it is about. The key is the stream.
func WakeConsumers(prefix string) map[string]jetstream.ConsumerConfig {
	n := names{prefix}
	wake := jetstream.ConsumerConfig{
		Durable: "wake", DeliverPolicy: jetstream.DeliverNewPolicy, AckPolicy: jetstream.AckExplicitPolicy, AckWait: AckWait, MaxDeliver: -1,
		FilterSubjects: []string{
			n.prefix + ".run.*.verdict.>", n.prefix + ".run.*.say.>", n.prefix + ".run.*.ctl.>",
			n.prefix + ".run.*.result.*.*." + schema.QueueAgents,
		},
	}
	due := wake
	due.DeliverPolicy, due.FilterSubjects, due.FilterSubject = jetstream.DeliverAllPolicy, nil, n.timerDue("*")
	return map[string]jetstream.ConsumerConfig{n.runs(): wake, n.timer(): due}
}

// wakeUps publishes wake-ups until ctx ends. Whatever breaks, it begins anew.
func (b *Bus) wakeUps(ctx context.Context, stream string, cfg jetstream.ConsumerConfig) {
	last := uint64(0)
	for attempt := 1; ctx.Err() == nil; attempt++ {
		err := b.forward(ctx, stream, cfg, &last)
		if ctx.Err() == nil {
			b.log.Debug("reader of wake-ups starts anew", "stream", stream, "error", err)
		}
		_ = backoff(ctx, attempt) // an ended ctx ends the loop
	}
}

// awaitWakeConsumers makes the consumers of wake-ups exist. They get what is stored after they were made, so no run may
// be taken before.
func (b *Bus) awaitWakeConsumers(ctx context.Context) error {
	for stream, cfg := range WakeConsumers(b.cfg.Prefix) {
		err := b.atStart(ctx, func(ctx context.Context) error {
			_, err := b.wakeConsumer(ctx, stream, cfg, 0)
			return err
		})
		if err != nil {
			return fmt.Errorf("consumer of wake-ups of %s: %w", stream, err)
		}
	}
	return nil
}

// wakesAgain is how far before what it had come to a consumer begins that was deleted, in sequences: what other orchestrators
// held of it went with it, and a wake-up too many does no harm.
const wakesAgain = 1024

// wakeConsumer returns a consumer of wake-ups, which whoever comes first makes. last is the sequence that this process knows
// an earlier one had come to; 0: there was none.
func (b *Bus) wakeConsumer(ctx context.Context, stream string, cfg jetstream.ConsumerConfig, last uint64) (jetstream.Consumer, error) {
	if cfg.DeliverPolicy == jetstream.DeliverNewPolicy && last > 0 {
		cfg.DeliverPolicy, cfg.OptStartSeq = jetstream.DeliverByStartSequencePolicy, max(last, wakesAgain)-wakesAgain+1
	}
	cons, err := b.js.CreateConsumer(ctx, stream, cfg)
	if errors.Is(err, jetstream.ErrConsumerExists) || errors.Is(err, jetstream.ErrConsumerNameAlreadyInUse) {
		cons, err = b.js.Consumer(ctx, stream, cfg.Durable)
	}
	return cons, err
}

// forward publishes a wake-up for each message of a stream, before it acknowledges it, until something breaks. last is the
// sequence that it has come to.
func (b *Bus) forward(ctx context.Context, stream string, cfg jetstream.ConsumerConfig, last *uint64) error {
	cons, err := b.wakeConsumer(ctx, stream, cfg, *last)
	if err != nil {
		return err
	}
	*last = max(*last, cons.CachedInfo().AckFloor.Stream, 1)
	return b.received(ctx, stream, cfg.Durable, wakesAtOnce, func(m *nats.Msg, o origin) error {
		if run, ok := b.wakes(m); ok {
			if err := b.Wake(run); err != nil {
				return err // the message comes again
			}
		}
		if run, rest, _ := b.names.cutRun(m.Subject, "run"); strings.HasPrefix(rest, string(schema.KindCtl)) && isStop(m.Data) {
			b.stopChildren(ctx, run)
		}
		*last = max(*last, o.seq)
		return b.nc.Publish(m.Reply, ackDone)
	})
}

// stopChildren stops the runs that a stopped run waits for. The run's owner does that too, but the run may be parked and
// all slots taken, by these very children. A child that is not open yet is left to the owner.
func (b *Bus) stopChildren(ctx context.Context, run string) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	if err := b.stopBelow(ctx, run); err != nil {
		b.log.Warn("runs below a stopped one are left to its owner", "run", run, "error", err)
	}
}

const wakesAtOnce = 64 // messages that one orchestrator holds

// wakes returns the run that a message wakes. Facts that a run's own owner writes wake nobody.
func (b *Bus) wakes(m *nats.Msg) (run string, ok bool) {
	if run, ok := strings.CutPrefix(m.Subject, b.names.timerDue("")); ok {
		return run, schema.ValidID(run)
	}
	f, err := b.fact(m.Subject, "run", m.Data, 0, time.Time{})
	if err != nil || !schema.ValidID(f.Run) {
		return "", false // a stranger's
	}
	switch f.Key.Kind {
	case schema.KindCtl:
		return f.Run, isStop(f.Data)
	case schema.KindSay:
		var s schema.Say
		own := schema.Decode(f.Data, &s) == nil && (strings.HasPrefix(s.Source, schema.SourceCall) || strings.HasPrefix(s.Source, schema.SourceLimit))
		return f.Run, !own
	}
	return f.Run, true
}

// park gives the message of a run away that waits for others. First it is made sure that the run is woken in time,
// then the message and the run's place go, and then the leader is asked whether what the run waits for has come
// meanwhile: a wake-up that came before was given back.
func (e *errand) park(ctx context.Context, t schema.Taken, slot *entry) {
	b := e.bus
	if !t.At.IsZero() {
		if err := e.setTimer(ctx, t.At); err != nil {
			b.log.Warn("run not parked, it comes again", "run", e.run.Run, "error", err)
			if !e.handOn() {
				e.nak(ownedDelay())
			}
			return
		}
	}
	e.reply(ackDone)
	b.table.drop(slot)
	ctx, cancel := context.WithTimeout(b.life, writeTimeout) // another one: the message is gone, whatever becomes of the host
	defer cancel()
	for attempt := 1; ; attempt++ {
		come, err := b.anyCome(ctx, e.run.Run, t.Await)
		if err == nil && come {
			err = b.Wake(e.run.Run)
		}
		switch {
		case err == nil:
			return
		case b.hopeless(err) || backoff(ctx, attempt) != nil:
			b.log.Warn("parked run not looked at again", "run", e.run.Run, "error", err)
			return
		}
	}
}

// setTimer has the run woken at a time. The stream of timers may be away for a moment, as after the loss of the node that
// led it: as long as this process works on runs, it keeps this one.
func (e *errand) setTimer(ctx context.Context, at time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		err := e.bus.wakeAt(e.run.Run, at)
		if err == nil || e.bus.hopeless(err) || backoff(ctx, attempt) != nil {
			return err
		}
	}
}

// anyCome tells whether one of the facts is there that a run waits for. Another owner's slot is no news.
func (b *Bus) anyCome(ctx context.Context, run string, keys []schema.Key) (bool, error) {
	for _, key := range keys {
		m, err := b.lookFact(ctx, run, key)
		switch {
		case err != nil:
			return false, err
		case m != nil && (key.Kind != schema.KindCtl || isStop(m.Data)):
			return true, nil
		}
	}
	return false, nil
}
