package worker

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

func transcript(t *testing.T, text string) []replay.Transcript {
	t.Helper()
	list, err := replay.Load(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return list
}

const oneCall = `{"id":"a","tools":[{"name":"clock","parameters":{"type":"object"}}],"messages":[{"role":"assistant","content":"","tool_calls":[{"id":"c","type":"function","function":{"name":"clock","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"12:00"}]}`

func TestMockTakesItsTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		list := transcript(t, oneCall)
		r := newRecording(list, &Mock{Queue: MockQueue, Delay: Delay{time.Second, time.Minute}})
		call := &schema.Call{Run: "r", Agent: "a", Turn: 1, Tool: "clock", Args: "{}", Idempotent: true}
		start := time.Now()
		out, err := r.run(t.Context(), call)
		if took := time.Since(start); err != nil || out != "12:00" || took < time.Second || took > time.Minute {
			t.Errorf("%q, %v after %v", out, err, took)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
		defer cancel()
		if _, err := r.run(ctx, call); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v, want the deadline", err)
		}
	})
}

func TestMockFailsForTheMoment(t *testing.T) {
	t.Parallel()
	list := transcript(t, oneCall)
	set, err := newRecording(list, &Mock{Queue: MockQueue, Fail: 0.5}).set(&cli.App{Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	failed := 0
	for n := range uint64(200) {
		call := &schema.Call{Run: "r", Agent: "a", Turn: 1, Tool: "clock", Args: "{}", Idempotent: true}
		r, pending := set.Execute(schema.WithAttempt(t.Context(), delivered(n+1)), call)
		switch {
		case pending != nil:
			failed++
		case !r.OK || r.Output != "12:00":
			t.Errorf("%+v", r)
		}
	}
	if failed < 60 || failed > 140 {
		t.Errorf("%d of 200 attempts failed, want about half", failed)
	}
}

func TestRecordedError(t *testing.T) {
	t.Parallel()
	for output, want := range map[string]schema.ErrorType{
		`TOOL_ERROR: {"errorType":"Timeout","error":"late","tool":"x","callId":"c"}`: schema.Timeout,
		`TOOL_ERROR: {"error":"late"}`: "", `TOOL_ERROR: no JSON`: "", `TOOL_ERROR`: "", `fine`: "", ``: "",
	} {
		var e *schema.Error
		if errors.As(recordedError(output), &e) != (want != "") || e != nil && e.Type != want {
			t.Errorf("%s: %v, want %q", output, e, want)
		}
	}
}

func TestTranscripts(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	one := write("one.jsonl", oneCall)
	other := write("other.jsonl", strings.Replace(oneCall, `"id":"a"`, `"id":"b"`, 1))
	list, err := Transcripts(one, other)
	if err != nil || len(list) != 2 || list[1].ID != "b" {
		t.Errorf("%d transcripts, %v", len(list), err)
	}
	for name, c := range map[string]struct {
		files []string
		want  string
	}{
		"twice":   {[]string{one, one}, `the transcript "a" stands in`},
		"empty":   {[]string{write("empty", "\n")}, "holds no transcript"},
		"broken":  {[]string{write("broken", "{")}, "line 1"},
		"no tool": {[]string{write("none", `{"id":"n","tools":[],"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"Hello."}]}`)}, "nothing to serve"},
		"missing": {[]string{filepath.Join(dir, "missing")}, "missing"},
	} {
		if _, err := Transcripts(c.files...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: error %v, want %q", name, err, c.want)
		}
	}
}

// delivered is an attempt that has only a number.
type delivered uint64

func (d delivered) Number() uint64         { return uint64(d) }
func (delivered) Keep(io.ReadSeeker) error { return schema.ErrNoKeeper }
