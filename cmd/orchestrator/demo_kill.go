package main

import (
	"fmt"
	"sync"

	"github.com/sourcegraph/conc"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop"
)

// assassin kills the worker that runs a certain call, in its middle: after its first word, and once the other calls of
// its turn have settled, so that nothing else dies with the worker.
type assassin struct {
	session *session.Session
	view    *view.View
	victim  place
	killer  conc.WaitGroup

	mu      sync.Mutex
	open    int // calls of the victim's turn that have not settled
	words   int // what the call has said
	killed  *session.Process
	trouble error
}

func (a *assassin) prepare(s *session.Session, v *view.View, victim place) {
	a.session, a.view, a.victim = s, v, victim
}

// event counts the open calls of the victim's turn.
func (a *assassin) event(e loop.Event) {
	if e.Turn != a.victim.turn {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch e.Type {
	case loop.EventToolCall:
		a.open++
	case loop.EventToolSettled:
		a.open--
	}
}

// hear gets the progress of all calls.
func (a *assassin) hear(turn, index int, p bus.Progress) {
	if a.victim != (place{turn, index}) {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.words++
	process := a.session.Fleet.Find(p.Worker)
	if a.killed != nil || a.words < 2 || a.open != 1 || process == nil {
		return
	}
	a.killed = process
	a.killer.Go(func() { a.kill(process, p.Worker) })
}

func (a *assassin) kill(p *session.Process, instance string) {
	err := p.Kill()
	a.mu.Lock()
	a.trouble = err
	a.mu.Unlock()
	if err == nil {
		a.view.Gone(instance)
		a.view.Note("worker_killed", fmt.Sprintf("SIGKILL to %s (pid %d) in the middle of %s; redelivered after %v",
			workerName(a.session, instance), p.PID, a.victim, bus.AckWait))
	}
}

// wait returns when no kill is under way.
func (a *assassin) wait() { a.killer.Wait() }

// victimProcess returns the process that was killed, nil if none was.
func (a *assassin) victimProcess() (*session.Process, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.killed, a.trouble
}

// arrivals is the order in which results came, by call.
type arrivals struct {
	mu    sync.Mutex
	order map[place]int // place in its turn, from 1
	count map[int]int   // of each turn
}

func (a *arrivals) event(e loop.Event) {
	if e.Type != loop.EventToolSettled {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.order == nil {
		a.order, a.count = map[place]int{}, map[int]int{}
	}
	a.count[e.Turn]++
	a.order[place{e.Turn, e.Call.Index}] = a.count[e.Turn]
}

// at returns when a call's result came among those of its turn, from 1.
func (a *arrivals) at(p place) int {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.order[p]
}
