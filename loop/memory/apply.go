package memory

import (
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Apply decodes a fact and adds it. Order and repetition do not matter, and kinds that memory does not use are
// ignored. An undecodable fact is an error that names it and wraps schema.ErrPayload; its key is taken for ever, so
// when strangers may have written it (a worker its result, anybody a say) a stand-in takes its place and the run
// can go on.
func (r *Run) Apply(f schema.Fact) error {
	if !kept(f.Key.Kind) {
		return nil
	}
	r.mu.RLock()
	known := r.facts[f.Key] != nil
	r.mu.RUnlock()
	if known {
		return nil
	}
	p, err := decode(f)
	if p != nil {
		r.Put(f.Key, p)
	}
	if err != nil {
		return fmt.Errorf("fact %s of run %s: %w", f.Key, f.Run, err)
	}
	return nil
}

// kept tells whether memory uses facts of this kind.
func kept(k schema.Kind) bool {
	switch k {
	case schema.KindOpen, schema.KindCtl, schema.KindSay, schema.KindTurn, schema.KindAsk, schema.KindVerdict,
		schema.KindResult, schema.KindView, schema.KindFold, schema.KindAnswer, schema.KindClose:
		return true
	}
	return false
}

func decode(f schema.Fact) (schema.Encodable, error) {
	switch f.Key.Kind {
	case schema.KindOpen:
		return decodeOpen(f)
	case schema.KindCtl:
		return decodeInto(f, new(schema.Ctl))
	case schema.KindSay:
		return decodeSay(f)
	case schema.KindTurn:
		return decodeTurn(f)
	case schema.KindAsk:
		return decodeInto(f, new(schema.Ask))
	case schema.KindVerdict:
		return decodeVerdict(f)
	case schema.KindResult:
		return decodeResult(f)
	case schema.KindView:
		return decodeInto(f, new(schema.View))
	case schema.KindFold:
		return decodeFold(f)
	case schema.KindAnswer:
		return decodeInto(f, new(schema.Answer))
	default:
		return decodeInto(f, new(schema.Close))
	}
}

func decodeInto[T schema.Encodable](f schema.Fact, p T) (schema.Encodable, error) {
	if err := schema.Decode(f.Data, p); err != nil {
		return nil, err
	}
	return p, nil
}

// decodeOpen leaves out a conversation in which calls and results are no pairs: a provider would refuse every prompt.
func decodeOpen(f schema.Fact) (schema.Encodable, error) {
	o := new(schema.Open)
	if err := schema.Decode(f.Data, o); err != nil {
		return nil, err
	}
	if !paired(o.Before) {
		o.Before = nil
	}
	return o, nil
}

// decodeSay lets only the roles through that a say may have: an assistant or tool message out of nowhere would break
// the pairing of calls and results. The stand-in has no role and is left out of the messages.
func decodeSay(f schema.Fact) (schema.Encodable, error) {
	s := new(schema.Say)
	if err := schema.Decode(f.Data, s); err != nil {
		return &schema.Say{}, err
	}
	s.Text = schema.CleanText(s.Text)
	if s.Role != schema.RoleSystem {
		s.Role = schema.RoleUser
	}
	return s, nil
}

// decodeVerdict makes a refusal of what cannot be read: its key is taken, and nobody has approved anything.
func decodeVerdict(f schema.Fact) (schema.Encodable, error) {
	v := new(schema.Verdict)
	if err := schema.Decode(f.Data, v); err != nil {
		return &schema.Verdict{Decision: schema.VerdictDeny, Why: "the verdict on this call could not be read"}, err
	}
	v.Why = schema.CleanText(v.Why)
	return v, nil
}

func decodeTurn(f schema.Fact) (schema.Encodable, error) {
	t := new(schema.Turn)
	if err := schema.Decode(f.Data, t); err != nil {
		return nil, err
	}
	t.N = f.Key.N // as for a result, the subject decides
	return t, nil
}

func decodeFold(f schema.Fact) (schema.Encodable, error) {
	p := new(schema.Fold)
	if err := schema.Decode(f.Data, p); err != nil {
		return nil, err
	}
	p.N, p.Text = f.Key.N, schema.CleanText(p.Text) // as for a result, the subject decides
	return p, nil
}

func decodeResult(f schema.Fact) (schema.Encodable, error) {
	r, err := schema.DecodeResult(f.Data)
	if err != nil {
		e := &schema.Error{Type: schema.OutcomeUnknown, Message: "the worker's result could not be read"}
		return &schema.Result{Run: f.Run, Turn: f.Key.N, Index: f.Key.I, Error: e}, err
	}
	// The subject decides whose result it is; a payload that names another call is not credited to that one.
	r.Run, r.Turn, r.Index = f.Run, f.Key.N, f.Key.I
	return r, nil
}
