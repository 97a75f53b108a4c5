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
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

func TestA07CutAnswerRunsNoCall(t *testing.T) {
	t.Parallel()
	cut := model.Response{Finish: schema.FinishLength, Calls: []schema.RawCall{
		{ID: "a", Name: "ok"}, {ID: "b", Name: "echo", Args: `{"path":"x.md"}`}, {ID: "c", Name: "echo", Args: `{"path":"y.md","content":"abc`},
	}}
	r := newRig(looptest.Answer(cut), looptest.Text("sorry"))
	_, run := r.run(t)
	if diff := cmp.Diff([]schema.ErrorType{"InvalidArguments", "InvalidArguments", "InvalidArguments"}, errorTypes(run, 1)); diff != "" {
		t.Error(diff)
	}
	for _, m := range results(run) {
		if !strings.Contains(m.Text, "cut by the output limit") || !strings.Contains(m.Text, "smaller") {
			t.Errorf("the model reads %q", m.Text)
		}
	}
	if r.bus.MostUnderWay() != 0 {
		t.Error("a call of a cut answer ran")
	}
}

func TestA07CutAnswerCountsAsRepeated(t *testing.T) {
	t.Parallel()
	cut := looptest.Answer(model.Response{Finish: schema.FinishLength, Calls: []schema.RawCall{{Name: "echo", Args: `{"a":"`}}})
	answer, _ := newRig(cut, cut, cut, looptest.Text("I give up")).run(t)
	if answer.Reason != schema.ReasonRepeat || answer.Text != "I give up" {
		t.Errorf("answer %+v", answer)
	}
}

// TestB15AnswerLargerThanAPayload: a turn is one fact, whatever the model writes.
func TestB15AnswerLargerThanAPayload(t *testing.T) {
	t.Parallel()
	many := func(n int, name string) (calls []schema.RawCall) {
		for i := range n {
			calls = append(calls, schema.RawCall{ID: fmt.Sprintf("call_%d_%s", i, strings.Repeat("x", 50)), Name: name + fmt.Sprint(i), Args: `{"path":"a.txt"}`})
		}
		return calls
	}
	for name, tt := range map[string]struct {
		answer model.Response
		calls  int
		reason schema.Reason
	}{
		"text":               {model.Response{Text: strings.Repeat("é", 33<<20)}, 0, schema.ReasonDone},
		"text and arguments": {model.Response{Text: strings.Repeat("t", 63<<20), Calls: []schema.RawCall{{Name: "echo", Args: `{"v":"` + strings.Repeat("a", 2<<20) + `"}`}}}, 1, schema.ReasonDone},
		"items":              {model.Response{Text: "short", Items: &schema.Items{Provider: "p", Data: make([]byte, 65<<20)}}, 0, schema.ReasonDone},
		"unknown tools":      {model.Response{Calls: many(2500, "no_such_tool_")}, 2500, schema.ReasonDone},
		"far too many calls": {model.Response{Calls: make([]schema.RawCall, 400_000)}, 0, schema.ReasonModel},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRig(looptest.Answer(tt.answer), looptest.Text("done"))
			answer, run := r.run(t)
			if answer.Reason != tt.reason || len(results(run)) != tt.calls || (answer.Error == "") != (tt.reason == schema.ReasonDone) {
				t.Errorf("reason %s (%s), %d results; want %s, %d", answer.Reason, answer.Error, len(results(run)), tt.reason, tt.calls)
			}
			turn := run.State().Turn(1)
			if turn == nil {
				return
			}
			data, err := schema.Encode(turn)
			if err != nil || len(data) > schema.MaxPayload {
				t.Errorf("the turn has %d bytes, %v", len(data), err)
			}
			if len(tt.answer.Text) > schema.MaxPayload && !strings.HasSuffix(turn.Text, "did not fit.]") || !utf8.ValidString(turn.Text) {
				t.Errorf("the text ends with %q", turn.Text[len(turn.Text)-100:])
			}
		})
	}
}

