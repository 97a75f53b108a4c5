package loop_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// What a hook refuses reaches no model, now or later.
func TestPromptBlocked(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]func(context.Context, string) loop.PromptDecision{
		"block": func(_ context.Context, text string) loop.PromptDecision {
			return loop.PromptDecision{Block: strings.Contains(text, "secret"), Reason: "no secrets"}
		},
		"panic": func(_ context.Context, text string) loop.PromptDecision {
			if strings.Contains(text, "secret") {
				panic("oh")
			}
			return loop.PromptDecision{}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(looptest.Text("hello"))
			r.cfg.Hooks.Prompt = hook
			run := r.start(t)
			answer, err := run.Say(t.Context(), "the secret is 42")
			if err != nil || answer.Reason != schema.ReasonBlocked || !strings.HasPrefix(answer.Text, "PROMPT_BLOCKED: ") || answer.Turn != 0 {
				t.Errorf("answer %+v, %v", answer, err)
			}
			if answer, err = run.Say(t.Context(), "hi"); err != nil || answer.Text != "hello" {
				t.Errorf("answer %+v, %v", answer, err)
			}
			for _, m := range run.Messages() {
				if strings.Contains(m.Text, "42") {
					t.Errorf("the memory holds %q", m.Text)
				}
			}
			if err := run.Close(t.Context()); err != nil {
				t.Error(err)
			}
			r.checkEvents(t)
		})
	}
}

func TestPromptModified(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Text("hello"))
	r.cfg.Hooks.Prompt = func(_ context.Context, text string) loop.PromptDecision {
		return loop.PromptDecision{Text: strings.ReplaceAll(text, "42", "[number]")}
	}
	run := r.start(t)
	if _, err := run.Say(t.Context(), "it is 42"); err != nil {
		t.Fatal(err)
	}
	if got := run.State().Say(1).Text; got != "it is [number]" {
		t.Errorf("recorded %q", got)
	}
}

func TestRequestHook(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Text("hello"))
	r.cfg.Hooks.Request = func(_ context.Context, req *model.Request) error {
		req.Messages = append(req.Messages, schema.Message{Role: schema.RoleSystem, Text: "be kind"})
		return nil
	}
	_, run := r.run(t)
	asked := r.model.Requests()[0].Messages
	if last := asked[len(asked)-1].Text; last != "be kind" {
		t.Errorf("asked with %q", last)
	}
	for _, m := range run.Messages() {
		if m.Text == "be kind" {
			t.Error("the memory was changed")
		}
	}
	for name, hook := range map[string]func(context.Context, *model.Request) error{
		"error": func(context.Context, *model.Request) error { return errors.New("no") },
		"panic": func(context.Context, *model.Request) error { panic("oh") },
	} {
		r := newRig(looptest.Text("hello"))
		r.cfg.Hooks.Request = hook
		if answer, _ := r.run(t); answer.Reason != schema.ReasonModel || len(r.model.Requests()) > 0 {
			t.Errorf("%s: answer %+v", name, answer)
		}
	}
}

// ears note what a listener hears.
type ears struct {
	mu    sync.Mutex
	heard []string
	broke bool
}

func (e *ears) Start(_ context.Context, c *schema.Call) { e.note("start " + c.Tool) }

func (e *ears) Complete(_ context.Context, c *schema.Call, r schema.Result, d time.Duration) {
	ok := "failed"
	if r.OK {
		ok = "ok"
	}
	if d < 0 {
		ok = "early"
	}
	e.note(ok + " " + c.Tool)
}

func (e *ears) note(s string) {
	e.mu.Lock()
	e.heard = append(e.heard, s)
	e.mu.Unlock()
	if e.broke {
		panic("ears")
	}
}

// The listener hears of what runs, and of nothing that was stopped before.
func TestListener(t *testing.T) {
	t.Parallel()
	for _, broke := range []bool{false, true} {
		r := newRig(calls("ok", "nobody", "fail", "panics", "echo"), looptest.Text("done"))
		r.cfg.Guards = []loop.Guard{careful{}, decide(func(c *schema.TurnCall) schema.Decision {
			if c.Tool == "echo" {
				return schema.Decision{Action: schema.ActionDeny, Text: "no"}
			}
			return schema.Decision{}
		})}
		e := &ears{broke: broke}
		r.cfg.Listener = e
		answer, _ := r.run(t)
		want := []string{"start ok", "ok ok", "start fail", "failed fail", "start panics", "failed panics"}
		if diff := cmp.Diff(want, e.heard); diff != "" || answer.Text != "done" {
			t.Errorf("answer %+v, %s", answer, diff)
		}
	}
}

// meddler tries to change what it hears of.
type meddler struct{}

func (meddler) Start(_ context.Context, c *schema.Call) { c.Tool, c.Args = "fail", `{"x":1}` }
func (meddler) Complete(_ context.Context, c *schema.Call, r schema.Result, _ time.Duration) {
	c.Tool, r.Output = "other", "changed"
	if r.Error != nil {
		r.Error.Message, r.Error.Type = "nothing", schema.Denied
	}
}

func TestListenerOnlyObserves(t *testing.T) {
	t.Parallel()
	r := newRig(looptest.Calls(schema.RawCall{Name: "echo", Args: `{"a":1}`}, schema.RawCall{Name: "fail"}), looptest.Text("done"))
	r.cfg.Listener = meddler{}
	_, run := r.run(t)
	if got := texts(results(run)); got[0] != `{"a":1}` || !strings.Contains(got[1], "exit status 1") {
		t.Errorf("the model reads %q", got)
	}
	if e := run.State().Result(1, 1).Error; e.Type != schema.ToolFailed {
		t.Errorf("error %+v", e)
	}
}

