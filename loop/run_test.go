package loop_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func TestNewNamesAllThatIsMissing(t *testing.T) {
	t.Parallel()
	_, err := loop.New(loop.Config{Guards: []loop.Guard{nil}, Instance: "a b"})
	for _, want := range []string{"Agent.ID", "Principal.ID", "Principal.Scopes", "Model", "Journal", "Dispatcher", "guard", "Instance"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not name %s", err, want)
		}
	}
}

func TestStartExistingRun(t *testing.T) {
	t.Parallel()
	r := newRig()
	agent, err := loop.New(r.cfg)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Start(t.Context(), "one"); err != nil {
		t.Fatal(err)
	}
	if _, err := agent.Start(t.Context(), "one"); !errors.Is(err, loop.ErrRunExists) {
		t.Errorf("error %v", err)
	}
	if _, err := agent.Start(t.Context(), "not an id"); err == nil {
		t.Error("a bad id was taken")
	}
}

// TestResumeFoldsTheSame: what another process reads from the facts is what the live run remembers.
func TestResumeFoldsTheSame(t *testing.T) {
	t.Parallel()
	items := &schema.Items{Provider: "p", Data: []byte{1, 2}}
	r := newRig(
		looptest.Answer(model.Response{Text: "let me see", Items: items, Calls: raw("ok", "mute", "nobody", "echo")}),
		looptest.Text("first"), calls("panics"), looptest.Text("second"))
	r.cfg.Agent.Parallel.Calls = true
	r.cfg.Guards = []loop.Guard{redact{}}
	run := r.start(t)
	for _, text := range []string{"one", "two"} {
		if _, err := run.Say(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	facts, err := r.bus.Facts(t.Context(), run.ID(), 0)
	if err != nil {
		t.Fatal(err)
	}
	m := memory.New()
	for _, f := range slices.Backward(facts) {
		if err := m.Apply(f); err != nil {
			t.Error(err)
		}
	}
	if diff := cmp.Diff(run.Messages(), m.Messages()); diff != "" {
		t.Error(diff)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.checkEvents(t)
}

func TestTellAndWork(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Text("both"))
	run := r.start(t)
	for _, text := range []string{"one", "two"} {
		if err := run.Tell(t.Context(), text); err != nil {
			t.Fatal(err)
		}
	}
	if !run.State().Pending() {
		t.Error("nothing is pending")
	}
	answer, err := run.Work(t.Context())
	if err != nil || answer.Text != "both" || answer.Say != 2 || run.State().Pending() {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Errorf("second close: %v", err)
	}
	if err := run.Tell(t.Context(), "late"); !errors.Is(err, loop.ErrClosed) {
		t.Errorf("tell after close: %v", err)
	}
	r.checkEvents(t)
}

// TestSayTakesNextFreeNumber: another writer has taken the number, unheard.
func TestSayTakesNextFreeNumber(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Text("hello to both"))
	r.cfg.Bus = &deafBus{r.bus}
	run := r.start(t)
	r.append(t, run.ID(), schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: "me first", Source: "mail"})
	if _, err := run.Say(t.Context(), "me too"); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"Be brief.", "me first", "me too"}, texts(r.model.Requests()[0].Messages)); diff != "" {
		t.Error(diff)
	}
}

func TestSayHeardInTheMiddleIsInTheNextTurn(t *testing.T) {
	t.Parallel()
	r := newRig(calls("mail"), looptest.Text("seen"))
	var run *loop.Run
	r.tool("mail", func(_ context.Context, c *schema.Call) (string, error) {
		r.append(t, c.Run, schema.SayKey(2), &schema.Say{Role: schema.RoleUser, Text: "also this", Source: "mail:1"})
		return "sent", nil
	})
	run = r.start(t)
	answer, err := run.Say(t.Context(), "go")
	if err != nil || answer.Say != 2 {
		t.Fatalf("answer %+v, %v", answer, err)
	}
	msgs := r.model.Requests()[1].Messages
	if diff := cmp.Diff("also this", msgs[len(msgs)-1].Text); diff != "" {
		t.Error(diff)
	}
}

// TestRunAnswersWhatCameLate: a message that arrives while the answer is written keeps the run open, whether or not
// it is heard before the close.
func TestRunAnswersWhatCameLate(t *testing.T) {
	t.Parallel()
	for _, heard := range []bool{false, true} {
		t.Run(fmt.Sprintf("heard %t", heard), func(t *testing.T) {
			t.Parallel()
			r := newRig(looptest.Text("one"), looptest.Text("two"))
			if !heard {
				r.cfg.Bus = &deafBus{r.bus}
			}
			r.bus.Refuse = func(run string, key schema.Key, _ schema.Encodable) error {
				if key == schema.AnswerKey(1) {
					r.append(t, run, schema.SayKey(2), &schema.Say{Role: schema.RoleUser, Text: "wait"})
				}
				return nil
			}
			agent, err := loop.New(r.cfg)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := agent.Run(t.Context(), "go")
			if err != nil || answer.Text != "two" {
				t.Errorf("answer %+v, %v", answer, err)
			}
			r.checkEvents(t)
		})
	}
}

// TestCloseSaysOnceThatAMessageWaits: the second close means it.
func TestCloseSaysOnceThatAMessageWaits(t *testing.T) {
	t.Parallel()
	r := newRig()
	run := r.start(t)
	if err := run.Tell(t.Context(), "hello?"); err != nil {
		t.Fatal(err)
	}
	if err := run.Close(t.Context()); !errors.Is(err, loop.ErrUnanswered) {
		t.Errorf("first close: %v", err)
	}
	if err := run.Close(t.Context()); err != nil {
		t.Errorf("second close: %v", err)
	}
	r.checkEvents(t)
}

func TestConcurrentSaysAndClose(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig()
		r.cfg.Model = looptest.Always(func(_ context.Context, req *model.Request) (*model.Response, error) {
			time.Sleep(time.Second) // virtual
			return &model.Response{Text: req.Messages[len(req.Messages)-1].Text}, nil
		})
		run := r.start(t)
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				if _, err := run.Say(t.Context(), fmt.Sprint(i)); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if run.State().Pending() {
			t.Error("a message waits")
		}
		for range 4 {
			wg.Go(func() {
				if err := run.Close(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		r.checkEvents(t)
	})
}

func TestModelDeltas(t *testing.T) {
	t.Parallel()
	var late func(model.Delta)
	r := newRig(func(_ context.Context, req *model.Request) (*model.Response, error) {
		late = req.Delta
		req.Delta(model.Delta{Text: "do"})
		req.Delta(model.Delta{Text: "ne"})
		return &model.Response{Text: "done"}, nil
	})
	run := r.start(t)
	if _, err := run.Say(t.Context(), "go"); err != nil {
		t.Fatal(err)
	}
	late(model.Delta{Text: "!"})
	if err := run.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.checkEvents(t)
	if got := r.events.Of(loop.EventModelDelta); len(got) != 2 {
		t.Errorf("deltas %+v", got)
	}
}
