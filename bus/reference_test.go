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

// TestB15LargeFacts: every reader gets the payload, whoever it is that refers to it.
func TestB15LargeFacts(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, r := connect(t, srv, unbroken(t)), connect(t, srv)
	run, long := schema.NewID(), text(600<<10)
	heard := make(chan schema.Fact, 8)
	stop, err := r.Watch(t.Context(), run, func(f schema.Fact) { heard <- f })
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	put(t, b, run, schema.OpenKey(), &schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: "helper", Instructions: long}})
	put(t, b, run, schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: long})
	put(t, b, run, schema.TurnKey(1), &schema.Turn{N: 1, Text: long, Calls: []schema.TurnCall{{Label: "a", Args: "{}", Queue: "test"}}})
	put(t, b, run, schema.AnswerKey(1), &schema.Answer{Text: long, Reason: schema.ReasonDone})
	put(t, b, run, schema.CloseKey(), &schema.Close{State: "done"})

	facts, err := r.Facts(t.Context(), run, 0)
	if err != nil || len(facts) != 5 {
		t.Fatalf("%d facts, %v", len(facts), err)
	}
	for _, f := range append(facts[:4:4], (<-heard)) {
		if !strings.Contains(string(f.Data), long) {
			t.Errorf("%s: %d bytes", f.Key, len(f.Data))
		}
	}
	n := 0
	for f, err := range r.Follow(t.Context(), run) {
		if err != nil {
			t.Fatal(err)
		}
		if string(f.Data) != string(facts[n].Data) {
			t.Errorf("%s followed: %d bytes", f.Key, len(f.Data))
		}
		n++
	}
	for info, err := range r.Runs(t.Context()) {
		if err != nil || info.Open.Agent == nil || info.Open.Agent.Instructions != long {
			t.Errorf("the run in a list: %v", err)
		}
	}
}

// TestB15ReferenceToAnotherRun: who may write to one run reads no other by it.
func TestB15ReferenceToAnotherRun(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, f := connect(t, srv), stranger(t, srv)
	put(t, b, "theirs", schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: text(600 << 10)})
	m := f.api("STREAM.MSG.GET.JC_RUNS", `{"last_by_subj":"jc.run.theirs.say.1"}`)
	data := fmt.Sprint(m["message"].(map[string]any)["data"])
	if len(data) > 400 {
		t.Fatalf("the fact is %d bytes", len(data))
	}
	facts, err := b.Facts(t.Context(), "theirs", 0)
	if err != nil {
		t.Fatal(err)
	}
	ref := fmt.Sprintf(`{"v":1,"ref":{"run":"theirs","blob":%q,"size":%d}}`, schema.Digest(facts[0].Data), len(facts[0].Data))
	f.store("jc.run.mine.say.1", []byte(ref))
	f.store("jc.run.theirs.say.2", []byte(ref))
	for run, want := range map[string]int{"mine": 0, "theirs": len(facts[0].Data)} {
		got, err := b.Facts(t.Context(), run, 0)
		if last := got[len(got)-1]; err != nil || len(last.Data) != want {
			t.Errorf("%s: %d bytes, %v", run, len(last.Data), err)
		}
	}
}

// TestB15CallWhoseArgumentsAreGone: its caller is told at once, and the worker goes on.
func TestB15CallWhoseArgumentsAreGone(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b, f := connect(t, srv), stranger(t, srv)
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
	sub := f.listen("jc.live.r.result.1.0.test")
	f.store("jc.work.test.0", []byte(`{"v":1,"ref":{"run":"r","turn":1,"blob":"`+schema.Digest(nil)+`","size":300000}}`))
	if r := f.awaitResult(sub); r.OK || r.Error.Type != schema.ToolFailed || !strings.Contains(r.Output, "did not start") {
		t.Errorf("%+v", r)
	}
	f.waitEmpty()
	if r := settled(t, b, call("after", "echo", 0)); !r.OK {
		t.Errorf("the next call: %+v", r)
	}
}

