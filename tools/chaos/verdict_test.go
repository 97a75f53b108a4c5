package chaos

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// verdict compares what the facts, the streams and the ledger say.
type verdict struct {
	testing.TB
	bus   *bus.Bus
	fleet *fleet
	seed  uint64
	runs  []string
	ends  map[string]uint64 // sequence of the last fact, by run
}

// closed tells whether a run is closed, and keeps what says so.
func (v *verdict) closed(run string) bool {
	facts, err := v.bus.Facts(v.Context(), run, 0, schema.KindClose)
	if err != nil || len(facts) == 0 {
		return false
	}
	v.ends[run] = facts[0].Seq
	return true
}

// wait waits until every run is closed.
func (v *verdict) wait() {
	open := slices.Clone(v.runs)
	err := eventually("all runs are closed", func() (bool, string) {
		open = slices.DeleteFunc(open, v.closed)
		return len(open) == 0, fmt.Sprintf("%d are open, such as %q", len(open), slices.Concat(open, []string{""})[0])
	})
	if err != nil {
		v.Error(err)
	}
	for _, run := range open[:min(3, len(open))] {
		v.show(run)
	}
}

// show prints what is recorded of a run that did not end.
func (v *verdict) show(run string) {
	facts, err := v.bus.Facts(v.Context(), run, 0)
	var s strings.Builder
	for _, f := range facts {
		fmt.Fprintf(&s, "\n%s %d %s", f.Time.Format("15:04:05.000"), f.Seq, f.Key)
		var c schema.Ctl
		if f.Key.Kind == schema.KindCtl && schema.Decode(f.Data, &c) == nil {
			fmt.Fprintf(&s, " %s %s message %d %s", c.Act, c.Instance, c.Seq, c.Why)
		}
	}
	v.Logf("run %s, %v:%s", run, err, s.String())
}

func (v *verdict) all() {
	starts := v.starts()
	var total count
	for i, run := range v.runs {
		v.run(i, run, starts, &total)
	}
	v.Logf("%d runs and %d children, of which %d were stopped because their owners were lost too often, %d calls, of which %d failed (%s), %d starts of run-once calls",
		len(v.runs), total.children, total.stopped, total.calls, total.failed, total.kinds(), total.once)
	v.leftovers()
}

func (v *verdict) run(i int, run string, starts map[string]int, total *count) {
	facts, err := v.bus.Facts(v.Context(), run, v.ends[run])
	if err != nil {
		v.Errorf("run %d: %v", i, err)
		return
	}
	for _, err := range bustest.Check(facts) {
		v.Errorf("run %d (%s): %v", i, run, err)
	}
	v.story(i, run, facts, starts, total)
}

// child checks the run that a call is, unless it never began: it closes after its parent has the result.
func (v *verdict) child(i int, run string, starts map[string]int, total *count) {
	if _, err := v.bus.FindRun(v.Context(), run); errors.Is(err, bus.ErrNoRun) {
		return
	}
	if err := eventually("a child is closed", func() (bool, string) { return v.closed(run), run }); err != nil {
		v.Error(err)
		return
	}
	total.children++
	v.run(i, run, starts, total)
}

// count sums up what the calls of all runs came to.
type count struct {
	calls, failed, once, children, stopped int

	errors map[schema.ErrorType]int
}

func (c *count) kinds() string {
	var s []string
	for t, n := range c.errors {
		s = append(s, fmt.Sprintf("%s %d", t, n))
	}
	slices.Sort(s)
	return strings.Join(s, ", ")
}

func (c *count) add(r *schema.Result) {
	c.calls++
	if r.Error != nil {
		c.failed++
		if c.errors == nil {
			c.errors = map[schema.ErrorType]int{}
		}
		c.errors[r.Error.Type]++
	}
}

// starts reads the ledger: how often each call started, by its id.
func (v *verdict) starts() map[string]int {
	file, err := os.Open(v.fleet.ledger)
	if err != nil {
		v.Fatal(err)
	}
	defer file.Close()
	n := map[string]int{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		id, _, _ := strings.Cut(lines.Text(), " ")
		n[id]++
	}
	return n
}