// A failure ends the run only where the agent or the tool says so, after all siblings.
func TestAbort(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls []string
		on    []string
		want  schema.Reason
	}{
		"not by itself":    {[]string{"fail", "ok"}, nil, schema.ReasonDone},
		"abort_on":         {[]string{"fail", "ok"}, []string{"fail"}, schema.ReasonAborted},
		"success":          {[]string{"ok"}, []string{"ok"}, schema.ReasonDone},
		"invalid is not":   {[]string{"nobody"}, []string{"*"}, schema.ReasonDone},
		"the tool says so": {[]string{"abort", "ok"}, nil, schema.ReasonAborted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(calls(c.calls...), looptest.Text("done"))
			r.cfg.Agent.Governance = &schema.Governance{AbortOn: c.on}
			r.cfg.Agent.Parallel.Calls = true
			r.bus.Alter = func(res *schema.Result, call *schema.Call) { res.Aborts = call.Tool == "abort" && !res.OK }
			r.tool("abort", func(context.Context, *schema.Call) (string, error) { return "", errors.New("stop all") })
			answer, run := r.run(t)
			if answer.Reason != c.want || len(results(run)) != len(c.calls) {
				t.Errorf("answer %+v after %v", answer, texts(results(run)))
			}
		})
	}
}

// The authority of the principal has the last word, for what a person approves too.
func TestAuthority(t *testing.T) {
	t.Parallel()
	r := newRig(calls("ok", "echo"), looptest.Text("done"))
	r.cfg.Principal.Scopes = []string{"tool:echo"}
	r.cfg.Guards = []loop.Guard{careful{tool: "ok"}}
	_, run := r.run(t)
	want := []string{`DENIED: the tool "ok" is outside the authority of this run`, "{}"}
	if diff := cmp.Diff(want, texts(results(run))); diff != "" {
		t.Error(diff)
	}
	if _, k := run.State().Ask(1, 0); k != 0 {
		t.Error("a person was asked about what is not allowed")
	}
}

// The agent's file can make a tool stricter than it says of itself.
func TestToolSettings(t *testing.T) {
	t.Parallel()
	r := newRig(calls("idem"), looptest.Text("done"))
	r.bus.Tool(schema.Tool{Name: "idem", Idempotent: true, TimeoutMS: 5000}, func(context.Context, *schema.Call) (string, error) { return "", nil })
	r.cfg.Agent.Governance = &schema.Governance{Tools: []schema.ToolSetting{{Ref: "id*", Once: true, TimeoutMS: 1000}}}
	_, run := r.run(t)
	if c := run.State().Turn(1).Calls[0]; c.Idempotent || c.TimeoutMS != 1000 {
		t.Errorf("call %+v", c)
	}
}

// An orchestrator without the code that decided about a run leaves it to others.
func TestOtherCodeChain(t *testing.T) {
	t.Parallel()
	h := newHosting(nil)
	hosted := func(chain string) schema.Taken {
		host, err := loop.NewHost(loop.HostConfig{
			Config: loop.Config{Bus: h.bus, Principal: somebody(), Chain: chain},
			Find:   func(string) (schema.AgentSpec, bool) { return h.cfg.Agent, true },
			Equip:  func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) { return h, h.bus, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		return host.Take(t.Context(), wake("r"))
	}
	open := &schema.Open{Kind: schema.RunAgent, Agent: &h.cfg.Agent, Chain: "v1", Principal: somebody()}
	if _, err := h.bus.Append(t.Context(), "r", schema.OpenKey(), open, schema.Key{}); err != nil {
		t.Fatal(err)
	}
	for _, chain := range []string{"", "v2"} {
		if got := hosted(chain); got.Act != schema.TakenCannot {
			t.Errorf("chain %q: %+v", chain, got)
		}
	}
	if got := hosted("v1"); got.Act != schema.TakenDone {
		t.Errorf("the same chain: %+v", got)
	}
}

// A message that comes in the middle of an exchange is looked at too, before any model reads it.
func TestPromptBlockedMeanwhile(t *testing.T) {
	t.Parallel()
	r := newRig(calls("tell"), looptest.Text("first"), looptest.Text("second"))
	r.cfg.Hooks.Prompt = func(_ context.Context, text string) loop.PromptDecision {
		return loop.PromptDecision{Block: strings.Contains(text, "secret"), Reason: "no secrets"}
	}
	run := new(loop.Run)
	r.tool("tell", func(ctx context.Context, _ *schema.Call) (string, error) {
		return "told", run.Tell(ctx, "a secret: 42")
	})
	run = r.start(t)
	answer, err := run.Say(t.Context(), "go")
	if err != nil || answer.Text != "first" {
		t.Fatalf("answer %+v, %v", answer, err)
	}
	for _, m := range r.model.Requests()[1].Messages {
		if strings.Contains(m.Text, "42") {
			t.Errorf("the model reads %q", m.Text)
		}
	}
	if answer, err = run.Work(t.Context()); err != nil || answer.Reason != schema.ReasonBlocked {
		t.Errorf("answer %+v, %v", answer, err)
	}
	if answer, err = run.Say(t.Context(), "hi"); err != nil || answer.Text != "second" {
		t.Errorf("answer %+v, %v", answer, err)
	}
}

// The authority in an agent's file bounds every run of it.
func TestAuthorityOfTheFile(t *testing.T) {
	t.Parallel()
	r := newRig(calls("ok"), looptest.Text("done"))
	r.cfg.Agent.Governance = &schema.Governance{Authority: []string{"effect:read"}}
	_, run := r.run(t)
	want := []string{`DENIED: the effect "destructive" of the tool "ok" is outside the authority of this run`}
	if diff := cmp.Diff(want, texts(results(run))); diff != "" {
		t.Error(diff)
	}
}
