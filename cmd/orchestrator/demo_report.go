package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// record of one call, as the facts of the run have it.
type callRecord struct {
	place
	tool    string
	results []schema.Result // all that were recorded: there must be one
	backs   int             // deliveries that were given back unstarted
	arrived int             // in its turn, from 1
}

// attempts is how often the call was started.
func (c *callRecord) attempts() int {
	if len(c.results) == 0 {
		return 0
	}
	return int(c.results[0].Delivery) - c.backs
}

// callRecords reads the facts of a run.
func callRecords(facts []schema.Fact, state *memory.Run) ([]callRecord, error) {
	at := map[place]*callRecord{}
	var order []place
	for n := 1; n <= state.Turns(); n++ {
		for i, c := range state.Turn(n).Calls {
			p := place{n, i}
			at[p] = &callRecord{place: p, tool: c.Tool}
			order = append(order, p)
		}
	}
	for _, f := range facts {
		c := at[place{f.Key.N, f.Key.I}]
		switch f.Key.Kind {
		case schema.KindResult:
			r, err := schema.DecodeResult(f.Data)
			if err != nil || c == nil {
				return nil, fmt.Errorf("fact %s is not the result of a call of this run: %w", f.Key, err)
			}
			c.results = append(c.results, *r)
		case schema.KindBack:
			if c != nil {
				c.backs++
			}
		}
	}
	records := make([]callRecord, len(order))
	for i, p := range order {
		records[i] = *at[p]
	}
	return records, nil
}

// report shows the table, checks everything the demo claims, and says what to try next.
func (d *demo) report(ctx context.Context, app *cli.App) error {
	facts, err := d.session.Bus.Facts(context.WithoutCancel(ctx), d.run.ID(), 0)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	calls, err := callRecords(facts, d.state)
	if err != nil {
		return fmt.Errorf("demo: %w", err)
	}
	for i := range calls {
		calls[i].arrived = d.arrivals.at(calls[i].place)
	}
	d.view.Close()
	err = d.check(calls)
	d.show(app.Program, calls, err)
	if err != nil {
		return fmt.Errorf("%w:\n%w", errDemo, err)
	}
	return nil
}

// check returns what is not as the demo promises.
func (d *demo) check(calls []callRecord) error {
	var errs []error
	fail := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf("- "+format, args...))
		}
	}
	fail(d.answer.Reason != schema.ReasonDone, "the run ended by %s %s", d.answer.Reason, d.answer.Error)
	for _, c := range calls {
		fail(len(c.results) != 1, "call %s has %d results, want 1", c.place, len(c.results))
	}
	fail(!slices.ContainsFunc(calls, func(c callRecord) bool { return c.arrived != c.index+1 }), "no result arrived out of order")
	errs = append(errs, d.checkKill(calls)...)
	if err := inCallOrder(d.state); err != nil {
		errs = append(errs, fmt.Errorf("- %w", err))
	}
	return errors.Join(errs...)
}

func (d *demo) checkKill(calls []callRecord) []error {
	killed, err := d.assassin.victimProcess()
	i := slices.IndexFunc(calls, func(c callRecord) bool { return c.place == d.assassin.victim })
	switch {
	case err != nil:
		return []error{fmt.Errorf("- %w", err)}
	case killed == nil:
		return []error{fmt.Errorf("- no worker was killed: call %s was over too soon", d.assassin.victim)}
	case i < 0 || len(calls[i].results) != 1:
		return nil // said already
	}
	switch r := calls[i].results[0]; {
	case r.Delivery < 2:
		return []error{fmt.Errorf("- call %s was not delivered again", calls[i].place)}
	case r.Worker == killed.Instance:
		return []error{fmt.Errorf("- the result of call %s is from the killed worker", calls[i].place)}
	case !r.OK:
		return []error{fmt.Errorf("- call %s failed: %s", calls[i].place, view.Line(r.Output))}
	}
	return nil
}

