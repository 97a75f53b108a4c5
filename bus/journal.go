package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/synadia-io/orbit.go/jetstreamext"

	"github.com/jetcrew/jetcrew/schema"
)

// Append records payload as the fact key of run, once and for ever. unless names a fact of the same run that must be
// absent; the zero Key names none. It returns the fact's sequence in the stream of runs.
//
// schema.ErrExists: another fact has the key. schema.ErrGuarded: the fact unless exists. A fact with the same bytes
// counts as recorded by this call. Whatever else it returns is trouble with the transport after 60 s of attempts.
func (b *Bus) Append(ctx context.Context, run string, key schema.Key, payload schema.Encodable, unless schema.Key) (uint64, error) {
	data, err := schema.Encode(payload)
	if err != nil {
		return 0, fmt.Errorf("append %s %s: %w", run, key, err)
	}
	guard := ""
	if !unless.IsZero() {
		guard = b.names.fact(run, unless)
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
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		seq, err := b.publish(factMsg(subject, data, guard))
		if err == nil {
			return seq, nil
		}
		if hopeless(err) {
			return 0, err
		}
		decided := apiCode(err) == codeWrongLastSequence
		if decided && guard != "" && attempt == 1 {
			return 0, schema.ErrGuarded // the first attempt cannot be refused by an earlier one of my own
		}
		have, lookErr := b.look(ctx, subject)
		switch {
		case lookErr != nil:
			err = lookErr
		case have != nil && bytes.Equal(have.Data, data):
			return have.Sequence, nil
		case have != nil:
			return 0, schema.ErrExists
		case decided && guard != "":
			return 0, schema.ErrGuarded
		}
		if waitErr := backoff(ctx, attempt); waitErr != nil {
			return 0, fmt.Errorf("%w after %d attempts: %w", waitErr, attempt, err)
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
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	body := []byte(`{"last_by_subj":"` + subject + `"}`)
	reply, err := b.nc.RequestWithContext(ctx, "$JS.API.STREAM.MSG.GET."+b.names.runs(), body)
	if err != nil {
		return nil, fmt.Errorf("look at %s: %w", subject, err)
	}
	return parseGet(reply.Data)
}

// lookFact is look for a fact of a run.
func (b *Bus) lookFact(ctx context.Context, run string, key schema.Key) (*jetstream.RawStreamMsg, error) {
	return b.look(ctx, b.names.fact(run, key))
}

const factPage = 500 // facts asked for at once

// Facts returns every fact of run in stored order, and at least those up to sequence upto, which is that of a fact of
// this run: it waits until the replica that answers has it. 0 is no such bound.
func (b *Bus) Facts(ctx context.Context, run string, upto uint64) ([]schema.Fact, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		facts, err := b.readFacts(ctx, run)
		if err == nil && (upto == 0 || len(facts) > 0 && facts[len(facts)-1].Seq >= upto) {
			return facts, nil
		}
		if waitErr := backoff(ctx, attempt); waitErr != nil {
			return nil, fmt.Errorf("read facts of %s up to %d: %w: %w", run, upto, waitErr, err)
		}
	}
}

func (b *Bus) readFacts(ctx context.Context, run string) ([]schema.Fact, error) {
	first, err := b.lookFact(ctx, run, schema.OpenKey())
	if err != nil {
		return nil, err
	}
	next := uint64(1)
	if first != nil {
		next = first.Sequence // everything else of the run came later
	}
	var facts []schema.Fact
	for {
		page, err := b.readPage(ctx, run, next)
		if err != nil {
			return nil, err
		}
		facts = append(facts, page...)
		if len(page) < factPage {
			return facts, nil
		}
		next = page[len(page)-1].Seq + 1
	}
}

func (b *Bus) readPage(ctx context.Context, run string, from uint64) ([]schema.Fact, error) {
	msgs, err := jetstreamext.GetBatch(ctx, b.js, b.names.runs(), factPage,
		jetstreamext.GetBatchSeq(from), jetstreamext.GetBatchSubject(b.names.facts(run)))
	if err != nil {
		return nil, err
	}
	var page []schema.Fact
	for m, err := range msgs {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			break
		}
		if err != nil {
			return nil, err
		}
		if f, err := b.fact(m.Subject, "run", m.Data, m.Sequence, m.Time); err == nil {
			page = append(page, f)
		} else {
			b.log.Warn("stranger among the facts", "subject", m.Subject, "error", err)
		}
	}
	return page, nil
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
