package memory

import (
	"fmt"
	"sort"

	"github.com/jetcrew/jetcrew/schema"
)

// Fold returns the newest fold, which the prompt begins with; nil while there is none.
func (r *Run) Fold() *schema.Fold {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.newest()
}

// newest returns the fold with the highest number of those that cover nothing but what is known. r.mu is held.
func (r *Run) newest() (newest *schema.Fold) {
	for _, n := range r.folds {
		f := lookup[schema.Fold](r, schema.FoldKey(n))
		if f.N >= r.least() && f.N <= r.turns && f.Say <= r.says && (newest == nil || f.N > newest.N) {
			newest = f
		}
	}
	return newest
}

// folded adds what stands in for the compacted part. The sources of its says stay known.
func (b *prompt) folded() {
	b.turns = b.fold.N
	for b.said < b.fold.Say {
		b.said++
		b.seen.fresh(lookup[schema.Say](b.run, schema.SayKey(b.said)))
	}
	b.msgs = append(b.msgs, schema.Message{Role: schema.RoleUser, Text: standIn(b.fold, len(b.run.before()) > 0)})
}

// standIn is what the model reads in place of compacted turns. It is the user's message: what a summary repeats from
// tools must not gain the weight of instructions. before says that the run goes on with another's conversation.
func standIn(f *schema.Fold, before bool) string {
	what := fmt.Sprintf("Turns 1 to %d of this conversation", f.N)
	switch {
	case f.N == 0:
		what = "The tasks before this one"
	case before:
		what = fmt.Sprintf("The tasks before this one, and turns 1 to %d of this conversation", f.N)
	}
	switch {
	case f.Strategy == schema.CompactSummary:
		return fmt.Sprintf("[%s, summarised. What they did is done; go on from there.]\n\n%s", what, f.Text)
	case f.N == f.Turns && f.N > 0:
		return fmt.Sprintf("[%s were left out. The results of the last one were too large to keep: ask for less at a time.]", what)
	}
	return fmt.Sprintf("[%s were left out to save space.]", what)
}

// Plan returns the fold that keeps as many of the newest whole rounds as it may: at most most, and beyond least no more
// than make a prompt of at most tokens by Estimate, not counting a summary's text. It returns nil when that compacts
// nothing that is not compacted already. The caller fills in the rest.
func (r *Run) Plan(least, most int, tokens int64) *schema.Fold {
	r.mu.RLock()
	defer r.mu.RUnlock()
	from := r.least() - 1
	newest := r.newest()
	if newest != nil {
		from = newest.N
	}
	whole := r.build(newest).turns
	most = min(most, whole-max(0, from))
	cut := sort.Search(max(0, most-least), func(i int) bool {
		return Estimate(r.build(r.cut(whole-most+i)).msgs) <= tokens
	})
	f := r.cut(whole - most + cut)
	if f.N <= from {
		return nil
	}
	return f
}

// cut returns the fold of everything up to turn n. Says go with the turns of their exchange: those of one that goes on
// behind turn n stay, as do those that no compacted turn saw, and the newest message of the user.
func (r *Run) cut(n int) *schema.Fold {
	say := 0
	for k := 1; k <= r.answers; k++ {
		if a := lookup[schema.Answer](r, schema.AnswerKey(k)); a.Turn <= n {
			say = max(say, a.Say)
		}
	}
	if t := lookup[schema.Turn](r, schema.TurnKey(n)); t != nil {
		say = min(say, t.Say)
	}
	return &schema.Fold{N: n, Turns: r.turns, Say: max(0, min(say, r.newestUser()-1, r.says))}
}

// newestUser returns the number of the last say that is a user's, not counting those that repeat a source; 0: none.
func (r *Run) newestUser() (newest int) {
	var seen sources
	for k := 1; k <= r.says; k++ {
		if s := lookup[schema.Say](r, schema.SayKey(k)); seen.fresh(s) && s.Role == schema.RoleUser {
			newest = k
		}
	}
	return newest
}

// perMessage is what a message takes beside its texts, in bytes.
const perMessage = 16

// Estimate returns about how many tokens messages take in a prompt: a quarter of their bytes.
func Estimate(msgs []schema.Message) int64 {
	n := 0
	for i := range msgs {
		m := &msgs[i]
		n += perMessage + len(m.Text) + len(m.Label) + len(m.Name)
		if m.Items != nil {
			n += len(m.Items.Data)
		}
		for _, c := range m.Calls {
			n += perMessage + len(c.Label) + len(c.Name) + len(c.Args)
		}
	}
	return int64(n+3) / 4
}
