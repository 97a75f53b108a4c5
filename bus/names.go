package bus

import (
	"strconv"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// DefaultPrefix is the first token of every subject and, in capitals, of every stream; it is the unit of sharding.
const DefaultPrefix = "jc"

// Lane is the last token of a work subject; there is one until fairness between tenants needs more.
const Lane = "0"

// Headers of a call. Their case is part of the contract.
const (
	HeaderDeadline    = "Jc-Deadline"  // Unix milliseconds on the clock of the work stream's leader
	HeaderContentType = "Content-Type" // ContentJSON when the payload is JSON; absent: msgpack
	HeaderTTL         = "Nats-TTL"     // whole seconds
	ContentJSON       = "application/json"

	headerExpectSeq     = "Nats-Expected-Last-Subject-Sequence"
	headerExpectSubject = "Nats-Expected-Last-Subject-Sequence-Subject"
)

// Times of the contract.
const (
	AckWait        = 6 * time.Second         // of every queue's consumer
	InProgress     = 2 * time.Second         // how often a running call is said to be in progress
	DefaultTimeout = 300 * time.Second       // bound on a call that has none of its own
	TTLMargin      = 60 * time.Second        // how long a call's message outlives its deadline
	HeartbeatTTL   = 15 * time.Second        // life of a worker's catalog entry
	Heartbeat      = 5 * time.Second         // how often it is written anew
	ToolsTTL       = 24 * time.Hour          // life of a set of definitions in the catalog
	lookEvery      = 5 * time.Second         // how often open calls are looked up, in case a live message was lost
	publishTimeout = 5 * time.Second         // for one attempt to publish
	writeTimeout   = 60 * time.Second        // for a fact, all attempts together
	backoffFirst   = 20 * time.Millisecond   // before the second attempt; doubles
	backoffMax     = 1000 * time.Millisecond // between attempts
)

// names builds every subject and stream name of one prefix.
type names struct{ prefix string }

func (n names) stream(kind string) string { return strings.ToUpper(n.prefix) + "_" + kind }

func (n names) work() string { return n.stream("WORK") }
func (n names) runs() string { return n.stream("RUNS") }
func (n names) dead() string { return n.stream("DEAD") }

func (n names) timer() string { return n.stream("TIMER") }

func (n names) timerSet(run string) string    { return n.prefix + ".timer.set." + run }
func (n names) timerLease(name string) string { return n.prefix + ".timer.lease." + name }
func (n names) timerDue(run string) string    { return n.prefix + ".timer.due." + run }

func (n names) catalog() string              { return n.prefix + "_catalog" }
func (n names) catalogStream() string        { return "KV_" + n.catalog() }
func (n names) catalogKey(key string) string { return "$KV." + n.catalog() + "." + key }

func (n names) blobBucket(queue string) string { return n.prefix + "_blobs_" + queue }

func (n names) audit(stream string) string { return n.prefix + ".audit." + stream + "." }

func (n names) archive() string { return n.prefix + "_archive" }

func (n names) workSubject(queue string) string { return n.prefix + ".work." + queue + "." + Lane }
func (n names) workFilter(queue string) string  { return n.prefix + ".work." + queue + ".*" }
func (n names) deadSubject(queue string) string { return n.prefix + ".dead." + queue }

func (n names) fact(run string, k schema.Key) string {
	return n.prefix + ".run." + run + "." + k.String()
}
func (n names) facts(run string) string { return n.prefix + ".run." + run + ".>" }
func (n names) live(run string) string  { return n.prefix + ".live." + run + ".>" }

func (n names) cancel(run string) string   { return n.prefix + ".cancel." + run }
func (n names) own(instance string) string { return n.prefix + ".own." + instance }

func (n names) progress(run string, turn, index int) string {
	return n.prefix + ".progress." + run + "." + strconv.Itoa(turn) + "." + strconv.Itoa(index)
}

// cutRun splits a subject below <prefix>.<word>. into run and rest.
func (n names) cutRun(subject, word string) (run, rest string, ok bool) {
	s, ok := strings.CutPrefix(subject, n.prefix+"."+word+".")
	if !ok {
		return "", "", false
	}
	return strings.Cut(s, ".")
}
