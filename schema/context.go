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
