package audit

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Trail is the audit trail of one run: a pure fold over its facts, in any order, repeated or not. It is not safe for
// concurrent use.
type Trail struct {
	run   string
	known map[schema.Key]uint64 // sequence of each fact
	dead  []schema.Key          // whose payload cannot be read
	named map[schema.Kind]named // the highest number of a row that another fact names

	open     *schema.Open
	calls    map[place]*call
	asks     map[schema.Key]ask
	verdicts map[schema.Key]verdict
	close    *schema.Close
}

// place is turn and index of a call.
type place struct{ turn, index int }

// call is what a turn decided about a call, with digests in place of contents.
type call struct {
	schema.Ask // identity and digests
	seq        uint64
	effect     string
	decision   schema.Decision
	runs       []step // what others did with it
}

// step is something that only happens to a call that may run.
type step struct {
	key     schema.Key
	seq     uint64
	ran     bool // the tool was reached
	success bool
}

// named is a number in a row, and the fact that names it.
type named struct {
	n  int
	by schema.Key
}

type ask struct {
	schema.Ask
	seq uint64
}

type verdict struct {
	schema.Verdict
	seq    uint64
	stored time.Time
}

// New returns the trail of a run of which nothing is known.
func New(run string) *Trail {
	return &Trail{
		run: run, known: map[schema.Key]uint64{}, named: map[schema.Kind]named{}, calls: map[place]*call{},
		asks: map[schema.Key]ask{}, verdicts: map[schema.Key]verdict{},
	}
}

// Apply adds a fact and returns what it says. A record names the principal and the tool as far as open and the turn are
// applied already.
func (t *Trail) Apply(f schema.Fact) []Record {
	p := payload(f.Key.Kind)
	if p == nil {
		return nil
	}
	t.known[f.Key] = f.Seq
	r := t.record(f)
	if err := schema.Decode(f.Data, p); err != nil {
		t.dead = append(t.dead, f.Key)
		r.What = Unreadable
		return []Record{r}
	}
	switch p := p.(type) {
	case *schema.Turn:
		t.names(f.Key, schema.CtlKey(p.Own), schema.SayKey(p.Say))
		return t.turn(r, f, p)
	case *schema.Fold:
		t.names(f.Key, schema.CtlKey(p.Own), schema.SayKey(p.Say), schema.TurnKey(p.N))
	case *schema.Answer:
		t.names(f.Key, schema.SayKey(p.Say), schema.TurnKey(p.Turn))
	case *schema.Sent:
		return t.sent(r, f, p)
	case *schema.Ask, *schema.Verdict, *schema.Begin, *schema.Back, *schema.Result, *schema.View:
		return []Record{t.ofCall(r, f, p)}
	}
	return []Record{t.ofRun(r, p)}
}

// names notes that a fact names others, which so were there before it.
func (t *Trail) names(by schema.Key, keys ...schema.Key) {
	for _, key := range keys {
		have := t.named[key.Kind]
		if key.N > have.n || key.N == have.n && t.known[by] < t.known[have.by] {
			t.named[key.Kind] = named{key.N, by}
		}
	}
}

// Knows tells whether the trail can name all that a record of the fact under key names.
func (t *Trail) Knows(key schema.Key) bool {
	if t.open == nil {
		return key.Kind == schema.KindOpen
	}
	switch key.Kind {
	case schema.KindAsk, schema.KindVerdict, schema.KindBegin, schema.KindBack, schema.KindResult, schema.KindView, schema.KindSent:
		return t.open.Kind == schema.RunCall || t.known[schema.TurnKey(key.N)] > 0
	}
	return true
}

