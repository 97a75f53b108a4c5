package schema

import "context"

type progressKey struct{}

// WithProgress returns a context whose Progress reports go to sink. The sink must not block and may be called from
// several goroutines.
func WithProgress(ctx context.Context, sink func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, sink)
}

// Progress reports what a running call has to say before its result: a line of output, a state. It is best effort;
// without a sink it does nothing.
func Progress(ctx context.Context, text string) {
	if sink, ok := ctx.Value(progressKey{}).(func(string)); ok {
		sink(text)
	}
}

type deliveryKey struct{}

// WithDelivery returns a context whose Delivery is n.
func WithDelivery(ctx context.Context, n uint64) context.Context {
	return context.WithValue(ctx, deliveryKey{}, n)
}

// Delivery returns which delivery of its call is running, from 1; 0 when nobody delivered it. It grows with every
// attempt, but not only with attempts: a worker that gave the call back counts too.
func Delivery(ctx context.Context) uint64 {
	n, _ := ctx.Value(deliveryKey{}).(uint64)
	return n
}
