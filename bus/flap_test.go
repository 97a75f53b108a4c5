package bus_test

import (
	"testing"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
)

// TestB19Flaps: connections that break again and again leave no consumers behind.
func TestB19Flaps(t *testing.T) {
	t.Parallel()
	const readers, flaps, thirtySeconds = 10, 6, 30e9
	srv := server(t)
	f := stranger(t, srv)
	proxy, url := srv.Behind(t)
	behind := func(c *bus.Config) { c.URL = url }
	serve(t, connect(t, srv, behind), bus.Worker{Queue: "first", Tools: toolbox{"echo": echo}})
	var buses []*bus.Bus
	for range readers {
		b := connect(t, srv, behind)
		b.Catalog()
		buses = append(buses, b)
	}
	consumers := func() int {
		return int(f.api("STREAM.INFO.KV_jc_catalog", "")["state"].(map[string]any)["consumer_count"].(float64))
	}
	bustest.Eventually(t, "each reads the catalog", func() bool { return consumers() == readers })
	for range flaps {
		asked := f.listen("$JS.API.STREAM.INFO.JC_WORK")
		proxy.Cut()
		proxy.Heal()
		for range readers {
			f.next(asked) // each is back, or some ask more than once
		}
		t.Logf("%d consumers", consumers())
	}
	// What comes now is read by all of them, each by a consumer of its own.
	serve(t, connect(t, srv, behind), bus.Worker{Queue: "second", Tools: toolbox{"echo": echo}})
	for _, b := range buses {
		bustest.Eventually(t, "the new worker is seen", func() bool { return len(b.Catalog().Workers()) == 2 })
	}
	bustest.Eventually(t, "only the consumers in use are left", func() bool { return consumers() == readers })
	for _, c := range f.api("CONSUMER.LIST.KV_jc_catalog", "")["consumers"].([]any) {
		if idle := c.(map[string]any)["config"].(map[string]any)["inactive_threshold"]; idle != thirtySeconds {
			t.Errorf("the consumer of a process that is gone stays for %v ns", idle)
		}
	}
}
