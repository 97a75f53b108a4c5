package memory

import (
	"sync"

	"github.com/jetcrew/jetcrew/schema"
)

// Run is what is known of one run: a pure fold over its facts. It may be used by several goroutines at once. What
// its methods return is shared and must not be changed.
type Run struct {
	mu    sync.RWMutex
	facts map[schema.Key]any // the payload under each key; a fact is written once, so the first one is the only one

	// The highest number up to which no ctl, say, turn and answer is missing. Nothing beyond a gap is used: that a
	// later one is here already only says that the reading is not complete.
	ctls, says, turns, answers int

	folds []int // the numbers of the folds, in the order in which they became known

	gaps bool   // there is a result of whose output the middle is left out
	done prompt // the rounds that are complete, as far as they were asked for
}

// New returns a run of which nothing is known.
func New() *Run { return &Run{facts: make(map[schema.Key]any)} }

// Put adds the fact under key, whose payload is already decoded. A fact that is there already stays; kinds that
// memory does not use are ignored.
func (r *Run) Put(key schema.Key, payload schema.Encodable) {
	if !kept(key.Kind) {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if _, ok := r.facts[key]; ok {
		return
	}
	r.facts[key] = payload
	if key.Kind == schema.KindFold {
		r.folds = append(r.folds, key.N)
	}
	if key.Kind == schema.KindOpen || key.Kind == schema.KindView {
		r.done = prompt{} // they change what is already put together
	}
	if res, ok := payload.(*schema.Result); ok && res.Blob != "" {
		r.gaps = true
	}
	r.ctls = r.advance(r.ctls, schema.CtlKey)
	r.says = r.advance(r.says, schema.SayKey)
	r.turns = r.advance(r.turns, schema.TurnKey)
	r.answers = r.advance(r.answers, schema.AnswerKey)
}

func (r *Run) advance(n int, key func(int) schema.Key) int {
	for r.facts[key(n+1)] != nil {
		n++
	}
	return n
}

// Open returns the run's first fact, nil when it is not known.
func (r *Run) Open() *schema.Open { return get[schema.Open](r, schema.OpenKey()) }

// Ctl returns control slot k, nil when it is not known.
func (r *Run) Ctl(k int) *schema.Ctl { return get[schema.Ctl](r, schema.CtlKey(k)) }

// Say returns message k, nil when it is not known.
func (r *Run) Say(k int) *schema.Say { return get[schema.Say](r, schema.SayKey(k)) }

// Turn returns turn n, nil when it is not known.
func (r *Run) Turn(n int) *schema.Turn { return get[schema.Turn](r, schema.TurnKey(n)) }

// Answer returns answer k, nil when it is not known.
func (r *Run) Answer(k int) *schema.Answer { return get[schema.Answer](r, schema.AnswerKey(k)) }

// Closed returns the run's last fact, nil while the run is open.
func (r *Run) Closed() *schema.Close { return get[schema.Close](r, schema.CloseKey()) }

// View returns what memory shows instead of the output of call i of turn n, nil when it shows that.
func (r *Run) View(n, i int) *schema.View { return get[schema.View](r, schema.ViewKey(n, i)) }

// Ask returns the question that counts of call i of turn n, the last one, and its number; nil and 0 when nobody was asked.
func (r *Run) Ask(n, i int) (*schema.Ask, int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	k := r.advance(0, func(k int) schema.Key { return schema.AskKey(n, i, k) })
	return lookup[schema.Ask](r, schema.AskKey(n, i, k)), k
}

// Verdict returns the decision on question k about call i of turn n, nil while there is none.
func (r *Run) Verdict(n, i, k int) *schema.Verdict {
	return get[schema.Verdict](r, schema.VerdictKey(n, i, k))
}

// Gaps tells whether the middle of an output was left out and can be read.
func (r *Run) Gaps() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.gaps
}

// Result returns the result of call i of turn n, nil while there is none. Only a result under the queue that the
// turn names counts.
func (r *Run) Result(n, i int) *schema.Result {
	r.mu.RLock()
	defer r.mu.RUnlock()
	t := lookup[schema.Turn](r, schema.TurnKey(n))
	if t == nil || i < 0 || i >= len(t.Calls) {
		return nil
	}
	return r.result(n, i, t)
}

// Ctls, Says, Turns and Answers return the number of the last one up to which none is missing; 0: none is known.
func (r *Run) Ctls() int { return r.count(&r.ctls) }

// Says is described at Ctls.
func (r *Run) Says() int { return r.count(&r.says) }

// Turns is described at Ctls.
func (r *Run) Turns() int { return r.count(&r.turns) }

// Answers is described at Ctls.
func (r *Run) Answers() int { return r.count(&r.answers) }

// OpenCalls returns the slots of turn n that have no result yet, in call order.
func (r *Run) OpenCalls(n int) []int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	var open []int
	if t := lookup[schema.Turn](r, schema.TurnKey(n)); t != nil {
		for i := range t.Calls {
			if r.result(n, i, t) == nil {
				open = append(open, i)
			}
		}
	}
	return open
}

// Pending tells whether a message waits for an answer: one that no answer covers and whose source is new.
func (r *Run) Pending() bool {
	r.mu.RLock()
	defer r.mu.RUnlock()
	covered := 0
	for k := 1; k <= r.answers; k++ {
		covered = max(covered, lookup[schema.Answer](r, schema.AnswerKey(k)).Say)
	}
	var seen sources
	for k := 1; k <= r.says; k++ {
		s := lookup[schema.Say](r, schema.SayKey(k))
		if seen.fresh(s) && s.Role == schema.RoleUser && k > covered {
			return true
		}
	}
	return false
}

// Usage returns the tokens and the number of calls of the turns from first on, with the summaries written on their
// way and what the agents used that were called; first 1 is the whole run.
func (r *Run) Usage(first int) (used schema.Usage, calls int) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	used, calls = r.used(first)
	return used.Add(r.below(first).Usage), calls
}

// used is Usage without the agents that were called. It wants r.mu held.
func (r *Run) used(first int) (used schema.Usage, calls int) {
	for n := first; n <= r.turns; n++ {
		t := lookup[schema.Turn](r, schema.TurnKey(n))
		used = used.Add(t.Usage)
		calls += len(t.Calls)
	}
	for _, n := range r.folds {
		if f := lookup[schema.Fold](r, schema.FoldKey(n)); f.Turns >= first-1 {
			used = used.Add(f.Usage)
		}
	}
	return used, calls
}

func (r *Run) count(n *int) int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return *n
}

// result wants r.mu held.
func (r *Run) result(n, i int, t *schema.Turn) *schema.Result {
	return lookup[schema.Result](r, schema.ResultKey(n, i, t.Calls[i].Queue))
}

func get[T any](r *Run, key schema.Key) *T {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return lookup[T](r, key)
}

// lookup wants r.mu held.
func lookup[T any](r *Run, key schema.Key) *T {
	p, _ := r.facts[key].(*T)
	return p
}