// TestB15LargeDeadLetter: a call that was given up can be made again, arguments and all.
func TestB15LargeDeadLetter(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	busy := func(context.Context, *schema.Call) (schema.Result, *schema.Pending) {
		return schema.Result{}, &schema.Pending{Reason: "not now"}
	}
	stop := serve(t, b, bus.Worker{Queue: "test", Attempts: 1, Tools: toolbox{"echo": busy}})
	c := call(schema.NewID(), "echo", 0)
	c.Args = schema.JSONText(`{"x":"` + text(600<<10) + `"}`)
	if r := settled(t, b, c); r.OK {
		t.Fatalf("%.200v", r)
	}
	if err := stop(); err != nil {
		t.Fatal(err)
	}
	data, err := schema.Encode(c)
	if err != nil {
		t.Fatal(err)
	}
	ref, err := schema.Encode(&schema.Reference{Ref: schema.Blob{Run: c.Run, Name: schema.Digest(data), Size: int64(len(data)), Turn: 1}})
	if err != nil {
		t.Fatal(err)
	}
	letter, err := schema.Encode(&bus.DeadLetter{Queue: "test", Reason: "a test", Data: ref})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := stranger(t, srv).store("jc.dead.test", letter)
	l, err := b.DeadLetter(t.Context(), id)
	if err != nil || l.Call == nil || l.Call.Args != c.Args {
		t.Fatalf("%.200v, %v", l.Call, err)
	}
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
	if r, err := b.Retry(t.Context(), l, patience); err != nil || !r.OK || r.Size != int64(len(c.Args)) {
		t.Errorf("%.200v, %v", r, err)
	}
}

// TestB15LargeTask: a run is started with more than a message takes.
func TestB15LargeTask(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	tasks := make(chan int, 1)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		done <- b.Host(ctx, bus.Hosting{Host: hostFunc(func(m schema.RunMessage) { tasks <- len(m.Call.Args) })})
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	args := schema.JSONText(`{"task":"` + text(600<<10) + `"}`)
	if err := b.StartRun(t.Context(), &schema.Call{Run: schema.NewID(), Tool: "helper", Args: args}); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-tasks:
		if n != len(args) {
			t.Errorf("%d bytes, want %d", n, len(args))
		}
	case <-time.After(patience):
		t.Fatal("the run did not come")
	}
}

type hostFunc func(schema.RunMessage)

func (f hostFunc) Take(_ context.Context, m schema.RunMessage) schema.Taken {
	f(m)
	return schema.Taken{Act: schema.TakenDone}
}

// TestB15LargeCallThatNobodyTakes: what is large is cancelled and times out like anything else.
func TestB15LargeCallThatNobodyTakes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv, func(c *bus.Config) { c.Grace = 100 * time.Millisecond })
	b.Catalog()
	ended, end := context.WithCancel(t.Context())
	end()
	for want, ctx := range map[schema.ErrorType]context.Context{schema.NoWorker: t.Context(), schema.Cancelled: ended} {
		for _, tool := range []string{"echo", "echo" + runOnce} {
			c := call(schema.NewID(), tool, 0)
			c.Args = schema.JSONText(`{"x":"` + text(600<<10) + `"}`)
			r, err := b.Dispatch(ctx, c, "nobody", 200*time.Millisecond)
			if err != nil || r.OK || r.Error.Type != want {
				t.Errorf("%s: %.200v, %v; want %s", tool, r, err, want)
			}
		}
	}
}

// TestB15BlobByItsDigest: whoever knows nothing but the digest that a result names finds the output, and is read when
// it stored one under it.
func TestB15BlobByItsDigest(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	large := func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
		return c.Done(text(300 << 10)), nil
	}
	serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"large": large}})
	r := settled(t, b, call("r-1", "large", 0))
	_, store := bucket(t, srv, "test")
	if got, err := store.GetString(t.Context(), r.Blob); err != nil || got != text(300<<10) {
		t.Errorf("%d bytes of %s, %v", len(got), r.Blob, err)
	}
	whole := text(400 << 10)
	foreign := schema.Digest([]byte(whole))
	if _, err := store.PutString(t.Context(), foreign, whole); err != nil {
		t.Fatal(err)
	}
	c := call("r-2", "large", 0)
	recorded := &schema.Result{Run: c.Run, Turn: c.Turn, OK: true, Output: "head", Blob: foreign, Size: int64(len(whole))}
	put(t, b, c.Run, c.ResultKey("test"), recorded)
	got, from, err := b.ReadOutput(t.Context(), "test", recorded, 0, 50)
	if err != nil || from != 0 || got != whole[:50] {
		t.Errorf("%q at %d, %v", got, from, err)
	}
}