func TestA10DuplicateLabels(t *testing.T) {
	t.Parallel()
	echo := func(id, v string) schema.RawCall {
		return schema.RawCall{ID: id, Name: "echo", Args: `{"v":"` + v + `"}`}
	}
	r := newRig(looptest.Calls(echo("grep:3", "a"), echo("grep:3", "b"), echo("", "c"), echo(" ", "d")), looptest.Text("done"))
	r.cfg.Agent.Parallel.Calls = true
	_, run := r.run(t)
	msgs := r.model.Requests()[1].Messages
	called := msgs[len(msgs)-5].Calls
	labels := map[string]bool{}
	for i, m := range msgs[len(msgs)-4:] {
		if m.Label != called[i].Label || m.Text != called[i].Args {
			t.Errorf("result %d: label %q text %q, call has %q %q", i, m.Label, m.Text, called[i].Label, called[i].Args)
		}
		labels[m.Label] = true
	}
	if len(labels) != 4 || len(results(run)) != 4 {
		t.Errorf("labels %v", labels)
	}
}

func TestA13FailingSiblingsHaveResults(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(calls("ok", "mute", "hang", "gone"), looptest.Text("done"))
		r.tool("gone", func(context.Context, *schema.Call) (string, error) {
			return "", &schema.Error{Type: schema.Cancelled}
		})
		r.cfg.Agent.Parallel = schema.Parallel{Calls: true, TimeoutMS: 1000}
		answer, run := r.run(t)
		for i, m := range results(run) {
			if m.Label != fmt.Sprintf("tool_step_1_%d", i) || m.Name == "" || m.Text == "" {
				t.Errorf("result %d: %+v", i, m)
			}
		}
		if diff := cmp.Diff([]schema.ErrorType{"", "ToolFailed", "Timeout", "Cancelled"}, errorTypes(run, 1)); diff != "" {
			t.Error(diff)
		}
		if open := countOpen(r.model.Requests()[1].Messages); answer.Text != "done" || open != 0 {
			t.Errorf("answer %+v, %d results were missing", answer, open)
		}
	})
}

// TestA14EveryOutcomeInOneRound: whatever became of the six calls of a turn, the next request holds six results behind
// it, in call order.
func TestA14EveryOutcomeInOneRound(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		outcomes := []string{"ok", "fail", "late", "blocked", "fail", "ok"}
		asked := make([]schema.RawCall, len(outcomes))
		for i, o := range outcomes {
			asked[i] = schema.RawCall{Name: "same", Args: fmt.Sprintf(`{"as":%q,"i":%d}`, o, i)}
		}
		r := newRig(looptest.Calls(asked...), looptest.Text("done"))
		r.tool("same", func(ctx context.Context, c *schema.Call) (string, error) {
			switch {
			case strings.Contains(string(c.Args), "fail"):
				return "", errors.New("exit status 1")
			case strings.Contains(string(c.Args), "late"):
				<-ctx.Done()
				return "", ctx.Err()
			}
			return string(c.Args), nil
		})
		r.cfg.Agent.Parallel = schema.Parallel{Calls: true, TimeoutMS: 1000}
		r.cfg.Guards = []loop.Guard{decide(func(c *schema.TurnCall) schema.Decision {
			if strings.Contains(string(c.Args), "blocked") {
				return schema.Decision{Action: schema.ActionDeny, Text: "not today"}
			}
			return schema.Decision{}
		})}
		r.run(t)
		msgs := r.model.Requests()[1].Messages
		starts := []string{`{"as":"ok","i":0}`, "TOOL_ERROR: ", "TOOL_ERROR: ", "DENIED: not today", "TOOL_ERROR: ", `{"as":"ok","i":5}`}
		if len(msgs) != 3+len(starts) || len(msgs[2].Calls) != len(starts) {
			t.Fatalf("messages %+v", msgs)
		}
		for i, want := range starts {
			m := msgs[3+i]
			if m.Role != schema.RoleTool || m.Label != msgs[2].Calls[i].Label || !strings.HasPrefix(m.Text, want) {
				t.Errorf("message %d: %+v, want the result of call %d, %q", 3+i, m, i, want)
			}
		}
	})
}

