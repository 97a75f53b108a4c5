package agentfile

import (
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"

	"github.com/jetcrew/jetcrew/schema"
)

// filters reads the list of filters. Of one that is wrong something stays in the list, so that places stay.
func (r *reader) filters(f field) []schema.FilterRule {
	var list []schema.FilterRule
	for _, n := range r.list(f, "filters") {
		before := len(r.problems)
		fields := r.object(n, shapeFilter())
		rule := schema.FilterRule{
			Name:  r.filled(fields[fieldName]),
			Tools: r.some(fields[fieldTools], "names"),
			When:  r.filled(fields[fieldWhen]),
		}
		var ok bool
		rule.Action, rule.Text, ok = r.action(fields, filterActions)
		if _, isMap := n.(ast.MapNode); isMap && !ok {
			r.fail(n, CodeActionRequired, "filter: one of block, guide, fallback and allow is missing")
		}
		if len(r.problems) > before {
			rule.Action = "" // nobody knows what it would decide
		}
		list = append(list, rule)
	}
	return list
}

// policy reads which calls may run; nil: the file says nothing of it.
func (r *reader) policy(f field) *schema.Policy {
	if f.null() {
		return nil
	}
	fields := r.object(f.value, shapePolicy())
	return &schema.Policy{
		Presets:   r.texts(fields[fieldPresets], "names"),
		Rules:     r.rules(fields[fieldRules]),
		Default:   schema.Action(r.choice(fields[fieldDefault], CodeDefaultUnknown, defaults)),
		Autonomy:  r.choice(fields[fieldAutonomy], CodeAutonomyUnknown, autonomies),
		ExpiresMS: r.bound(fields[fieldExpires], "expiresMillis"),
	}
}

func (r *reader) rules(f field) []schema.PolicyRule {
	var list []schema.PolicyRule
	for _, n := range r.list(f, "rules") {
		fields := r.object(n, shapeRule())
		rule := schema.PolicyRule{
			Name:         r.filled(fields[fieldName]),
			Tools:        r.some(fields[fieldTools], "names"),
			Effects:      r.among(fields[fieldEffects], CodeEffectUnknown, effects),
			Environments: r.some(fields[fieldEnvironments], "names"),
			When:         r.filled(fields[fieldWhen]),
			Risk:         r.choice(fields[fieldRisk], CodeRiskUnknown, risks),
		}
		var ok bool
		rule.Action, rule.Text, ok = r.action(fields, ruleActions)
		if _, isMap := n.(ast.MapNode); isMap && !ok && fields[fieldRisk].null() {
			r.fail(n, CodeActionRequired, "rule: one of allow, deny, ask and risk is missing")
		}
		list = append(list, rule)
	}
	return list
}

// action reads what becomes of a call, and why; ok is false when no field says it.
func (r *reader) action(fields map[string]field, actions []action) (does schema.Action, why string, ok bool) {
	var first field
	for _, a := range actions {
		f := fields[a.field]
		switch {
		case f.null():
			continue
		case ok:
			r.failAt(f.key, CodeActionSeveral, "%s and %s: keep one", first.name, f.name)
			continue
		}
		does, why, first, ok = a.means, r.reason(f, a), f, true
	}
	return does, why, ok
}

// switches are texts that look like true or false, and are neither.
var switches = []string{"yes", "no", "on", "off", "true", "false"}

// reason reads the value of an action: its text, or true where none is needed.
func (r *reader) reason(f field, a action) string {
	want := "a text, or true"
	if a.text {
		want = "the text that the model reads"
	}
	switch n := f.value.(type) {
	case *ast.StringNode:
		if s := strings.TrimSpace(n.Value); s != "" && !contains(switches, strings.ToLower(s)) {
			return s
		}
	case *ast.BoolNode:
		if n.Value && !a.text {
			return ""
		}
	}
	r.fail(f.value, CodeActionInvalid, "%s: want %s, got %s", f.name, want, describe(f.value))
	return ""
}

// authority reads the scopes that bound every run.
func (r *reader) authority(f field) []string {
	scopes := r.texts(f, "scopes")
	for i, n := range r.values(f) {
		if scopes[i] == "" {
			continue
		}
		about := scopes[i : i+1]
		if scopes[i] == schema.ScopeAnd { // what is wrong with it is what stands beside it
			about = scopes[max(0, i-1):min(len(scopes), i+2)]
			if slices.ContainsFunc(about, isNoScope) {
				continue // that is said there
			}
		}
		if err := schema.CheckScopes(about); err != nil {
			r.fail(n, CodeScope, "authority: %v", err)
		}
	}
	return scopes
}

// isNoScope tells whether an entry is wrong by itself.
func isNoScope(scope string) bool {
	return scope != schema.ScopeAnd && schema.CheckScopes([]string{scope}) != nil
}
