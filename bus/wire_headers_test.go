package bus_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// An entry that looks like a status of the server's hides none behind it.
func TestHostileHeadersInTheCatalog(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	before := connect(t, srv)
	before.Catalog()
	f.store("$KV.jc_catalog.early.entry", nil, "Status", "503")
	f.store("$KV.jc_catalog.test.entry", nil, "Status", "404")
	f.store("$KV.jc_catalog.tools.test.entry", nil, "Status", "100")
	f.store("$KV.jc_catalog.entry", nil, "Status", "409", "Description", "Consumer Deleted")
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
	after := connect(t, srv)
	for who, b := range map[string]*bus.Bus{"who was there before": before, "who came later": after} {
		bustest.Eventually(t, who+" sees the worker and its tool", func() bool { return len(b.Catalog().Tools()) == 1 })
	}
}

// A fact that looks like a status of the server's is passed on like any other, however many come.
func TestHostileHeadersOfWakeUps(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	hosted(t, connect(t, srv), bus.Hosting{Host: hostFunc(func(schema.RunMessage) {})})
	run := schema.NewID()
	for i := range 1100 { // more than the consumer may hold unacknowledged
		f.store(fmt.Sprintf("jc.run.%s.say.%d", run, i+1), nil, "Status", []string{"100", "404", "409", "503"}[i%4])
	}
	bustest.Eventually(t, "all are acknowledged", func() bool {
		info := f.api("CONSUMER.INFO.JC_RUNS.wake", "")
		return info["num_pending"] == 0.0 && info["num_ack_pending"] == 0.0
	})
}

// What a stranger's message says of itself in headers that the server writes too is not believed, and hides no other.
func TestHostileHeadersOfFacts(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	b := connect(t, srv)
	victim, run := schema.NewID(), schema.NewID()
	for _, id := range []string{victim, run} {
		if _, err := b.Append(t.Context(), id, schema.OpenKey(), &schema.Open{Kind: schema.RunCall}, schema.Key{}); err != nil {
			t.Fatal(err)
		}
	}
	want := 1
	for i, header := range [][]string{
		{"Status", "204"},
		{"Status", "404"},
		{"Status", "100"},
		{"Status", "413"},
		{"Nats-Num-Pending", "0"},
		{"Nats-Sequence", "999999"},
		{"Nats-Sequence", "x"},
		{"Nats-Time-Stamp", "x"},
		{"Nats-Subject", "jc.run." + victim + ".verdict.1.0.1"},
	} {
		f.store("jc.run."+run+"."+schema.ViewKey(1, i).String(), []byte(`{"text":"x"}`), header...)
		f.store("jc.run."+run+"."+schema.ViewKey(2, i).String(), nil, header...)
		want += 2
	}
	last, _ := f.store("jc.run."+run+"."+schema.ViewKey(3, 0).String(), []byte(`{"text":"x"}`))
	want++
	check := func(how string, facts []schema.Fact, err error) {
		t.Helper()
		if err != nil || len(facts) != want {
			t.Errorf("%s: %d facts, want %d, %v", how, len(facts), want, err)
		}
		for i, fact := range facts {
			if fact.Run != run || fact.Seq > last || i > 0 && fact.Seq <= facts[i-1].Seq {
				t.Errorf("%s: %+v", how, fact)
			}
		}
	}
	facts, err := b.Facts(t.Context(), run, last)
	check("at once", facts, err)
	facts, err = b.Pages(t.Context(), "jc.run."+run+".>")
	check("in pages", facts, err)
	facts = nil
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for fact, err := range b.Follow(ctx, run) {
		if err != nil {
			t.Fatal(err)
		}
		if facts = append(facts, fact); len(facts) == want {
			break
		}
	}
	check("followed", facts, nil)
}
