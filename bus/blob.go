package bus

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/schema"
)

// ErrNoBlob: the object store does not have the bytes, or not as they were.
var ErrNoBlob = errors.New("not in the object store")

const (
	blobChunk    = 128 << 10 // bytes of a message of the object store
	blobAttempts = 8         // readings of an object that a replica does not have yet
	headerRollup = "Nats-Rollup"

	codeNoStream = 10059
)

// BlobConfig returns the settings of the bucket that holds what is too large for the messages of a queue.
func BlobConfig(prefix, queue string, replicas int) jetstream.ObjectStoreConfig {
	return jetstream.ObjectStoreConfig{
		Bucket: names{prefix}.blobBucket(queue), Description: "what is too large for a message, by run",
		Storage: jetstream.FileStorage, Replicas: replicas,
	}
}

// object is one thing in a bucket of the store.
type object struct {
	bucket string
	name   string
	chunks string // where its chunks go, below the run that it is of
}

// object names a blob. With the run in the name two runs never share an object, and one can go alone.
func (b *Bus) object(queue string, ref schema.Blob) object {
	return object{bucket: b.names.blobBucket(queue), name: ref.Run + "." + ref.Name, chunks: ref.Run + "."}
}

func (o object) stream() string { return "OBJ_" + o.bucket }

func (o object) infoSubject() string {
	return "$O." + o.bucket + ".M." + base64.URLEncoding.EncodeToString([]byte(o.name))
}

func (o object) chunkSubject(id string) string { return "$O." + o.bucket + ".C." + id }

// putBlob stores bytes for a run once, however often it is asked to, and returns their number and name. It tries until
// ctx ends; errTooLarge: they are more than schema.MaxPayload.
func (b *Bus) putBlob(ctx context.Context, queue, run string, r io.ReadSeeker) (schema.Blob, error) {
	h := sha256.New()
	size, err := io.Copy(h, io.LimitReader(r, schema.MaxPayload+1))
	if err == nil && size > schema.MaxPayload {
		err = fmt.Errorf("more than %d MiB: %w", schema.MaxPayload>>20, errTooLarge)
	}
	if err != nil {
		return schema.Blob{}, fmt.Errorf("store blob: %w", err)
	}
	ref := schema.Blob{Run: run, Name: hex.EncodeToString(h.Sum(nil)), Size: size}
	o, cfg := b.object(queue, ref), BlobConfig(b.cfg.Prefix, queue, b.cfg.Replicas)
	for attempt := 1; ; attempt++ {
		if _, err = r.Seek(0, io.SeekStart); err == nil {
			err = b.putObject(ctx, o, cfg, r)
		}
		if err == nil {
			err = b.putAlias(ctx, o, ref.Name)
		}
		if err == nil {
			return ref, nil
		}
		if b.hopeless(err) {
			break
		}
		if waitErr := backoff(ctx, attempt); waitErr != nil {
			err = fmt.Errorf("%w after %d attempts: %w", waitErr, attempt, err)
			break
		}
	}
	return schema.Blob{}, fmt.Errorf("store blob %s in %s: %w", o.name, o.bucket, err)
}

// putObject stores an object unless it is there. Its chunks have a subject of their own, so that a second writer does
// not disturb the first. After an error the bucket is looked for again: somebody may have removed it.
func (b *Bus) putObject(ctx context.Context, o object, cfg jetstream.ObjectStoreConfig, r io.Reader) (err error) {
	defer func() {
		if err != nil {
			b.forgetBucket(o.bucket)
		}
	}()
	if err := b.ensureBucket(ctx, cfg); err != nil {
		return err
	}
	if info, err := b.blobInfo(ctx, o); err != nil || info != nil {
		return err
	}
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: o.name, Opts: &jetstream.ObjectMetaOptions{ChunkSize: blobChunk}},
		Bucket:     o.bucket, NUID: o.chunks + schema.NewID(),
	}
	if err := b.putChunks(ctx, o, &info, r); err != nil {
		_ = b.purgeSubject(context.WithoutCancel(ctx), o.stream(), o.chunkSubject(info.NUID)) // what is left goes with the run
		return err
	}
	return b.putInfo(ctx, o, &info)
}

func (b *Bus) putChunks(ctx context.Context, o object, info *jetstream.ObjectInfo, r io.Reader) error {
	h := sha256.New()
	for chunk := make([]byte, blobChunk); ; {
		n, err := io.ReadFull(r, chunk)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if n > 0 {
			h.Write(chunk[:n])
			if _, err := b.publish(&nats.Msg{Subject: o.chunkSubject(info.NUID), Data: chunk[:n]}); err != nil {
				return err
			}
			info.Chunks, info.Size = info.Chunks+1, info.Size+uint64(n)
		}
		switch err { // a reader's own words, which io.ReadFull passes on: wrapped they are no end
		case nil:
		case io.EOF, io.ErrUnexpectedEOF:
			info.Digest = "SHA-256=" + base64.URLEncoding.EncodeToString(h.Sum(nil))
			return nil
		default:
			return err
		}
	}
}

// putInfo makes the chunks an object. Where the stream refuses that they are taken back: there is an object already, or
// somebody is just making one (10164), or the stream takes nothing. No refusal leaves it open whether the info was stored after
// all: it is sent once, and no other attempt has these chunks.
func (b *Bus) putInfo(ctx context.Context, o object, info *jetstream.ObjectInfo) error {
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	h := nats.Header{headerRollup: {"sub"}, headerExpectSeq: zeroSeq}
	_, err = b.publish(&nats.Msg{Subject: o.infoSubject(), Header: h, Data: data})
	code := apiCode(err)
	if code == 0 { // it is written, or nothing is known
		return err
	}
	purged := b.purgeSubject(ctx, o.stream(), o.chunkSubject(info.NUID))
	if code == codeWrongLastSequence {
		return purged
	}
	return errors.Join(err, purged)
}

