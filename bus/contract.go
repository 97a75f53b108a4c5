package bus

import (
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/tracing"
)

// Subject is one kind of subject of the contract.
type Subject struct {
	Pattern string // names in angle brackets stand for tokens
	Home    string // the stream that stores it; empty: core NATS, not stored
	Payload string // Go type of the payload, package and name; empty: several
	Meaning string
}

// Subjects returns every kind of subject of a prefix.
func Subjects(prefix string) []Subject {
	n := names{prefix}
	const run = "<run>"
	return []Subject{
		{n.workSubject("<queue>"), n.work(), "schema.Call", "a call; " + Lane + " is the lane, the only one so far"},
		{n.prefix + ".run." + run + ".<fact>", n.runs(), "", "a fact, written once"},
		{n.prefix + ".live." + run + ".<fact>", "", "", "the same, sent again by the stream after it stored the fact"},
		{n.deadSubject("<queue>"), n.dead(), "bus.DeadLetter", "a message that no worker could finish"},
		{n.timerSet(run), n.timer(), "", "a run that is to be woken: the payload is its id, the header `" + headerSchedule + "` says when"},
		{n.timerLease("<task>"), n.timer(), "", "an orchestrator's instance: it alone does the task until the message's TTL is over"},
		{n.timerDue(run), n.timer(), "", "the same, when it is due"},
		{n.catalogKey("<queue>.<instance>"), n.catalogStream(), "bus.Announcement", "a worker is alive"},
		{n.catalogKey("tools.<queue>.<digest>"), n.catalogStream(), "bus.ToolSet", "definitions of tools"},
		{"$O." + n.blobBucket("<queue>") + ".>", "OBJ_" + n.blobBucket("<queue>"), "", "what is too large for a message"},
		{n.cancel(run), "", "bus.Cancel", "hint: end calls of the run"},
		{n.own("<instance>"), "", "bus.OwnQuery", "question: do you run this call? Answered with bus.OwnReply"},
		{n.prefix + ".progress." + run + ".<n>.<i>", "", "bus.Progress", "what a running call says before its result"},
	}
}

// headerSequence is on every message that the stream of runs republishes: the fact's sequence.
const headerSequence = "Nats-Sequence"

// Header is one header of the contract. Names are case-sensitive on the wire.
type Header struct {
	Name    string
	On      string
	Meaning string
}

// Headers returns every header of the contract.
func Headers() []Header {
	return []Header{
		{HeaderDeadline, "calls", "when waiting plus running ends: Unix milliseconds on the server's clock, decimal; absent: the time of storing plus `timeout_ms`, or plus " + seconds(DefaultTimeout)},
		{HeaderTTL, "calls (not on queue `agents`), catalog entries", "whole seconds with the unit, such as `90s`; of a call: the time to its deadline plus " + seconds(TTLMargin) + ", rounded up"},
		{HeaderContentType, "calls, facts", "`" + ContentJSON + "` when the payload is JSON; a reader needs it for nothing, the first byte tells"},
		{tracing.HeaderTraceparent, "calls and results of a sampled trace", "W3C Trace Context; absent: start no trace"},
		{tracing.HeaderTracestate, "calls and results of a sampled trace", "W3C Trace Context"},
		{tracing.HeaderBaggage, "calls and results of a sampled trace", "W3C Baggage, up to 1 KiB"},
		{headerExpectSeq, "facts", "always `0`: refuse if the subject has a message (or the one named below)"},
		{headerExpectSubject, "guarded facts", "the exact subject of the fact that must be absent"},
		{headerSchedule, "timers", "`@at ` and an RFC 3339 time on the server's clock: when the message is passed on"},
		{headerScheduleTarget, "timers", "the subject that it is passed on to"},
		{headerSequence, "live facts", "set by the server when it republishes: the fact's sequence in the stream. Without it a message on a live subject is no fact"},
	}
}

func seconds(d time.Duration) string { return fmt.Sprintf("%d s", int(d.Seconds())) }

// CatalogStream returns the settings of the stream behind the bucket of CatalogConfig, for programs without a
// key-value client.
func CatalogStream(prefix string, replicas int) jetstream.StreamConfig {
	kv := CatalogConfig(prefix, replicas)
	n := names{prefix}
	return jetstream.StreamConfig{
		Name: n.catalogStream(), Subjects: []string{n.catalogKey(">")}, MaxMsgsPerSubject: int64(kv.History),
		Discard: jetstream.DiscardNew, Storage: kv.Storage, Replicas: kv.Replicas, Duplicates: 2 * time.Minute,
		AllowRollup: true, DenyDelete: true, AllowDirect: true, AllowMsgTTL: true, SubjectDeleteMarkerTTL: kv.LimitMarkerTTL,
	}
}

// BlobStream returns the settings of the stream behind the bucket of BlobConfig, for programs without an object store
// client.
func BlobStream(prefix, queue string, replicas int) jetstream.StreamConfig {
	c := BlobConfig(prefix, queue, replicas)
	return jetstream.StreamConfig{
		Name: "OBJ_" + c.Bucket, Subjects: []string{"$O." + c.Bucket + ".C.>", "$O." + c.Bucket + ".M.>"},
		Discard: jetstream.DiscardNew, Storage: c.Storage, Replicas: c.Replicas, AllowRollup: true, AllowDirect: true,
	}
}
