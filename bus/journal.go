package bus

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/schema"
)

// Append records payload as the fact key of run, once and for ever. unless names a fact, of the same run where it
// names no other, that must be absent; the zero Key names none. It returns the fact's sequence in the stream of runs.
//
// schema.ErrExists: another fact has the key. schema.ErrGuarded: the fact unless exists. schema.ErrNoRoom: no run may be
// opened now. A fact with the same bytes
// counts as recorded by this call. A payload above schema.MaxInline lies in the object store, and of a result's output
// the fact holds head and tail; above schema.MaxPayload it is an error. Whatever else it returns is trouble with the
// transport after 60 s of attempts.
func (b *Bus) Append(ctx context.Context, run string, key schema.Key, payload schema.Encodable, unless schema.Key) (uint64, error) {
	data, err := schema.Encode(payload)
	if err != nil {
		return 0, fmt.Errorf("append %s %s: %w", run, key, err)
	}
	if key.Kind == schema.KindOpen {
		if err := b.roomFor(ctx, run); err != nil {
			return 0, fmt.Errorf("append %s %s: %w", run, key, err)
		}
	}
	if len(data) > schema.MaxInline {
		if data, err = b.fitFact(ctx, run, key, payload, data); err != nil {
			return 0, fmt.Errorf("append %s %s: %w", run, key, err)
		}
	}
	guard := ""
	if !unless.IsZero() {
		guard = b.names.fact(cmp.Or(unless.Run, run), unless)
	}
	seq, err := b.record(ctx, b.names.fact(run, key), data, guard)
	if err != nil {
		return 0, fmt.Errorf("append %s %s: %w", run, key, err)
	}
	return seq, nil
}

// record writes a fact under subject while subject, and guard if there is one, are empty. Only error 10071 decides;
// every other refusal and every silence means: look at the leader, and if the fact is absent try again.
func (b *Bus) record(ctx context.Context, subject string, data []byte, guard string) (uint64, error) {
	seq, err := b.publish(factMsg(subject, data, guard))
	switch {
	case err == nil:
		return seq, nil
	case b.hopeless(err):
		return 0, err
	case guard != "" && apiCode(err) == codeWrongLastSequence:
		return 0, schema.ErrGuarded // the first attempt cannot be refused by an earlier one of my own
	}
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	return b.recordAgain(ctx, subject, data, guard, err)
}

// recordAgain looks whether the fact is there and writes it again while it is not. err is what the last attempt said.
func (b *Bus) recordAgain(ctx context.Context, subject string, data []byte, guard string, err error) (seq uint64, _ error) {
	for attempt := 1; ; attempt++ {
		have, lookErr := b.look(ctx, subject)
		switch {
		case lookErr != nil:
			err = lookErr
		case have != nil && bytes.Equal(have.Data, data):
			return have.Sequence, nil
		case have != nil:
			return 0, schema.ErrExists
		case guard != "" && apiCode(err) == codeWrongLastSequence:
			return 0, schema.ErrGuarded
		}
		if waitErr := backoff(ctx, attempt); waitErr != nil {
			return 0, fmt.Errorf("%w after %d attempts: %w", waitErr, attempt+1, err)
		}
		if seq, err = b.publish(factMsg(subject, data, guard)); err == nil {
			return seq, nil
		}
		if b.hopeless(err) {
			return 0, err
		}
	}
}

func factMsg(subject string, data []byte, guard string) *nats.Msg {
	h := nats.Header{headerExpectSeq: zeroSeq}
	if guard != "" {
		h[headerExpectSubject] = []string{guard}
	}
	return &nats.Msg{Subject: subject, Header: h, Data: data}
}

var zeroSeq = []string{"0"} // read only

// look reads the newest message of a subject of the stream of runs at its leader; nil when there is none. Absence is
// concluded from nothing else: a direct get may be answered by a replica that is behind.
func (b *Bus) look(ctx context.Context, subject string) (*jetstream.RawStreamMsg, error) {
	return b.lookIn(ctx, b.names.runs(), subject)
}

// lookIn is look for any stream.
func (b *Bus) lookIn(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	m, err := b.leaderGet(ctx, stream, []byte(`{"last_by_subj":"`+subject+`"}`))
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", subject, err)
	}
	return m, nil
}

// leaderGet asks the leader of a stream for one message; nil: there is none.
func (b *Bus) leaderGet(ctx context.Context, stream string, request []byte) (*jetstream.RawStreamMsg, error) {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	reply, err := b.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+stream, request)
	if err != nil {
		return nil, err
	}
	return parseGet(reply.Data)
}