// inCallOrder returns an error unless the memory holds, after each turn, one message per call in the order of the calls.
func inCallOrder(state *memory.Run) error {
	msgs := state.Messages()
	for n := 1; n <= state.Turns(); n++ {
		i := slices.IndexFunc(msgs, func(m schema.Message) bool { return m.Role == schema.RoleAssistant })
		calls := state.Turn(n).Calls
		if i < 0 || len(msgs) <= i+len(calls) {
			return fmt.Errorf("memory lacks results of turn %d", n)
		}
		for k, c := range calls {
			if m := msgs[i+1+k]; m.Role != schema.RoleTool || m.Label != c.Label || m.Text != state.Result(n, k).Output {
				return fmt.Errorf("memory has something else where the result of call %d.%d belongs", n, k)
			}
		}
		msgs = msgs[i+1+len(calls):]
	}
	return nil
}

// show prints the table and the summary.
func (d *demo) show(program string, calls []callRecord, bad error) {
	d.view.Put(d.summary(calls, bad))
	st := d.view.Style()
	rows := [][]string{{"call", "tool", "worker", "attempts", "queued", "ran", "came", "results"}}
	for _, c := range calls {
		row := []string{c.String(), st.Name(c.tool), "", "", "", "", fmt.Sprint(c.arrived), fmt.Sprint(len(c.results))}
		if len(c.results) > 0 {
			r := c.results[0]
			row[2], row[3] = d.name(r.Worker), fmt.Sprint(c.attempts())
			row[4], row[5] = view.Millis(r.QueuedMS), view.Millis(r.EndedMS-r.StartedMS)
		}
		rows = append(rows, row)
	}
	d.view.Print("")
	d.view.Print(st.Table(rows)...)
	if bad == nil {
		d.view.Print("", st.Good("✓")+" "+claim(calls), "", st.Bold("Next"))
		d.view.Print(tryNext(program)...)
	}
}

// claim says what was checked.
func claim(calls []callRecord) string {
	return fmt.Sprintf("%s, %d workers, one killed: one result each, in memory in call order.",
		view.Count(len(calls), "call"), demoWorkers)
}

// tryNext returns what to do after the demo, as commands of the program as it was started.
func tryNext(program string) []string {
	commands := [][2]string{
		{"init", "an agent file of your own"},
		{`run "your task"`, "with the key of a model"},
		{"tools list", "what the workers offer"},
	}
	if strings.Contains(os.Args[0], "go-build") {
		program = "go run ./cmd/" + program
	}
	out := make([]string, 0, len(commands)+1)
	for _, c := range commands {
		out = append(out, fmt.Sprintf("  %-41s %s", program+" "+c[0], c[1]))
	}
	return append(out, fmt.Sprintf("  %-41s %s", "docs/react.md", "to your own tool and agent in Go"))
}

// demoSummary is the last object of --json.
type demoSummary struct {
	Type   string     `json:"type"` // demo_end
	OK     bool       `json:"ok"`
	Error  string     `json:"error,omitempty"`
	Killed int        `json:"killed_pid,omitempty"`
	Calls  []demoCall `json:"calls"`
}

type demoCall struct {
	Turn     int    `json:"turn"`
	Index    int    `json:"index"`
	Tool     string `json:"tool"`
	Worker   string `json:"worker"`
	Attempts int    `json:"attempts"`
	Arrived  int    `json:"arrived"`
	Results  int    `json:"results"`
}

func (d *demo) summary(calls []callRecord, bad error) demoSummary {
	s := demoSummary{Type: "demo_end", OK: bad == nil}
	if bad != nil {
		s.Error = bad.Error()
	}
	if killed, _ := d.assassin.victimProcess(); killed != nil {
		s.Killed = killed.PID
	}
	for _, c := range calls {
		e := demoCall{Turn: c.turn, Index: c.index, Tool: c.tool, Attempts: c.attempts(), Arrived: c.arrived, Results: len(c.results)}
		if len(c.results) > 0 {
			e.Worker = c.results[0].Worker
		}
		s.Calls = append(s.Calls, e)
	}
	return s
}
