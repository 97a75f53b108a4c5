package bus_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/bustest"
	"github.com/jetcrew/jetcrew/schema"
)

// registers is what porcupine knows of the facts of one call: two registers that are written once, and a guarded write
// only while the other is absent. 0 is absent.
type registers struct{ begin, result uint64 }

type factOp int

const (
	opBegin   factOp = iota // write begin while result is absent
	opClaim                 // write result while begin is absent
	opResult                // write result
	opLook                  // read result at the leader
	opGlimpse               // read result at whichever replica answers
)

// factInput is an operation on the facts of call index.
type factInput struct {
	index int
	op    factOp
	value uint64
}

// factOutput is what it said: of a write nil, schema.ErrExists, schema.ErrGuarded or errUnclear, of a read the value.
type factOutput struct {
	err   error
	value uint64
}

// errUnclear: nothing is known of an operation, which may also happen later.
var errUnclear = errors.New("unclear")

// step tells whether an operation can have said what it did, and what it leaves.
func (r registers) step(in factInput, out factOutput) (bool, registers) {
	own, guard := &r.result, uint64(0)
	switch in.op {
	case opLook:
		return out.err != nil || out.value == r.result, r
	case opGlimpse: // a replica may be behind, but what it has is so
		return out.value == 0 || out.value == r.result, r
	case opBegin:
		own, guard = &r.begin, r.result
	case opClaim:
		guard = r.begin
	}
	free := *own == 0 && guard == 0
	switch {
	case errors.Is(out.err, schema.ErrExists):
		return *own != 0, r
	case errors.Is(out.err, schema.ErrGuarded):
		return guard != 0, r
	}
	if free {
		*own = in.value
	}
	return free || out.err != nil, r
}

func factModel() porcupine.Model {
	return porcupine.Model{
		Partition: func(history []porcupine.Operation) (parts [][]porcupine.Operation) {
			calls := map[int][]porcupine.Operation{}
			for _, op := range history {
				i := op.Input.(factInput).index
				calls[i] = append(calls[i], op)
			}
			for _, part := range calls {
				parts = append(parts, part)
			}
			return parts
		},
		Init: func() any { return registers{} },
		Step: func(state, in, out any) (bool, any) { return state.(registers).step(in.(factInput), out.(factOutput)) },
	}
}

// historian does operations on facts of one run and writes down what they said.
type historian struct {
	run   string
	buses []*bus.Bus
	began time.Time

	mu      sync.Mutex
	history []porcupine.Operation
}

// contend does every operation on the facts of a call at the same time, each over some bus, several of them twice.
func (h *historian) contend(ctx context.Context, index int) {
	var ops sync.WaitGroup
	for i, op := range []factOp{opBegin, opClaim, opResult, opBegin, opClaim, opLook, opLook, opGlimpse, opGlimpse} {
		if op == opResult && index%2 == 0 {
			continue // begin against claim alone
		}
		in := factInput{index: index, op: op, value: uint64(100*index + i + 1)}
		b := h.buses[rand.IntN(len(h.buses))]
		ops.Go(func() { h.do(ctx, b, in) })
	}
	ops.Wait()
}

