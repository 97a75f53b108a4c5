package bus_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/schema"
)

// growing is a server whose tools change.
type growing struct {
	toolbox
	now     atomic.Pointer[toolbox]
	changed chan struct{}
}

func (g *growing) Tools() []schema.Tool     { return g.now.Load().Tools() }
func (g *growing) Changed() <-chan struct{} { return g.changed }

// TestD32ToolsChangeWhileServed: the catalog shows the new tools, a call of one runs, one of a tool that is gone finds
// nobody.
func TestD32ToolsChangeWhileServed(t *testing.T) {
	t.Parallel()
	srv := server(t)
	b := connect(t, srv)
	g := &growing{toolbox: toolbox{"old": echo, "new": echo}, changed: make(chan struct{}, 1)}
	g.now.Store(&toolbox{"old": echo})
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Tools: g})
	await := func(name string) {
		t.Helper()
		for {
			_, changed := b.Catalog().Changes()
			if tools := b.Catalog().Tools(); len(tools) == 1 && tools[0].Name == name {
				return
			}
			select {
			case <-changed:
			case <-time.After(30 * time.Second):
				t.Fatalf("the catalog shows %v", b.Catalog().Tools())
			}
		}
	}
	await("old")
	g.now.Store(&toolbox{"new": echo})
	g.changed <- struct{}{}
	await("new")
	if r, err := b.Dispatch(t.Context(), call(schema.NewID(), "new", 0), "test", 10*time.Second); err != nil || !r.OK {
		t.Errorf("new tool: %+v, %v", r, err)
	}
	if r, err := b.Dispatch(t.Context(), call(schema.NewID(), "old", 0), "test", time.Second); err != nil || r.OK {
		t.Errorf("old tool: %+v, %v", r, err)
	}
}
