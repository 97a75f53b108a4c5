package bus

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Selection is the part of the catalog that an agent sees: the tools its patterns name, as live workers offer them. It
// is safe for concurrent use.
type Selection struct {
	catalog  *Catalog
	patterns []string

	mu      sync.Mutex
	version uint64
	tools   []schema.Tool
	err     error
}

// Select returns the tools that patterns name. A pattern is a tool's name or a glob over names, with a queue and '/' in
// front where two queues offer one name. The queue of a call is that of the tool's workers.
func (b *Bus) Select(patterns ...string) *Selection {
	return &Selection{catalog: b.Catalog(), patterns: patterns}
}

// Tools returns what is offered now, or was until a moment ago, sorted by name. A name that two queues offer and that no pattern tells apart is an
// error.
func (s *Selection) Tools(context.Context) ([]schema.Tool, error) {
	version, _ := s.catalog.Changes()
	s.mu.Lock()
	defer s.mu.Unlock()
	if version != s.version || s.version == 0 {
		s.tools, s.err = choose(s.catalog.lately(), s.patterns)
		s.version = version
	}
	return s.tools, s.err
}

// Wait returns when every pattern names a tool that a live worker offers, or after within with an error that names
// the patterns without one.
func (s *Selection) Wait(ctx context.Context, within time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	for {
		_, change := s.catalog.Changes()
		tools := s.catalog.Tools()
		missing := slices.DeleteFunc(slices.Clone(s.patterns), func(p string) bool {
			return slices.ContainsFunc(tools, func(t schema.Tool) bool { return schema.MatchTool(p, t.Queue, t.Name) })
		})
		if len(missing) == 0 {
			_, err := choose(tools, s.patterns)
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("no worker offers %s within %v; start one, or see what is there with `orchestrator tools list`", strings.Join(missing, ", "), within)
		case <-change:
		}
	}
}

// choose picks the tools that patterns name. A pattern with a queue goes before one without. Of a tool that some workers limit
// and others do not yet, or not any more, the limited one is taken: else a fleet could not be updated worker by worker.
func choose(offered []schema.Tool, patterns []string) ([]schema.Tool, error) {
	chosen := map[string]schema.Tool{}
	exact := map[string]bool{} // chosen by a pattern with a queue
	var clash []string
	for _, withQueue := range []bool{true, false} {
		for _, p := range patterns {
			if strings.Contains(p, "/") != withQueue {
				continue
			}
			for _, t := range offered {
				if !schema.MatchTool(p, t.Queue, t.Name) || exact[t.Name] && !withQueue {
					continue
				}
				old, ok := chosen[t.Name]
				switch {
				case !ok || old.Queue == t.Queue || schema.LimitedFrom(old.Queue, t.Queue, t.Name):
				case schema.LimitedFrom(t.Queue, old.Queue, t.Name):
					continue
				default:
					clash = append(clash, fmt.Sprintf("%s (queues %s and %s)", t.Name, old.Queue, t.Queue))
				}
				chosen[t.Name], exact[t.Name] = t, withQueue
			}
		}
	}
	if len(clash) > 0 {
		return nil, fmt.Errorf("tools offered by more than one queue: %s; write queue/name", strings.Join(clash, ", "))
	}
	tools := make([]schema.Tool, 0, len(chosen))
	for _, t := range chosen {
		tools = append(tools, t)
	}
	slices.SortFunc(tools, func(a, b schema.Tool) int { return strings.Compare(a.Name, b.Name) })
	return tools, nil
}
