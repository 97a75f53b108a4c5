package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// What is no call is kept as a dead letter and leaves the queue; the worker goes on.
func TestHostileBytesOnAQueue(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv)
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
	dead := f.listen("jc.dead.test")
	for _, c := range []struct{ name, data string }{
		{"empty", ""},
		{"a length of 68 GB", "\xdd\xff\xff\xff\xff"},
		{"a map of 4 billion keys", "\xdf\xff\xff\xff\xff\xa1v\x01"},
		{"cut", "\x89\xa1v\x01\xa3run"},
		{"deep", "\x81\xa1x" + strings.Repeat("\x91", 10_000) + "\x01"},
		{"deep JSON", `{"run":` + strings.Repeat("[", 100_000)},
		{"an array", `[1]`},
		{"no run", `{"turn":1,"index":0,"tool":"echo"}`},
		{"a run that is no token", `{"run":"a.b","turn":1,"index":0,"tool":"echo"}`},
		{"a run that is a wildcard", `{"run":"*","turn":1,"index":0,"tool":"echo"}`},
		{"no index", `{"run":"r","turn":1,"tool":"echo"}`},
		{"negative turn", `{"run":"r","turn":-1,"index":0,"tool":"echo"}`},
		{"no tool", `{"run":"r","turn":1,"index":0}`},
		{"a later version", `{"v":2,"run":"r","turn":1,"index":0,"tool":"echo"}`},
		{"a key twice", `{"run":"r","run":"s","turn":1,"index":0,"tool":"echo"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			seq, _ := f.store("jc.work.test.0", []byte(c.data))
			var letter bus.DeadLetter
			if err := schema.Decode(f.next(dead).Data, &letter); err != nil {
				t.Fatal(err)
			}
			if string(letter.Data) != c.data || letter.Seq != seq || letter.Delivery != 1 || letter.Worker != b.Instance() || letter.Reason == "" || letter.Queue != "test" {
				t.Errorf("%+v", letter)
			}
		})
	}
	for _, status := range []string{"100", "404", "408", "409", "503", "x"} {
		t.Run("status "+status, func(t *testing.T) {
			seq, _ := f.store("jc.work.test.0", nil, "Status", status, "Nats-Pending-Messages", "1")
			var letter bus.DeadLetter
			if err := schema.Decode(f.next(dead).Data, &letter); err != nil {
				t.Fatal(err)
			}
			if letter.Seq != seq || letter.Delivery != 1 {
				t.Errorf("%+v", letter)
			}
		})
	}
	if r, err := b.Dispatch(t.Context(), call("after", "echo", 0), "test", patience); err != nil || !r.OK {
		t.Errorf("the next call: %+v, %v", r, err)
	}
	f.waitEmpty()
}

// waitEmpty returns when the work stream holds no message. Acknowledgements are processed in order of arrival, so it
// asks the server and not the clock.
func (f foreign) waitEmpty() {
	f.t.Helper()
	for end := time.Now().Add(patience); ; {
		state := f.api("STREAM.INFO.JC_WORK", "")["state"].(map[string]any)
		if state["messages"] == 0.0 {
			return
		}
		if time.Now().After(end) {
			f.t.Fatalf("work stream is not empty: %v", state)
		}
	}
}

// pull takes one delivery as a foreign worker does, and returns where its acknowledgements go.
func (f foreign) pull(queue string) (reply string) {
	f.t.Helper()
	m, err := f.nc.Request("$JS.API.CONSUMER.MSG.NEXT.JC_WORK."+queue, []byte(`{"batch":1,"expires":20000000000}`), patience)
	if err != nil {
		f.t.Fatal(err)
	}
	if m.Reply == "" {
		f.t.Fatalf("no delivery: %v", m.Header)
	}
	return m.Reply
}

// consumer makes a queue's consumer exist, as a foreign worker that comes first does.
func (f foreign) consumer(queue string) {
	f.t.Helper()
	answer := f.api("CONSUMER.DURABLE.CREATE.JC_WORK."+queue, `{"stream_name":"JC_WORK","config":{"durable_name":"`+queue+`",
		"filter_subject":"jc.work.`+queue+`.*","ack_policy":"explicit","deliver_policy":"all","replay_policy":"instant",
		"ack_wait":6000000000,"max_deliver":-1,"max_ack_pending":-1,"max_waiting":4096}}`)
	if answer["error"] != nil {
		f.t.Fatalf("create consumer: %v", answer["error"])
	}
}

// dispatched runs Dispatch apart and returns where its result comes.
func dispatched(t *testing.T, b *bus.Bus, c *schema.Call, queue string, within time.Duration) <-chan schema.Result {
	t.Helper()
	done := make(chan schema.Result, 1)
	go func() {
		r, err := b.Dispatch(context.Background(), c, queue, within)
		if err != nil && t.Context().Err() == nil { // a test that is over has said why
			t.Errorf("dispatch: %v", err)
		}
		done <- r
	}()
	return done
}

const once = "Nats-Expected-Last-Subject-Sequence"

func TestResultOfAForeignWorker(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv)
	f.consumer("far")
	done := dispatched(t, b, call("r", "work"+runOnce, 0), "far", patience)
	reply := f.pull("far")
	begin, result := "jc.run.r.begin.1.0.far", "jc.run.r.result.1.0.far"
	claim := []byte(`{"v":1,"instance":"far-1","delivery":1,"seq":1}`)
	if _, code := f.store(begin, claim, once, "0", once+"-Subject", result); code != 0 {
		t.Fatalf("begin: %d", code)
	}
	if _, code := f.store(begin, []byte(`{"v":1,"instance":"far-2"}`), once, "0", once+"-Subject", result); code != 10077 {
		t.Errorf("a second begin: %d, want 10077", code)
	}
	if _, code := f.store(result, []byte(`{"v":1,"run":"r","turn":1,"index":0,"ok":true,"output":"far away","worker":"far-1","delivery":1}`), once, "0"); code != 0 {
		t.Fatalf("result: %d", code)
	}
	f.say(reply, []byte("+ACK"))
	if r := <-done; !r.OK || r.Output != "far away" || r.Worker != "far-1" {
		t.Errorf("%+v", r)
	}
	if _, code := f.store(result, []byte(`{"v":1,"run":"r","turn":1,"index":0,"ok":true,"output":"later"}`), once, "0"); code != 10071 {
		t.Errorf("a second result: %d, want 10071", code)
	}
	if _, code := f.store("jc.run.r.begin.1.0.other", claim, once, "0", once+"-Subject", result); code != 10071 {
		t.Errorf("a begin after the result: %d, want 10071", code)
	}
}

// D37: what is recorded in a call's own slot is its one outcome, however broken; nothing else is credited to it.
func TestD37HostileResults(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv)
	good := `{"v":1,"run":"%s","turn":1,"index":0,"ok":true,"output":"stolen"}`
	for i, c := range []struct{ name, data string }{
		{"garbage", "\xdd\xff\xff\xff\xff"},
		{"empty", ""},
		{"a later version", `{"v":2,"run":"in-slot","turn":1,"index":6,"ok":true,"output":"x"}`},
		{"another run", `{"v":1,"run":"else","turn":1,"index":3,"ok":true,"output":"x"}`},
		{"another turn", `{"v":1,"run":"in-slot","turn":2,"index":4,"ok":true,"output":"x"}`},
		{"another index", `{"v":1,"run":"in-slot","turn":1,"index":99,"ok":true,"output":"x"}`},
	} {
		t.Run("in the slot: "+c.name, func(t *testing.T) {
			done := dispatched(t, b, call("in-slot", "x", i), "q1", patience)
			f.store(fmt.Sprintf("jc.run.in-slot.result.1.%d.q1", i), []byte(c.data), once, "0")
			if r := <-done; r.OK || r.Error.Type != schema.ToolFailed || r.Run != "in-slot" || r.Index != i {
				t.Errorf("%+v", r)
			}
		})
	}
	t.Run("beside the slot", func(t *testing.T) {
		before, published := b.Strays(), f.listen("jc.work.q2.0")
		done := dispatched(t, b, call("beside", "x", 0), "q2", patience)
		f.next(published) // it is awaited by now
		for _, subject := range []string{
			"jc.run.beside.result.1.0.q3", "jc.run.beside.result.1.0.none", "jc.run.beside.result.1.1.q2", "jc.run.beside.result.2.0.q2",
			"jc.run.other.result.1.0.q2", "jc.run.beside.result.1.00.q2", "jc.run.beside.result.1.0.q2.x", "jc.run.beside.result",
		} {
			f.store(subject, fmt.Appendf(nil, good, "beside"))
		}
		// Nobody stored this: a message is no fact because it stands on the subject of live facts.
		f.say("jc.live.beside.result.1.0.q2", fmt.Appendf(nil, good, "beside"))
		f.store("jc.run.beside.result.1.0.q2", []byte(`{"v":1,"run":"beside","turn":1,"index":0,"ok":true,"output":"mine"}`), once, "0")
		if r := <-done; !r.OK || r.Output != "mine" {
			t.Errorf("%+v", r)
		}
		if n := b.Strays() - before; n != 3 {
			t.Errorf("%d strays were counted, want the 3 results of this turn that answer no call", n)
		}
	})
	t.Run("only beside the slot: the deadline ends it", func(t *testing.T) {
		done := dispatched(t, b, call("late", "x"+runOnce, 0), "q4", 300*time.Millisecond)
		f.store("jc.run.late.result.1.0.q5", fmt.Appendf(nil, good, "late"))
		if r := <-done; r.OK || r.Error.Type != schema.Timeout && r.Error.Type != schema.NoWorker {
			t.Errorf("%+v", r)
		}
	})
}

// Hints that cannot be read change nothing.
func TestGarbageHints(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b, w := connect(t, srv), connect(t, srv)
	started, gate := make(chan int, 2), make(chan struct{})
	hold := func(ctx context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		started <- c.Index
		select {
		case <-gate:
			return c.Done("unharmed"), nil
		case <-ctx.Done():
			return c.Fail(schema.Cancelled, "ended"), nil
		}
	}
	serve(t, w, bus.Worker{Queue: "test", Slots: 2, Tools: toolbox{"hold": hold}})
	heard := make(chan string, 16)
	ctx := schema.WithProgress(t.Context(), func(text string) { heard <- text })
	kept := make(chan schema.Result, 1)
	go func() {
		r, err := b.Dispatch(ctx, call("r", "hold", 0), "test", time.Minute)
		if err != nil {
			t.Error(err)
		}
		kept <- r
	}()
	<-started
	ended := dispatched(t, b, call("r", "hold", 1), "test", time.Minute)
	<-started

	garbage := []string{"", "\xdd\xff\xff\xff\xff", "{", "[]", "null", `{"v":2}`, `{"v":1,"turn":"x","text":7}`, `{"v":1,"turn":1.5,"seq":-1}`}
	own := f.nc.NewRespInbox()
	answers := f.listen(own)
	for _, g := range garbage {
		f.say("jc.cancel.r", []byte(g))
		f.say("jc.progress.r.1.0", []byte(g))
		if err := f.nc.PublishRequest("jc.own."+w.Instance(), own, []byte(g)); err != nil {
			t.Fatal(err)
		}
	}
	f.say("jc.cancel.r.x", []byte(`{"v":1,"reason":"two tokens"}`))
	f.say("jc.cancel.other", []byte(`{"v":1,"reason":"another run"}`))
	f.say("jc.progress.r.1.x", []byte(`{"v":1,"text":"no index"}`))
	f.say("jc.progress.r.1.0", []byte(`{"v":1,"seq":1,"text":"clear"}`))
	if err := f.nc.PublishRequest("jc.own."+w.Instance(), own, []byte(`{"v":1,"run":"r","turn":1,"index":0,"seq":1}`)); err != nil {
		t.Fatal(err)
	}
	// Each subscription hears in order, so what comes first here comes from the first message that was understood.
	f.say("jc.cancel.r", []byte(`{"v":1,"reason":"this one","turn":1,"index":1}`))
	if r := <-ended; r.OK || r.Error.Type != schema.Cancelled {
		t.Errorf("the cancelled call: %+v", r)
	}
	if text := <-heard; text != "clear" {
		t.Errorf("progress %q", text)
	}
	var answer bus.OwnReply
	if err := schema.Decode(f.next(answers).Data, &answer); err != nil || !answer.Running {
		t.Errorf("%+v, %v", answer, err)
	}
	close(gate)
	if r := <-kept; !r.OK || r.Output != "unharmed" {
		t.Errorf("the other call: %+v", r)
	}
}

// The label is a stranger's too: it stands in the line that a failed call gives, and may not make it too large to be
// recorded.
func TestHostileLabel(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	fail := func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		return c.Fail(schema.ToolFailed, "no"), nil
	}
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Tools: toolbox{"fail": fail}})
	sub := f.listen("jc.live.r.result.1.0.test")
	f.store("jc.work.test.0", fmt.Appendf(nil, `{"run":"r","turn":1,"index":0,"tool":"fail","label":"%s"}`, strings.Repeat("l", 400<<10)))
	if r := f.awaitResult(sub); r.OK || r.Error.Type != schema.ToolFailed || len(r.Output) > 8<<10 {
		t.Errorf("%d bytes of output, %v", len(r.Output), r.Error)
	}
}

// A begin that nobody can read never becomes readable: the call began, and that is all anybody will know.
func TestUnreadableBegin(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Tools: toolbox{"never" + runOnce: neverRun(t)}})
	for i, begin := range []string{"\xdd\xff\xff\xff\xff", `{"v":2}`, `{"v":1,"instance":"no token","seq":3}`, `{"v":1,"instance":"*","seq":4}`} {
		sub := f.listen(fmt.Sprintf("jc.live.r.result.1.%d.test", i))
		f.store(fmt.Sprintf("jc.run.r.begin.1.%d.test", i), []byte(begin), once, "0")
		f.store("jc.work.test.0", fmt.Appendf(nil, `{"run":"r","turn":1,"index":%d,"tool":"never!"}`, i))
		if r := f.awaitResult(sub); r.OK || r.Error.Type != schema.OutcomeUnknown {
			t.Errorf("%q: %+v", begin, r)
		}
	}
}
