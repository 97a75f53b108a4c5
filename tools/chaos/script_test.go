package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// The tools of the fleet, by what is unpleasant about them.
const (
	toolFast  = "fast"  // returns at once
	toolSlow  = "slow"  // takes its time, and ends when it is told to
	toolCrash = "crash" // now and then takes its worker with it
	toolDeaf  = "deaf"  // does not listen to its end
	toolLarge = "large" // has an output for the object store
	toolOnce  = "once"  // has an effect that must not happen twice
	toolChild = "child" // is an agent: a run of its own
)

// mix is how often each tool is called, of 20 calls.
var mix = []struct {
	tool  string
	share int
}{{toolFast, 6}, {toolSlow, 4}, {toolOnce, 6}, {toolLarge, 1}, {toolCrash, 1}, {toolDeaf, 1}, {toolChild, 1}}

// script is a model whose answers depend on nothing but the seed in the task and the turn, so that whoever is asked,
// however often, says the same.
type script struct{}

func task(seed uint64, run int) string { return fmt.Sprintf("chaos %d %d", seed, run) }

func (script) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	for _, m := range req.Messages {
		var seed uint64
		var run int
		if n, _ := fmt.Sscanf(m.Text, "chaos %d %d", &seed, &run); m.Role == schema.RoleUser && n == 2 {
			return answer(seed, run, req.Turn), ctx.Err()
		}
	}
	return nil, fmt.Errorf("no task in %d messages", len(req.Messages))
}

// firstChild is the number of the first run that is a call of another run; it calls no agents itself.
const firstChild = 1_000_000

// child is the number of the run that call i of turn n of a run is.
func child(run, n, i int) int { return firstChild + run*100 + n*10 + i }

// answer is the n-th of a run: two to five turns of calls, then text.
func answer(seed uint64, run, n int) *model.Response {
	turns := 2 + rand.New(rand.NewPCG(seed, uint64(run))).IntN(4)
	if n > turns {
		return &model.Response{Text: fmt.Sprintf("run %d is done", run), Finish: schema.FinishStop}
	}
	rnd := rand.New(rand.NewPCG(seed, uint64(run)<<8|uint64(n)))
	calls := make([]schema.RawCall, 1+rnd.IntN(6))
	for i := range calls {
		calls[i] = schema.RawCall{
			ID: fmt.Sprintf("c%d", i), Name: pick(rnd),
			Args: fmt.Sprintf(`{"id":"%d.%d.%d","ms":%d}`, run, n, i, rnd.IntN(400)),
		}
		switch {
		case calls[i].Name == toolChild && run >= firstChild:
			calls[i].Name = toolFast
		case calls[i].Name == toolChild:
			calls[i].Args = fmt.Sprintf(`{"task":%q}`, task(seed, child(run, n, i)))
		}
	}
	return &model.Response{Calls: calls, Finish: schema.FinishCalls}
}

func pick(rnd *rand.Rand) string {
	at := rnd.IntN(20)
	for _, m := range mix {
		if at -= m.share; at < 0 {
			return m.tool
		}
	}
	return toolFast
}

// TestScript: the same seed is the same story, another one another, and every tool is in it.
func TestScript(t *testing.T) {
	t.Parallel()
	tell := func(seed uint64) string {
		var s strings.Builder
		for run := range 100 {
			for n := 1; n <= 6; n++ {
				for _, c := range answer(seed, run, n).Calls {
					fmt.Fprintln(&s, run, n, c.Name, c.Args)
				}
			}
		}
		return s.String()
	}
	if diff := cmp.Diff(tell(1), tell(1)); diff != "" {
		t.Error(diff)
	}
	if tell(1) == tell(2) {
		t.Error("two seeds tell the same story")
	}
	for _, m := range mix {
		if !strings.Contains(tell(1), " "+m.tool+" ") {
			t.Errorf("%s is never called", m.tool)
		}
	}
}
