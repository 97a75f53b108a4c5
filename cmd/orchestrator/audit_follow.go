package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/loop/audit"
)

// follow writes the records of all runs until ctx ends.
func (c *AuditCmd) follow(ctx context.Context, app *cli.App) error {
	app.SaySignals(func(string) { fmt.Fprintln(app.Err, "\nonly the audit ends, the runs go on") })
	s, err := c.open(ctx, app)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer s.Close()
	sink, done, err := c.sink(ctx, app, s.Bus)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	err = s.Bus.Audit(ctx, cmp.Or(c.Name, c.Stream, "lines"), audit.NewLog(s.Bus, sink).Put)
	return cmp.Or(err, done())
}

// sink opens what takes the records. done closes it.
func (c *AuditCmd) sink(ctx context.Context, app *cli.App, b *bus.Bus) (sink audit.Sink, done func() error, err error) {
	nothing := func() error { return nil }
	switch {
	case c.Stream != "":
		sink, err = streamSink(ctx, b, c.Stream)
		return sink, nothing, err
	case c.To == "":
		return audit.Lines(app.Out), nothing, nil
	}
	f, err := os.OpenFile(c.To, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return nil, nil, err
	}
	return audit.Lines(f), f.Close, nil
}

// streamSink puts records into a stream, each once.
func streamSink(ctx context.Context, b *bus.Bus, name string) (audit.Sink, error) {
	stream, err := b.AuditStream(ctx, name)
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, r audit.Record) error {
		data, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return stream.Put(ctx, r.Run, r.ID, data)
	}, nil
}
