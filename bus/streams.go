package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Streams returns the settings of every stream of a prefix, as Connect creates them; the contract's document is
// generated from it.
func Streams(prefix string, replicas int) []jetstream.StreamConfig {
	n := names{prefix}
	return []jetstream.StreamConfig{
		{
			Name: n.work(), Description: "what is to be done: calls", Subjects: []string{prefix + ".work.*.*"},
			Retention: jetstream.WorkQueuePolicy, Discard: jetstream.DiscardNew, Storage: jetstream.FileStorage,
			AllowMsgTTL: true, AllowDirect: true, Replicas: replicas,
		},
		{
			Name: n.runs(), Description: "what has happened: facts, each written once", Subjects: []string{prefix + ".run.>"},
			Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, DiscardNewPerSubject: true, MaxMsgsPerSubject: 1,
			Storage: jetstream.FileStorage, AllowDirect: true, Replicas: replicas,
			RePublish: &jetstream.RePublish{Source: prefix + ".run.>", Destination: prefix + ".live.>"},
		},
		{
			Name: n.dead(), Description: "calls that no worker could finish", Subjects: []string{prefix + ".dead.*"},
			Retention: jetstream.LimitsPolicy, Storage: jetstream.FileStorage, AllowDirect: true, Replicas: replicas,
			MaxAge: 30 * 24 * time.Hour,
		},
		{
			Name: n.timer(), Description: "what is due later: wake-ups", Subjects: []string{prefix + ".timer.>"},
			Retention: jetstream.WorkQueuePolicy, Storage: jetstream.FileStorage, MaxMsgsPerSubject: 1, AllowDirect: true,
			AllowMsgSchedules: true, AllowRollup: true, AllowMsgTTL: true, Replicas: replicas,
		},
	}
}

// CatalogConfig returns the settings of the bucket that holds the workers and their tools.
func CatalogConfig(prefix string, replicas int) jetstream.KeyValueConfig {
	return jetstream.KeyValueConfig{
		Bucket: names{prefix}.catalog(), Description: "workers and the tools they have", History: 1,
		Storage: jetstream.FileStorage, Replicas: replicas, LimitMarkerTTL: time.Second,
	}
}

// ConsumerConfig returns the settings of the one durable consumer that the workers of a queue share.
func ConsumerConfig(prefix, queue string) jetstream.ConsumerConfig {
	return jetstream.ConsumerConfig{
		Durable: queue, FilterSubject: names{prefix}.workFilter(queue), AckPolicy: jetstream.AckExplicitPolicy,
		AckWait: AckWait, MaxDeliver: -1, MaxAckPending: -1, MaxWaiting: 4096,
	}
}

func (b *Bus) ensureStreams(ctx context.Context) error {
	for _, want := range Streams(b.cfg.Prefix, b.cfg.Replicas) {
		if err := b.ensureStream(ctx, want); err != nil {
			return err
		}
	}
	_, err := b.js.CreateKeyValue(ctx, CatalogConfig(b.cfg.Prefix, b.cfg.Replicas))
	if err != nil && !errors.Is(err, jetstream.ErrBucketExists) {
		return fmt.Errorf("create bucket %s: %w", b.names.catalog(), err)
	}
	return nil
}

func (b *Bus) ensureStream(ctx context.Context, want jetstream.StreamConfig) error {
	_, err := b.js.CreateStream(ctx, want)
	if err == nil {
		return nil
	}
	if !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return fmt.Errorf("create stream %s: %w", want.Name, err)
	}
	s, err := b.js.Stream(ctx, want.Name)
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", want.Name, err)
	}
	if diff := streamDiff(s.CachedInfo().Config, want); diff != "" {
		return fmt.Errorf("stream %s has settings that break the protocol: %s; change or remove the stream, or use another prefix", want.Name, diff)
	}
	return nil
}

// streamDiff compares what the protocol leans on; sizes, replicas and placement are the operator's.
func streamDiff(have, want jetstream.StreamConfig) string {
	var d differ
	d.add("subjects", strings.Join(slices.Sorted(slices.Values(have.Subjects)), " "), strings.Join(slices.Sorted(slices.Values(want.Subjects)), " "))
	d.add("retention", have.Retention, want.Retention)
	d.add("discard", have.Discard, want.Discard)
	d.add("discard_new_per_subject", have.DiscardNewPerSubject, want.DiscardNewPerSubject)
	d.add("max_msgs_per_subject", max(have.MaxMsgsPerSubject, 0), want.MaxMsgsPerSubject)
	d.add("allow_msg_ttl", have.AllowMsgTTL || !want.AllowMsgTTL, true)
	d.add("allow_msg_schedules", have.AllowMsgSchedules, want.AllowMsgSchedules)
	d.add("allow_direct", have.AllowDirect, want.AllowDirect)
	d.add("max_age", have.MaxAge, want.MaxAge)
	d.add("republish", republish(have), republish(want))
	return d.String()
}

