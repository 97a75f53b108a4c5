package loop

import (
	"context"

	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// Journal records and reads the facts of runs. All methods may be called concurrently. The caller bounds each call
// with its context.
type Journal interface {
	// Append records payload as the fact key of run, once, and returns its sequence. unless names a fact that must be
	// absent (the zero Key: none). Errors, to be told apart by errors.Is: schema.ErrExists, schema.ErrGuarded;
	// anything else is trouble with the transport.
	Append(ctx context.Context, run string, key schema.Key, payload schema.Encodable, unless schema.Key) (seq uint64, err error)
	// Facts returns the facts of run in stored order, all of them or those of the given kinds. upto is the sequence of
	// one of these facts that the caller wrote, which makes it a barrier: at least up to there nothing is missing; 0: none.
	// Of the kinds open and close one alone is read where its absence can be told.
	Facts(ctx context.Context, run string, upto uint64, kinds ...schema.Kind) ([]schema.Fact, error)
	// Watch makes this process hear the run until stop is called, which returns when heard is not running any more.
	// heard gets at least the ctl, say, verdict and close facts; they are hints, may be lost or come twice. heard must not block.
	Watch(ctx context.Context, run string, heard func(schema.Fact)) (stop func(), err error)
}

// Dispatcher has calls executed. It may be called concurrently.
type Dispatcher interface {
	// Start publishes decided calls of one run, in their order, and returns. A cancelled call's result is Cancelled or
	// OutcomeUnknown.
	Start(calls ...schema.Dispatch)
}

// Registry says what the model sees now. It is asked before each turn and must be cheap. An error ends the exchange
// with schema.ReasonNoTools.
type Registry interface {
	Tools(ctx context.Context) ([]schema.Tool, error)
}

// Model answers requests; it is not asked again before it has returned. It must return when ctx ends. Failures are
// *model.Error, or model.ErrEnd when a recorded model has no more answers.
type Model interface {
	Generate(ctx context.Context, req *model.Request) (*model.Response, error)
}

// Guard decides about calls before their turn is written, and may change what memory shows of their results. Guards
// form a chain in the order of Config.Guards. Their methods are called by one goroutine per run.
type Guard interface {
	// Decide returns what is to become of a call that is structurally valid. The zero Action and ActionAllow let it
	// go on to the next guard; the first other decision wins, but that an ActionAsk goes on too, so that a person is not
	// asked about what a later guard refuses. It may set call.Bound, and call.Args, which are then
	// validated again; other changes are undone. The context holds the schema.Scene of the run. A panic is a denial.
	Decide(ctx context.Context, call *schema.TurnCall) schema.Decision
	// Settle sees the result of a call that was let through, perhaps by a person, and what the guards before it made of its text. changed
	// says that memory shows view instead. A panic withholds the output.
	Settle(ctx context.Context, call *schema.TurnCall, result *schema.Result) (view string, changed bool)
}
