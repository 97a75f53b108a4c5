package rules

import (
	"encoding/json"
	"errors"
	"strings"

	"cel.dev/cel-go/cel"

	"github.com/jetcrew/jetcrew/schema"
)

// subject is a call as rules see it.
type subject struct {
	queue, tool string // its identity: what its queue calls it
	exposed     string // what the model calls it, where that is another name
	effect      string // one that nobody knows is destructive
	environment string
	call        *schema.TurnCall
	scene       *schema.Scene
	facts       *facts // for conditions; made when the first is met
}

func newSubject(c *schema.TurnCall, scene *schema.Scene, environment string) subject {
	s := subject{queue: c.Queue, tool: c.Tool, effect: effective(c.Effect), environment: environment, call: c, scene: scene}
	if c.Target != "" && c.Target != c.Tool {
		s.tool, s.exposed = c.Target, c.Tool
	}
	return s
}

// effective is an effect as it counts.
func effective(effect string) string {
	switch effect {
	case schema.EffectRead, schema.EffectWrite, schema.EffectNetwork:
		return effect
	}
	return schema.EffectDestructive
}

// The variables of conditions.
const (
	varArgs        = "args"
	varTool        = "tool"
	varQueue       = "queue"
	varSource      = "source"
	varEffect      = "effect"
	varEnvironment = "environment"
	varPrincipal   = "principal"

	fieldID     = "id"
	fieldTenant = "tenant"
)

// facts are a subject's variables. They stand apart so that a call which meets no condition needs no memory for them.
type facts struct {
	tool, queue, source, effect, environment string
	principal                                schema.Principal
	args                                     arguments
}

var _ cel.Activation = (*facts)(nil)

var errArguments = errors.New("the arguments are no JSON object")

// known returns the variables of the subject. An error says that its arguments cannot be read.
func (s *subject) known() (*facts, error) {
	if s.facts != nil {
		return s.facts, nil
	}
	text := strings.TrimSpace(string(s.call.Args))
	if !strings.HasPrefix(text, "{") || !json.Valid([]byte(text)) {
		return nil, errArguments
	}
	s.facts = &facts{
		tool: s.tool, queue: s.queue, source: s.call.Source, effect: s.effect, environment: s.environment,
		principal: s.scene.Principal, args: arguments{text: text},
	}
	return s.facts, nil
}

// ResolveName returns the value of a variable.
func (f *facts) ResolveName(name string) (any, bool) {
	switch name {
	case varArgs:
		return &f.args, true
	case varTool:
		return f.tool, true
	case varQueue:
		return f.queue, true
	case varSource:
		return f.source, true
	case varEffect:
		return f.effect, true
	case varEnvironment:
		return f.environment, true
	case varPrincipal:
		return map[string]string{fieldID: f.principal.ID, fieldTenant: f.principal.Tenant}, true
	}
	return nil, false
}

// Parent returns nil: there are no other variables.
func (f *facts) Parent() cel.Activation { return nil }
