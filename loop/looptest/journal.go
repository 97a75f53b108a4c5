package looptest

import (
	"errors"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// TestJournal is the suite that every loop.Journal passes. make is called once per test.
func TestJournal(t *testing.T, make func(*testing.T) loop.Journal) {
	t.Run("a fact is written once", func(t *testing.T) { testOnce(t, make(t)) })
	t.Run("a guard refuses", func(t *testing.T) { testGuard(t, make(t)) })
	t.Run("one of many writers wins", func(t *testing.T) { testRace(t, make(t)) })
	t.Run("facts come in stored order", func(t *testing.T) { testFacts(t, make(t)) })
	t.Run("a watch hears its run until it is stopped", func(t *testing.T) { testWatch(t, make(t)) })
}

func say(text string) *schema.Say { return &schema.Say{Role: schema.RoleUser, Text: text} }

func testOnce(t *testing.T, j loop.Journal) {
	run := schema.NewID()
	first := mustAppend(t, j, run, schema.SayKey(1), say("one"))
	if first == 0 {
		t.Error("the sequence is 0")
	}
	if _, err := j.Append(t.Context(), run, schema.SayKey(1), say("two"), schema.Key{}); !errors.Is(err, schema.ErrExists) {
		t.Errorf("second append: %v", err)
	}
	mustAppend(t, j, schema.NewID(), schema.SayKey(1), say("of another run"))
	if second := mustAppend(t, j, run, schema.SayKey(2), say("three")); second <= first {
		t.Errorf("sequence %d after %d", second, first)
	}
}

func testGuard(t *testing.T, j loop.Journal) {
	run := schema.NewID()
	if _, err := j.Append(t.Context(), run, schema.SayKey(1), say("open"), schema.CloseKey()); err != nil {
		t.Errorf("before close: %v", err)
	}
	mustAppend(t, j, run, schema.CloseKey(), &schema.Close{State: "done"})
	if _, err := j.Append(t.Context(), run, schema.SayKey(2), say("late"), schema.CloseKey()); !errors.Is(err, schema.ErrGuarded) {
		t.Errorf("after close: %v", err)
	}
	if _, err := j.Append(t.Context(), schema.NewID(), schema.SayKey(1), say("other"), schema.CloseKey()); err != nil {
		t.Errorf("another run: %v", err)
	}
}

func testRace(t *testing.T, j loop.Journal) {
	run := schema.NewID()
	var wg sync.WaitGroup
	var mu sync.Mutex
	wins := 0
	for range 16 {
		wg.Go(func() {
			_, err := j.Append(t.Context(), run, schema.CtlKey(1), &schema.Ctl{Act: schema.CtlOwn, Instance: schema.NewID()}, schema.Key{})
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				wins++
			} else if !errors.Is(err, schema.ErrExists) {
				t.Errorf("append: %v", err)
			}
		})
	}
	wg.Wait()
	if wins != 1 {
		t.Errorf("%d writers won", wins)
	}
}

func testFacts(t *testing.T, j loop.Journal) {
	run := schema.NewID()
	keys := []schema.Key{schema.OpenKey(), schema.CtlKey(1), schema.SayKey(1), schema.ResultKey(1, 0, "q"), schema.AnswerKey(1), schema.CloseKey()}
	payloads := []schema.Encodable{
		&schema.Open{Kind: schema.RunAgent}, &schema.Ctl{Act: schema.CtlOwn}, say("hi"), &schema.Result{OK: true}, &schema.Answer{}, &schema.Close{},
	}
	var last uint64
	for i, key := range keys {
		last = mustAppend(t, j, run, key, payloads[i])
	}
	facts, err := j.Facts(t.Context(), run, last)
	if err != nil {
		t.Fatal(err)
	}
	var got []schema.Key
	for i, f := range facts {
		got = append(got, f.Key)
		if f.Run != run || f.Seq == 0 || i > 0 && f.Seq <= facts[i-1].Seq || f.Time.IsZero() || len(f.Data) == 0 {
			t.Errorf("fact %+v", f)
		}
	}
	if diff := cmp.Diff(keys, got); diff != "" {
		t.Error(diff)
	}
	facts, err = j.Facts(t.Context(), run, last, schema.KindSay, schema.KindClose)
	if err != nil || len(facts) != 2 || facts[0].Key != schema.SayKey(1) || facts[1].Key != schema.CloseKey() {
		t.Errorf("says and close: %v, %v", facts, err)
	}
	if none, err := j.Facts(t.Context(), schema.NewID(), 0); err != nil || len(none) != 0 {
		t.Errorf("facts of an unknown run: %v, %v", none, err)
	}
}

func testWatch(t *testing.T, j loop.Journal) {
	run := schema.NewID()
	heard := make(chan schema.Fact, 100)
	stop, err := j.Watch(t.Context(), run, func(f schema.Fact) { heard <- f })
	if err != nil {
		t.Fatal(err)
	}
	mustAppend(t, j, schema.NewID(), schema.SayKey(1), say("of another run"))
	mustAppend(t, j, run, schema.SayKey(1), say("mine"))
	f := <-heard
	if f.Run != run || f.Key != schema.SayKey(1) || schema.Decode(f.Data, say("")) != nil {
		t.Errorf("heard %+v", f)
	}
	stop()
	mustAppend(t, j, run, schema.SayKey(2), say("after the stop"))
	if _, err := j.Facts(t.Context(), run, 0); err != nil {
		t.Fatal(err)
	}
	select {
	case f := <-heard:
		if f.Key != schema.SayKey(1) { // it may come twice
			t.Errorf("heard %+v after the stop", f)
		}
	default:
	}
}

func mustAppend(t *testing.T, j loop.Journal, run string, key schema.Key, p schema.Encodable) uint64 {
	t.Helper()
	seq, err := j.Append(t.Context(), run, key, p, schema.Key{})
	if err != nil {
		t.Fatalf("append %s: %v", key, err)
	}
	return seq
}
