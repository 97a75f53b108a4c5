package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/bus/bustest/harness"
	"github.com/jetcrew/jetcrew/loop/agentfile"
	"github.com/jetcrew/jetcrew/schema"
)

// leave has a task of two turns with calls begun in the foreground, kills that process when the model is at the place,
// and removes the agent's file. It returns the run.
func (w *town) leave(command, place string) (run string) {
	w.t.Helper()
	name := schema.NewID() // the run's own is not known yet
	task := "2 " + name
	g := &gate{reached: make(chan struct{}), opened: make(chan struct{})}
	w.mu.Lock()
	w.runs[task], w.gates[name+" "+place] = name, g
	w.mu.Unlock()
	c := w.command(command, "--nats", w.srv.URL(), "--instance", "killed")
	if command == "run" {
		c.Args = append(c.Args, task)
	} else {
		c.Input = task + "\n"
	}
	p := harness.Start(w.t, c)
	w.reached(g)
	p.Signal(os.Kill)
	p.Wait()
	close(g.opened)
	if err := os.Remove(filepath.Join(w.dir, "agent.yaml")); err != nil {
		w.t.Fatal(err)
	}
	for r, err := range w.bus.Runs(w.t.Context()) {
		if err != nil {
			w.t.Fatal(err)
		}
		run = r.ID
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.runs[task] = run
	return run
}

// TestResumeRun: a run whose process was killed goes on in the foreground, wherever it was, with the agent it began with.
func TestResumeRun(t *testing.T) {
	t.Parallel()
	for _, place := range []string{"ask 1", "ask 2", "ask 3"} {
		t.Run(place, func(t *testing.T) {
			t.Parallel()
			w := newTown(t, 0)
			run := w.leave("run", place)
			resume := []string{"run", "--nats", w.srv.URL(), "--instance", "second", "--resume", run[:len(run)-1]}
			r := w.run(t, resume...)
			wantCode(t, r, 0)
			wantInOrder(t, r.Stdout, "answer in turn 3")
			w.check(2, run)
			if owner := w.owner(run); owner != "second" {
				t.Errorf("the run is %s's at the end", owner)
			}
			r = w.run(t, resume...)
			wantCode(t, r, 1)
			wantInOrder(t, r.Stderr, run, "closed")
		})
	}
}

// TestResumeChat: what was left of a conversation is answered first, then what is said next.
func TestResumeChat(t *testing.T) {
	t.Parallel()
	w := newTown(t, 0)
	run := w.leave("chat", "ask 3")
	c := w.command("chat", "--nats", w.srv.URL(), "--resume", run)
	c.Input = "and now?\n"
	r := harness.Run(t, c)
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "answer in turn 3", "answer in turn 4")
	facts := w.closed(run)
	for _, err := range bustest.Check(facts) {
		t.Error(err)
	}
	if end := facts[len(facts)-1]; end.Key != schema.CloseKey() || !w.has(run, schema.AnswerKey(2)) || w.has(run, schema.AnswerKey(3)) {
		t.Errorf("the last fact is %s", end.Key)
	}
}

// TestResumeOfLittle: a run that waits only for its close, and one that nobody ever told anything.
func TestResumeOfLittle(t *testing.T) {
	t.Parallel()
	url := natsServer(t)
	b, err := bus.Connect(t.Context(), bus.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	o := newOffice(t, "replay/RECORDING#task", "tools: []")
	spec, err := agentfile.Load(filepath.Join(o.dir, "agent.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	open := &schema.Open{Kind: schema.RunAgent, Agent: &spec}
	for run, facts := range map[string][]struct {
		key  schema.Key
		fact schema.Encodable
	}{
		"mute": {{schema.OpenKey(), open}},
		"answered": {
			{schema.OpenKey(), open},
			{schema.CtlKey(1), &schema.Ctl{Act: schema.CtlOwn, Instance: "gone"}},
			{schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: "go"}},
			{schema.TurnKey(1), &schema.Turn{N: 1, Own: 1, Say: 1, Text: "All is said."}},
			{schema.AnswerKey(1), &schema.Answer{Text: "All is said.", Reason: schema.ReasonDone, Turn: 1, Say: 1}},
		},
	} {
		for _, f := range facts {
			if _, err := b.Append(t.Context(), run, f.key, f.fact, schema.Key{}); err != nil {
				t.Fatal(err)
			}
		}
	}
	r := o.run(t, "run", "--nats", url, "--resume", "answered")
	wantCode(t, r, 0)
	wantInOrder(t, r.Stdout, "All is said.")
	r = o.run(t, "run", "--nats", url, "--resume", "mute")
	wantCode(t, r, 2)
	wantInOrder(t, r.Stderr, "mute", "what is the task?")
	r = o.run(t, "run", "--nats", url, "--resume", "answered")
	wantCode(t, r, 1)
	wantInOrder(t, r.Stderr, "closed")
	r = o.run(t, "chat", "--nats", url, "--resume", "nobody")
	wantCode(t, r, 1)
	wantInOrder(t, r.Stderr, "no such run", "runs list")
	r = o.run(t, "chat", "--resume", "nobody")
	wantCode(t, r, 2)
	wantInOrder(t, r.Stderr, "--resume", "NATS_URL", "--data")
	r = o.run(t, "run", "--detach", "--nats", url, "--resume", "mute")
	wantCode(t, r, 2)
	wantInOrder(t, r.Stderr, "--detach", "--resume")
}
