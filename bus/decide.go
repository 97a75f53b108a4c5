package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Decide writes the verdict on a question, for good: an approval of exactly what a holds, or of it with other arguments, or a
// refusal. A *schema.Error: these arguments do not fit the tool as its workers offer it now, and nothing is decided. ErrDecided:
// somebody was first. ErrExpired, ErrRunClosed, or trouble with the transport.
func (b *Bus) Decide(ctx context.Context, a Approval, v schema.Verdict) error {
	if err := b.decide(ctx, a, v); err != nil {
		return fmt.Errorf("decide about call %s/%d.%d: %w", a.Run, a.Turn, a.Index, err)
	}
	return nil
}

func (b *Bus) decide(ctx context.Context, a Approval, v schema.Verdict) error {
	if bad := b.checkEdit(ctx, &a.Question, v.Args); bad != nil {
		return bad
	}
	if v.AtMS = b.Now().UnixMilli(); v.AtMS >= a.Question.ExpiresMS {
		return ErrExpired
	}
	v.Digest = a.Digest
	_, err := b.Append(ctx, a.Run, schema.VerdictKey(a.Turn, a.Index, a.Ask), &v, schema.CloseKey())
	switch {
	case errors.Is(err, schema.ErrGuarded):
		return ErrRunClosed
	case errors.Is(err, schema.ErrExists):
		return ErrDecided
	}
	return err
}

// toolWithin is how long a tool is looked for whose arguments somebody edits: a fresh process has to read the catalog first.
const toolWithin = 2 * time.Second

// checkEdit validates the arguments of a verdict: one that is written stands, even if nothing can run with it. Those of a
// tool that no worker offers, such as one of the orchestrator's own process, are left to the run's owner.
func (b *Bus) checkEdit(ctx context.Context, ask *schema.Ask, args schema.JSONText) error {
	if args == "" {
		return nil
	}
	canonical, _, bad := schema.Canonical(string(args))
	if bad != nil {
		return bad
	}
	tool := b.Catalog().await(ctx, ask.Queue, cmp.Or(ask.Target, ask.Tool), toolWithin)
	if tool == nil {
		return nil
	}
	if bad := schema.NewValidator().Check(tool, canonical); bad != nil {
		return bad
	}
	return nil
}

// await returns the tool that live workers of a queue offer under a name; nil: none does within that time.
func (c *Catalog) await(ctx context.Context, queue, name string, within time.Duration) *schema.Tool {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		_, change := c.Changes()
		for _, t := range c.Tools() {
			if t.Queue == queue && t.Name == name {
				return &t
			}
		}
		select {
		case <-ctx.Done():
			return nil
		case <-change:
		}
	}
}
