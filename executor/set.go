package executor

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// MaxOutput bounds the output of a call, in bytes; a longer one is TooLarge.
const MaxOutput = schema.MaxPayload

// Config sets up a Set.
type Config struct {
	Queue            string        // queue that its workers serve, see schema.CheckQueue
	Grace            time.Duration // how long a handler may go on after its context ended; default 2 s
	Logger           *slog.Logger  // for panics; default slog.Default()
	RequireAuthority bool          // refuse calls whose principal states no scopes, see schema.Permits
}

func (c Config) withDefaults() Config {
	if c.Grace <= 0 {
		c.Grace = 2 * time.Second
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) validate() error { return schema.CheckQueue(c.Queue) }

// Set is the tools of one queue, ready to run calls. It does not change after its construction and is safe for
// concurrent use.
type Set struct {
	queue     string
	tools     map[string]*Tool
	names     []string // sorted
	validator *schema.Validator
	guard     *guard
	required  bool // the authority of a call
	execute   Execute
}

// NewSet returns the set of tools that workers of queue have, with the defaults of Config. A tool that cannot be
// used and a name that two tools share are errors that say which.
func NewSet(queue string, tools ...Tool) (*Set, error) { return Config{Queue: queue}.NewSet(tools...) }

// NewSet is the function NewSet with settings of one's own.
func (c Config) NewSet(tools ...Tool) (*Set, error) {
	if err := c.validate(); err != nil {
		return nil, fmt.Errorf("tool set: %w", err)
	}
	c = c.withDefaults()
	s := &Set{
		queue: c.Queue, tools: make(map[string]*Tool, len(tools)),
		validator: schema.NewValidator(), guard: &guard{grace: c.Grace, log: c.Logger}, required: c.RequireAuthority,
	}
	s.execute = s.run
	for i, t := range tools {
		if err := s.add(t); err != nil {
			return nil, fmt.Errorf("tool set %q: tool %d: %w", c.Queue, i+1, err)
		}
	}
	slices.Sort(s.names)
	return s, nil
}

func (s *Set) add(t Tool) error {
	if err := t.check(); err != nil {
		return err
	}
	if other := s.tools[t.Name]; other != nil {
		return fmt.Errorf("the name %q is taken: this tool is %s, %q, the other %s, %q", t.Name,
			t.where(), schema.Cut(t.Description, 80), other.where(), schema.Cut(other.Description, 80))
	}
	t.Tool = t.WithDigest()
	t.Queue = s.queue
	s.tools[t.Name] = &t
	s.names = append(s.names, t.Name)
	return nil
}

// With returns a set of the same tools whose calls pass through the wrappers w, the first of them outermost, before
// they reach s. Both share one count of abandoned handlers.
func (s *Set) With(w ...Wrapper) *Set {
	wrapped := *s
	wrapped.execute = Chain(s.execute, w...)
	return &wrapped
}

// Queue returns the queue of the set.
func (s *Set) Queue() string { return s.queue }

// Tools returns the definitions of the set's tools by name, with queue and digest filled in.
func (s *Set) Tools() []schema.Tool {
	tools := make([]schema.Tool, len(s.names))
	for i, name := range s.names {
		tools[i] = s.tools[name].Tool
	}
	return tools
}

// definitions returns the set's tools with where they come from.
func (s *Set) definitions() []definition {
	list := make([]definition, len(s.names))
	for i, name := range s.names {
		list[i] = definition{s.tools[name].Tool, s.tools[name].where()}
	}
	return list
}

// Abandoned returns how many handlers were given up after their context and its grace ended and still run. Each
// holds what it holds: a worker with too many of them should end.
func (s *Set) Abandoned() int64 { return s.guard.abandoned.Load() }

// Execute is the Execute of the set: authority, wrappers, look-up, structural validation, then the tool under the guard.
// It returns at the latest one grace after ctx, the call's timeout or the tool's own timeout has ended. Whatever the
// tool does is a result; under a context that has ended already it does not start. A call is Pending only if an idempotent tool returned a Transient error for a call that is
// idempotent too.
func (s *Set) Execute(ctx context.Context, call *schema.Call) (res schema.Result, pending *schema.Pending) {
	defer func() {
		if v := recover(); v != nil { // a wrapper's; a tool's own never comes here
			p := newPanicError(v)
			s.guard.logPanic(ctx, call, p)
			res, pending = fail(call, schema.Panic, p.Error()), nil
		}
	}()
	call, err := canonical(call)
	if err != nil {
		return refuse(ctx, call, err)
	}
	if err := s.outside(call); err != nil {
		return refuse(ctx, call, err)
	}
	return s.execute(ctx, call)
}

// canonical returns the call with its arguments and bound values in their one form, which wrappers, validation and tool
// all see: a call may have been published by anyone who may publish.
func canonical(call *schema.Call) (*schema.Call, *schema.Error) {
	args, _, err := schema.Canonical(string(call.Args))
	if err != nil {
		return call, err
	}
	bound, err := canonicalBound(call.Bound, args)
	if err != nil || args == call.Args && bound == call.Bound {
		return call, err
	}
	changed := *call
	changed.Args, changed.Bound = args, bound
	return &changed, nil
}

// outside refuses a call that its principal's scopes do not allow.
func (s *Set) outside(call *schema.Call) *schema.Error {
	effect := ""
	if tool := s.tools[call.Tool]; tool != nil {
		effect = tool.Effect
	}
	if why := outside(call, authority{s.queue, effect, s.required}); why != "" {
		return denied(why)
	}
	return nil
}

// run is the innermost Execute. It asks for the authority again, since a wrapper may have passed on another call.
func (s *Set) run(ctx context.Context, call *schema.Call) (schema.Result, *schema.Pending) {
	if err := s.outside(call); err != nil {
		return refuse(ctx, call, err)
	}
	tool := s.tools[call.Tool]
	if tool == nil {
		return refuse(ctx, call, schema.Unknown(call.Tool, s.names))
	}
	if err := s.validator.Check(&tool.Tool, call.Args); err != nil {
		return refuse(ctx, call, err)
	}
	return s.guarded(ctx, tool, call)
}

func refuse(ctx context.Context, call *schema.Call, err *schema.Error) (schema.Result, *schema.Pending) {
	report(ctx, err)
	return fail(call, err.Type, err.Message), nil
}

func (s *Set) guarded(ctx context.Context, tool *Tool, call *schema.Call) (schema.Result, *schema.Pending) {
	limit := timeout(call.TimeoutMS, tool.TimeoutMS)
	toolCtx := context.WithValue(withoutReport(ctx), callKey{}, call)
	if limit > 0 {
		var cancel context.CancelFunc
		toolCtx, cancel = context.WithTimeoutCause(toolCtx, limit, errTimeout)
		defer cancel()
	}
	out, err := "", errNotStarted
	if toolCtx.Err() == nil {
		out, err = s.guard.do(toolCtx, tool, call)
	}
	if err != nil {
		report(ctx, err)
		return settle(toolCtx, settling{call: call, err: err, idempotent: tool.Idempotent && call.Idempotent, timeout: limit})
	}
	return done(call, out), nil
}

// timeout returns the lower of two bounds in milliseconds, 0 if there is none.
func timeout(a, b int64) time.Duration {
	ms := cmp.Or(max(a, 0), max(b, 0))
	if b > 0 {
		ms = min(ms, b)
	}
	if ms > math.MaxInt64/int64(time.Millisecond) {
		return 0
	}
	return time.Duration(ms) * time.Millisecond
}

func done(call *schema.Call, out string) schema.Result {
	if len(out) <= MaxOutput {
		out = clean(out) // may make it longer
	}
	if len(out) > MaxOutput {
		return call.Failf(schema.TooLarge, "the output has %d bytes, more than the limit of %d; ask for less of it", len(out), MaxOutput)
	}
	return call.Done(out)
}
