package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop/audit"
	"github.com/jetcrew/jetcrew/schema"
)

// AuditCmd is the command audit.
type AuditCmd struct {
	recordFlags
	ID     string `arg:"" optional:"" name:"run" help:"Id of the run, or its beginning. Its audit trail is printed, and what its facts say of each other is computed anew; what does not fit makes the exit code 1."`
	JSON   bool   `name:"json" help:"One JSON object per record, then one per problem."`
	Follow bool   `help:"Instead of one run, those of all runs: write the records as facts are stored, until you interrupt. Who follows again under the same name goes on where it ended."`
	To     string `placeholder:"FILE" type:"path" help:"With --follow: append the records to a file, one JSON object per line, instead of standard output."`
	Stream string `placeholder:"NAME" help:"With --follow: put the records into a JetStream stream, which is created if it is missing."`
	Name   string `placeholder:"NAME" help:"With --follow: under which the place is remembered. Default: the stream's, else 'lines'."`
}

// Validate checks which of the two it is.
func (c *AuditCmd) Validate() error {
	switch {
	case c.Follow && c.ID != "":
		return fmt.Errorf("--follow is about all runs; leave %.80q out", c.ID)
	case c.To != "" && c.Stream != "":
		return fmt.Errorf("--to and --stream: want one of them")
	case !c.Follow && (c.To != "" || c.Stream != "" || c.Name != ""):
		return fmt.Errorf("--to, --stream and --name go with --follow")
	case !c.Follow && c.ID == "":
		return fmt.Errorf("which run? Name it, or all of them as they go on: --follow")
	}
	return nil
}

// Run prints the trail of one run, or follows all.
func (c *AuditCmd) Run(ctx context.Context, app *cli.App) error {
	if c.Follow {
		return c.follow(ctx, app)
	}
	s, id, err := (&runFlags{recordFlags: c.recordFlags, ID: c.ID}).find(ctx, app)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	defer s.Close()
	facts, err := s.Bus.Facts(ctx, id, 0)
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	return c.print(app, id, facts)
}

// shownProblem is a problem in a stream of JSON.
type shownProblem struct {
	What string `json:"what"` // "problem"
	Run  string `json:"run"`
	audit.Problem
}

func (c *AuditCmd) print(app *cli.App, run string, facts []schema.Fact) error {
	out := view.New(view.Config{Out: app.Out, Format: view.JSON})
	trail := audit.New(run)
	rows := [][]string{{"TIME", "FACT", "WHAT", "TOOL", "DECISION", "BY", "OUTCOME", "DETAILS"}}
	for _, f := range facts {
		for _, r := range trail.Apply(f) {
			if c.JSON {
				out.Put(r)
				continue
			}
			rows = append(rows, auditRow(r))
		}
	}
	problems := trail.Check()
	if c.JSON {
		for _, p := range problems {
			out.Put(shownProblem{"problem", run, p})
		}
	} else {
		printRows(app, rows)
		printProblems(app, len(facts), problems)
	}
	if len(problems) > 0 {
		return cli.ErrFailed
	}
	return nil
}

func printProblems(app *cli.App, facts int, problems []audit.Problem) {
	if len(problems) == 0 {
		fmt.Fprintf(app.Out, "\nchecked: the %s of the run fit together\n", view.Count(facts, "fact"))
		return
	}
	fmt.Fprintf(app.Out, "\n%s in the facts of the run:\n", view.Count(len(problems), "problem"))
	for _, p := range problems {
		fmt.Fprintln(app.Out, "  "+word(p.String()))
	}
}

// auditRow is a record in a table.
func auditRow(r audit.Record) []string {
	tool := r.Tool
	if r.Target != "" {
		tool += " (" + r.Target + ")"
	}
	if tool != "" && r.Queue != "" {
		tool = r.Queue + "/" + tool
	}
	decision := strings.Join(strings.Fields(r.Decision+" "+r.Rule), " ")
	by := r.By
	if r.Worker != "" {
		by = workerOf(r.Worker)
	} else if r.What == audit.Opened {
		by = strings.Trim(r.Principal+"@"+r.Tenant, "@")
	}
	at := time.UnixMilli(r.AtMS).Format("2006-01-02 15:04:05.000")
	return []string{at, r.Fact, r.What, dash(word(tool)), dash(word(decision)), dash(word(by)), dash(word(r.Outcome)), dash(auditDetails(r))}
}

// auditDetails are the digests of a record, in short, and the reason that somebody gave.
func auditDetails(r audit.Record) string {
	var parts []string
	for _, d := range []struct{ name, digest string }{
		{"args", r.Args}, {"bound", r.Bound}, {"schema", r.Schema}, {"output", r.Output}, {"text", r.Text}, {"approval", r.Asks},
	} {
		if d.digest != "" {
			parts = append(parts, d.name+" "+schema.Cut(d.digest, 12))
		}
	}
	if r.Why != "" {
		parts = append(parts, oneLine(r.Why))
	}
	return word(strings.Join(parts, ", "))
}
