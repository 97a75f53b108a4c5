package playback

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"sync/atomic"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

// Bus is what runs are recorded on and calls executed with, such as a *bus.Bus.
type Bus interface {
	loop.Journal
	loop.Dispatcher
}

// Player plays transcripts. It may be used by several goroutines at once.
type Player struct {
	Bus   Bus        // required
	Model loop.Model // required: answers each turn of each transcript, asked by the transcript's id
	Queue string     // required: whose workers execute the calls, which must be idempotent there
	Runs  string     // what the ids of the runs begin with, see RunID; such a run goes on where an earlier process left it. Empty: fresh ids

	// Yield is closed when the runs shall be left as they are, for another process to go on with; nil: never.
	Yield     <-chan struct{}
	Principal schema.Principal
	Instance  string           // id of this process; default a fresh one
	Events    func(loop.Event) // gets the events of all runs; nil: nobody listens
	Logger    *slog.Logger     // default: nothing is logged
}

// Outcome is what became of one transcript.
type Outcome struct {
	ID          string            `json:"id"`
	Run         string            `json:"run"`
	Resumed     bool              `json:"resumed"` // an earlier process had begun it, or played all of it
	Turns       int               `json:"turns"`
	Calls       int               `json:"calls"`
	Disordered  int               `json:"disordered"`  // turns whose results arrived in another order than their calls'
	Redelivered int               `json:"redelivered"` // calls whose result is not of their first delivery
	Workers     map[string]int    `json:"workers"`     // calls by instance
	Differences []Difference      `json:"differences"` // empty, never null: the run is what was recorded
	Recorded    replay.Transcript `json:"-"`           // the run as a transcript
}

// Play plays a transcript in a run of its own, up to the transcript's end, and compares. The error says that the run
// could not be played or read; what turned out otherwise than recorded stands in the outcome.
func (p *Player) Play(ctx context.Context, t *replay.Transcript) (*Outcome, error) {
	g := &game{player: p, transcript: t, order: newOrder(p.Events), tools: p.tools(t)}
	if err := g.play(ctx); err != nil {
		return nil, fmt.Errorf("replay %q: %w", t.ID, err)
	}
	o, err := g.compare(ctx)
	if err != nil {
		return nil, fmt.Errorf("compare %q: %w", t.ID, err)
	}
	return o, nil
}

// tools are those of the transcript as the workers of the queue have them.
func (p *Player) tools(t *replay.Transcript) []schema.Tool {
	tools := t.ToolDefs()
	for i := range tools {
		tools[i].Queue, tools[i].Idempotent, tools[i].Effect = p.Queue, true, schema.EffectRead
	}
	return tools
}

// game is one transcript being played.
type game struct {
	player     *Player
	transcript *replay.Transcript
	tools      []schema.Tool
	order      *order
	id         string // of the run
	resumed    bool
	run        *loop.Run // nil: it is closed already
	stopped    string    // why the run did not get as far as the transcript; empty: it did
}

// registry shows the tools of the transcript.
type registry []schema.Tool

func (r registry) Tools(context.Context) ([]schema.Tool, error) { return r, nil }

// bounded is a model that has no answers after a turn: the user speaks next, or the transcript ends.
type bounded struct {
	loop.Model
	last atomic.Int64
}

func (m *bounded) Generate(ctx context.Context, req *model.Request) (*model.Response, error) {
	if int64(req.Turn) > m.last.Load() {
		return nil, fmt.Errorf("turn %d: %w", req.Turn, model.ErrEnd)
	}
	return m.Model.Generate(ctx, req)
}

func (g *game) play(ctx context.Context) error {
	m := &bounded{Model: g.player.Model}
	agent, err := g.agent(m)
	if err != nil {
		return err
	}
	if err := g.begin(ctx, agent); err != nil || g.run == nil {
		return err
	}
	said := 0
	for _, e := range g.transcript.Exchanges() {
		for _, text := range e.Says {
			said++
			if err := g.run.TellOnce(ctx, schema.SourceTranscript+strconv.Itoa(said), text); err != nil {
				return err
			}
		}
		m.last.Store(int64(e.Last))
		if err := g.workUpTo(ctx, e.Last); err != nil {
			return err
		}
	}
	return g.close(ctx)
}

func (g *game) agent(m loop.Model) (*loop.Agent, error) {
	return loop.New(loop.Config{
		Agent: schema.AgentSpec{
			ID: g.transcript.ID, Instructions: g.transcript.System(),
			Model:    schema.ModelSpec{Provider: replay.Provider, Name: g.transcript.ID},
			Parallel: schema.Parallel{Calls: true},
		},
		Model: m, Bus: g.player.Bus, Registry: registry(g.tools), Events: g.order.event, NoLimits: true,
		Principal: g.player.Principal, Instance: g.player.Instance, Logger: g.player.Logger, Yield: g.player.Yield,
	})
}

// workUpTo works until turn last has been taken. An exchange ends with each turn without calls, so it may take
// several.
func (g *game) workUpTo(ctx context.Context, last int) error {
	for g.stopped == "" && (g.run.State().Turns() < last || g.run.State().Turns() == last && g.left()) {
		before, left := g.run.State().Turns(), g.left()
		answer, err := g.run.Work(ctx)
		if err != nil {
			return err
		}
		if g.run.State().Turns() == before && !left {
			g.stopped = fmt.Sprintf("%s %s", answer.Reason, answer.Error)
		}
	}
	return nil
}

// left tells whether the last turn was left without an answer to its exchange.
func (g *game) left() bool {
	state := g.run.State()
	answered := 0
	if a := state.Answer(state.Answers()); a != nil {
		answered = a.Turn
	}
	return state.Turns() > answered
}

// close ends the run. The last thing in a transcript may be a message that nobody answers.
func (g *game) close(ctx context.Context) error {
	err := g.run.Close(ctx)
	if errors.Is(err, loop.ErrUnanswered) {
		err = g.run.Close(ctx)
	}
	return err
}
