package loop_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

const wholeOutput = "fine 0123456789 end"

// cutting is a bus whose tool long gives an output of which the result holds only a part.
type cutting struct {
	*looptest.Bus
	lost error // of reading the rest

	mu   sync.Mutex
	read []string
}

func (b *cutting) Start(calls ...schema.Dispatch) {
	for _, d := range calls {
		if d.Call.Tool != "long" {
			b.Bus.Start(d)
			continue
		}
		r := d.Call.Done("fine[...]end")
		r.Blob, r.Size = "blob", int64(len(wholeOutput))
		_, err := b.Append(d.Ctx, d.Call.Run, d.Call.ResultKey(d.Queue), &r, schema.Key{})
		d.Done(r, err)
	}
}

func (b *cutting) ReadOutput(_ context.Context, queue string, r *schema.Result, offset, limit int64) (string, int64, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.read = append(b.read, queue+" "+r.Blob)
	part := wholeOutput[offset:]
	return part[:min(limit, int64(len(part)))], offset, b.lost
}

func newCutting(steps ...looptest.Step) (*rig, *cutting) {
	r := newRig(steps...)
	b := &cutting{Bus: r.bus}
	r.cfg.Bus = b
	r.tool("long", func(context.Context, *schema.Call) (string, error) { return "", nil })
	return r, b
}

func reads(args ...string) looptest.Step {
	var calls []schema.RawCall
	for _, a := range args {
		calls = append(calls, schema.RawCall{Name: schema.ToolReadOutput, Args: a})
	}
	return looptest.Calls(calls...)
}

func offered(req *model.Request) bool {
	return slices.ContainsFunc(req.Tools, func(t schema.Tool) bool { return t.Name == schema.ToolReadOutput })
}

// TestC07ReadOutput: the rest of a long output is read by range, with a tool that is there once there is a rest.
func TestC07ReadOutput(t *testing.T) {
	t.Parallel()
	r, b := newCutting(calls("ok"), calls("long"),
		reads(`{"call":"2.0","offset":5,"limit":4}`, `{"call":"2.0"}`, `{"call":"2.0","offset":19}`, `{"call":"1.0"}`, `{"call":"7.0"}`, `{"call":"2"}`, `{"call":"2.0","offset":1e1}`),
		looptest.Text("done"))
	_, run := r.run(t)
	got := texts(results(run))[2:]
	want := []string{
		"[bytes 5 to 9 of 19; go on with offset 9]\n0123",
		"[bytes 0 to 19 of 19; the end]\nfine 0123456789 end",
		"offset 19 is beyond the end",
		"nothing was left out of the output of call 1.0",
		`there is no result of a call`,
		"expected a string that matches",
		"whole numbers",
	}
	for i := range want {
		if i >= len(got) || !strings.Contains(got[i], want[i]) {
			t.Errorf("%d: got %q, want %q", i, got, want[i])
		}
	}
	if diff := cmp.Diff([]string{looptest.Queue + " blob", looptest.Queue + " blob"}, b.read); diff != "" {
		t.Error(diff)
	}
	for i, req := range r.model.Requests() {
		if offered(req) != (i >= 2) {
			t.Errorf("request %d: offered %t", i+1, offered(req))
		}
	}
	if res := run.State().Result(3, 0); res == nil || !res.OK || res.StartedMS == 0 {
		t.Errorf("the result of the call: %+v", res)
	}
}

// TestC07WhatAGuardChangedStaysHidden: the rest of an output is no way around a guard.
func TestC07WhatAGuardChangedStaysHidden(t *testing.T) {
	t.Parallel()
	r, b := newCutting(calls("long"), reads(`{"call":"1.0"}`), looptest.Text("done"))
	r.cfg.Guards = []loop.Guard{redact{}}
	_, run := r.run(t)
	if got := texts(results(run)); got[0] != "[redacted][...]end" || !strings.Contains(got[1], "changed by a check") || len(b.read) > 0 {
		t.Errorf("%q, read %q", got, b.read)
	}
}

func TestC07OutputThatIsLost(t *testing.T) {
	t.Parallel()
	r, b := newCutting(calls("long"), reads(`{"call":"1.0"}`), looptest.Text("done"))
	b.lost = errors.New("jc_blobs_x: not there")
	_, run := r.run(t)
	if got := texts(results(run))[1]; !strings.Contains(got, "ToolFailed") || strings.Contains(got, "jc_") {
		t.Errorf("%q", got)
	}
}

// TestC07ToolOfThatNameWins: a worker's tool is not hidden, and without a reader there is nothing to offer.
func TestC07ToolOfThatNameWins(t *testing.T) {
	t.Parallel()
	r, b := newCutting(calls("long"), reads(`{}`), looptest.Text("done"))
	r.tool(schema.ToolReadOutput, func(context.Context, *schema.Call) (string, error) { return "mine", nil })
	_, run := r.run(t)
	if got := texts(results(run))[1]; got != "mine" || len(b.read) > 0 {
		t.Errorf("%q, read %q", got, b.read)
	}
	r, b = newCutting(calls("long"), looptest.Text("done"))
	r.cfg.Journal, r.cfg.Dispatcher, r.cfg.Bus = b, b, nil
	r.run(t)
	if offered(r.model.Requests()[1]) {
		t.Error("offered without a reader")
	}
}

// TestC07ReadOutputIsTakenOver: the next owner reads what the last one did not.
func TestC07ReadOutputIsTakenOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := newHosting(map[int]*model.Response{
			1: {Calls: raw("long"), Finish: schema.FinishCalls},
			2: {Calls: []schema.RawCall{{Name: schema.ToolReadOutput, Args: `{"call":"1.0"}`}}, Finish: schema.FinishCalls},
		})
		h.tool("long", func(context.Context, *schema.Call) (string, error) { return "", nil })
		b := &cutting{Bus: h.bus}
		died := false
		h.bus.Refuse = func(_ string, key schema.Key, _ schema.Encodable) error {
			if !died && key == schema.ResultKey(2, 0, schema.QueueNone) {
				died = true
				return errKilled
			}
			return nil
		}
		host, err := loop.NewHost(loop.HostConfig{
			Config: loop.Config{Bus: b, Principal: somebody()},
			Find:   func(string) (schema.AgentSpec, bool) { return h.cfg.Agent, true },
			Equip:  func(context.Context, schema.AgentSpec) (loop.Model, loop.Registry, error) { return h, h.bus, nil },
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			host.Take(t.Context(), starter("r", `{"task":"go"}`))
		}
		m := h.memory(t, "r")
		if res := m.Result(2, 0); !died || res == nil || !strings.Contains(res.Output, wholeOutput) || m.Closed() == nil || h.asked[2] != 1 {
			t.Errorf("%+v, facts %v", res, h.bus.Keys("r"))
		}
	})
}
