package bus

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"github.com/sourcegraph/conc"

	"github.com/jetcrew/jetcrew/schema"
)

// Retention is how long a closed run stays at least: until then nothing of it can be written a second time.
const Retention = 7 * 24 * time.Hour

// ArchiveConfig returns the settings of the bucket of closed runs.
func ArchiveConfig(prefix string, replicas int) jetstream.ObjectStoreConfig {
	return jetstream.ObjectStoreConfig{
		Bucket: names{prefix}.archive(), Description: "runs that are over, an object each",
		Storage: jetstream.FileStorage, Replicas: replicas,
	}
}

// Archived is one line of a run's object in the archive: a fact, in stored order.
type Archived struct {
	Key    string `json:"key"`              // subject of the fact below its run
	Seq    uint64 `json:"seq"`              // in the stream of runs
	AtMS   int64  `json:"at_ms"`            // when it was stored, server clock, Unix ms
	Data   []byte `json:"data"`             // the whole payload, wherever it was
	Output []byte `json:"output,omitempty"` // the whole output of a result that holds head and tail of it
}

// Expire archives the runs that were closed before a time on the server's clock, usually Retention ago, then deletes
// their objects and facts. It returns how many. Facts go last: what an Expire that was interrupted has left, the next
// one finishes, and several at once do no harm. A run that cannot go keeps no other.
func (b *Bus) Expire(ctx context.Context, before time.Time) (n int, err error) {
	runs, err := b.closedBefore(ctx, before)
	if err != nil || len(runs) == 0 {
		return 0, err
	}
	objects, err := b.objectsOf(ctx, runs)
	if err != nil {
		return 0, fmt.Errorf("expire runs: %w", err)
	}
	var errs []error
	for run := range runs {
		if err := b.expire(ctx, run, objects); err != nil {
			errs = append(errs, fmt.Errorf("expire run %s: %w", run, err))
		} else {
			n++
		}
		if ctx.Err() != nil {
			break
		}
	}
	return n, errors.Join(errs...)
}

func (b *Bus) expire(ctx context.Context, run string, objects map[string]map[string][]string) error {
	if err := b.archive(ctx, run); err != nil {
		return err
	}
	for bucket, infos := range objects {
		if err := b.purgeObjects(ctx, bucket, run, infos[run]); err != nil {
			return err
		}
	}
	return b.purgeSubject(ctx, b.names.runs(), b.names.facts(run))
}

func (b *Bus) closedBefore(ctx context.Context, before time.Time) (map[string]bool, error) {
	runs := map[string]bool{}
	for group, err := range b.backwards(ctx, b.names.runs(), b.names.fact("*", schema.CloseKey())) {
		if err != nil {
			return nil, fmt.Errorf("list closed runs: %w", err)
		}
		for _, m := range group {
			if run, _, ok := b.names.cutRun(m.subject, "run"); ok && m.at.Before(before) {
				runs[run] = true
			}
		}
	}
	return runs, nil
}

// objectsOf returns the subjects of what describes the objects of runs, by bucket and run. A bucket that holds none of
// them is there too: a writer that died may have left chunks.
func (b *Bus) objectsOf(ctx context.Context, runs map[string]bool) (map[string]map[string][]string, error) {
	found := map[string]map[string][]string{}
	list := b.js.ObjectStoreNames(ctx)
	for bucket := range list.Name() {
		if strings.HasPrefix(bucket, b.names.blobBucket("")) {
			found[bucket] = map[string][]string{}
		}
	}
	if err := list.Error(); err != nil {
		return nil, fmt.Errorf("list buckets: %w", err)
	}
	for bucket, byRun := range found {
		o := object{bucket: bucket}
		stem := "$O." + bucket + ".M."
		for offset := 0; ; {
			subjects, total, err := b.subjects(ctx, o.stream(), stem+">", offset)
			if err != nil {
				return nil, fmt.Errorf("list objects of %s: %w", bucket, err)
			}
			for s := range subjects {
				name, err := base64.URLEncoding.DecodeString(strings.TrimPrefix(s, stem))
				if run, _, ok := strings.Cut(string(name), "."); err == nil && ok && runs[run] {
					byRun[run] = append(byRun[run], s)
				}
			}
			if offset += len(subjects); len(subjects) == 0 || offset >= total {
				break
			}
		}
	}
	return found, nil
}

