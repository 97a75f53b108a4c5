package executor

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// QueueLocal is the queue of tools that run in the process of their agent, unless it names another.
const QueueLocal = "local"

// Service offers tools that are not of this program but are run by it, such as those of an MCP server.
type Service interface {
	// Name is the source of its tools.
	Name() string
	// Tools returns its tools, ready to run. It is asked once.
	Tools(ctx context.Context) ([]Tool, error)
}

// Wiring says what an agent sees and what runs it, whichever way its tools come in. Whatever is left out is empty:
// without any tools the model sees none and nothing may run.
//
// The default executor runs exactly the tools that are wired here: those of Names, or all of them, and the services'.
// That list constrains only the default executor; an Executor of one's own gets every call.
type Wiring struct {
	Names      []string      // of the tools of Toolkits and Tools: which of them the model sees and the default executor runs; nil: all
	Toolkits   []string      // toolkits, by their names in Table
	Table      Toolkits      // where toolkits are found
	Tools      []Tool        // your own code, see Func, Methods and Dynamic
	Services   []Service     // servers, each with all of its tools
	Schemas    []schema.Tool // definitions that only Executor can run
	Discovered []Registry    // what runs elsewhere, such as the selection of a bus
	Executor   Execute       // runs the calls instead of the default executor
	Wrappers   []Wrapper     // around whichever executor it is, the first of them outermost
	Queue      string        // of the calls that run here; default QueueLocal
	Grace      time.Duration // as in Config
	Logger     *slog.Logger  // as in Config
}

// Wired is a Registry together with what runs its calls.
type Wired struct {
	*Definitions
	// Set runs what is not discovered: hand it to Local, or to workers of its queue. It is nil when there is nothing to run.
	Set *Set
}

// Build puts everything together, or says all that is wrong: a toolkit that is unknown or unavailable, a name that no
// tool has, a name that two tools have, a definition that nothing here can run.
func (w Wiring) Build(ctx context.Context) (*Wired, error) {
	tools, err := w.gather(ctx)
	if err == nil {
		err = w.missing()
	}
	if err != nil {
		return nil, fmt.Errorf("wire tools: %w", err)
	}
	if w.Queue == "" {
		w.Queue = QueueLocal
	}
	defs, err := w.definitions(tools)
	if err != nil {
		return nil, fmt.Errorf("wire tools: %w", err)
	}
	wired := &Wired{Definitions: defs}
	if len(tools)+len(w.Schemas) == 0 {
		return wired, nil
	}
	if wired.Set, err = w.set(tools); err != nil {
		return nil, fmt.Errorf("wire tools: %w", err)
	}
	return wired, nil
}

// gather returns the tools that can run here by themselves.
func (w Wiring) gather(ctx context.Context) ([]Tool, error) {
	local := slices.Clone(w.Tools)
	var errs []error
	for _, name := range w.Toolkits {
		kit, err := w.Table.Open(name)
		errs = append(errs, err)
		local = append(local, kit...)
	}
	local, err := pick(local, w.Names)
	if len(errs) == 0 || errors.Join(errs...) == nil { // a toolkit that is missing explains every name that is
		errs = append(errs, err)
	}
	for _, s := range w.Services {
		offered, err := offer(ctx, s)
		errs = append(errs, err)
		local = append(local, offered...)
	}
	return local, errors.Join(errs...)
}

// pick returns the tools with these names; nil names: all.
func pick(tools []Tool, names []string) ([]Tool, error) {
	if names == nil {
		return tools, nil
	}
	known := make([]string, len(tools))
	for i := range tools {
		known[i] = tools[i].Name
	}
	var errs []error
	for _, n := range names {
		if !slices.Contains(known, n) {
			errs = append(errs, errors.New(schema.Unknown(n, known).Message))
		}
	}
	tools = slices.DeleteFunc(tools, func(t Tool) bool { return !slices.Contains(names, t.Name) })
	return tools, errors.Join(errs...)
}

// offer returns a service's tools under its name.
func offer(ctx context.Context, s Service) ([]Tool, error) {
	tools, err := s.Tools(ctx)
	if err != nil {
		return nil, fmt.Errorf("service %q: %w", s.Name(), err)
	}
	for i := range tools {
		t := &tools[i]
		t.Tool = Described(t.Tool, "")
		t.origin = fmt.Sprintf("service %q", s.Name())
		if t.Source == "" {
			t.Source = s.Name()
		}
	}
	return tools, nil
}

// missing says which definitions nothing could run.
func (w Wiring) missing() error {
	switch {
	case w.Executor != nil && len(w.Schemas)+len(w.Tools)+len(w.Toolkits)+len(w.Services) == 0:
		return errors.New("an Executor is set and has nothing to run: set Schemas to what it runs")
	case len(w.Schemas) == 0 || w.Executor != nil:
		return nil
	}
	names := make([]string, len(w.Schemas))
	for i, t := range w.Schemas {
		names[i] = strconv.Quote(t.Name)
	}
	return fmt.Errorf("nothing runs %s: a definition comes without code, so set Executor, or have workers offer the tool and set Discovered", strings.Join(names, ", "))
}

// definitions checks every name against every other, whichever way it came in.
func (w Wiring) definitions(tools []Tool) (*Definitions, error) {
	var fixed []definition
	for _, t := range tools {
		t.Queue = w.Queue
		fixed = append(fixed, definition{t.WithDigest(), t.where()})
	}
	for _, t := range w.Schemas {
		t.Queue = w.Queue
		fixed = append(fixed, definition{t.WithDigest(), "a definition of your own"})
	}
	here, err := newDefinitions(false, fixed...)
	if err != nil {
		return nil, err
	}
	return Composite(append([]Registry{here}, w.Discovered...)...)
}

func (w Wiring) set(tools []Tool) (*Set, error) {
	for _, def := range w.Schemas {
		tools = append(tools, Tool{Tool: def, Run: notHere})
	}
	set, err := Config{Queue: w.Queue, Grace: w.Grace, Logger: w.Logger}.NewSet(tools...)
	if err != nil {
		return nil, err
	}
	if w.Executor != nil {
		set = set.handOver(w.Executor)
	}
	return set.With(w.Wrappers...), nil
}
