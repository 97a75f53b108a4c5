package bus

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"
	"pgregory.net/rapid"

	"github.com/jetcrew/jetcrew/schema"
)

// TestStandstillIsShort: what a process that stands still draws is lost for AckWait each time, then its owner is asked; docs/serve.md
// promises 30 s. The server refuses a request whose heartbeat is more than half of its time.
func TestStandstillIsShort(t *testing.T) {
	t.Parallel()
	if d := pullExpires + AckWait + askSilence; d > 30*time.Second {
		t.Errorf("the runs of an orchestrator that stands still go on after up to %v", d)
	}
	if 2*pullHeartbeat > pullExpires {
		t.Errorf("a heartbeat of %v in %v", pullHeartbeat, pullExpires)
	}
}

func TestOwnerRules(t *testing.T) {
	t.Parallel()
	type step struct {
		ev   ownerEvent
		want ownerAction
	}
	for name, tt := range map[string]struct {
		runOnce bool
		steps   []step
		fail    schema.ErrorType
		child   bool
	}{
		"a result ends it": {false, []step{{evPublished, doWait}, {evSettled, doReturn}}, "", false},
		"run-once, not begun at its deadline": {true, []step{
			{evPublished, doWait}, {evDeadline, doClaim}, {evSettled, doReturn},
		}, schema.Timeout, false},
		"run-once, begun at its deadline": {true, []step{
			{evPublished, doWait}, {evDeadline, doClaim}, {evGuarded, doWait}, {evRepeat, doCancel}, {evGrace, doGiveUp}, {evSettled, doReturn},
		}, schema.OutcomeUnknown, false},
		"idempotent at its deadline gets the grace": {false, []step{
			{evPublished, doWait}, {evDeadline, doWait}, {evRepeat, doCancel}, {evGrace, doGiveUp}, {evSettled, doReturn},
		}, schema.Timeout, false},
		"run-once, stopped before it began": {true, []step{{evPublished, doWait}, {evStop, doClaim}, {evSettled, doReturn}}, schema.Cancelled, false},
		"run-once, stopped while it runs":   {true, []step{{evPublished, doWait}, {evStop, doClaim}, {evGuarded, doCancel}, {evSettled, doReturn}}, schema.OutcomeUnknown, false},
		"idempotent, stopped":               {false, []step{{evPublished, doWait}, {evStop, doCancel}, {evRepeat, doCancel}, {evSettled, doReturn}}, schema.Cancelled, false},
		"queue full":                        {true, []step{{evFull, doClaim}, {evSettled, doReturn}}, schema.QueueFull, false},
		"queue full for another copy of what has begun": {true, []step{
			{evPublished, doWait}, {evFull, doClaim}, {evGuarded, doWait}, {evDeadline, doClaim}, {evGuarded, doWait}, {evGrace, doGiveUp}, {evSettled, doReturn},
		}, schema.OutcomeUnknown, false},
		"queue full, idempotent":     {false, []step{{evFull, doClaim}, {evSettled, doReturn}}, schema.QueueFull, false},
		"stopped before it was sent": {false, []step{{evUnsent, doClaim}, {evSettled, doReturn}}, schema.Cancelled, false},
		"too large":                  {false, []step{{evTooLarge, doClaim}, {evSettled, doReturn}}, schema.TooLarge, false},
		"nobody serves the agent":    {true, []step{{evPublished, doWait}, {evUnserved, doClaim}, {evSettled, doReturn}}, schema.NoWorker, true},
		"nobody serves the agent of what has begun": {true, []step{
			{evPublished, doWait}, {evUnserved, doClaim}, {evGuarded, doWait}, {evDeadline, doClaim}, {evGuarded, doStopChild}, {evRepeat, doStopChild}, {evSettled, doReturn},
		}, schema.Timeout, true},
	} {
		t.Run(name, func(t *testing.T) {
			s := ownerState{runOnce: tt.runOnce, child: tt.child}
			for i, st := range tt.steps {
				if got := s.on(st.ev); got != st.want {
					t.Fatalf("step %d: event %d gives action %d, want %d", i, st.ev, got, st.want)
				}
			}
			if s.fail != tt.fail {
				t.Errorf("would fail with %q, want %q", s.fail, tt.fail)
			}
		})
	}
}

