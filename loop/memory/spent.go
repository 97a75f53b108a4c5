package memory

import "github.com/jetcrew/jetcrew/schema"

// Spent returns what the turns from first on have used, each answer at a price, with what the agents used that were
// called in them, as far as their results are known; first 1 is the whole run.
func (r *Run) Spent(first int, price schema.Price) schema.Spent {
	r.mu.RLock()
	defer r.mu.RUnlock()
	own, _ := r.used(first)
	s := r.below(first)
	return schema.Spent{
		Steps: s.Steps + max(0, r.turns-first+1), Usage: s.Usage.Add(own), Cost: s.Cost + price.Cost(own),
	}
}

// below is what the agents used that were called in the turns from first on. It wants r.mu held.
func (r *Run) below(first int) (s schema.Spent) {
	for n := first; n <= r.turns; n++ {
		t := lookup[schema.Turn](r, schema.TurnKey(n))
		for i := range t.Calls {
			if t.Calls[i].Queue != schema.QueueAgents {
				continue
			}
			if res := r.result(n, i, t); res != nil {
				s = s.Add(res.Spent)
			}
		}
	}
	return s
}
