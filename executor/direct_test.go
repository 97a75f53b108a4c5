package executor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

func TestSetLookup(t *testing.T) {
	t.Parallel()
	set := newSet(t, says("read_file", ""))
	if got, found := set.Lookup("read_file"); !found || got.Name != "read_file" || got.Queue != "test" {
		t.Errorf("%+v, %t", got, found)
	}
	for _, name := range []string{"", "Read_File", "read", "functions.read_file"} {
		if got, found := set.Lookup(name); found || got.Name != "" {
			t.Errorf("%q: %+v, %t", name, got, found)
		}
	}
}

func TestCallFailures(t *testing.T) {
	t.Parallel()
	own := errors.New("disk full")
	var key string
	unknown := &schema.Error{Type: schema.UnknownTool, Message: "says the tool"}
	set := quiet(t, fails("full", own), fails("says_unknown", unknown),
		text("panics", func(ctx context.Context) (string, error) { key = executor.Key(ctx); panic("boom") }))
	denied := set.With(func(executor.Execute) executor.Execute {
		return func(_ context.Context, c *schema.Call) (schema.Result, *schema.Pending) {
			return c.Fail(schema.Denied, "not on my watch"), nil
		}
	})
	call := func(s *executor.Set, name string) (*executor.CallError, error) {
		_, err := s.Call(t.Context(), name, "")
		var e *executor.CallError
		if !errors.As(err, &e) || e.Tool != name || e.Call == "" || !strings.Contains(err.Error(), name) || !strings.Contains(err.Error(), e.Call) {
			t.Fatalf("%s: %v does not name tool and call", name, err)
		}
		return e, err
	}
	if _, err := call(set, "nope"); !errors.Is(err, executor.ErrUnknownTool) {
		t.Errorf("unknown: %v", err)
	}
	if _, err := call(set, "full"); !errors.Is(err, own) || errors.Is(err, executor.ErrUnknownTool) {
		t.Errorf("the tool's own: %v", err)
	}
	if _, err := call(set, "says_unknown"); errors.Is(err, executor.ErrUnknownTool) || !errors.Is(err, unknown) {
		t.Errorf("a tool that is there: %v", err)
	}
	var p *executor.PanicError
	if e, err := call(set, "panics"); !errors.As(err, &p) || p.Value != "boom" || e.Call != key {
		t.Errorf("panic: %v, key %q", err, key)
	}
	if e, _ := call(denied, "full"); e.Class.Type != schema.Denied || e.Cause != nil {
		t.Errorf("refused: %+v", e)
	}
}