// payload returns what a kind of fact decodes into, nil for a kind that nobody writes.
func payload(k schema.Kind) schema.Encodable {
	switch k {
	case schema.KindOpen:
		return new(schema.Open)
	case schema.KindCtl:
		return new(schema.Ctl)
	case schema.KindSay:
		return new(schema.Say)
	case schema.KindTurn:
		return new(schema.Turn)
	case schema.KindSent:
		return new(schema.Sent)
	case schema.KindBegin:
		return new(schema.Begin)
	case schema.KindBack:
		return new(schema.Back)
	case schema.KindAsk:
		return new(schema.Ask)
	case schema.KindVerdict:
		return new(schema.Verdict)
	case schema.KindResult:
		return new(schema.Result)
	case schema.KindView:
		return new(schema.View)
	case schema.KindFold:
		return new(schema.Fold)
	case schema.KindAnswer:
		return new(schema.Answer)
	case schema.KindClose:
		return new(schema.Close)
	}
	return nil
}

// record is what every record of the fact holds.
func (t *Trail) record(f schema.Fact) Record {
	r := Record{ID: strconv.FormatUint(f.Seq, 10), AtMS: f.Time.UnixMilli(), Run: t.run, Fact: f.Key.String()}
	t.sign(&r)
	return r
}

// sign says on whose behalf the run acts.
func (t *Trail) sign(r *Record) {
	if t.open == nil {
		return
	}
	r.Principal, r.Tenant = name(t.open.Principal.ID), name(t.open.Principal.Tenant)
	if t.open.Agent != nil {
		r.Agent = name(t.open.Agent.ID)
	}
}

// ofRun says what a fact that is about no call says.
func (t *Trail) ofRun(r Record, p schema.Encodable) Record {
	switch p := p.(type) {
	case *schema.Open:
		t.open, r.What = p, Opened
		if c := p.Parent; c != nil {
			r.Parent = name(fmt.Sprintf("%s/%d.%d", c.Run, c.Turn, c.Index))
		}
		if h := p.Handoff; h != nil {
			r.Previous = name(h.Previous)
		}
		t.sign(&r)
	case *schema.Ctl:
		r.What, r.By, r.Seq = Owned, name(p.Instance), p.Seq
		if p.Act == schema.CtlStop {
			r.What, r.Why = Stopped, reason(p.Why)
		}
	case *schema.Say:
		r.What, r.By, r.Text = Said, name(cmp.Or(p.Source, p.Role)), digest(p.Text)
	case *schema.Fold:
		r.What, r.Model, r.Usage, r.Text = Folded, name(p.Model), p.Usage, digest(p.Text)
	case *schema.Answer:
		r.What, r.Outcome, r.Usage, r.Text = Answered, name(string(p.Reason)), p.Usage, digest(p.Text)
	case *schema.Close:
		t.close, r.What = p, Closed
		r.Outcome, r.Usage, r.Turns, r.Calls = name(p.State), p.Usage, p.Turns, p.Calls
	}
	return r
}

// turn says what the model answered and what was decided about each call.
func (t *Trail) turn(r Record, f schema.Fact, p *schema.Turn) []Record {
	r.What, r.Turn, r.Model, r.Usage, r.Calls = Turned, f.Key.N, name(p.Model), p.Usage, len(p.Calls)
	if p.Text != "" {
		r.Text = digest(p.Text)
	}
	records := []Record{r}
	for i := range p.Calls {
		c := t.call(place{f.Key.N, i})
		tc := &p.Calls[i]
		c.Ask, c.seq, c.effect, c.decision = *schema.NewAsk(tc, schema.Decision{}, ""), f.Seq, tc.Effect, tc.Decision
		one := t.record(f)
		t.name(&one, f.Seq, place{f.Key.N, i})
		one.What, one.Decision, one.Rule = Decided, name(string(tc.Decision.Action)), name(tc.Decision.Rule)
		one.Args, one.Bound, one.Schema = c.Args, c.Bound, c.Schema
		if tc.Decision.Type != "" {
			one.Outcome = name(string(tc.Decision.Type))
		}
		records = append(records, one)
	}
	return records
}