// purgeObjects deletes the objects of a run from a bucket: chunks first, so that none is left that nothing describes.
func (b *Bus) purgeObjects(ctx context.Context, bucket, run string, infos []string) error {
	o := object{bucket: bucket}
	err := b.purgeSubject(ctx, o.stream(), o.chunkSubject(run+".>"))
	for _, subject := range infos {
		if err == nil {
			err = b.purgeForeign(ctx, o, run, subject)
		}
		if err == nil {
			err = b.purgeAlias(ctx, o, subject)
		}
		if err == nil {
			err = b.purgeSubject(ctx, o.stream(), subject)
		}
	}
	return err
}

// purgeForeign deletes the chunks of an object that another program stored, under an id of its own.
func (b *Bus) purgeForeign(ctx context.Context, o object, run, infoSubject string) error {
	m, err := b.lookIn(ctx, o.stream(), infoSubject)
	if err != nil || m == nil {
		return err
	}
	var info jetstream.ObjectInfo
	if json.Unmarshal(m.Data, &info) != nil || info.NUID == "" || strings.HasPrefix(info.NUID, run+".") {
		return nil
	}
	return b.purgeSubject(ctx, o.stream(), o.chunkSubject(info.NUID))
}

// purgeAlias deletes the link that leads to an object.
func (b *Bus) purgeAlias(ctx context.Context, o object, infoSubject string) error {
	name, err := base64.URLEncoding.DecodeString(infoSubject[strings.LastIndexByte(infoSubject, '.')+1:])
	if err != nil {
		return nil // nobody's object
	}
	_, digest, _ := strings.Cut(string(name), ".")
	alias := object{bucket: o.bucket, name: digest}
	info, err := b.blobInfo(ctx, alias)
	if err != nil || info == nil || info.Opts == nil || info.Opts.Link == nil || info.Opts.Link.Name != string(name) {
		return err
	}
	return b.purgeSubject(ctx, o.stream(), alias.infoSubject())
}

// archive stores the run as one object, unless it is there.
func (b *Bus) archive(ctx context.Context, run string) error {
	r, w := io.Pipe()
	var wg conc.WaitGroup
	wg.Go(func() {
		if err := b.writeArchive(ctx, run, w); err != nil {
			w.CloseWithError(fmt.Errorf("archive: %w", err)) // never the bare io.EOF, which would end a whole object
			return
		}
		w.Close()
	})
	o := object{bucket: b.names.archive(), name: run, chunks: run + "."}
	err := b.putObject(ctx, o, ArchiveConfig(b.cfg.Prefix, b.cfg.Replicas), r)
	r.CloseWithError(errors.New("not wanted any more"))
	wg.Wait()
	return err
}

// writeArchive writes the facts of a run, page by page, with what they refer to.
func (b *Bus) writeArchive(ctx context.Context, run string, w io.Writer) error {
	f := &follower{bus: b, run: run}
	lines := json.NewEncoder(w)
	for more := true; more; {
		var facts []schema.Fact
		p, err := f.page(ctx, &facts)
		if err != nil {
			return err
		}
		for i := range facts {
			line, err := b.archived(ctx, &facts[i])
			if err == nil {
				err = lines.Encode(line)
			}
			if err != nil {
				return err
			}
		}
		f.last, more = max(f.last, p.last), p.more
	}
	return nil
}

func (b *Bus) archived(ctx context.Context, f *schema.Fact) (*Archived, error) {
	if err := b.referredFact(ctx, f); err != nil {
		return nil, err
	}
	a := &Archived{Key: f.Key.String(), Seq: f.Seq, AtMS: f.Time.UnixMilli(), Data: f.Data}
	var r schema.Result
	if f.Key.Kind != schema.KindResult || schema.Decode(f.Data, &r) != nil || r.Blob == "" {
		return a, nil
	}
	var whole bytes.Buffer
	err := b.getBlob(ctx, blobQueue(f.Key), schema.Blob{Run: f.Run, Name: r.Blob}, &whole)
	if errors.Is(err, ErrNoBlob) {
		return a, nil
	}
	a.Output = whole.Bytes()
	return a, err
}
