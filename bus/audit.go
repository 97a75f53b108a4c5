package bus

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/schema"
)

const (
	auditAtOnce = 64               // facts that one reader holds
	auditWait   = 30 * time.Second // for a sink to take a fact, before it comes again
)

// AuditConsumer returns the settings of the durable consumer by which the audit of a name reads every fact.
func AuditConsumer(prefix, name string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: "audit-" + name, FilterSubject: names{prefix}.facts("*"), DeliverPolicy: jetstream.DeliverAllPolicy,
		AckPolicy: jetstream.AckExplicitPolicy, AckWait: auditWait, MaxDeliver: -1, MaxAckPending: auditAtOnce,
	}
}

// Audit hands every fact of every run to take, those that are stored and those to come, until ctx ends or take returns
// an error, which Audit returns. A fact that take has returned nil for is not read again under the name, whoever
// goes on; any other comes again, so that take gets each at least once. One reader of a name gets the facts in stored
// order, but for those that come again. take is called by one goroutine and should return within 30 s.
func (b *Bus) Audit(ctx context.Context, name string, take func(context.Context, schema.Fact) error) error {
	if !schema.ValidID(name) || len(name) > 48 {
		return fmt.Errorf("audit %.80q: a name is 1 to 48 of A-Z, a-z, 0-9, '_', '-'", name)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(b.life, func() { cancel(context.Canceled) })()
	for attempt := 1; ; attempt++ {
		err := b.auditOnce(ctx, name, take, func() { attempt = 1 })
		if refused := new(takeError); errors.As(err, &refused) {
			return fmt.Errorf("audit %s: %w", name, refused.error)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b.log.Warn("reader of facts starts anew", "audit", name, "error", err)
		_ = backoff(ctx, attempt) // an ended ctx ends the next attempt
	}
}

// takeError is an error of whoever takes facts, and not of the transport.
type takeError struct{ error }

// auditOnce reads until something breaks. It calls well after each fact that was taken.
func (b *Bus) auditOnce(ctx context.Context, name string, take func(context.Context, schema.Fact) error, well func()) error {
	cfg := AuditConsumer(b.cfg.Prefix, name)
	cons, err := b.js.CreateConsumer(ctx, b.names.runs(), cfg)
	if errors.Is(err, jetstream.ErrConsumerExists) || errors.Is(err, jetstream.ErrConsumerNameAlreadyInUse) {
		cons, err = b.js.Consumer(ctx, b.names.runs(), cfg.Durable)
	}
	if err != nil {
		return err
	}
	msgs, err := cons.Messages(jetstream.PullMaxMessages(auditAtOnce), jetstream.PullExpiry(10*time.Second), jetstream.PullHeartbeat(3*time.Second))
	if err != nil {
		return err
	}
	defer msgs.Stop()
	defer context.AfterFunc(ctx, msgs.Drain)()
	for {
		m, err := msgs.Next()
		if err != nil {
			return err
		}
		if err := b.auditFact(ctx, m, take); err != nil {
			giveBackFacts(m, msgs)
			return err
		}
		if err := m.Ack(); err != nil {
			return err
		}
		well()
	}
}

// giveBackFacts has a message, and those that wait behind it, come again at once for whoever reads next.
func giveBackFacts(m jetstream.Msg, msgs jetstream.MessagesContext) {
	msgs.Drain()
	for err := error(nil); err == nil; m, err = msgs.Next() {
		_ = m.Nak() // it comes again in any case
	}
}

// auditFact hands over what a message holds; a stranger's message is no fact.
func (b *Bus) auditFact(ctx context.Context, m jetstream.Msg, take func(context.Context, schema.Fact) error) error {
	meta, err := m.Metadata()
	if err != nil {
		return err
	}
	f, err := b.fact(m.Subject(), "run", m.Data(), meta.Sequence.Stream, meta.Timestamp)
	if err != nil || !schema.ValidID(f.Run) {
		return nil
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := b.referredFact(ctx, &f); err != nil {
		return err
	}
	if err := take(ctx, f); err != nil {
		return &takeError{err}
	}
	return nil
}

// AuditStreamConfig returns the settings with which a stream of audit records is created.
func AuditStreamConfig(prefix, stream string, replicas int) jetstream.StreamConfig {
	return jetstream.StreamConfig{
		Name: stream, Description: "audit records: a projection of the facts", Subjects: []string{names{prefix}.audit(stream) + ">"},
		Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, AllowDirect: true, Replicas: replicas,
	}
}

// AuditStream is a stream that audit records are put into. It is safe for concurrent use.
type AuditStream struct {
	bus  *Bus
	name string
}

// AuditStream returns the stream of that name, which it creates if it is missing. How long records are kept is the
// operator's setting; a new stream keeps them for ever. A stream that takes no records of this name is an error.
func (b *Bus) AuditStream(ctx context.Context, stream string) (*AuditStream, error) {
	if !schema.ValidID(stream) {
		return nil, fmt.Errorf("audit stream %.80q: a name is 1 to 64 of A-Z, a-z, 0-9, '_', '-'", stream)
	}
	want := AuditStreamConfig(b.cfg.Prefix, stream, b.cfg.Replicas)
	_, err := b.js.CreateStream(ctx, want)
	if errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		err = b.takesRecords(ctx, want)
	}
	if err != nil {
		return nil, fmt.Errorf("audit stream %s: %w", stream, err)
	}
	return &AuditStream{b, stream}, nil
}

func (b *Bus) takesRecords(ctx context.Context, want jetstream.StreamConfig) error {
	s, err := b.js.Stream(ctx, want.Name)
	if err != nil {
		return err
	}
	have := s.CachedInfo().Config
	if !slices.Contains(have.Subjects, want.Subjects[0]) {
		return fmt.Errorf("the stream is there and takes %s, not %s; name another one", strings.Join(have.Subjects, ", "), want.Subjects[0])
	}
	return nil
}

// Put stores a record of a run under its id, once: one that is there already stays as it is. id is a row of numbers with
// dots between them. An error after 60 s of attempts is trouble with the transport.
func (s *AuditStream) Put(ctx context.Context, run, id string, data []byte) error {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	subject := s.bus.names.audit(s.name) + run + "." + id
	for attempt := 1; ; attempt++ {
		_, err := s.bus.publish(factMsg(subject, data, ""))
		switch {
		case err == nil || apiCode(err) == codeWrongLastSequence:
			return nil
		case s.bus.hopeless(err):
			return fmt.Errorf("put audit record: %w", err)
		}
		if waitErr := backoff(ctx, attempt); waitErr != nil {
			return fmt.Errorf("put audit record: %w: %w", waitErr, err)
		}
	}
}
