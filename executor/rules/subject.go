package rules

import (
	"encoding/json"
	"errors"
	"fmt"
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

// facts are a subject's variables. It stands apart so that a call which meets no condition needs no memory for it.
type facts struct {
	tool, queue, source, effect, environment string
	principal                                map[string]string
	args                                     map[string]any
}

var _ cel.Activation = (*facts)(nil)

// known returns the variables of the subject. An error says that its arguments cannot be read.
func (s *subject) known() (*facts, error) {
	if s.facts != nil {
		return s.facts, nil
	}
	args, err := decode(s.call.Args)
	if err != nil {
		return nil, err
	}
	s.facts = &facts{
		tool: s.tool, queue: s.queue, source: s.call.Source, effect: s.effect, environment: s.environment, args: args,
		principal: map[string]string{fieldID: s.scene.Principal.ID, fieldTenant: s.scene.Principal.Tenant},
	}
	return s.facts, nil
}

// decode reads arguments; numbers stay what they are written as, so that an integer is one in conditions too.
func decode(text schema.JSONText) (args map[string]any, err error) {
	dec := json.NewDecoder(strings.NewReader(string(text)))
	dec.UseNumber()
	if err := dec.Decode(&args); err != nil {
		return nil, fmt.Errorf("the arguments cannot be read: %w", err)
	}
	if args == nil || dec.More() {
		return nil, errors.New("the arguments are not one object")
	}
	return args, nil
}

// ResolveName returns the value of a variable.
func (f *facts) ResolveName(name string) (any, bool) {
	switch name {
	case varArgs:
		return f.args, true
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
		return f.principal, true
	}
	return nil, false
}

// Parent returns nil: there are no other variables.
func (f *facts) Parent() cel.Activation { return nil }
