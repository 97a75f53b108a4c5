package tracing

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

var workMessage = Message{
	Template: "jc.work.{queue}.{lane}", Subject: "jc.work.shell.0",
	Run: "r-1", Queue: "shell", Turn: 2, Index: 1, Size: 300,
}

// The hop: an orchestrator publishes, a worker in another process goes on, the result comes back.
func TestE01OneTraceAcrossTheHop(t *testing.T) {
	t.Parallel()
	ctx, root := StartAgent(context.Background(), Agent{ID: "a", Run: "r-1"})
	turn, turnSpan := StartTurn(ctx, "r-1", 2)
	tool, toolSpan := StartTool(turn, Tool{Name: "bash", Run: "r-1", Turn: 2, Index: 1})
	pub, pubSpan := StartPublish(tool, workMessage)
	header := map[string][]string{"Jc-Deadline": {"1"}}
	Inject(pub, header)
	End(pubSpan, nil)

	worker := Extract(context.Background(), header)
	worker, process := StartProcess(worker, Delivery{Message: workMessage, Consumer: "shell", Instance: "w-1", Number: 1})
	back := map[string][]string{}
	Inject(worker, back)
	End(process, nil)
	End(toolSpan, nil)
	End(turnSpan, nil)
	End(root, nil)

	spans := spansOf(root.SpanContext().TraceID())
	parents := map[string]string{
		"turn": "invoke_agent a", "execute_tool bash": "turn",
		"publish jc.work.{queue}.{lane}": "execute_tool bash",
		"process jc.work.{queue}.{lane}": "publish jc.work.{queue}.{lane}",
	}
	for name, parent := range parents {
		got, want := named(t, spans, name).Parent.SpanID(), named(t, spans, parent).SpanContext.SpanID()
		if got != want {
			t.Errorf("parent of %q = %s, want %q (%s)", name, got, parent, want)
		}
	}
	if len(named(t, spans, "process jc.work.{queue}.{lane}").Links) != 0 {
		t.Error("a first delivery has links")
	}
	if got := trace.SpanContextFromContext(Extract(context.Background(), back)).TraceID(); got != root.SpanContext().TraceID() {
		t.Errorf("trace of the result = %s, want %s", got, root.SpanContext().TraceID())
	}
}

func TestE01RedeliveryIsLinkedAndNumbered(t *testing.T) {
	t.Parallel()
	ctx, root := StartAgent(context.Background(), Agent{ID: "a"})
	_, span := StartProcess(ctx, Delivery{Message: workMessage, Number: 3})
	End(span, nil)
	End(root, nil)
	got := named(t, spansOf(root.SpanContext().TraceID()), "process jc.work.{queue}.{lane}")
	if len(got.Links) != 1 || got.Links[0].SpanContext.SpanID() != root.SpanContext().SpanID() {
		t.Fatalf("links = %v, want one to %s", got.Links, root.SpanContext().SpanID())
	}
	if v := values(got.Attributes)[string(AttrDelivery)]; v != "3" {
		t.Errorf("%s = %q, want 3", AttrDelivery, v)
	}
}

func TestE02ChildSpansHangUnderTheirOwnCall(t *testing.T) {
	t.Parallel()
	ctx, root := StartAgent(context.Background(), Agent{ID: "a"})
	const calls = 16
	var wg sync.WaitGroup
	for i := range calls {
		header := map[string][]string{}
		pub, span := StartPublish(ctx, workMessage)
		Inject(pub, header)
		End(span, nil)
		wg.Go(func() {
			work, span := StartProcess(Extract(context.Background(), header), Delivery{Message: workMessage, Number: i + 1})
			defer End(span, nil)
			_, own := Tracer().Start(work, fmt.Sprintf("sql %d", i))
			own.End()
		})
	}
	wg.Wait()
	End(root, nil)

	spans := spansOf(root.SpanContext().TraceID())
	attempts := map[trace.SpanID]string{}
	for _, s := range spans {
		if strings.HasPrefix(s.Name, SpanProcess) {
			attempts[s.SpanContext.SpanID()] = values(s.Attributes)[string(AttrDelivery)]
		}
	}
	for i := range calls {
		s := named(t, spans, fmt.Sprintf("sql %d", i))
		if got, want := attempts[s.Parent.SpanID()], fmt.Sprint(i+1); got != want {
			t.Errorf("span %q hangs under delivery %q, want %q", s.Name, got, want)
		}
	}
}

func TestE07NamesComeFromClosedSets(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range 50 {
		run := fmt.Sprintf("run-%d", i)
		ctx, root := StartAgent(context.Background(), Agent{ID: "reviewer", Run: run})
		turn, s1 := StartTurn(ctx, run, i)
		_, s2 := StartChat(turn, Chat{Provider: "openai", Model: "gpt-4o", Run: run})
		tool, s3 := StartTool(turn, Tool{Name: fmt.Sprintf("invented_%d", i), Unregistered: true, Run: run})
		m := workMessage
		m.Run, m.Subject = run, "jc.run."+run+".result.1.0.shell"
		pub, s4 := StartPublish(tool, m)
		_, s5 := StartProcess(pub, Delivery{Message: m, Number: 1})
		for _, s := range []trace.Span{s5, s4, s3, s2, s1, root} {
			End(s, nil)
		}
		for _, s := range spansOf(root.SpanContext().TraceID()) {
			seen[s.Name] = true
		}
	}
	want := map[string]bool{
		"invoke_agent reviewer": true, "turn": true, "chat gpt-4o": true, "execute_tool other": true,
		"publish jc.work.{queue}.{lane}": true, "process jc.work.{queue}.{lane}": true,
	}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("span names (-want +got):\n%s", diff)
	}
}

