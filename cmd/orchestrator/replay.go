package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/playback"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/cmd/internal/worker"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

const (
	replayWorkers = 3                // mock processes of an embedded server
	mocksReadyFor = 5 * time.Second  // for mocks on the user's own server
	progressEvery = time.Second / 10 // between two drawings of the progress bar
	maxParallel   = 1024
)

// ReplayCmd is the command replay.
type ReplayCmd struct {
	cli.Local
	Files    []string     `arg:"" name:"file" type:"existingfile" help:"Transcripts, one JSON object per line."`
	ID       []string     `help:"Only the transcripts with these ids."`
	Workers  *int         `placeholder:"N" help:"Mock workers to start; default 3, and with --nats none: there they are expected to run."`
	Slots    int          `default:"8" help:"Calls at once in each mock worker."`
	Parallel int          `default:"8" help:"Transcripts played at once."`
	Queue    string       `default:"mock" help:"Queue of the mock workers."`
	Delay    worker.Delay `placeholder:"0-50ms" help:"For the mock workers: how long a call takes."`
	Fail     worker.Share `placeholder:"1%" help:"For the mock workers: share of attempts that fail for the moment."`
	Attempts int          `default:"12" help:"For the mock workers: starts of a call before it is given up; so many that --fail costs time only (12)."`
	Seed     uint64       `placeholder:"N" help:"For the mock workers: another seed gives other delays and failures."`
	Runs     string       `placeholder:"PREFIX" help:"Derive the ids of the runs from this and the transcripts, and go on where a process that did the same was interrupted or killed. Needs --nats or --data."`
	Record   string       `type:"path" placeholder:"OUT" help:"Write what was played as transcripts to this file."`
	JSON     bool         `name:"json" help:"One JSON object per transcript, then one for the whole."`
}

// Validate checks what kong cannot.
func (c *ReplayCmd) Validate() error {
	switch {
	case c.Parallel < 1 || c.Parallel > maxParallel:
		return fmt.Errorf("--parallel %d: want 1 to %d", c.Parallel, maxParallel)
	case c.Workers != nil && (*c.Workers < 0 || *c.Workers > maxWorkers):
		return fmt.Errorf("--workers %d: want 0 to %d", *c.Workers, maxWorkers)
	case c.Attempts < 1:
		return fmt.Errorf("--attempts %d: want 1 or more", c.Attempts)
	}
	return errors.Join(c.checkRuns(), schema.CheckQueue(c.Queue))
}

func (c *ReplayCmd) checkRuns() error {
	if c.Runs == "" {
		return nil
	}
	if err := playback.CheckRuns(c.Runs); err != nil {
		return fmt.Errorf("--runs %w", err)
	}
	if c.URL == "" && c.Data == "" {
		return errors.New("--runs: where do the runs outlive this process? Name the server (--nats, NATS_URL), or the directory of an embedded one (--data)")
	}
	return nil
}

// Run plays the transcripts. A difference is the command's failure.
func (c *ReplayCmd) Run(ctx context.Context, app *cli.App) error {
	list, err := c.load()
	if err != nil {
		return &cli.ExitError{Code: cli.CodeUsage, Err: err}
	}
	if _, err := newRecorder(c.Record); err != nil {
		return &cli.ExitError{Code: cli.CodeUsage, Err: err}
	}
	s, err := c.open(ctx, app)
	if err != nil {
		return err
	}
	defer s.Close()
	job := &replayJob{
		list: list, parallel: c.Parallel, report: newReplayReport(app, c.JSON, len(list)),
		player: &playback.Player{
			Bus: s.Bus, Model: replay.New(list...), Queue: c.Queue, Principal: schema.Principal{ID: localUser(), Scopes: everyTool()}, Instance: app.Instance, Logger: app.Log,
			Runs: c.Runs,
		},
	}
	job.run(ctx)
	return c.finish(ctx, job)
}