func TestA15InventedTools(t *testing.T) {
	t.Parallel()
	names := []string{"generic_command", "python", "reed file!", "", strings.Repeat("x", 5000)}
	r := newRig(calls(names...), looptest.Text("done"))
	answer, run := r.run(t)
	if answer.Reason != schema.ReasonDone {
		t.Errorf("reason %s", answer.Reason)
	}
	for i, m := range results(run) {
		if !strings.HasPrefix(m.Text, "TOOL_ERROR: ") || len(m.Text) > 4096 || m.Name == "" {
			t.Errorf("call of %.20q: %d bytes, name %.20q: %.200s", names[i], len(m.Text), m.Name, m.Text)
		}
	}
	for _, key := range r.bus.Keys(run.ID()) {
		if strings.HasPrefix(key, "result.") && !strings.HasSuffix(key, ".none") {
			t.Errorf("fact %s", key)
		}
	}
}

func TestA16NamesAreRepaired(t *testing.T) {
	t.Parallel()
	r := newRig(calls("functions.ok", "OK", " ok\n", "default_api:ok"), looptest.Text("done"))
	_, run := r.run(t)
	for i, c := range run.State().Turn(1).Calls {
		if c.Tool != "ok" || !run.State().Result(1, i).OK {
			t.Errorf("call %d: %+v", i, c)
		}
	}
}

func TestA16UnknownToolThreeTimes(t *testing.T) {
	t.Parallel()
	bad := func(args string) looptest.Step {
		return looptest.Calls(schema.RawCall{Name: "nothing_like_it", Args: args})
	}
	answer, _ := newRig(bad(`{"a":1}`), bad(`{"a":2}`), bad(`{"a":3}`), looptest.Text("no such tool")).run(t)
	if answer.Reason != schema.ReasonRepeat || !strings.Contains(answer.Error, "nothing_like_it") {
		t.Errorf("answer %+v", answer)
	}
}

func TestA25AllCallsRun(t *testing.T) {
	t.Parallel()
	for _, parallel := range []bool{false, true} {
		r := newRig(calls("ok", "echo", "ok"), looptest.Text("done"))
		r.cfg.Agent.Parallel.Calls = parallel
		_, run := r.run(t)
		if diff := cmp.Diff([]string{"fine", "{}", "fine"}, texts(results(run))); diff != "" {
			t.Errorf("parallel %t: %s", parallel, diff)
		}
	}
}

func TestD03FailureIsolates(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := newRig(calls("ok", "fail", "hang", "panics", "ok"), looptest.Text("done"))
		r.cfg.Agent.Parallel = schema.Parallel{Calls: true, TimeoutMS: 2000}
		_, run := r.run(t)
		if diff := cmp.Diff([]schema.ErrorType{"", "ToolFailed", "Timeout", "Panic", ""}, errorTypes(run, 1)); diff != "" {
			t.Error(diff)
		}
	})
}

func TestD06HungToolEndsByDefault(t *testing.T) {
	t.Parallel()
	for name, timeout := range map[string]int64{"tool's own timeout": 5000, "no timeout at all": 0} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := newRig(calls("stuck"), looptest.Text("it hung"))
				r.bus.Tool(schema.Tool{Name: "stuck", TimeoutMS: timeout}, func(ctx context.Context, _ *schema.Call) (string, error) {
					<-ctx.Done()
					return "", ctx.Err()
				})
				r.cfg.Agent.Limits = schema.Limits{}
				answer, run := r.run(t)
				if got := errorTypes(run, 1)[0]; got != schema.Timeout || answer.Text != "it hung" {
					t.Errorf("error type %s, answer %+v", got, answer)
				}
			})
		})
	}
}

