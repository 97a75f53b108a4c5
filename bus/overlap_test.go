package bus_test

import (
	"context"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// TestB14Overlap: a worker whose calls another consumer would get, too, does not start, and says which it is.
func TestB14Overlap(t *testing.T) {
	t.Parallel()
	for filters, overlaps := range map[string]bool{
		``: true, `"filter_subject":"jc.work.>",`: true, `"filter_subject":"jc.work.*.0",`: true, `"filter_subject":"jc.work.test.0",`: true,
		`"filter_subjects":["jc.work.other.*","jc.work.test.7"],`: true, `"filter_subject":"jc.work.tests.*",`: false,
		`"filter_subjects":["jc.work.other.*","jc.work.tests.*"],`: false,
	} {
		t.Run(filters, func(t *testing.T) {
			t.Parallel()
			srv := server(t)
			b, f := connect(t, srv), stranger(t, srv)
			answer := f.api("CONSUMER.DURABLE.CREATE.JC_WORK.intruder", `{"stream_name":"JC_WORK","config":{"durable_name":"intruder",`+filters+`"ack_policy":"explicit"}}`)
			if answer["error"] != nil {
				t.Fatalf("create the other consumer: %v", answer["error"])
			}
			if !overlaps {
				serve(t, b, bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
				if r, err := b.Dispatch(t.Context(), call("r", "echo", 0), "test", patience); err != nil || !r.OK {
					t.Errorf("%+v, %v", r, err)
				}
				return
			}
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			defer cancel()
			err := b.Serve(ctx, bus.Worker{Queue: "test", Tools: toolbox{"echo": echo}})
			if err == nil || ctx.Err() != nil || !strings.Contains(err.Error(), "intruder gets") {
				t.Errorf("serve: %v", err)
			}
		})
	}
}

// TestB14StartTogether: workers of one queue that start at the same moment share its consumer, also in a cluster.
func TestB14StartTogether(t *testing.T) {
	t.Parallel()
	c := bustest.StartCluster(t, 3)
	b := member(t, c)
	for i := range 6 {
		serve(t, member(t, c, i%3), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"echo": echo}})
	}
	bustest.Eventually(t, "all of them serve", func() bool { return len(b.Catalog().Workers()) == 6 })
	run := schema.NewID()
	var results []<-chan schema.Result
	for i := range 20 {
		results = append(results, dispatched(t, b, call(run, "echo", i), "test", patience))
	}
	for i, done := range results {
		if r := <-done; !r.OK || r.Delivery != 1 {
			t.Errorf("call %d: %+v", i, r)
		}
	}
}
