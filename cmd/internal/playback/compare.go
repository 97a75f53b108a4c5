package playback

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// Difference is something that turned out otherwise than recorded.
type Difference struct {
	Turn  int    `json:"turn"`  // from 1; 0: before the first
	Index int    `json:"index"` // of the call, from 0; -1: the turn as a whole
	Tool  string `json:"tool,omitempty"`
	What  string `json:"what"`
	Want  string `json:"want"`
	Got   string `json:"got"`
}

// compare folds the run's facts anew, as another orchestrator would read them, and holds the memory against the
// transcript.
func (g *game) compare(ctx context.Context) (*Outcome, error) {
	facts, err := g.facts(ctx)
	if err != nil {
		return nil, err
	}
	state := memory.New()
	for _, f := range facts {
		if err := state.Apply(f); err != nil {
			return nil, err
		}
	}
	o := &Outcome{
		ID: g.transcript.ID, Run: g.id, Resumed: g.resumed, Turns: state.Turns(), Workers: map[string]int{},
		Disordered: g.order.disordered(), Differences: []Difference{},
	}
	o.Differences = append(o.Differences, g.order.wrong...)
	if c := state.Closed(); g.run == nil && state.Turns() < g.transcript.Turns() {
		g.stopped = "it is closed: " + c.State
	}
	if g.stopped != "" {
		o.Differences = append(o.Differences, Difference{Turn: o.Turns + 1, Index: -1, What: "the run ended early", Want: "another turn", Got: g.stopped})
	}
	o.count(state, facts)
	o.Differences = append(o.Differences, compareMessages(recorded(g.transcript), state.History())...)
	o.Recorded = Record(g.transcript.ID, g.tools, state)
	return o, nil
}

const closeWithin = 5 * time.Second // for a replica to have a fact of a run

// facts reads the run up to its close, which a replica may get a moment later.
func (g *game) facts(ctx context.Context) ([]schema.Fact, error) {
	var facts []schema.Fact
	err := eventually(ctx, func(ctx context.Context) (there bool, err error) {
		facts, err = g.player.Bus.Facts(ctx, g.id, 0)
		return slices.ContainsFunc(facts, func(f schema.Fact) bool { return f.Key.Kind == schema.KindClose }), err
	})
	if err != nil {
		return nil, fmt.Errorf("the close of run %s: %w", g.id, err)
	}
	return facts, nil
}

// eventually looks again and again until a fact is there that somebody is known to have written.
func eventually(ctx context.Context, look func(context.Context) (there bool, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, closeWithin)
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		if there, err := look(ctx); there || err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("it is not there: %w", ctx.Err())
		case <-again.C:
		}
	}
}

// count looks at each call: it must have exactly one result fact.
func (o *Outcome) count(state *memory.Run, facts []schema.Fact) {
	results := map[[2]int]int{}
	for _, f := range facts {
		if f.Key.Kind == schema.KindResult {
			results[[2]int{f.Key.N, f.Key.I}]++
		}
	}
	for n := 1; n <= state.Turns(); n++ {
		for i, c := range state.Turn(n).Calls {
			o.Calls++
			o.countCall(c, state.Result(n, i))
			if got := results[[2]int{n, i}]; got != 1 {
				o.Differences = append(o.Differences, Difference{
					Turn: n, Index: i, Tool: c.Tool, What: "number of recorded results", Want: "1", Got: fmt.Sprint(got),
				})
			}
			delete(results, [2]int{n, i})
		}
	}
	for at := range results {
		o.Differences = append(o.Differences, Difference{Turn: at[0], Index: at[1], What: "a result without a call", Want: "none", Got: "one"})
	}
}

// countCall counts what a worker did. A call that did not reach one has its outcome in the turn.
func (o *Outcome) countCall(c schema.TurnCall, r *schema.Result) {
	if r == nil || r.Worker == "" || c.Queue == schema.QueueNone {
		return
	}
	o.Workers[r.Worker]++
	if r.Delivery > 1 {
		o.Redelivered++
	}
}
