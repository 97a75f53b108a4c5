package session

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorkerEnv(t *testing.T) {
	t.Parallel()
	environ := []string{
		"PATH=/bin", "HOME=/home/me", "LC_ALL=C", "OPENAI_API_KEY=k", "ANTHROPIC_API_KEY=k", "AWS_SECRET_ACCESS_KEY=k", "NATS_URL=u",
		"NATS_CREDS=c", "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_HEADERS=k=v", "OTEL_EXPORTER_OTLP_TRACES_HEADERS=k=v",
		"JETCREW_PREFIX=other", "broken",
	}
	common := []string{"PATH=/bin", "HOME=/home/me", "LC_ALL=C", "OTEL_TRACES_EXPORTER=otlp"}
	for name, c := range map[string]struct {
		opts Options
		more []string
	}{
		"embedded":       {Options{}, nil},
		"prefix":         {Options{Prefix: "p"}, []string{"JETCREW_PREFIX=p"}},
		"creds":          {Options{URL: "nats://x", Creds: "/c"}, []string{"NATS_CREDS=/c"}},
		"creds, no URL":  {Options{Creds: "/c"}, nil},
		"both, in order": {Options{URL: "u", Creds: "/c", Prefix: "p"}, []string{"JETCREW_PREFIX=p", "NATS_CREDS=/c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := append(append([]string{}, common...), c.more...)
			if d := cmp.Diff(want, workerEnv(environ, c.opts)); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestTail(t *testing.T) {
	t.Parallel()
	var passed strings.Builder
	tl := &tail{to: &passed}
	for range 2 {
		if n, err := tl.Write([]byte(strings.Repeat("x", maxTail-2) + "\n")); n != maxTail-1 || err != nil {
			t.Fatal(n, err)
		}
	}
	if _, err := tl.Write([]byte("last words\n")); err != nil {
		t.Fatal(err)
	}
	if got := tl.String(); got != "last words" && !strings.HasSuffix(got, "x\nlast words") {
		t.Errorf("tail ends with %q", got[max(0, len(got)-20):])
	} else if len(got) > maxTail {
		t.Errorf("tail has %d bytes", len(got))
	}
	if passed.Len() != 2*(maxTail-1)+len("last words\n") {
		t.Errorf("%d bytes passed on", passed.Len())
	}
}

func TestQueuesIn(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]int{
		"serve --queue files --queue=shell=2": 2, "mock a.jsonl": 1, "serve --queue x": 1, "mock --queues x": 1,
	} {
		if got := queuesIn(strings.Fields(line)); got != want {
			t.Errorf("queuesIn(%q) = %d, want %d", line, got, want)
		}
	}
}
