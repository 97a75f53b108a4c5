package main

import (
	"context"
	"sync"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/loop"
)

const (
	alsoSlots = 16               // runs of them at once
	alsoDrain = 10 * time.Second // for their calls to settle before their runs are left
)

// alongside is the agents that a command serves while another one works, so that it can hand tasks to them.
type alongside struct {
	leave context.CancelFunc
	done  sync.WaitGroup
}

// serve works on runs of the agents until end is called.
func (s *staff) serve(app *cli.App, at *session.Session) (*alongside, error) {
	s.bus = at.Bus
	host, err := loop.NewHost(loop.HostConfig{
		Config: loop.Config{Bus: at.Bus, Instance: at.Bus.Instance(), Logger: app.Log}, Find: s.find, Govern: govern, Equip: s.equip,
	})
	if err != nil {
		return nil, err
	}
	ctx, leave := context.WithCancel(context.Background())
	h := &alongside{leave: leave}
	h.done.Go(func() {
		err := at.Bus.Host(ctx, bus.Hosting{Slots: alsoSlots, Host: host, Agents: s.tools(), Drain: alsoDrain})
		if err != nil {
			app.Log.Error("agents are not served any more", "error", err)
		}
	})
	return h, nil
}

// end hands back the runs that are not finished.
func (h *alongside) end() {
	h.leave()
	h.done.Wait()
}