func TestAdmission(t *testing.T) {
	t.Parallel()
	fine := admission{hasTool: true, callIdempotent: true, toolIdempotent: true, first: true, attempts: 1, limit: 3}
	for name, tt := range map[string]struct {
		change func(*admission)
		want   admitted
	}{
		"fine": {func(*admission) {}, admitRun},
		"C04 runs here, as this message or another copy": {func(a *admission) { a.inTable = true }, admitBusy},
		"settled before":                {func(a *admission) { a.hasResult, a.first = true, false }, admitDone},
		"settled, over the limit":       {func(a *admission) { a.hasResult, a.attempts = true, 4 }, admitDone},
		"given up without a letter":     {func(a *admission) { a.hasResult, a.lost, a.attempts = true, true, 4 }, admitDead},
		"a copy of what was given up":   {func(a *admission) { a.hasResult, a.lost = true, true }, admitDone},
		"last attempt":                  {func(a *admission) { a.attempts = 3 }, admitRun},
		"B05 over the limit":            {func(a *admission) { a.attempts = 4 }, admitLost},
		"expired":                       {func(a *admission) { a.expired = true }, admitExpired},
		"expired, tool unknown":         {func(a *admission) { a.expired, a.hasTool = true, false }, admitExpired},
		"tool unknown":                  {func(a *admission) { a.hasTool = false }, admitNoTool},
		"stricter here, first delivery": {func(a *admission) { a.toolIdempotent = false }, admitRun},
		"stricter here, redelivery":     {func(a *admission) { a.toolIdempotent, a.first = false, false }, admitStricter},
		"run-once call, redelivery":     {func(a *admission) { a.callIdempotent, a.first = false, false }, admitRun},
	} {
		t.Run(name, func(t *testing.T) {
			a := fine
			tt.change(&a)
			if got := a.admit(); got != tt.want {
				t.Errorf("%+v: got %d, want %d", a, got, tt.want)
			}
		})
	}
}

// TestB01Demand drives the arithmetic with any order of deliveries, ends and expiries: what runs plus what may still
// come never exceeds the slots, what leaves is bounded too, and an idle worker always has a request out.
func TestB01Demand(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		d := demand{slots: rapid.IntRange(1, 300).Draw(t, "slots")}
		for range rapid.IntRange(1, 400).Draw(t, "steps") {
			d.asked += d.want()
			if d.running+d.asked > d.slots {
				t.Fatalf("%+v: more than the slots", d)
			}
			if d.asked == 0 && d.running < d.slots && d.leaving < d.slots {
				t.Fatalf("%+v: free slots and no request", d)
			}
			if d.running+d.asked+d.leaving >= 2*d.slots {
				t.Fatalf("%+v: more than it can hold", d)
			}
			switch op := rapid.IntRange(0, 4).Draw(t, "op"); {
			case op == 0 && d.asked > 0:
				d.delivered()
			case op == 1 && d.running > 0:
				d.finished()
			case op == 2:
				d.expired(rapid.IntRange(0, d.asked).Draw(t, "expired"))
			case op == 3 && d.running > 0:
				d.finished()
				d.leaving++
			case op == 4 && d.leaving > 0:
				d.leaving--
			}
		}
	})
}

// TestFewerResultsLeave: a worker that asks for nothing because as many results leave as it has slots is told when they are fewer.
func TestFewerResultsLeave(t *testing.T) {
	t.Parallel()
	s := &service{worker: Worker{Slots: 2}, fewer: make(chan struct{}, 1)}
	s.leaving.Store(4)
	s.open.Add(4)
	for left, told := range []int{0, 0, 1, 1} {
		s.left()
		if len(s.fewer) != told {
			t.Errorf("told %d times after %d have left, want %d", len(s.fewer), left+1, told)
		}
	}
}

func TestB07RetryDelayGrows(t *testing.T) {
	t.Parallel()
	for attempt, base := range map[int]time.Duration{1: 500 * time.Millisecond, 2: time.Second, 5: 8 * time.Second, 50: 30 * time.Second} {
		if d := retryDelay(attempt); d < base/2 || d > base*3/2 {
			t.Errorf("attempt %d: %v, want about %v", attempt, d, base)
		}
	}
}

func TestParseOrigin(t *testing.T) {
	t.Parallel()
	for reply, want := range map[string]origin{
		"$JS.ACK.JC_WORK.files.2.77.9.1700000000000000001.5":           {seq: 77, order: 9, delivery: 2, stored: time.Unix(0, 1700000000000000001)},
		"$JS.ACK.hub.ACC.JC_WORK.files.3.78.9.1700000000000000001.5":   {seq: 78, order: 9, delivery: 3, stored: time.Unix(0, 1700000000000000001)},
		"$JS.ACK._.ACC.JC_WORK.files.3.78.9.1700000000000000001.5.rnd": {seq: 78, order: 9, delivery: 3, stored: time.Unix(0, 1700000000000000001)},
	} {
		if got, err := parseOrigin(&nats.Msg{Reply: reply}); err != nil || got != want {
			t.Errorf("%s: %+v, %v", reply, got, err)
		}
	}
	for _, reply := range []string{"", "_INBOX.x", "$JS.ACK.a.b.c", "$JS.ACK.JC_WORK.files.x.77.9.1.5", "a.b.c.d.1.2.3.4.5"} {
		if got, err := parseOrigin(&nats.Msg{Reply: reply}); err == nil {
			t.Errorf("%q: %+v, want an error", reply, got)
		}
	}
}