// story compares a run with what the script says, call for call.
func (v *verdict) story(i int, run string, facts []schema.Fact, starts map[string]int, total *count) {
	state := memory.New()
	for _, f := range facts {
		if err := state.Apply(f); err != nil {
			v.Errorf("run %d: %s: %v", i, f.Key, err)
		}
	}
	for n := 1; n <= state.Turns(); n++ {
		want := answer(v.seed, i, n)
		turn := state.Turn(n)
		if len(turn.Calls) != len(want.Calls) {
			v.Errorf("run %d: turn %d has %d calls, want %d", i, n, len(turn.Calls), len(want.Calls))
			continue
		}
		for k := range turn.Calls {
			r := state.Result(n, k)
			if r == nil {
				continue // bustest.Check has said so
			}
			total.add(r)
			if want.Calls[k].Name == toolChild {
				v.child(child(i, n, k), schema.ChildRun(run, n, k, 1), starts, total)
				continue
			}
			v.call(fmt.Sprintf("%d.%d.%d", i, n, k), want.Calls[k].Name, r, starts, total)
		}
	}
	switch a := state.Answer(1); {
	case a != nil && a.Reason == schema.ReasonDone:
	case a == nil && state.Closed() != nil && state.Closed().State == "stopped":
		total.stopped++ // its owners were lost too often; or its parent was
	default:
		v.Errorf("run %d: the answer is %+v", i, a)
	}
	v.order(i, state)
}

// call compares a result with the ledger.
func (v *verdict) call(id, tool string, r *schema.Result, starts map[string]int, total *count) {
	if r.OK && !strings.HasPrefix(r.Output, id) {
		v.Errorf("call %s has the output %.40q", id, r.Output)
	}
	if r.OK && starts[id] == 0 {
		v.Errorf("call %s has a result and never started", id)
	}
	if tool != toolOnce {
		return
	}
	total.once += starts[id]
	if starts[id] > 1 {
		v.Errorf("run-once call %s started %d times: %+v", id, starts[id], r)
	}
}

// order checks that the memory has each call followed by its results, in the order of the calls.
func (v *verdict) order(i int, state *memory.Run) {
	var due []string
	for _, m := range state.Messages() {
		switch {
		case m.Role == schema.RoleTool:
			if len(due) == 0 || due[0] != m.Label {
				v.Errorf("run %d: the memory has the result of %s, want that of %q", i, m.Label, due)
				return
			}
			due = due[1:]
		case len(due) > 0:
			v.Errorf("run %d: the memory goes on without the results of %q", i, due)
			return
		}
		for _, c := range m.Calls {
			due = append(due, c.Label)
		}
	}
}

// leftovers checks that nothing is left of the work: no consumer has any, and the stream forgets what they have done.
func (v *verdict) leftovers() {
	js := streams(v, v.fleet.servers.URL())
	ctx := context.WithoutCancel(v.Context())
	if err := eventually("all messages are acknowledged", func() (bool, string) { return done(ctx, js) }); err != nil {
		v.Error(err)
	}
	began, patience := time.Now(), calmWithin
	if len(v.fleet.servers.Processes()) > 1 {
		patience = sweptWithin
	}
	if err := within(patience, "the work stream is empty", func() (bool, string) { return empty(ctx, js) }); err != nil {
		v.Error(err)
		_, seen := done(ctx, js)
		v.Log(seen)
	}
	v.Logf("the work stream was empty %v after the last acknowledgement", time.Since(began).Round(time.Second))
}

// done tells whether the consumers of the work stream are those that are wanted, and have nothing to do.
func done(ctx context.Context, js jetstream.JetStream) (ok bool, seen string) {
	s, err := js.Stream(ctx, "JC_WORK")
	if err != nil {
		return false, err.Error()
	}
	var names []string
	ok = true
	for info := range s.ListConsumers(ctx).Info() {
		names = append(names, info.Name)
		ok = ok && info.NumPending == 0 && info.NumAckPending == 0
		seen += fmt.Sprintf("%s: %d to be delivered, %d to be acknowledged, all up to %d are; ", info.Name, info.NumPending, info.NumAckPending, info.AckFloor.Stream)
	}
	slices.Sort(names)
	if want := []string{"agents", queue}; !slices.Equal(names, want) {
		return false, fmt.Sprintf("consumers %q, want %q; %s", names, want, seen)
	}
	return ok, seen
}

func empty(ctx context.Context, js jetstream.JetStream) (bool, string) {
	s, err := js.Stream(ctx, "JC_WORK")
	if err != nil {
		return false, err.Error()
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(">"))
	if err != nil {
		return false, err.Error()
	}
	return info.State.Msgs == 0, fmt.Sprintf("%d messages from %d to %d, %v", info.State.Msgs, info.State.FirstSeq, info.State.LastSeq, info.State.Subjects)
}