func (h *historian) do(ctx context.Context, b *bus.Bus, in factInput) {
	called := time.Since(h.began)
	out := h.operate(ctx, b, in)
	returned := time.Since(h.began)
	if errors.Is(out.err, errUnclear) {
		returned = math.MaxInt64
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.history = append(h.history, porcupine.Operation{Input: in, Call: int64(called), Output: out, Return: int64(returned)})
}

func (h *historian) operate(ctx context.Context, b *bus.Bus, in factInput) (out factOutput) {
	begin, result := schema.BeginKey(1, in.index, "test"), schema.ResultKey(1, in.index, "test")
	var err error
	var data []byte
	switch in.op {
	case opBegin:
		_, err = b.Append(ctx, h.run, begin, &schema.Begin{Seq: in.value}, result)
	case opClaim:
		_, err = b.Append(ctx, h.run, result, &schema.Result{EndedMS: int64(in.value)}, begin)
	case opResult:
		_, err = b.Append(ctx, h.run, result, &schema.Result{EndedMS: int64(in.value)}, schema.Key{})
	case opLook:
		data, err = b.Look(ctx, h.run, result)
	case opGlimpse:
		data, err = b.Glimpse(ctx, h.run, result)
	}
	if err == nil && data != nil {
		var r *schema.Result
		if r, err = schema.DecodeResult(data); err == nil {
			out.value = uint64(r.EndedMS)
		}
	}
	for _, known := range []error{nil, schema.ErrExists, schema.ErrGuarded} {
		if errors.Is(err, known) {
			out.err = known
			return out
		}
	}
	out.err = errUnclear
	return out
}

// check has porcupine look for an order of the operations that explains what each of them said, and wants each call
// to be decided for one side.
func (h *historian) check(t *testing.T, calls int) {
	t.Helper()
	if got := porcupine.CheckOperationsTimeout(factModel(), h.history, bustest.Patience); got != porcupine.Ok {
		t.Errorf("%d operations are not linearizable: %s", len(h.history), got)
	}
	unclear := 0
	sides := make(map[factInput]int) // by index and op, the others zero
	for _, op := range h.history {
		in, out := op.Input.(factInput), op.Output.(factOutput)
		switch {
		case out.err == nil && in.op <= opResult:
			sides[factInput{index: in.index, op: in.op}]++
		case errors.Is(out.err, errUnclear):
			unclear++
		}
	}
	for i := range calls {
		begun, claimed := sides[factInput{index: i, op: opBegin}], sides[factInput{index: i, op: opClaim}]
		if begun > 1 || claimed > 1 || begun == 1 && claimed == 1 {
			t.Errorf("call %d: %d begins and %d claims succeeded", i, begun, claimed)
		}
	}
	t.Logf("%d operations on %d calls, %d unclear", len(h.history), calls, unclear)
}

// contention races for the facts of calls until faults has returned, and for at least so many calls.
func contention(t *testing.T, buses []*bus.Bus, atLeast int, faults func()) {
	t.Helper()
	h := &historian{run: schema.NewID(), buses: buses, began: time.Now()}
	over := make(chan struct{})
	go func() {
		defer close(over)
		faults()
	}()
	calls := 0
	var racing sync.WaitGroup
	slots := make(chan struct{}, 8)
	for ended := false; !ended || calls < atLeast; calls++ {
		slots <- struct{}{}
		index := calls
		racing.Go(func() {
			h.contend(t.Context(), index)
			<-slots
		})
		select {
		case <-over:
			ended = true
		default:
		}
	}
	racing.Wait()
	h.check(t, calls)
}

// TestB23LinearFacts races for facts over several connections, on one node and on three, undisturbed and while
// networks and leaders fail: what every writer and reader was told fits into one order.
func TestB23LinearFacts(t *testing.T) {
	t.Parallel()
	t.Run("one node", func(t *testing.T) {
		t.Parallel()
		srv := server(t)
		contention(t, []*bus.Bus{connect(t, srv), connect(t, srv), connect(t, srv)}, 200, func() {})
	})
	t.Run("one node, bad network", func(t *testing.T) {
		t.Parallel()
		srv := server(t)
		bad, proxy := behind(t, srv)
		contention(t, []*bus.Bus{bad, bad, connect(t, srv)}, 200, func() { trouble(proxy) })
	})
	t.Run("three nodes", func(t *testing.T) {
		t.Parallel()
		c := bustest.StartCluster(t, 3)
		contention(t, []*bus.Bus{member(t, c, 0), member(t, c, 1), member(t, c, 2)}, 200, func() {})
	})
	t.Run("three nodes, bad network, changing leaders", func(t *testing.T) {
		t.Parallel()
		c := bustest.StartCluster(t, 3)
		buses := []*bus.Bus{member(t, c, 0), member(t, c, 1), member(t, c, 2)}
		contention(t, buses, 200, func() {
			for i := range 3 {
				c.StepDown("JC_RUNS", "")
				trouble(c.Proxy(i))
			}
		})
	})
}
