package playback

import (
	"fmt"
	"slices"

	"github.com/jetcrew/jetcrew/loop"
)

// order watches in which order results arrive and in which they enter the memory. A run hands its events over one at
// a time, so it needs no lock; it is read when the run has ended.
type order struct {
	next       func(loop.Event)
	arrived    map[int][]int // by turn: indexes in the order of arrival
	turn, last int           // of the last result that entered the memory
	wrong      []Difference
}

func newOrder(next func(loop.Event)) *order {
	return &order{next: next, arrived: map[int][]int{}, last: -1}
}

func (o *order) event(e loop.Event) {
	switch e.Type {
	case loop.EventToolSettled:
		o.arrived[e.Turn] = append(o.arrived[e.Turn], e.Call.Index)
	case loop.EventToolResult:
		o.remembered(e)
	}
	if o.next != nil {
		o.next(e)
	}
}

// remembered wants turn by turn, index by index.
func (o *order) remembered(e loop.Event) {
	want := 0
	if e.Turn == o.turn {
		want = o.last + 1
	}
	if e.Turn < o.turn || e.Call.Index != want {
		o.wrong = append(o.wrong, Difference{
			Turn: e.Turn, Index: e.Call.Index, Tool: e.Call.Tool, What: "place in the memory",
			Want: fmt.Sprintf("turn %d call %d", max(e.Turn, o.turn), want), Got: fmt.Sprintf("turn %d call %d", e.Turn, e.Call.Index),
		})
	}
	o.turn, o.last = e.Turn, e.Call.Index
}

// disordered counts the turns whose results arrived in another order than their calls'.
func (o *order) disordered() int {
	n := 0
	for _, arrival := range o.arrived {
		if !slices.IsSorted(arrival) {
			n++
		}
	}
	return n
}
