package schema

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// The kinds of scopes of a principal, each followed by ':' and a value. Of one kind each may allow; a kind that is not
// there leaves that dimension open. ScopeAnd, without a value, begins a further authority that must allow too: that is
// how a sub-agent's is kept within its parent's.
const (
	ScopeTool   = "tool"   // a pattern of MatchTool
	ScopeEffect = "effect" // an effect of a tool
	ScopeTenant = "tenant" // a tenant on whose data the principal may act
	ScopeSpend  = "spend"  // US dollars that a run, with all runs below it, may cost
	ScopeFrom   = "from"   // RFC 3339: not valid before
	ScopeUntil  = "until"  // RFC 3339: not valid from then on
	ScopeAnd    = "and"
)

// CheckScopes says everything that is wrong with the scopes of an authority, nil when there is nothing.
func CheckScopes(scopes []string) error {
	var errs []error
	for _, s := range scopes {
		if err := checkScope(s); err != nil {
			errs = append(errs, fmt.Errorf("scope %.80q: %w", s, err))
		}
	}
	for i, s := range scopes {
		if s == ScopeAnd && (i == 0 || i == len(scopes)-1 || scopes[i-1] == ScopeAnd) {
			errs = append(errs, errors.New(`scope "and": want scopes before it and behind it`))
			break
		}
	}
	return errors.Join(errs...)
}

func checkScope(s string) error {
	kind, value, _ := strings.Cut(s, ":")
	switch {
	case s == ScopeAnd:
		return nil
	case !slices.Contains([]string{ScopeTool, ScopeEffect, ScopeTenant, ScopeSpend, ScopeFrom, ScopeUntil}, kind):
		return errors.New("want tool:, effect:, tenant:, spend:, from: or until: and a value")
	case value == "":
		return errors.New("the value is missing")
	}
	switch kind {
	case ScopeEffect:
		if !slices.Contains([]string{EffectRead, EffectWrite, EffectNetwork, EffectDestructive}, value) {
			return errors.New("an effect is read, write, network or destructive")
		}
	case ScopeSpend:
		if usd, err := strconv.ParseFloat(value, 64); err != nil || !(usd >= 0) || math.IsInf(usd, 0) {
			return errors.New("want an amount in US dollars, such as 2.50")
		}
	case ScopeFrom, ScopeUntil:
		if _, err := time.Parse(time.RFC3339, value); err != nil {
			return errors.New("want a time such as 2026-12-31T23:59:59Z")
		}
	}
	return nil
}

// Scoped is what an authority is asked about: a call of a tool as its queue knows it.
type Scoped struct {
	Queue, Tool, Effect string
	Tenant              string // of the principal
}

// Permits says why an authority does not allow a call at a time, "" when it does. Scopes that cannot be read allow
// nothing. No scopes at all say nothing, and so forbid nothing: whoever wants an authority to be there checks that.
func Permits(scopes []string, c Scoped, at time.Time) (why string) {
	for len(scopes) > 0 {
		end := slices.Index(scopes, ScopeAnd)
		one, rest := scopes, []string(nil)
		if end >= 0 {
			one, rest = scopes[:end], scopes[end+1:]
		}
		if why := permits(one, c, at); why != "" {
			return why
		}
		scopes = rest
	}
	return ""
}

// permits is Permits of one authority.
func permits(scopes []string, c Scoped, at time.Time) string {
	var tools, effects, tenants dimension
	for _, s := range scopes {
		kind, value, _ := strings.Cut(s, ":")
		switch kind {
		case ScopeTool:
			tools.add(MatchTool(value, c.Queue, c.Tool))
		case ScopeEffect:
			effects.add(value == effective(c.Effect))
		case ScopeTenant:
			tenants.add(value == c.Tenant)
		case ScopeSpend: // is counted, see SpendLimit
		case ScopeFrom, ScopeUntil:
			t, err := time.Parse(time.RFC3339, value)
			if err != nil || at.Before(t) != (kind == ScopeUntil) {
				return "the authority of this run is not valid now"
			}
		default:
			return fmt.Sprintf("the authority of this run holds %.80q, which is no scope", s)
		}
	}
	switch {
	case tools.closed():
		return fmt.Sprintf("the tool %.80q is outside the authority of this run", c.Tool)
	case effects.closed():
		return fmt.Sprintf("the effect %q of the tool %.80q is outside the authority of this run", effective(c.Effect), c.Tool)
	case tenants.closed():
		return "the tenant is outside the authority of this run"
	}
	return ""
}

// effective is an effect as it counts: one that nobody knows is destructive.
func effective(effect string) string {
	switch effect {
	case EffectRead, EffectWrite, EffectNetwork:
		return effect
	}
	return EffectDestructive
}

// dimension is one kind of scopes of an authority.
type dimension struct{ named, open bool }

func (d *dimension) add(allows bool) { d.named, d.open = true, d.open || allows }
func (d dimension) closed() bool     { return d.named && !d.open }

// Within returns an authority that allows what both a and b allow. No scopes at all bound nothing.
func Within(a, b []string) []string {
	switch {
	case len(b) == 0 || slices.Equal(a, b):
		return a
	case len(a) == 0:
		return b
	}
	return slices.Concat(a, []string{ScopeAnd}, b)
}

// SpendLimit returns the lowest amount, in US dollars, that an authority allows to spend; ok is false when it names none.
// An amount that cannot be read is 0.
func SpendLimit(scopes []string) (usd float64, ok bool) {
	for _, s := range scopes {
		value, is := strings.CutPrefix(s, ScopeSpend+":")
		if !is {
			continue
		}
		n, err := strconv.ParseFloat(value, 64)
		if err != nil || !(n >= 0) {
			n = 0
		}
		if !ok || n < usd {
			usd, ok = n, true
		}
	}
	return usd, ok
}
