package audit_test

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/audit"
	"github.com/jetcrew/jetcrew/schema"
)

var update = flag.Bool("update", false, "rewrite testdata")

// TestRecords compares the records of a whole run with testdata/records.jsonl, and looks for contents in them.
func TestRecords(t *testing.T) {
	t.Parallel()
	trail, records := apply(stored(t, whole()))
	if p := trail.Check(); len(p) > 0 {
		t.Errorf("problems: %v", p)
	}
	var out bytes.Buffer
	sink := audit.Lines(&out)
	for _, r := range records {
		if err := sink(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	if strings.Contains(out.String(), secret) {
		t.Errorf("a record holds contents:\n%s", out.String())
	}
	name := filepath.Join("testdata", "records.jsonl")
	if *update {
		if err := os.WriteFile(name, out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(out.String(), "\n")); diff != "" {
		t.Errorf("records (-want +got), -update rewrites them:\n%s", diff)
	}
}

// TestAnyOrder: the check says the same of facts that come backwards and twice.
func TestAnyOrder(t *testing.T) {
	t.Parallel()
	facts := stored(t, whole())
	facts = slices.Concat(facts, facts)
	slices.Reverse(facts)
	trail, records := apply(facts)
	if p := trail.Check(); len(p) > 0 {
		t.Errorf("problems: %v", p)
	}
	ids := map[string]bool{}
	for _, r := range records {
		ids[r.ID] = true
	}
	if len(records) != 2*len(ids) {
		t.Errorf("%d records, %d ids", len(records), len(ids))
	}
}

func TestAFactThatCannotBeRead(t *testing.T) {
	t.Parallel()
	trail, records := apply([]schema.Fact{{Run: run, Key: schema.OpenKey(), Seq: 1, Data: []byte("\x01")}, {Run: run, Key: schema.Key{Kind: "gossip"}, Seq: 2}})
	if len(records) != 1 || records[0].What != audit.Unreadable || records[0].Fact != "open" {
		t.Errorf("records: %+v", records)
	}
	if p := trail.Check(); !has(p, "open (1): its payload cannot be read") {
		t.Errorf("problems: %v", p)
	}
}

// reader has the facts of a run and counts how often it is asked.
type reader struct {
	facts []schema.Fact
	err   error
	asked int
}

func (r *reader) Facts(_ context.Context, _ string, _ uint64, kinds ...schema.Kind) (facts []schema.Fact, err error) {
	r.asked++
	for _, f := range r.facts {
		if slices.Contains(kinds, f.Key.Kind) {
			facts = append(facts, f)
		}
	}
	return facts, r.err
}

// TestLog: whoever begins in the middle of a run names the same as who saw its beginning, and reads it once.
func TestLog(t *testing.T) {
	t.Parallel()
	facts := stored(t, whole())
	_, want := apply(facts)
	for _, from := range []int{0, 8} {
		var got []audit.Record
		r := &reader{facts: facts}
		log := audit.NewLog(r, func(_ context.Context, rec audit.Record) error {
			got = append(got, rec)
			return nil
		})
		for _, f := range facts[from:] {
			if err := log.Put(t.Context(), f); err != nil {
				t.Fatal(err)
			}
		}
		if diff := cmp.Diff(want[len(want)-len(got):], got); diff != "" {
			t.Errorf("from fact %d (-want +got):\n%s", from, diff)
		}
		if r.asked != min(from, 1) {
			t.Errorf("from fact %d: asked %d times", from, r.asked)
		}
	}
}

func TestLogFails(t *testing.T) {
	t.Parallel()
	facts := stored(t, whole())
	broken := errors.New("broken")
	deaf := audit.NewLog(&reader{facts: facts}, func(context.Context, audit.Record) error { return broken })
	if err := deaf.Put(t.Context(), facts[0]); !errors.Is(err, broken) {
		t.Errorf("sink: %v", err)
	}
	blind := audit.NewLog(&reader{err: broken}, func(context.Context, audit.Record) error { return nil })
	if err := blind.Put(t.Context(), facts[5]); !errors.Is(err, broken) {
		t.Errorf("reader: %v", err)
	}
}