// lookFact is look for a fact of a run.
func (b *Bus) lookFact(ctx context.Context, run string, key schema.Key) (*jetstream.RawStreamMsg, error) {
	return b.look(ctx, b.names.fact(run, key))
}

// Facts returns the facts of run in stored order, all of them or those of the given kinds. upto is the sequence of one
// of these facts, and Facts waits until the replica that answers has it; 0 is no such barrier: a fact may be missing that
// is there. Of the kinds open and close, each of which a run has once, one alone is read at the leader, whose word counts.
func (b *Bus) Facts(ctx context.Context, run string, upto uint64, kinds ...schema.Kind) ([]schema.Fact, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		facts, err := b.readFacts(ctx, run, kinds)
		if err == nil {
			err = b.referredFacts(ctx, facts)
		}
		if err == nil && (upto == 0 || len(facts) > 0 && facts[len(facts)-1].Seq >= upto) {
			return facts, nil
		}
		if err != nil && b.hopeless(err) {
			return nil, fmt.Errorf("read facts of %s: %w", run, err)
		}
		if waitErr := backoff(ctx, attempt); waitErr != nil {
			return nil, fmt.Errorf("read facts of %s up to %d: %w: %w", run, upto, waitErr, err)
		}
	}
}

// readFacts asks for the facts at once, and page by page when they are more than one request may match.
func (b *Bus) readFacts(ctx context.Context, run string, kinds []schema.Kind) ([]schema.Fact, error) {
	if len(kinds) == 1 && (kinds[0] == schema.KindOpen || kinds[0] == schema.KindClose) {
		return b.onlyFact(ctx, run, schema.Key{Kind: kinds[0]})
	}
	wanted := []string{b.names.facts(run)}
	if len(kinds) > 0 {
		wanted = b.filters(run, kinds...)
	}
	facts, err := b.multiGet(ctx, wanted)
	if !errors.Is(err, errTooMany) {
		return facts, err
	}
	facts, err = b.pages(ctx, b.names.facts(run))
	if len(kinds) > 0 {
		facts = slices.DeleteFunc(facts, func(f schema.Fact) bool { return !slices.Contains(kinds, f.Key.Kind) })
	}
	return facts, err
}

// onlyFact returns the fact key, if it is there.
func (b *Bus) onlyFact(ctx context.Context, run string, key schema.Key) ([]schema.Fact, error) {
	m, err := b.lookFact(ctx, run, key)
	if err != nil || m == nil {
		return nil, err
	}
	f, err := b.fact(m.Subject, "run", m.Data, m.Sequence, m.Time)
	return []schema.Fact{f}, err
}

// filters returns the subjects of the facts of each kind.
func (b *Bus) filters(run string, kinds ...schema.Kind) []string {
	stem := strings.TrimSuffix(b.names.facts(run), ">")
	fs := make([]string, len(kinds))
	for i, k := range kinds {
		fs[i] = stem + string(k)
		if k != schema.KindOpen && k != schema.KindClose {
			fs[i] += ".>"
		}
	}
	return fs
}

// fact reads a stored message, or its republished copy, as a fact.
func (b *Bus) fact(subject, word string, data []byte, seq uint64, at time.Time) (schema.Fact, error) {
	run, rest, ok := b.names.cutRun(subject, word)
	if !ok {
		return schema.Fact{}, fmt.Errorf("subject %q is not a fact's", subject)
	}
	key, err := schema.ParseKey(rest)
	if err != nil {
		return schema.Fact{}, err
	}
	return schema.Fact{Run: run, Key: key, Seq: seq, Time: at, Data: data}, nil
}

const codeNoMessage = 10037

func parseGet(data []byte) (*jetstream.RawStreamMsg, error) {
	var r struct {
		Error   *apiError `json:"error"`
		Message *struct {
			Subject string    `json:"subject"`
			Seq     uint64    `json:"seq"`
			Data    []byte    `json:"data"`
			Time    time.Time `json:"time"`
		} `json:"message"`
	}
	switch err := json.Unmarshal(data, &r); {
	case err != nil:
		return nil, fmt.Errorf("stream get: answer %.100q: %w", data, err)
	case r.Error != nil && r.Error.Code == codeNoMessage:
		return nil, nil
	case r.Error != nil:
		return nil, r.Error
	case r.Message == nil:
		return nil, fmt.Errorf("stream get: answer %.100q has no message", data)
	}
	return &jetstream.RawStreamMsg{Subject: r.Message.Subject, Sequence: r.Message.Seq, Data: r.Message.Data, Time: r.Message.Time}, nil
}
