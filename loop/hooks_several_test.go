package loop_test

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// TestSeveralHooks: of several hooks the first that refuses ends the asking, what one changes is what those behind it see,
// and one that panics refuses, wherever it stands.
func TestSeveralHooks(t *testing.T) {
	t.Parallel()
	var seen []string
	prompt := func(d loop.PromptDecision) loop.Hooks {
		return loop.Hooks{Prompt: func(_ context.Context, text string) loop.PromptDecision {
			seen = append(seen, text)
			return d
		}}
	}
	request := func(text string, err error) loop.Hooks {
		return loop.Hooks{Request: func(_ context.Context, req *model.Request) error {
			last := &req.Messages[len(req.Messages)-1]
			last.Text += text
			seen = append(seen, last.Text)
			return err
		}}
	}
	allow, change, block := prompt(loop.PromptDecision{}), prompt(loop.PromptDecision{Text: "changed"}), prompt(loop.PromptDecision{Block: true, Reason: "no"})
	crash := loop.Hooks{
		Prompt:  func(context.Context, string) loop.PromptDecision { panic("oh") },
		Request: func(context.Context, *model.Request) error { panic("oh") },
	}
	for name, tt := range map[string]struct {
		hooks  []loop.Hooks
		seen   []string // by the hooks
		asked  string   // the model with; empty: not at all
		reason schema.Reason
	}{
		"none":                         {nil, nil, "go", schema.ReasonDone},
		"empty ones":                   {[]loop.Hooks{{}, {}}, nil, "go", schema.ReasonDone},
		"all allow":                    {[]loop.Hooks{allow, allow}, []string{"go", "go", "go", "go"}, "go", schema.ReasonDone},
		"what one changes":             {[]loop.Hooks{allow, change, allow}, []string{"go", "go", "changed", "changed", "changed", "changed"}, "changed", schema.ReasonDone},
		"the first that blocks":        {[]loop.Hooks{change, block, allow}, []string{"go", "changed", "go", "changed"}, "", schema.ReasonBlocked},
		"a panic behind others":        {[]loop.Hooks{allow, crash}, nil, "", schema.ReasonBlocked},
		"requests in their order":      {[]loop.Hooks{request(" a", nil), {}, request(" b", nil)}, []string{"go a", "go a b"}, "go a b", schema.ReasonDone},
		"the first that refuses":       {[]loop.Hooks{request(" a", errors.New("no")), request(" b", nil)}, []string{"go a"}, "", schema.ReasonModel},
		"a panic of a request":         {[]loop.Hooks{request(" a", nil), {Request: crash.Request}}, []string{"go a"}, "", schema.ReasonModel},
		"one of hooks that are joined": {[]loop.Hooks{loop.NewHooks(allow, block), allow}, nil, "", schema.ReasonBlocked},
	} {
		t.Run(name, func(t *testing.T) {
			seen = nil
			r := newRig(looptest.Text("hello"))
			r.cfg.Hooks = loop.NewHooks(tt.hooks...)
			answer, _ := r.run(t)
			if answer.Reason != tt.reason {
				t.Errorf("answer %+v", answer)
			}
			if diff := cmp.Diff(tt.seen, seen); tt.seen != nil && diff != "" {
				t.Error(diff)
			}
			asked := ""
			if list := r.model.Requests(); len(list) > 0 {
				asked = list[0].Messages[len(list[0].Messages)-1].Text
			}
			if asked != tt.asked {
				t.Errorf("asked with %q", asked)
			}
		})
	}
}