// TestD34ManyRunsShareOneAgent runs 50 exchanges at once, each with 16 parallel calls.
func TestD34ManyRunsShareOneAgent(t *testing.T) {
	t.Parallel()
	r := newRig()
	names := slices.Concat(slices.Repeat([]string{"echo"}, 8), slices.Repeat([]string{"ok"}, 8))
	r.cfg.Model = stepModel(func(req *model.Request) *model.Response {
		if req.Turn > 3 {
			return &model.Response{Text: "done"}
		}
		if open := countOpen(req.Messages); open != 0 || len(req.Messages) != 2+17*(req.Turn-1) {
			t.Errorf("turn %d asks with %d messages, %d results are missing", req.Turn, len(req.Messages), open)
		}
		list := raw(names...)
		for i := range list {
			list[i].Args = fmt.Sprintf(`{"turn":%d,"i":%d}`, req.Turn, i)
		}
		return &model.Response{Calls: list}
	})
	r.cfg.Events = nil
	r.cfg.Agent.Parallel.Calls = true
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			run := r.start(t)
			if answer, err := run.Say(t.Context(), "go"); err != nil || answer.Text != "done" {
				t.Errorf("answer %+v, %v", answer, err)
			}
			if err := run.Close(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}

// stepModel answers by a function and is not recorded.
type stepModel func(*model.Request) *model.Response

func (m stepModel) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	return m(req), nil
}

// countOpen returns how many calls have no result directly behind them, in call order.
func countOpen(msgs []schema.Message) int {
	var want []string
	for _, m := range msgs {
		switch {
		case m.Role == schema.RoleTool && len(want) > 0 && want[0] == m.Label:
			want = want[1:]
		case m.Role == schema.RoleAssistant:
			for _, c := range m.Calls {
				want = append(want, c.Label)
			}
		}
	}
	return len(want)
}

func TestD36RepeatedCalls(t *testing.T) {
	t.Parallel()
	always := func(f func(turn int) schema.RawCall) looptest.Step {
		return func(_ context.Context, req *model.Request) (*model.Response, error) {
			if len(req.Tools) == 0 {
				return &model.Response{Text: "this is what I have"}, nil
			}
			return &model.Response{Calls: []schema.RawCall{f(req.Turn)}}, nil
		}
	}
	tests := []struct {
		name   string
		call   func(turn int) schema.RawCall
		reason schema.Reason
		turns  int // with the last one
	}{
		{"D36 one identical failing call", func(int) schema.RawCall { return schema.RawCall{Name: "fail"} }, schema.ReasonRepeat, 4},
		{"D36 one identical invalid call", func(int) schema.RawCall { return schema.RawCall{Name: "ok", Args: "[]"} }, schema.ReasonRepeat, 4},
		{"D36 two alternate", func(n int) schema.RawCall { return raw("ok", "fail")[n%2] }, schema.ReasonRepeat, 6},
		{"D36 slightly varied", func(n int) schema.RawCall {
			return schema.RawCall{Name: "echo", Args: fmt.Sprintf(`{"n":%d}`, n)}
		}, schema.ReasonMaxSteps, 21},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			r := newRig()
			r.cfg.Model = looptest.Always(always(tt.call))
			answer, run := r.run(t)
			if answer.Reason != tt.reason || answer.Text != "this is what I have" || run.State().Turns() != tt.turns {
				t.Errorf("answer %+v after %d turns", answer, run.State().Turns())
			}
		})
	}
}

func TestD36SameCallOtherResultIsNoRepeat(t *testing.T) {
	t.Parallel()
	var n int
	r := newRig(calls("count"), calls("count"), calls("count"), calls("count"), looptest.Text("counted"))
	r.tool("count", func(context.Context, *schema.Call) (string, error) {
		n++
		return time.Duration(n).String(), nil
	})
	if answer, _ := r.run(t); answer.Reason != schema.ReasonDone {
		t.Errorf("answer %+v", answer)
	}
}
