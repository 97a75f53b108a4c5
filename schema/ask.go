package schema

import "cmp"

// NewAsk returns the question about a call as the turn decided it, with other arguments where edited is not empty.
func NewAsk(c *TurnCall, d Decision, edited JSONText) *Ask {
	a := &Ask{
		Tool: c.Tool, Target: c.Target, Source: c.Source, Queue: c.Queue, Schema: c.Digest, Edited: edited, Rule: d.Rule, Text: d.Text,
		Args: Digest([]byte(cmp.Or(edited, c.Args))),
	}
	if c.Bound != "" {
		a.Bound = Digest([]byte(c.Bound))
	}
	return a
}

// About tells whether the question is about the call that a turn holds: its tool, its bound values, and its arguments or
// those that the question shows instead. The tool's schema may have changed since the turn.
func (a *Ask) About(c *TurnCall) bool {
	b := NewAsk(c, Decision{}, a.Edited)
	return a.Tool == b.Tool && a.Target == b.Target && a.Source == b.Source && a.Queue == b.Queue && a.Args == b.Args && a.Bound == b.Bound
}

// Digest is what an approval names: the digest of the call's identity, its exact arguments and bound values, and the tool
// with its schema. A verdict for another call, another tool or other bytes has another one.
func (a *Ask) Digest(run string, key Key) string {
	key = AskKey(key.N, key.I, key.K)
	text := run + "\n" + key.String()
	for _, s := range []string{a.Tool, a.Target, a.Source, a.Queue, a.Args, a.Bound, a.Schema} {
		text += "\n" + s
	}
	return Digest([]byte(text))
}

// Approves tells whether v, the verdict on ask a under key, lets the call run. edited are the arguments that it wants
// instead; such a call is to be authorised anew.
func (v *Verdict) Approves(run string, key Key, a *Ask) (edited JSONText, ok bool) {
	if v.Decision != VerdictApprove || v.Digest != a.Digest(run, key) || !v.inTime(a) {
		return "", false
	}
	return v.Args, true
}

// inTime tells whether the verdict says that it was made before the end of the time; one that does not say when is late.
func (v *Verdict) inTime(a *Ask) bool { return v.AtMS > 0 && v.AtMS < a.ExpiresMS }

// Refusal is what the model reads of a verdict that lets the call not run.
func (v *Verdict) Refusal(a *Ask) string {
	switch {
	case v.Decision == VerdictExpired && v.Why != "":
		return v.Why
	case v.Decision == VerdictExpired || v.Decision == VerdictApprove && !v.inTime(a):
		return "nobody approved this call in time"
	case v.Decision == VerdictApprove:
		return "the approval was for another call than this one"
	case v.Why != "":
		return v.Why
	}
	return "a person refused this call"
}
