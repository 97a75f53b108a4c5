package executor

import (
	"fmt"

	"github.com/jetcrew/jetcrew/schema"
)

// Dispatcher has decided calls executed; a bus is one, and a Local.
type Dispatcher interface {
	Start(calls ...schema.Dispatch)
}

// Router sends each call to what runs the calls of its queue. It is safe for concurrent use.
type Router struct {
	local map[string]*Local
	rest  Dispatcher
}

// Route returns a Router that has the calls of each local set's queue run here, and all others by rest. With a nil rest
// the Done of such a call gets an error. Two sets of one queue are an error.
func Route(rest Dispatcher, local ...*Local) (*Router, error) {
	r := &Router{local: make(map[string]*Local, len(local)), rest: rest}
	for _, l := range local {
		queue := l.set.Queue()
		if r.local[queue] != nil {
			return nil, fmt.Errorf("route calls: two sets of this process have the queue %q; give one of them another", queue)
		}
		r.local[queue] = l
	}
	return r, nil
}

// Start begins decided calls, in their order. Those that leave this process leave together.
func (r *Router) Start(calls ...schema.Dispatch) {
	away := make([]schema.Dispatch, 0, len(calls))
	for _, d := range calls {
		if l := r.local[d.Queue]; l != nil {
			l.Start(d)
			continue
		}
		away = append(away, d)
	}
	if len(away) == 0 {
		return
	}
	if r.rest == nil {
		for _, d := range away {
			d.Done(schema.Result{}, fmt.Errorf("dispatch %s: nothing here runs the calls of queue %q", d.Call, d.Queue))
		}
		return
	}
	r.rest.Start(away...)
}

// Wait returns when no call is under way here any more; nothing may be started meanwhile.
func (r *Router) Wait() {
	for _, l := range r.local {
		l.Wait()
	}
}
