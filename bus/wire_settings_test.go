package bus_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// Headers cost throughput, so there are no others than the contract's, in exactly its case.
func TestHeadersOnTheWire(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	sub := f.listen("jc.>")
	b := connect(t, srv)
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Slots: 4, Tools: toolbox{"echo": echo, "once" + runOnce: echo}})
	serve(t, connect(t, srv), bus.Worker{Queue: schema.QueueAgents, Tools: toolbox{"echo": echo}})
	for i, c := range []struct{ tool, queue string }{{"echo", "test"}, {"once" + runOnce, "test"}, {"echo", schema.QueueAgents}} {
		if _, err := b.Dispatch(t.Context(), call("r", c.tool, i), c.queue, 90*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	call := []string{"Jc-Deadline", "Nats-TTL"}
	fact, guarded := "Nats-Expected-Last-Subject-Sequence", "Nats-Expected-Last-Subject-Sequence-Subject"
	want := map[string][]string{
		"jc.work.test.0": call, "jc.work.agents.0": call[:1],
		"jc.run.r.result.1.0.test": {fact}, "jc.run.r.result.1.1.test": {fact}, "jc.run.r.result.1.2.agents": {fact},
		"jc.run.r.begin.1.1.test": {fact, guarded},
	}
	got := map[string][]string{}
	for len(got) < len(want) {
		m := f.next(sub)
		if strings.HasPrefix(m.Subject, "jc.live.") {
			continue
		}
		got[m.Subject] = slices.Sorted(maps.Keys(m.Header))
		if m.Subject == "jc.work.test.0" {
			checkCallHeaders(t, m.Header, f.serverClock())
		}
		if m.Subject == "jc.run.r.begin.1.1.test" && m.Header[guarded][0] != "jc.run.r.result.1.1.test" {
			t.Errorf("begin is guarded on %s", m.Header[guarded])
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func checkCallHeaders(t *testing.T, h nats.Header, now time.Time) {
	t.Helper()
	ms, err := strconv.ParseInt(h["Jc-Deadline"][0], 10, 64)
	if left := time.UnixMilli(ms).Sub(now); err != nil || left > 91*time.Second || left < 60*time.Second {
		t.Errorf("Jc-Deadline %s is %v away, want 90 s", h["Jc-Deadline"], left)
	}
	if h["Nats-TTL"][0] != "151s" {
		t.Errorf("Nats-TTL %s, want 151s: deadline plus 60 s, rounded up", h["Nats-TTL"])
	}
}

// The settings that the protocol leans on, as the server has them.
func TestSettingsOnTheServer(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	serve(t, b, bus.Worker{Queue: "files", Tools: toolbox{"echo": echo}})
	large := call(schema.NewID(), "echo", 0)
	large.Args = schema.JSONText(`{"x":"` + text(300<<10) + `"}`)
	if _, err := b.Dispatch(t.Context(), large, "files", patience); err != nil {
		t.Fatal(err)
	}
	f := stranger(t, srv)
	f.next(f.listen("$KV.jc_catalog.files.*")) // a worker that is announced has its consumer
	for _, c := range []struct {
		subject string
		want    map[string]any
	}{
		{"STREAM.INFO.JC_WORK", map[string]any{
			"subjects": []any{"jc.work.*.*"}, "retention": "workqueue", "discard": "new", "allow_msg_ttl": true, "max_age": 0.0, "storage": "file",
		}},
		{"STREAM.INFO.JC_RUNS", map[string]any{
			"subjects": []any{"jc.run.>"}, "retention": "limits", "discard": "new", "discard_new_per_subject": true,
			"max_msgs_per_subject": 1.0, "max_age": 0.0, "storage": "file", "allow_direct": true,
			"republish": map[string]any{"src": "jc.run.>", "dest": "jc.live.>"},
		}},
		{"STREAM.INFO.JC_DEAD", map[string]any{"subjects": []any{"jc.dead.*"}, "retention": "limits"}},
		{"STREAM.INFO.KV_jc_catalog", asMap(t, bus.CatalogStream("jc", srv.Replicas()))},
		{"STREAM.INFO.OBJ_jc_blobs_files", asMap(t, bus.BlobStream("jc", "files", srv.Replicas()))},
		{"CONSUMER.INFO.JC_WORK.files", asMap(t, bus.ConsumerConfig("jc", "files"))},
		{"CONSUMER.INFO.JC_WORK.files", map[string]any{
			"ack_wait": 6e9, "max_deliver": -1.0, "max_ack_pending": -1.0, "filter_subject": "jc.work.files.*", "ack_policy": "explicit", "backoff": nil,
		}},
	} {
		have, _ := f.api(c.subject, "")["config"].(map[string]any)
		for key, v := range c.want {
			if diff := cmp.Diff(v, have[key]); diff != "" {
				t.Errorf("%s: %s: %s", c.subject, key, diff)
			}
		}
	}
}

// asMap is a configuration as its JSON, without what it leaves to the server.
func asMap(t *testing.T, config any) map[string]any {
	t.Helper()
	data, err := json.Marshal(config)
	if err != nil {
		t.Fatal(err)
	}
	var m map[string]any
	if err := json.Unmarshal(data, &m); err != nil {
		t.Fatal(err)
	}
	maps.DeleteFunc(m, func(_ string, v any) bool { return v == nil || v == 0.0 || v == "" || v == false })
	delete(m, "description")
	return m
}
