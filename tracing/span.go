package tracing

import (
	"context"
	"strconv"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

// unsampled is the span of whatever is not sampled. It has no state and is never written to.
var unsampled trace.Span = noop.Span{}

// Tracer returns Jetcrew's tracer of the provider that is set up in this process.
func Tracer() trace.Tracer {
	return otel.Tracer(Scope, trace.WithSchemaURL(semconv.SchemaURL))
}

// Sampled tells whether ctx belongs to a trace that is recorded.
func Sampled(ctx context.Context) bool {
	return trace.SpanContextFromContext(ctx).IsSampled()
}

// Agent says what an agent's span is about. Name falls back to ID.
type Agent struct {
	ID, Name        string
	Run             string // id of the run
	Provider, Model string
}

// StartAgent starts "invoke_agent {name}", the span of one exchange. It is the root of a run's trace: it alone asks the
// tracer, and so the sampler, whatever ctx is. When another process carries a run on, ctx is FromTraceMap of the run's
// first context, so that a run stays one trace.
func StartAgent(ctx context.Context, a Agent) (context.Context, trace.Span) {
	name := a.Name
	if name == "" {
		name = a.ID
	}
	return start(ctx, SpanAgent, name, trace.SpanKindInternal,
		semconv.GenAIOperationNameInvokeAgent,
		AttrProvider.String(a.Provider),
		AttrRequestModel.String(a.Model),
		AttrAgentID.String(a.ID),
		AttrAgentName.String(name),
		AttrConversation.String(a.Run),
	)
}

// StartTurn starts "turn", the span of one model request and of the calls it asked for. Turns count from 1.
func StartTurn(ctx context.Context, run string, turn int) (context.Context, trace.Span) {
	if !Sampled(ctx) {
		return ctx, unsampled
	}
	return start(ctx, SpanTurn, "", trace.SpanKindInternal, AttrConversation.String(run), AttrTurn.Int(turn))
}

// StartCompaction starts "compact", the span of one compaction of the memory, before or within the model request of a
// turn.
func StartCompaction(ctx context.Context, run string, turn int, strategy string) (context.Context, trace.Span) {
	if !Sampled(ctx) {
		return ctx, unsampled
	}
	return start(ctx, SpanCompact, "", trace.SpanKindInternal, AttrConversation.String(run), AttrTurn.Int(turn), AttrStrategy.String(strategy))
}

// Chat says which model is asked.
type Chat struct {
	Provider, Model string
	Run             string
	Stream          bool
}

// StartChat starts "chat {model}", the span of one model request.
func StartChat(ctx context.Context, c Chat) (context.Context, trace.Span) {
	if !Sampled(ctx) {
		return ctx, unsampled
	}
	return start(ctx, SpanChat, c.Model, trace.SpanKindClient,
		semconv.GenAIOperationNameChat,
		AttrProvider.String(c.Provider),
		AttrRequestModel.String(c.Model),
		AttrRequestStream.Bool(c.Stream),
		AttrConversation.String(c.Run),
	)
}

// Tool says which call a tool span is about.
type Tool struct {
	Name         string
	Unregistered bool   // the agent has no such tool: the span is named "execute_tool other"
	Label        string // the call's label, as the model knows it
	Run, Queue   string
	Turn, Index  int
}

// StartTool starts "execute_tool {tool}", the span of one call from its decision to its result. Arguments and outputs
// are not recorded.
func StartTool(ctx context.Context, t Tool) (context.Context, trace.Span) {
	if !Sampled(ctx) {
		return ctx, unsampled
	}
	name := t.Name
	if t.Unregistered {
		name = NameOther
	}
	return start(ctx, SpanTool, name, trace.SpanKindInternal,
		semconv.GenAIOperationNameExecuteTool,
		AttrToolName.String(cut(t.Name, maxName)),
		AttrToolType.String(toolTypeFunction),
		AttrToolCallID.String(t.Label),
		AttrConversation.String(t.Run),
		AttrTurn.Int(t.Turn),
		AttrIndex.Int(t.Index),
		AttrQueue.String(t.Queue),
	)
}

// start asks the tracer. Span names are cut, since a part of them may come from outside.
func start(ctx context.Context, word, rest string, kind trace.SpanKind, attrs ...attribute.KeyValue) (context.Context, trace.Span) {
	name := word
	if rest != "" {
		name += " " + cut(rest, maxName)
	}
	return Tracer().Start(ctx, name, trace.WithSpanKind(kind), trace.WithAttributes(attrs...))
}

// callID identifies a call across its attempts: run/turn.index.
func callID(run string, turn, index int) string {
	return run + "/" + strconv.Itoa(turn) + "." + strconv.Itoa(index)
}
