package tracing

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
)

// Message says which message of the bus a span is about. Template is its subject with names for what varies, such as
// "jc.work.{queue}.{lane}"; Subject is the real one.
type Message struct {
	Template, Subject string
	Run, Queue        string
	Turn, Index       int
	Size              int // payload in bytes
}

// StartPublish starts "publish {template}", the span of sending m. Inject the returned context into m's headers.
func StartPublish(ctx context.Context, m Message) (context.Context, trace.Span) {
	if !Sampled(ctx) {
		return ctx, unsampled
	}
	return start(ctx, SpanPublish, m.Template, trace.SpanKindProducer, m.attributes(SpanPublish, operationTypeSend)...)
}

// Delivery is a message as a worker got it.
type Delivery struct {
	Message
	Consumer string // the durable consumer, shared by the workers of a queue
	Instance string // the worker's process
	Number   int    // which delivery of the message this is, from 1
}

// StartProcess starts "process {template}", the span of working on one delivery. ctx holds the context that Extract
// found in the message's headers, and the span is its child: messages come one by one, and one trace shows the run. A
// redelivery also links to that context and carries its number. If the message had no context or an unsampled one,
// there is no span.
func StartProcess(ctx context.Context, d Delivery) (context.Context, trace.Span) {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsSampled() {
		return ctx, unsampled
	}
	attrs := append(d.attributes(SpanProcess, operationTypeWork),
		AttrConsumerGroup.String(d.Consumer),
		AttrClientID.String(d.Instance),
		AttrDelivery.Int(d.Number),
	)
	ctx, span := start(ctx, SpanProcess, d.Template, trace.SpanKindConsumer, attrs...)
	if d.Number > 1 {
		span.AddLink(trace.Link{SpanContext: sc, Attributes: []attribute.KeyValue{AttrDelivery.Int(d.Number)}})
	}
	return ctx, span
}

func (m *Message) attributes(operation, operationType string) []attribute.KeyValue {
	return []attribute.KeyValue{
		AttrMessaging.String(SystemNATS),
		AttrMessagingOp.String(operation),
		AttrMessagingType.String(operationType),
		AttrTemplate.String(m.Template),
		AttrDestination.String(m.Subject),
		AttrMessageID.String(callID(m.Run, m.Turn, m.Index)),
		AttrMessageRun.String(m.Run),
		AttrMessageSize.Int(m.Size),
		AttrQueue.String(m.Queue),
		AttrTurn.Int(m.Turn),
		AttrIndex.Int(m.Index),
	}
}