// putAlias makes an object findable under its digest alone, as a link. Of several runs' objects with the same bytes the
// first one has the alias.
func (b *Bus) putAlias(ctx context.Context, o object, digest string) error {
	alias := object{bucket: o.bucket, name: digest}
	info := jetstream.ObjectInfo{
		ObjectMeta: jetstream.ObjectMeta{Name: digest, Opts: &jetstream.ObjectMetaOptions{Link: &jetstream.ObjectLink{Bucket: o.bucket, Name: o.name}}},
		Bucket:     o.bucket, NUID: schema.NewID(),
	}
	data, err := json.Marshal(info)
	if err != nil {
		return err
	}
	h := nats.Header{headerRollup: {"sub"}, headerExpectSeq: zeroSeq}
	_, err = b.publish(&nats.Msg{Subject: alias.infoSubject(), Header: h, Data: data})
	if apiCode(err) == codeWrongLastSequence {
		return nil
	}
	return err
}

// findBlob asks the leader about a blob: under its run, or, from a writer that knows no runs, under its digest alone.
func (b *Bus) findBlob(ctx context.Context, queue string, ref schema.Blob) (object, *jetstream.ObjectInfo, error) {
	o := b.object(queue, ref)
	info, err := b.blobInfo(ctx, o)
	if info != nil || err != nil {
		return o, info, err
	}
	plain := object{bucket: o.bucket, name: ref.Name}
	if info, err = b.blobInfo(ctx, plain); info == nil || err != nil || info.Opts != nil && info.Opts.Link != nil {
		return o, nil, err // a link leads to another run's
	}
	return plain, info, nil
}

func (b *Bus) ensureBucket(ctx context.Context, cfg jetstream.ObjectStoreConfig) error {
	b.mu.Lock()
	known := b.buckets[cfg.Bucket]
	b.mu.Unlock()
	if known {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	_, err := b.js.CreateObjectStore(ctx, cfg)
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("create bucket %s: %w", cfg.Bucket, err)
	}
	b.mu.Lock()
	b.buckets[cfg.Bucket] = true
	b.mu.Unlock()
	return nil
}

func (b *Bus) forgetBucket(name string) {
	b.mu.Lock()
	delete(b.buckets, name)
	b.mu.Unlock()
}

// blobInfo asks the leader about an object; nil: there is none.
func (b *Bus) blobInfo(ctx context.Context, o object) (*jetstream.ObjectInfo, error) {
	m, err := b.lookIn(ctx, o.stream(), o.infoSubject())
	if err != nil || m == nil {
		if apiCode(err) == codeNoStream {
			err = nil
		}
		return nil, err
	}
	info := new(jetstream.ObjectInfo)
	if err := json.Unmarshal(m.Data, info); err != nil {
		return nil, fmt.Errorf("object %s: %w: %w", o.name, ErrNoBlob, err)
	}
	if info.Deleted {
		return nil, nil
	}
	return info, nil
}

// sink takes the bytes of a blob, from the beginning again after a Reset.
type sink interface {
	io.Writer
	Reset()
}

// getBlob writes the bytes of a blob to w. An answer without an error says that they are the ones that were stored.
// ErrNoBlob: they are not there.
func (b *Bus) getBlob(ctx context.Context, queue string, ref schema.Blob, w sink) error {
	o := b.object(queue, ref)
	ctx, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	err := ErrNoBlob
	for attempt := 1; attempt <= blobAttempts && errors.Is(err, ErrNoBlob); attempt++ {
		if attempt > 1 && backoff(ctx, attempt-1) != nil {
			break
		}
		w.Reset()
		var info *jetstream.ObjectInfo
		switch o, info, err = b.findBlob(ctx, queue, ref); {
		case err != nil:
		case info == nil:
			return fmt.Errorf("read blob %s of %s: %w", o.name, o.bucket, ErrNoBlob) // the leader says so
		default:
			err = b.getChunks(ctx, o, info, ref.Name, w)
		}
	}
	if err != nil {
		return fmt.Errorf("read blob %s of %s: %w", o.name, o.bucket, err)
	}
	return nil
}

// getChunks reads the chunks from whichever replica answers, page by page, and compares the digest.
func (b *Bus) getChunks(ctx context.Context, o object, info *jetstream.ObjectInfo, digest string, w io.Writer) error {
	if info.Size > schema.MaxPayload {
		return fmt.Errorf("%d bytes: %w", info.Size, ErrNoBlob)
	}
	h := sha256.New()
	for from := uint64(1); ; {
		ctx, cancel := context.WithTimeout(ctx, 2*publishTimeout) // of one page
		p, err := b.directGet(ctx, o.stream(), following(o.chunkSubject(info.NUID), from, pageSize), func(m *nats.Msg) {
			h.Write(m.Data)
			_, _ = w.Write(m.Data) // a sink never fails
		})
		cancel()
		if err != nil {
			return err
		}
		if !p.more {
			break
		}
		from = max(from, p.last) + 1
	}
	if hex.EncodeToString(h.Sum(nil)) != digest {
		return fmt.Errorf("the bytes do not have its digest: %w", ErrNoBlob)
	}
	return nil
}

func (b *Bus) purgeSubject(ctx context.Context, stream, subject string) error {
	ctx, cancel := context.WithTimeout(ctx, publishTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, stream)
	if err == nil {
		err = s.Purge(ctx, jetstream.WithPurgeSubject(subject))
	}
	if err != nil {
		return fmt.Errorf("purge %s: %w", subject, err)
	}
	return nil
}
