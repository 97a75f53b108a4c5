package schema

import (
	"context"
	"errors"
	"io"
)

type progressKey struct{}

// WithProgress returns a context whose Progress reports go to sink. The sink must not block and may be called from
// several goroutines.
func WithProgress(ctx context.Context, sink func(text string)) context.Context {
	return context.WithValue(ctx, progressKey{}, sink)
}

// Progress reports what a running call has to say before its result: a line of output, a state. It is best effort;
// without a sink it does nothing.
func Progress(ctx context.Context, text string) {
	if sink, ok := ctx.Value(progressKey{}).(func(string)); ok {
		sink(text)
	}
}

// Attempt is one delivery of a call to a worker that runs it.
type Attempt interface {
	// Number says which delivery of its call it is, from 1.
	Number() uint64
	// Keep stores the whole output of the call, see KeepOutput.
	Keep(whole io.ReadSeeker) error
}

type attemptKey struct{}

// WithAttempt returns a context in which the attempt a runs.
func WithAttempt(ctx context.Context, a Attempt) context.Context {
	return context.WithValue(ctx, attemptKey{}, a)
}

// Delivery returns which delivery of its call is running, from 1; 0 when nobody delivered it. It grows with every
// attempt, but not only with attempts: a worker that gave the call back counts too.
func Delivery(ctx context.Context) uint64 {
	if a, ok := ctx.Value(attemptKey{}).(Attempt); ok {
		return a.Number()
	}
	return 0
}

// ErrNoKeeper: nobody keeps the whole output of a call here.
var ErrNoKeeper = errors.New("nobody keeps whole outputs here")

// KeepOutput stores the whole output of the running call beside its result, for a tool that returns only a part of it
// because the whole would not fit into memory. It reads whole twice, up to MaxPayload bytes. An error, such as
// ErrNoKeeper, says that the rest is lost.
func KeepOutput(ctx context.Context, whole io.ReadSeeker) error {
	if a, ok := ctx.Value(attemptKey{}).(Attempt); ok {
		return a.Keep(whole)
	}
	return ErrNoKeeper
}

// Scene is what surrounds a call where it is decided about.
type Scene struct {
	Run, Agent  string // ids
	Environment string // of the agent, such as production
	Principal   Principal
	Depth       int // runs above this one
}

type sceneKey struct{}

// WithScene returns a context in which the guards of a run are asked.
func WithScene(ctx context.Context, s Scene) context.Context {
	return context.WithValue(ctx, sceneKey{}, s)
}

// SceneOf returns the scene of a guard's context; the zero Scene elsewhere.
func SceneOf(ctx context.Context) Scene {
	s, _ := ctx.Value(sceneKey{}).(Scene)
	return s
}
