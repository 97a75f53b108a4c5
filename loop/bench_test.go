package loop_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// instantBus writes and runs nothing, so that what is left is the loop's own cost.
type instantBus struct{ *looptest.Bus }

func (instantBus) Append(context.Context, string, schema.Key, schema.Encodable, schema.Key) (uint64, error) {
	return 1, nil
}

func (instantBus) Facts(context.Context, string, uint64, ...schema.Kind) ([]schema.Fact, error) {
	return nil, nil
}

func (instantBus) Start(calls ...schema.Dispatch) {
	for _, d := range calls {
		c := d.Call
		d.Done(schema.Result{Run: c.Run, Turn: c.Turn, Index: c.Index, OK: true, Output: "ok"}, nil)
	}
}

// BenchmarkCalls measures an exchange of one turn with n parallel calls of 300 bytes; divide by n for one call.
func BenchmarkCalls(b *testing.B) {
	for _, n := range []int{1, 8, 64, 256} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			args := fmt.Sprintf(`{"text":"%0280d"}`, 7)
			list := make([]schema.RawCall, n)
			for i := range list {
				list[i] = schema.RawCall{ID: fmt.Sprint("call_", i), Name: "ok", Args: args}
			}
			r := newRig()
			r.cfg.Bus, r.cfg.Events, r.cfg.NoLimits = instantBus{r.bus}, nil, true
			r.cfg.Agent.Parallel.Calls = true
			r.cfg.Model = stepModel(func(req *model.Request) *model.Response {
				if req.Messages[len(req.Messages)-1].Role == schema.RoleTool {
					return &model.Response{Text: "done"}
				}
				return &model.Response{Calls: list}
			})
			agent, err := loop.New(r.cfg)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			for b.Loop() {
				if _, err := agent.Run(b.Context(), "go"); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/call")
		})
	}
}