func (c *ReplayCmd) finish(ctx context.Context, job *replayJob) error {
	if err := ctx.Err(); err != nil {
		job.report.interrupted(c.Runs != "")
		return fmt.Errorf("replay: %w", err)
	}
	job.report.end()
	if c.Record != "" {
		if err := writeTranscripts(c.Record, job.recorded()...); err != nil {
			return err
		}
	}
	if job.report.failed() {
		return cli.ErrFailed
	}
	return nil
}

// load reads the transcripts that are to be played.
func (c *ReplayCmd) load() ([]replay.Transcript, error) {
	list, err := worker.Transcripts(c.Files...)
	if err != nil {
		return nil, fmt.Errorf("replay: %w", err)
	}
	if len(c.ID) == 0 {
		return list, nil
	}
	var chosen []replay.Transcript
	for _, id := range c.ID {
		i := slices.IndexFunc(list, func(t replay.Transcript) bool { return t.ID == id })
		if i < 0 {
			return nil, fmt.Errorf("replay: no transcript has the id %q; the first is %q", id, list[0].ID)
		}
		chosen = append(chosen, list[i])
	}
	return chosen, nil
}

// open opens a session with mock workers.
func (c *ReplayCmd) open(ctx context.Context, app *cli.App) (*session.Session, error) {
	count := replayWorkers
	if c.URL != "" {
		count = 0
	}
	if c.Workers != nil {
		count = *c.Workers
	}
	var fleet []session.Member
	if count > 0 {
		fleet = []session.Member{{Count: count, Args: c.mockArgs()}}
	}
	s, err := c.Open(ctx, app, fleet...)
	if err != nil {
		return nil, err
	}
	if err := c.ready(ctx, s, count); err != nil {
		s.Close()
		return nil, fmt.Errorf("replay: %w", err)
	}
	return s, nil
}

// ready starts the mocks on a server of the user's own, where a session starts none, or waits for those that run.
func (c *ReplayCmd) ready(ctx context.Context, s *session.Session, count int) error {
	if c.URL != "" {
		for range count {
			if _, err := s.Fleet.Start(ctx, c.mockArgs()...); err != nil {
				return err
			}
		}
	}
	if err := s.Bus.Select(c.Queue+"/*").Wait(ctx, mocksReadyFor); err != nil {
		return fmt.Errorf("no worker serves the queue %s: start one by `toolworker mock %s`, or use --workers: %w", c.Queue, c.Files[0], err)
	}
	return nil
}

func (c *ReplayCmd) mockArgs() []string {
	args := []string{
		"mock", "--queue", c.Queue, "--slots", strconv.Itoa(c.Slots), "--attempts", strconv.Itoa(c.Attempts),
		"--delay", c.Delay.String(), "--fail", c.Fail.String(), "--seed", strconv.FormatUint(c.Seed, 10), "--",
	}
	return append(args, c.Files...)
}

// replayJob plays transcripts side by side.
type replayJob struct {
	list     []replay.Transcript
	parallel int
	player   *playback.Player
	report   *replayReport

	mu   sync.Mutex
	made map[string]replay.Transcript
}

func (j *replayJob) run(ctx context.Context) {
	j.player.Events = j.report.event
	j.made = map[string]replay.Transcript{}
	work := ctx
	if j.player.Runs != "" { // an interrupt leaves the runs, it does not stop them
		j.player.Yield, work = ctx.Done(), context.WithoutCancel(ctx)
	}
	all := pool.New().WithMaxGoroutines(j.parallel)
	for i := range j.list {
		all.Go(func() {
			if ctx.Err() != nil {
				return
			}
			o, err := j.player.Play(work, &j.list[i])
			if err != nil && ctx.Err() != nil {
				return // interrupted, like all the others
			}
			j.report.played(j.list[i].ID, o, err)
			if o != nil {
				j.keep(o)
			}
		})
	}
	all.Wait()
}

func (j *replayJob) keep(o *playback.Outcome) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.made[o.ID] = o.Recorded
}

// recorded returns what was played, in the order of the file.
func (j *replayJob) recorded() []replay.Transcript {
	var list []replay.Transcript
	for _, t := range j.list {
		if made, ok := j.made[t.ID]; ok {
			list = append(list, made)
		}
	}
	return list
}
