package loop

import "errors"

// Errors of a run. All but ErrUnanswered mean that the run is over for this process.
var (
	// ErrRunExists is returned by Start for an id that is taken.
	ErrRunExists = errors.New("run exists")
	// ErrNoRun is returned by Resume for an id that nobody knows.
	ErrNoRun = errors.New("there is no such run")
	// ErrNotResumable is returned by Resume for a run that is no agent's, or whose agent this process cannot be.
	ErrNotResumable = errors.New("the run cannot go on here")
	// ErrFenced: another owner has taken the run. This process writes nothing more to it.
	ErrFenced = errors.New("another owner has taken the run")
	// ErrStopped: a stop slot stands in the run. Its calls are settled and it is closed.
	ErrStopped = errors.New("the run was stopped")
	// ErrClosed: the run is closed.
	ErrClosed = errors.New("the run is closed")
	// ErrYielded: the run was handed back for another orchestrator to go on with.
	ErrYielded = errors.New("the run is handed back")
	// ErrParked: the run waits for other agents, for a message, or for people to decide about calls. It holds no slot
	// meanwhile, and whoever takes it later goes on with it.
	ErrParked = errors.New("the run is parked: it waits for other agents, a message or an approval")
	// ErrUnanswered is returned by Close when a message waits for an answer. Work answers it; a second Close closes
	// regardless.
	ErrUnanswered = errors.New("a message came that is not answered")
)

// errWallClock is the cause of contexts that the wall clock of an exchange ends.
var errWallClock = errors.New("the exchange's wall clock ran out")
