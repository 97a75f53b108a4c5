package executor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// Registry answers one question: which definitions go to the model. It runs nothing and permits nothing. Tools is asked
// before each turn, perhaps by several runs at once, and must be cheap.
type Registry interface {
	Tools(ctx context.Context) ([]schema.Tool, error)
}

// Prefixes of the names that are Jetcrew's own. Only Own makes definitions with such names; a worker may offer them on
// the queue agents, where only orchestrators are.
const (
	PrefixTeam     = "team_"
	PrefixSubagent = "subagent_"
)

// Definitions is a Registry that knows where each of its tools comes from. It does not change after its construction,
// though what it discovers does, and is safe for concurrent use. The zero value shows nothing.
type Definitions struct {
	fixed []definition // sorted by name
	live  []discovered
}

// definition is a tool with the place it comes from, for people.
type definition struct {
	schema.Tool
	origin string
}

// where says where the tool comes from.
func (d *definition) where() string {
	switch {
	case d.Source != "":
		return fmt.Sprintf("%s, source %q", d.origin, schema.Cut(d.Source, 80))
	case d.Queue != "":
		return fmt.Sprintf("%s, queue %q", d.origin, d.Queue)
	}
	return d.origin
}

// discovered is a registry that is asked each time.
type discovered struct {
	origin string
	from   Registry
}

// Empty returns the registry that shows nothing, which is what an agent without a registry has.
func Empty() *Definitions { return &Definitions{} }

// Static returns the registry of these definitions. Origin says for people where they come from, such as a file's
// name. A definition that cannot be offered, a name that two of them share and a reserved name are errors.
func Static(origin string, tools ...schema.Tool) (*Definitions, error) {
	return newDefinitions(false, definitionsOf(origin, tools)...)
}

// Own is Static for the tools of Jetcrew itself, whose names are reserved.
func Own(origin string, tools ...schema.Tool) (*Definitions, error) {
	return newDefinitions(true, definitionsOf(origin, tools)...)
}

// Sets returns the registry of all tools of the sets.
func Sets(sets ...*Set) (*Definitions, error) {
	var all []definition
	for _, s := range sets {
		all = append(all, s.definitions()...)
	}
	return newDefinitions(false, all...)
}

// Discovered returns a registry that shows what from offers at the moment, such as a bus's selection of what workers
// offer. A tool without a description is described by its name. What is wrong is found when Tools is called.
func Discovered(origin string, from Registry) *Definitions {
	return &Definitions{live: []discovered{{origin, from}}}
}

// Composite returns the registry of everything that the parts show. A name that two of them share is an error that
// names both origins: here if both are known by now, from Tools otherwise. A part that is not of this package counts as
// discovered.
func Composite(parts ...Registry) (*Definitions, error) {
	all := &Definitions{}
	for i, p := range parts {
		d, ok := p.(*Definitions)
		switch {
		case p == nil:
			return nil, fmt.Errorf("registry %d is nil; leave it out, or use Empty", i+1)
		case ok && d == nil:
			return nil, fmt.Errorf("registry %d is nil; leave it out, or use Empty", i+1)
		case !ok:
			d = Discovered(fmt.Sprintf("registry %d", i+1), p)
		}
		all.fixed = append(all.fixed, d.fixed...)
		all.live = append(all.live, d.live...)
	}
	if err := sortUnique(all.fixed); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return all, nil
}

func definitionsOf(origin string, tools []schema.Tool) []definition {
	list := make([]definition, len(tools))
	for i, t := range tools {
		list[i] = definition{t.WithDigest(), origin}
	}
	return list
}

func newDefinitions(own bool, list ...definition) (*Definitions, error) {
	for i := range list {
		if err := list[i].check(own); err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
	}
	if err := sortUnique(list); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return &Definitions{fixed: list}, nil
}

func (d *definition) check(own bool) error {
	if err := schema.CheckTool(&d.Tool); err != nil {
		return fmt.Errorf("%w (%s)", err, d.where())
	}
	if !own {
		return d.checkReserved()
	}
	return nil
}

// checkReserved refuses a name of Jetcrew's own, in any case: names that differ only in case are one to a model.
func (d *definition) checkReserved() error {
	for _, prefix := range []string{PrefixTeam, PrefixSubagent} {
		if len(d.Name) >= len(prefix) && strings.EqualFold(d.Name[:len(prefix)], prefix) && d.Queue != schema.QueueAgents {
			return fmt.Errorf("tool %q (%s): names that begin with %s are reserved for Jetcrew's own tools; give it another name", d.Name, d.where(), prefix)
		}
	}
	return nil
}

// sortUnique sorts by name and refuses a name that occurs twice.
func sortUnique(list []definition) error {
	slices.SortStableFunc(list, func(a, b definition) int { return strings.Compare(a.Name, b.Name) })
	for i := 1; i < len(list); i++ {
		if list[i-1].Name == list[i].Name {
			return fmt.Errorf("two tools have the name %q: one of %s, one of %s; leave one out or rename it", list[i].Name, list[i-1].where(), list[i].where())
		}
	}
	return nil
}

// Tools returns the definitions by name. An error is a source that cannot say what it offers, or a name that two of the
// sources share.
func (d *Definitions) Tools(ctx context.Context) ([]schema.Tool, error) {
	list, err := d.list(ctx)
	if err != nil {
		return nil, err
	}
	tools := make([]schema.Tool, len(list))
	for i := range list {
		tools[i] = list[i].Tool
	}
	return tools, nil
}

// Lookup returns the definition with exactly this name; found is false when there is none. Unlike a model's name it is
// not repaired.
func (d *Definitions) Lookup(ctx context.Context, name string) (t schema.Tool, found bool, err error) {
	list, err := d.list(ctx)
	if err != nil {
		return schema.Tool{}, false, err
	}
	i, found := slices.BinarySearchFunc(list, name, func(d definition, name string) int { return strings.Compare(d.Name, name) })
	if !found {
		return schema.Tool{}, false, nil
	}
	return list[i].Tool, true, nil
}

// Origin says for people where the tool of this name comes from, "" when there is none.
func (d *Definitions) Origin(ctx context.Context, name string) string {
	list, _ := d.list(ctx)
	for i := range list {
		if list[i].Name == name {
			return list[i].where()
		}
	}
	return ""
}

func (d *Definitions) list(ctx context.Context) ([]definition, error) {
	if len(d.live) == 0 {
		return d.fixed, nil
	}
	all := slices.Clone(d.fixed)
	for _, l := range d.live {
		offered, err := l.list(ctx)
		if err != nil {
			return nil, fmt.Errorf("registry: %w", err)
		}
		all = append(all, offered...)
	}
	if err := sortUnique(all); err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return all, nil
}

func (l discovered) list(ctx context.Context) ([]definition, error) {
	tools, err := l.from.Tools(ctx)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", l.origin, err)
	}
	list := make([]definition, len(tools))
	for i, t := range tools {
		list[i] = definition{Described(t, ""), l.origin}
		if strings.TrimSpace(t.Name) == "" {
			return nil, fmt.Errorf("a tool without a name is offered (%s)", list[i].where())
		}
		if err := list[i].checkReserved(); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// Described returns t with a description: its own, or else the title that its source gives it, or else its name.
func Described(t schema.Tool, title string) schema.Tool {
	for _, text := range []string{t.Description, title, t.Name} {
		if strings.TrimSpace(text) != "" {
			t.Description = text
			break
		}
	}
	return t
}