func TestParsePubAck(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]struct {
		seq  uint64
		code int
	}{
		`{"stream":"JC_RUNS","seq":42}`:                                                                             {seq: 42},
		`{"stream":"JC_RUNS","domain":"hub","seq": 43,"duplicate":true}`:                                            {seq: 43},
		`{"error":{"code":400,"err_code":10071,"description":"wrong last sequence: 1"},"stream":"JC_RUNS","seq":0}`: {code: 10071},
	} {
		seq, err := parsePubAck([]byte(data))
		if seq != want.seq || apiCode(err) != want.code {
			t.Errorf("%s: %d, %v", data, seq, err)
		}
	}
	if _, err := parsePubAck([]byte("garbage")); err == nil || apiCode(err) != 0 {
		t.Errorf("garbage: %v", err)
	}
}

func TestBackoffEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		if err := backoff(t.Context(), 3); err != nil || time.Since(start) != 4*backoffFirst {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if err := backoff(t.Context(), 60); err != nil || time.Since(start) > 4*backoffFirst+backoffMax {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

// TestB01LateMessages: after a new subscription, what comes of the old one takes a slot and pays no request.
func TestB01LateMessages(t *testing.T) {
	t.Parallel()
	old, sub := &nats.Subscription{}, &nats.Subscription{}
	p := &puller{sub: sub, demand: demand{slots: 4, running: 1, asked: 3}}
	delivery := func(s *nats.Subscription) *nats.Msg { return &nats.Msg{Sub: s, Data: []byte("{}")} }
	over := &nats.Msg{Sub: old, Header: nats.Header{"Status": {"408"}, "Nats-Pending-Messages": {"3"}}}
	for _, step := range []struct {
		msg  *nats.Msg
		is   bool
		want demand
	}{
		{delivery(old), true, demand{slots: 4, running: 2, asked: 3}},
		{over, false, demand{slots: 4, running: 2, asked: 3}},
		{delivery(sub), true, demand{slots: 4, running: 3, asked: 2}},
	} {
		if is := p.take(step.msg); is != step.is || p.demand != step.want {
			t.Errorf("delivery %t, %+v; want %t, %+v", is, p.demand, step.is, step.want)
		}
	}
	if n := p.demand.want(); n != 0 {
		t.Errorf("asks for %d more", n)
	}
}

func TestB12ResultIsKeptUntilTheDeadline(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for left, want := range map[time.Duration]time.Duration{5 * time.Minute: 5 * time.Minute, -time.Second: time.Minute} {
		if got := (&delivery{deadline: now.Add(left)}).patience(now); got != want {
			t.Errorf("%v before the deadline: %v, want %v", left, got, want)
		}
	}
}

// TestB20WhatHasComeIsGivenBack: the end of the subscription is no reason to leave buffered messages to AckWait.
func TestB20WhatHasComeIsGivenBack(t *testing.T) {
	t.Parallel()
	const n = 50
	msgs, closed := make(chan *nats.Msg, n), make(chan struct{})
	for range n {
		msgs <- &nats.Msg{}
	}
	close(closed)
	got := 0
	untilClosed(msgs, closed, nil, func(*nats.Msg) { got++ })
	if got != n {
		t.Errorf("%d messages given back, want %d", got, n)
	}
}

// TestCatalogForgetsWithoutAReader: a worker whose heartbeats end is forgotten though nothing can be read.
func TestCatalogForgetsWithoutAReader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Catalog{
			workers: map[string]WorkerInfo{"q.w": {Queue: "q", Instance: "w", seen: time.Now(), digest: "d"}}, lost: map[string]WorkerInfo{},
			gone: map[string]time.Time{}, sets: map[string][]schema.Tool{"q.d": {{Name: "t", Queue: "q"}}}, change: make(chan struct{}),
		}
		_, changed := c.Changes()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go c.expireEach(ctx)
		began := time.Now()
		<-changed
		if took := time.Since(began); len(c.Workers()) != 0 || took < HeartbeatTTL || took > HeartbeatTTL+2*Heartbeat {
			t.Errorf("%v after %v", c.Workers(), took)
		}
		// Its tools are not unknown at once: a server that was away has nobody's heartbeat.
		s := &Selection{catalog: c, patterns: []string{"t"}}
		if tools, err := s.Tools(ctx); err != nil || len(tools) != 1 || len(c.Tools()) != 0 {
			t.Errorf("tools %v, %v", tools, err)
		}
		_, changed = c.Changes()
		<-changed
		if tools, err := s.Tools(ctx); err != nil || len(tools) != 0 {
			t.Errorf("tools %v, %v after %v", tools, err, time.Since(began))
		}
		// Who says that it leaves is not missed.
		c.applyWorker("q.w", encoded(t, &Announcement{Digest: "d"}))
		c.leave("q.w", false)
		if tools, err := s.Tools(ctx); err != nil || len(tools) != 0 {
			t.Errorf("tools %v, %v", tools, err)
		}
	})
}

func encoded(t *testing.T, p schema.Encodable) []byte {
	t.Helper()
	data, err := schema.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
