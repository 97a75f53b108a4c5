package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/playback"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop"
)

// replayReport shows what becomes of the transcripts. It is safe for concurrent use.
type replayReport struct {
	out   io.Writer
	style view.Style
	json  bool
	bar   *bar

	mu    sync.Mutex
	start time.Time
	sum   replaySummary
}

// replaySummary is the whole of a replay; with --json it is the last line.
type replaySummary struct {
	Type        string         `json:"type"` // summary
	Transcripts int            `json:"transcripts"`
	Turns       int            `json:"turns"`
	Calls       int            `json:"calls"`
	Disordered  int            `json:"disordered"`
	Redelivered int            `json:"redelivered"`
	Resumed     int            `json:"resumed"` // transcripts that an earlier process had begun
	Workers     map[string]int `json:"workers"`
	Different   int            `json:"different"` // transcripts that turned out otherwise
	Failed      int            `json:"failed"`    // transcripts that could not be played
	Seconds     float64        `json:"seconds"`
}

func newReplayReport(app *cli.App, asJSON bool, total int) *replayReport {
	return &replayReport{
		out: app.Out, style: view.NewStyle(app.Out), json: asJSON, bar: newBar(app.Err, total), start: time.Now(),
		sum: replaySummary{Type: "summary", Workers: map[string]int{}},
	}
}

// event moves the bar.
func (r *replayReport) event(e loop.Event) {
	if e.Type == loop.EventToolResult {
		r.bar.call()
	}
}

// played takes the outcome of a transcript, or why there is none.
func (r *replayReport) played(id string, o *playback.Outcome, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bar.hide()
	defer r.bar.played()
	r.sum.Transcripts++
	if err != nil {
		r.sum.Failed++
		r.say(map[string]string{"id": id, "error": err.Error()}, r.style.Bad("✗ ")+view.Clean(err.Error()))
		return
	}
	r.add(o)
	r.say(o, r.differences(o))
}

func (r *replayReport) add(o *playback.Outcome) {
	r.sum.Turns += o.Turns
	r.sum.Calls += o.Calls
	r.sum.Disordered += o.Disordered
	r.sum.Redelivered += o.Redelivered
	if o.Resumed {
		r.sum.Resumed++
	}
	for w, n := range o.Workers {
		r.sum.Workers[w] += n
	}
	if len(o.Differences) > 0 {
		r.sum.Different++
	}
}

// say prints value as JSON, or text if there is any.
func (r *replayReport) say(value any, text string) {
	if r.json {
		enc := json.NewEncoder(r.out)
		enc.SetEscapeHTML(false)
		_ = enc.Encode(value) // a reader that has gone away ends the program by SIGPIPE
	} else if text != "" {
		fmt.Fprintln(r.out, text)
	}
}

func (r *replayReport) differences(o *playback.Outcome) string {
	var parts []string
	for _, d := range o.Differences {
		where := fmt.Sprintf("%s turn %d", o.ID, d.Turn)
		if d.Index >= 0 {
			where += fmt.Sprintf(" call %d", d.Index)
		}
		if d.Tool != "" {
			where += " " + d.Tool
		}
		parts = append(parts, r.style.Bad("✗ ")+view.Clean(where+": "+d.What), diff(d.Want, d.Got, r.style))
	}
	return strings.Join(parts, "\n")
}

func (r *replayReport) failed() bool { return r.sum.Different+r.sum.Failed > 0 }

// interrupted says how far it came.
func (r *replayReport) interrupted(left bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bar.hide()
	what := "what ran was cancelled and has settled"
	if left {
		what = "the same command goes on where it was"
	}
	if !r.json {
		fmt.Fprintf(r.out, "stopped after %s; %s\n", view.Count(r.sum.Transcripts, "transcript"), what)
	}
}

// end prints the summary.
func (r *replayReport) end() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.bar.hide()
	r.sum.Seconds = time.Since(r.start).Seconds()
	r.say(r.sum, r.text())
}

func (r *replayReport) text() string {
	s := r.sum
	verdict := r.style.Good("all outputs equal, all in order, one result per call")
	if r.failed() {
		verdict = r.style.Bad(fmt.Sprintf("%s different, %d not played", view.Count(s.Different, "transcript"), s.Failed))
	}
	had := ""
	if s.Resumed > 0 {
		had = "; an earlier process had begun " + view.Count(s.Resumed, "transcript")
	}
	return fmt.Sprintf("%s, %s, %s on %s in %.1f s: %s\n%s",
		view.Count(s.Transcripts, "transcript"), view.Count(s.Turns, "turn"), view.Count(s.Calls, "call"), view.Count(len(s.Workers), "worker"),
		s.Seconds, verdict,
		r.style.Dim(fmt.Sprintf("results arrived out of order in %s; %s delivered more than once%s",
			view.Count(s.Disordered, "turn"), view.Count(s.Redelivered, "call"), had)))
}
