package bus_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// auditUntil reads facts under a name until the wanted one has come, and returns their keys.
func auditUntil(t *testing.T, b *bus.Bus, name, last string) (got []string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	err := b.Audit(ctx, name, func(_ context.Context, f schema.Fact) error {
		got = append(got, f.Run+" "+f.Key.String())
		if f.Seq == 0 || f.Time.IsZero() {
			t.Errorf("fact without sequence or time: %+v", f)
		}
		if got[len(got)-1] == last {
			stop()
		}
		return nil
	})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("audit: %v", err)
	}
	return got
}

// TestAudit: every fact of every run, in stored order; who goes on under the name gets what the last one did not take.
func TestAudit(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	large := strings.Repeat("x", schema.MaxInline)
	openRun(t, b, "a")
	put(t, b, "b", schema.OpenKey(), &schema.Open{Kind: schema.RunAgent, Agent: &schema.AgentSpec{ID: "b", Instructions: large}})
	put(t, b, "a", schema.SayKey(1), &schema.Say{Role: schema.RoleUser, Text: large})
	if got, want := auditUntil(t, b, "one", "a say.1"), []string{"a open", "b open", "a say.1"}; !slices.Equal(got, want) {
		t.Errorf("first reading: %v, want %v", got, want)
	}
	broken := errors.New("broken")
	put(t, b, "a", schema.CloseKey(), &schema.Close{State: "done"})
	err := b.Audit(t.Context(), "two", func(_ context.Context, f schema.Fact) error {
		if f.Key.Kind != schema.KindSay {
			return nil
		}
		var s schema.Say
		if err := schema.Decode(f.Data, &s); err != nil || s.Text != large {
			t.Errorf("a large fact: %d bytes, %v", len(s.Text), err)
		}
		return broken
	})
	if !errors.Is(err, broken) {
		t.Errorf("audit: %v, want the taker's error", err)
	}
	other := connect(t, srv)
	if diff := cmp.Diff([]string{"a close"}, auditUntil(t, other, "one", "a close")); diff != "" {
		t.Errorf("after a new start (-want +got):\n%s", diff)
	}
	if err := b.Audit(t.Context(), "a b", nil); err == nil || !strings.Contains(err.Error(), "a name is") {
		t.Errorf("bad name: %v", err)
	}
}

// TestAuditAgain: a fact that was not taken comes again under its name.
func TestAuditAgain(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	openRun(t, b, "a")
	broken := errors.New("broken")
	if err := b.Audit(t.Context(), "n", func(context.Context, schema.Fact) error { return broken }); !errors.Is(err, broken) {
		t.Fatal(err)
	}
	if got := auditUntil(t, connect(t, srv), "n", "a open"); !slices.Equal(got, []string{"a open"}) {
		t.Errorf("second reading: %v", got)
	}
}

func TestAuditEndsWithTheBus(t *testing.T) {
	t.Parallel()
	b := connect(t, server(t))
	openRun(t, b, "a")
	err := b.Audit(t.Context(), "n", func(context.Context, schema.Fact) error {
		go b.Close()
		return nil
	})
	if err == nil {
		t.Error("no error after the end of the bus")
	}
}

// TestAuditStream: a record is stored once, and a stream that is somebody else's is refused.
func TestAuditStream(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	for range 2 {
		s, err := b.AuditStream(t.Context(), "AUDIT")
		if err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"7", "8.0", "8.1"} {
			if err := s.Put(t.Context(), "run", id, []byte(id)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := streamSubjects(t, srv, "AUDIT"); !slices.Equal(got, []string{"jc.audit.AUDIT.run.7", "jc.audit.AUDIT.run.8.0", "jc.audit.AUDIT.run.8.1"}) {
		t.Errorf("stored: %v", got)
	}
	for stream, want := range map[string]string{"JC_RUNS": "takes jc.run.>", "a b": "a name is"} {
		if _, err := b.AuditStream(t.Context(), stream); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", stream, err, want)
		}
	}
}

// streamSubjects returns the subjects of the messages of a stream, in stored order.
func streamSubjects(t *testing.T, srv *bustest.Servers, stream string) (subjects []string) {
	t.Helper()
	s, err := streams(t, srv).Stream(t.Context(), stream)
	if err != nil {
		t.Fatal(err)
	}
	info, err := s.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for seq := uint64(1); seq <= info.State.LastSeq; seq++ {
		m, err := s.GetMsg(t.Context(), seq)
		if err != nil {
			t.Fatal(err)
		}
		subjects = append(subjects, m.Subject)
	}
	return subjects
}
