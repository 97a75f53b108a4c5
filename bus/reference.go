package bus

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// blobQueue is the queue in whose bucket a fact's blob lies: that of its subject, for most kinds the owner's.
func blobQueue(k schema.Key) string {
	if k.Queue == "" || k.Queue == schema.QueueNone {
		return schema.QueueAgents
	}
	return k.Queue
}

// refer stores a payload that is too large for a message, and returns the reference that goes in its place. ref says
// whose it is.
func (b *Bus) refer(ctx context.Context, queue string, ref schema.Blob, data []byte) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	got, err := b.putBlob(ctx, queue, ref.Run, bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	ref.Name, ref.Size = got.Name, got.Size
	return schema.Encode(&schema.Reference{Ref: ref})
}

// referCall is refer for a call that goes to queue.
func (b *Bus) referCall(ctx context.Context, queue string, c *schema.Call, data []byte) ([]byte, error) {
	return b.refer(ctx, queue, schema.Blob{Run: c.Run, Turn: c.Turn, Index: c.Index}, data)
}

// calledBy reads the call that a reference stands for. ErrNoBlob: it is not there any more.
func (b *Bus) calledBy(ctx context.Context, queue string, ref schema.Blob) (*schema.Call, error) {
	var buf bytes.Buffer
	if err := b.getBlob(ctx, queue, ref, &buf); err != nil {
		return nil, err
	}
	c, err := schema.DecodeCall(buf.Bytes())
	if err == nil && (c.Run != ref.Run || c.Turn != ref.Turn || c.Index != ref.Index) {
		err = fmt.Errorf("the reference to call %s is another's: %w", c, schema.ErrPayload)
	}
	return c, err
}

// fitFact returns what is recorded as a fact whose payload is too large for a message: of a result head and tail of its
// output, of anything else a reference.
func (b *Bus) fitFact(ctx context.Context, run string, key schema.Key, payload schema.Encodable, data []byte) ([]byte, error) {
	r, ok := payload.(*schema.Result)
	if !ok {
		return b.refer(ctx, blobQueue(key), schema.Blob{Run: run}, data)
	}
	small := *r
	small.Run = run
	b.fitResult(ctx, blobQueue(key), &schema.Call{Run: run, Turn: key.N, Index: key.I}, &small)
	return schema.Encode(&small)
}

// referred returns the payload that data stands for: data itself, or what a reference in its place names. A reference
// to another run than its own is none. ErrNoBlob: it is not there any more.
func (b *Bus) referred(ctx context.Context, queue, run string, data []byte) ([]byte, error) {
	ref, ok := schema.ParseReference(data)
	if !ok {
		return data, nil
	}
	if ref.Run != run {
		return nil, fmt.Errorf("a payload of run %s refers to run %s: %w", run, ref.Run, ErrNoBlob)
	}
	var buf bytes.Buffer
	if err := b.getBlob(ctx, queue, ref, &buf); err != nil {
		return nil, err
	}
	return buf.Bytes(), nil
}

// errandData is referred for a message of the queue agents.
func (b *Bus) errandData(ctx context.Context, data []byte) ([]byte, error) {
	if ref, ok := schema.ParseReference(data); ok {
		return b.referred(ctx, schema.QueueAgents, ref.Run, data)
	}
	return data, nil
}

// referredFacts puts the payloads in place of the references among facts. One that is gone is left empty, which no
// reader takes for a payload.
func (b *Bus) referredFacts(ctx context.Context, facts []schema.Fact) error {
	for i := range facts {
		if err := b.referredFact(ctx, &facts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (b *Bus) referredFact(ctx context.Context, f *schema.Fact) error {
	if f.Key.Kind == schema.KindResult {
		return nil // it has no reference
	}
	data, err := b.referred(ctx, blobQueue(f.Key), f.Run, f.Data)
	if errors.Is(err, ErrNoBlob) {
		b.log.Warn("payload of a fact is gone", "run", f.Run, "fact", f.Key.String(), "error", err)
		data, err = nil, nil
	}
	f.Data = data
	return err
}