// sent says which calls were published.
func (t *Trail) sent(r Record, f schema.Fact, p *schema.Sent) (records []Record) {
	for _, s := range p.Calls {
		at := place{f.Key.N, s.Index}
		t.took(at, step{key: f.Key, seq: f.Seq})
		one := r
		t.name(&one, f.Seq, at)
		one.What, one.Seq = Sent, s.Seq
		records = append(records, one)
	}
	return records
}

// ofCall says what happened to a call.
func (t *Trail) ofCall(r Record, f schema.Fact, p schema.Encodable) Record {
	at := place{f.Key.N, f.Key.I}
	t.name(&r, 0, at)
	if f.Key.Queue != "" {
		r.Queue = f.Key.Queue
	}
	switch p := p.(type) {
	case *schema.Ask:
		t.asks[f.Key] = ask{*p, f.Seq}
		r.What, r.Rule, r.Asks, r.ExpiresMS = Asked, name(p.Rule), p.Digest(t.run, f.Key), p.ExpiresMS
		r.Args, r.Bound, r.Schema = name(p.Args), name(p.Bound), name(p.Schema)
	case *schema.Verdict:
		t.verdicts[f.Key] = verdict{*p, f.Seq, f.Time}
		r.What, r.Decision, r.By, r.Why, r.Asks = Verdict, name(p.Decision), name(p.By), reason(p.Why), name(p.Digest)
		if p.Args != "" {
			r.Args = digest(string(p.Args))
		}
	case *schema.Begin:
		t.took(at, step{key: f.Key, seq: f.Seq, ran: true})
		r.What, r.Worker, r.Delivery, r.Seq = Began, name(p.Instance), p.Delivery, p.Seq
	case *schema.Back:
		r.What, r.Worker, r.Delivery, r.Seq, r.Why = GaveBack, name(p.Instance), f.Key.Delivery, f.Key.Seq, reason(p.Reason)
	case *schema.Result:
		t.took(at, step{key: f.Key, seq: f.Seq, ran: p.StartedMS > 0, success: p.OK})
		r.What, r.Outcome, r.Output = Resulted, outcome(p), name(cmp.Or(p.Blob, digest(p.Output)))
		r.Worker, r.Delivery, r.StartedMS, r.EndedMS = name(p.Worker), p.Delivery, p.StartedMS, p.EndedMS
	case *schema.View:
		r.What, r.Text = Viewed, digest(p.Text)
	}
	return r
}

func outcome(r *schema.Result) string {
	switch {
	case r.OK:
		return "ok"
	case r.Error != nil:
		return name(string(r.Error.Type))
	}
	return "failed"
}

// name fills in which call a record is about. seq is that of a fact which says something of several calls.
func (t *Trail) name(r *Record, seq uint64, at place) {
	r.Turn, r.Index = at.turn, &at.index
	if seq > 0 {
		r.ID = fmt.Sprintf("%d.%d", seq, at.index)
	}
	if c := t.calls[at]; c != nil && c.seq > 0 {
		r.Tool, r.Target, r.Source, r.Queue, r.Effect = name(c.Tool), name(c.Target), name(c.Source), name(c.Queue), name(c.effect)
	}
}

// call returns what is kept of a call.
func (t *Trail) call(at place) *call {
	if t.calls[at] == nil {
		t.calls[at] = &call{}
	}
	return t.calls[at]
}

// took notes that something happened to a call, once.
func (t *Trail) took(at place, s step) {
	c := t.call(at)
	for _, have := range c.runs {
		if have.key == s.key {
			return
		}
	}
	c.runs = append(c.runs, s)
}

func digest(text string) string { return schema.Digest([]byte(text)) }

// Bounds on what strangers write into names and reasons, in bytes.
const (
	maxWord   = 256
	maxReason = 1 << 10
)

func name(s string) string { return schema.Cut(schema.CleanText(s), maxWord) }

func reason(s string) string { return schema.Cut(schema.CleanText(s), maxReason) }
