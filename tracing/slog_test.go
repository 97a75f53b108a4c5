package tracing

import (
	"context"
	"log/slog"
	"strings"
	"testing"
)

func TestLogHandlerAddsIDs(t *testing.T) {
	t.Parallel()
	const ids = "trace_id=4bf92f3577b34da6a3ce929d0e0e4736 span_id=00f067aa0ba902b7"
	traced := sampledContext(t, "", "")
	for name, tc := range map[string]struct {
		ctx  context.Context
		with func(*slog.Logger) *slog.Logger
		want string
	}{
		"traced":            {traced, func(l *slog.Logger) *slog.Logger { return l }, "k=1 " + ids},
		"not traced":        {context.Background(), func(l *slog.Logger) *slog.Logger { return l }, "k=1"},
		"with attributes":   {traced, func(l *slog.Logger) *slog.Logger { return l.With("a", 1) }, "a=1 k=1 " + ids},
		"outside of groups": {traced, func(l *slog.Logger) *slog.Logger { return l.With("a", 1).WithGroup("g").With("b", 2).WithGroup("") }, "a=1 " + ids + " g.b=2 g.k=1"},
		"group, not traced": {context.Background(), func(l *slog.Logger) *slog.Logger { return l.WithGroup("g") }, "g.k=1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var b strings.Builder
			log := tc.with(slog.New(NewLogHandler(slog.NewTextHandler(&b, nil))))
			log.InfoContext(tc.ctx, "m", "k", 1)
			_, got, _ := strings.Cut(strings.TrimSpace(b.String()), "msg=m ")
			if got != tc.want {
				t.Errorf("got  %s\nwant %s", got, tc.want)
			}
		})
	}
}