func republish(c jetstream.StreamConfig) string {
	if c.RePublish == nil {
		return "none"
	}
	return fmt.Sprintf("%s to %s (headers only: %t)", c.RePublish.Source, c.RePublish.Destination, c.RePublish.HeadersOnly)
}

// ensureConsumer makes the queue's consumer exist with the settings of the contract, and returns how many calls it lets
// be under way at once; 0: any number. Whoever comes first creates it, with the bound atOnce; one that another program
// made with settings that break the protocol is refused.
func (b *Bus) ensureConsumer(ctx context.Context, queue string, atOnce int) (has int, err error) {
	want := ConsumerConfig(b.cfg.Prefix, queue)
	if atOnce > 0 {
		want.MaxAckPending = atOnce
	}
	c, err := b.js.Consumer(ctx, b.names.work(), queue)
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		if _, err = b.js.CreateConsumer(ctx, b.names.work(), want); err == nil {
			return atOnce, nil
		}
		if !errors.Is(err, jetstream.ErrConsumerExists) && !errors.Is(err, jetstream.ErrConsumerNameAlreadyInUse) {
			return 0, fmt.Errorf("create consumer %s: %w", queue, err)
		}
		c, err = b.js.Consumer(ctx, b.names.work(), queue)
	}
	if err != nil {
		return 0, fmt.Errorf("look at consumer %s: %w", queue, err)
	}
	have := c.CachedInfo().Config
	if diff := consumerDiff(have, want); diff != "" {
		return 0, fmt.Errorf("consumer %s of %s has settings that break the protocol: %s; remove it and start again", queue, b.names.work(), diff)
	}
	return max(0, have.MaxAckPending), nil
}

// startWithin is how long a worker waits at its start for a server that is there and does not answer, as in an election.
const startWithin = time.Minute

// awaitConsumer is ensureConsumer for a start that may fall into trouble which passes. Who says how many calls may be
// under way is refused where the others have said something else.
func (b *Bus) awaitConsumer(ctx context.Context, queue string, atOnce int) (has int, err error) {
	err = b.atStart(ctx, func(ctx context.Context) (err error) {
		has, err = b.ensureConsumer(ctx, queue, atOnce)
		if !passing(err) {
			err = cmp.Or(b.checkOverlap(ctx, queue), err) // it says more than the server's refusal
		}
		return err
	})
	if err == nil {
		err = agree(queue, has, atOnce)
	}
	return has, err
}

// atStart has something done that a start needs, again for as long as what keeps it from being done is trouble that passes.
func (b *Bus) atStart(ctx context.Context, do func(context.Context) error) error {
	bound, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for attempt := 1; ; attempt++ {
		once, end := context.WithTimeout(bound, publishTimeout)
		err := do(once)
		end()
		if err == nil || !passing(err) {
			return err
		}
		if backoff(bound, attempt) != nil {
			return cmp.Or(ctx.Err(), err)
		}
	}
}

// passing tells whether an answer, or its absence, says nothing about what was asked.
func passing(err error) bool {
	var api *jetstream.APIError
	return errors.As(err, &api) && api.Code == 503 ||
		errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout) || errors.Is(err, nats.ErrNoResponders)
}

func consumerDiff(have, want jetstream.ConsumerConfig) string {
	var d differ
	d.add("filter_subject", strings.Join(append(slices.Clone(have.FilterSubjects), have.FilterSubject), ""), want.FilterSubject)
	d.add("ack_policy", have.AckPolicy, want.AckPolicy)
	d.add("ack_wait", have.AckWait, want.AckWait)
	d.add("max_deliver", have.MaxDeliver, want.MaxDeliver)
	d.add("backoff", len(have.BackOff), 0)
	d.add("inactive_threshold", have.InactiveThreshold, want.InactiveThreshold)
	return d.String()
}

// differ collects settings that are not as wanted.
type differ struct{ parts []string }

func (d *differ) add(name string, have, want any) {
	if have != want {
		d.parts = append(d.parts, fmt.Sprintf("%s is %v, want %v", name, have, want))
	}
}

func (d *differ) String() string { return strings.Join(d.parts, "; ") }