func TestSpansCarryTheAgreedAttributes(t *testing.T) {
	t.Parallel()
	ctx, root := StartAgent(context.Background(), Agent{ID: "rev", Name: "Reviewer", Run: "r-1", Provider: "openai", Model: "gpt-4o"})
	_, chat := StartChat(ctx, Chat{Provider: "openai", Model: "gpt-4o", Run: "r-1", Stream: true})
	RecordChat(chat, ChatResult{Model: "gpt-4o-2024", Finish: "stop", Input: 5, Output: 6, CacheRead: 7, CacheWrite: 8})
	End(chat, nil)
	_, tool := StartTool(ctx, Tool{Name: "bash", Label: "call_1", Run: "r-1", Queue: "shell", Turn: 2, Index: 1})
	EndFailed(tool, "Timeout", "no answer in 5 s")
	_, work := StartProcess(ctx, Delivery{Message: workMessage, Consumer: "shell", Instance: "w-1", Number: 1})
	End(work, nil)
	End(root, nil)
	spans := spansOf(root.SpanContext().TraceID())

	for name, want := range map[string]map[string]string{
		"invoke_agent Reviewer": {
			"gen_ai.operation.name": "invoke_agent", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
			"gen_ai.agent.id": "rev", "gen_ai.agent.name": "Reviewer", "gen_ai.conversation.id": "r-1",
		},
		"chat gpt-4o": {
			"gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai", "gen_ai.request.model": "gpt-4o",
			"gen_ai.request.stream": "true", "gen_ai.conversation.id": "r-1", "gen_ai.response.model": "gpt-4o-2024",
			"gen_ai.response.finish_reasons": `["stop"]`, "gen_ai.usage.input_tokens": "5", "gen_ai.usage.output_tokens": "6",
			"gen_ai.usage.cache_read.input_tokens": "7", "gen_ai.usage.cache_creation.input_tokens": "8",
		},
		"execute_tool bash": {
			"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "bash", "gen_ai.tool.type": "function",
			"gen_ai.tool.call.id": "call_1", "gen_ai.conversation.id": "r-1", "jetcrew.turn": "2", "jetcrew.index": "1",
			"jetcrew.queue": "shell", "error.type": "Timeout",
		},
		"process jc.work.{queue}.{lane}": {
			"messaging.system": "nats", "messaging.operation.name": "process", "messaging.operation.type": "process",
			"messaging.destination.name": "jc.work.shell.0", "messaging.destination.template": "jc.work.{queue}.{lane}",
			"messaging.message.id": "r-1/2.1", "messaging.message.conversation_id": "r-1", "messaging.message.body.size": "300",
			"messaging.consumer.group.name": "shell", "messaging.client.id": "w-1",
			"jetcrew.queue": "shell", "jetcrew.turn": "2", "jetcrew.index": "1", "jetcrew.delivery": "1",
		},
	} {
		if diff := cmp.Diff(want, values(named(t, spans, name).Attributes)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if s := named(t, spans, "execute_tool bash").Status; s.Code != codes.Error || s.Description != "no answer in 5 s" {
		t.Errorf("status = %v", s)
	}
}

// TestHandoffsAreMarked: the span of a sub-agent's call says whose task it is, and how that ended.
func TestHandoffsAreMarked(t *testing.T) {
	t.Parallel()
	ctx, root := StartAgent(context.Background(), Agent{ID: "a"})
	_, tool := StartTool(ctx, Tool{Name: "subagent_b", Label: "call_1"})
	SetHandoff(tool, Handoff{ID: "handoff:call_1", Subagent: "b", Depth: 1})
	SetHandoff(tool, Handoff{Status: "completed", Attempts: 2})
	End(tool, nil)
	End(root, nil)
	got := values(named(t, spansOf(root.SpanContext().TraceID()), "execute_tool subagent_b").Attributes)
	for key, want := range map[string]string{
		"jetcrew.handoff.id": "handoff:call_1", "jetcrew.handoff.subagent": "b", "jetcrew.handoff.depth": "1", "jetcrew.handoff.status": "completed",
		"jetcrew.handoff.attempts": "2",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
}

type typedError struct{}

func (typedError) Error() string     { return "slow down" }
func (typedError) ErrorType() string { return "RateLimited" }

func TestEndClassifiesErrors(t *testing.T) {
	t.Parallel()
	for want, err := range map[string]error{
		"Timeout":     fmt.Errorf("ask: %w", context.DeadlineExceeded),
		"Cancelled":   context.Canceled,
		"RateLimited": fmt.Errorf("ask: %w", typedError{}),
		"_OTHER":      errors.New("boom"),
	} {
		_, root := StartAgent(context.Background(), Agent{ID: "a"})
		End(root, err)
		got := named(t, spansOf(root.SpanContext().TraceID()), "invoke_agent a")
		if v := values(got.Attributes)["error.type"]; v != want {
			t.Errorf("error.type of %v = %q, want %q", err, v, want)
		}
	}
}

func TestUnsampledWorkStartsNoSpan(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	for name, start := range map[string]func() (context.Context, trace.Span){
		"turn":    func() (context.Context, trace.Span) { return StartTurn(ctx, "r", 1) },
		"chat":    func() (context.Context, trace.Span) { return StartChat(ctx, Chat{}) },
		"tool":    func() (context.Context, trace.Span) { return StartTool(ctx, Tool{}) },
		"publish": func() (context.Context, trace.Span) { return StartPublish(ctx, Message{}) },
		"process": func() (context.Context, trace.Span) { return StartProcess(ctx, Delivery{}) },
	} {
		got, span := start()
		if got != ctx || span.IsRecording() || span.SpanContext().IsValid() {
			t.Errorf("%s: an unsampled context started a span", name)
		}
		End(span, errors.New("ignored"))
		EndFailed(span, "Timeout", "ignored")
	}
}
