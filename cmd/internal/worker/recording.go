package worker

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

// recording answers calls from transcripts. It does not change after its construction.
type recording struct {
	queue     string
	delay     Delay
	fail      Share
	seed      uint64
	byID      map[string]*replay.Transcript
	tools     map[toolOf]*schema.Tool
	list      []replay.Transcript
	validator *schema.Validator
}

// toolOf names a tool: one name has another schema in another transcript.
type toolOf struct{ transcript, name string }

func newRecording(list []replay.Transcript, m *Mock) *recording {
	r := &recording{
		queue: m.Queue, delay: m.Delay, fail: m.Fail, seed: m.Seed, list: list,
		byID: map[string]*replay.Transcript{}, tools: map[toolOf]*schema.Tool{}, validator: schema.NewValidator(),
	}
	for i := range list {
		t := &list[i]
		r.byID[t.ID] = t
		for _, d := range t.ToolDefs() {
			r.tools[toolOf{t.ID, d.Name}] = &d
		}
	}
	return r
}

// set announces every name once, for any object: the schema that counts is that of the call's transcript.
func (r *recording) set(app *cli.App) (*executor.Set, error) {
	seen := map[string]bool{}
	var tools []executor.Tool
	for _, t := range r.list {
		for _, d := range t.Tools {
			if seen[d.Name] {
				continue
			}
			seen[d.Name] = true
			tools = append(tools, executor.Tool{Run: r.run, Tool: schema.Tool{
				Name: d.Name, Description: cmp.Or(strings.TrimSpace(d.Description), "A recorded tool."),
				Parameters: `{"type":"object"}`, Idempotent: true, Effect: schema.EffectRead,
			}})
		}
	}
	return executor.Config{Queue: r.queue, Logger: app.Log}.NewSet(tools...)
}

var errForTheMoment = errors.New("the mock fails for the moment, as --fail asks for")

// run returns the output that was recorded for the call.
func (r *recording) run(ctx context.Context, call *schema.Call) (string, error) {
	t := r.byID[call.Agent]
	if t == nil {
		return "", fmt.Errorf("no transcript here has the id %q; the mock finds outputs by the call's agent", schema.Cut(call.Agent, 80))
	}
	if tool := r.tools[toolOf{t.ID, call.Tool}]; tool == nil {
		return "", schema.Unknown(call.Tool, names(t))
	} else if err := r.validator.Check(tool, call.Args); err != nil {
		return "", err
	}
	output, ok := t.Output(call.Turn, call.Index)
	if !ok {
		return "", fmt.Errorf("transcript %q has no output for call %d of turn %d", t.ID, call.Index, call.Turn)
	}
	chance := dice(r.seed, call, schema.Delivery(ctx))
	if err := pause(ctx, r.delay.in(chance)); err != nil {
		return "", err
	}
	if chance.Float64() < float64(r.fail) {
		return "", executor.Transient(errForTheMoment, time.Millisecond)
	}
	if e := recordedError(output); e != nil {
		return "", e
	}
	return output, nil
}

func names(t *replay.Transcript) []string {
	var names []string
	for _, d := range t.Tools {
		names = append(names, d.Name)
	}
	return names
}

// recordedError returns the error of an output that is a failure: it failed then and fails again.
func recordedError(output string) error {
	text, ok := strings.CutPrefix(output, "TOOL_ERROR: ")
	if !ok {
		return nil
	}
	var line struct {
		Type    schema.ErrorType `json:"errorType"`
		Message string           `json:"error"`
	}
	if json.Unmarshal([]byte(text), &line) != nil || line.Type == "" {
		return nil
	}
	return &schema.Error{Type: line.Type, Message: line.Message}
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
