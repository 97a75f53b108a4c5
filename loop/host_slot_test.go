package loop_test

import (
	"slices"
	"testing"

	"github.com/jetcrew/jetcrew/schema"
)

// TestTakenMeanwhile: who takes a run between the look at its owner and the own slot has it, and is not fenced by who
// looked; a stop is nobody's slot.
func TestTakenMeanwhile(t *testing.T) {
	t.Parallel()
	h := newHosting(nil)
	h.append(t, "r", schema.OpenKey(), &schema.Open{Kind: schema.RunAgent, Agent: &h.cfg.Agent})
	h.append(t, "r", schema.CtlKey(1), &schema.Ctl{Act: schema.CtlOwn, Instance: "first", Seq: 3})
	h.append(t, "r", schema.CtlKey(2), &schema.Ctl{Act: schema.CtlStop, Why: "enough"})
	h.append(t, "r", schema.CtlKey(3), &schema.Ctl{Act: schema.CtlOwn, Instance: "second", Seq: 4})
	host := h.host(t, forever, false)
	wake := schema.RunMessage{Run: "r", Seq: 5, Slot: 2} // after the first owner
	if got := host.Take(t.Context(), wake); got.Act != schema.TakenBusy || got.After == 0 || slices.Contains(h.bus.Keys("r"), "ctl.4") {
		t.Errorf("%+v, facts %v", got, h.bus.Keys("r"))
	}
	wake.Slot = 4 // after the second
	if got := host.Take(t.Context(), wake); got.Act != schema.TakenDone || !slices.Contains(h.bus.Keys("r"), "close") {
		t.Errorf("%+v, facts %v", got, h.bus.Keys("r"))
	}
}
