package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/schema"
)

// ApprovalsCmd is the command approvals.
type ApprovalsCmd struct {
	List    ApprovalsListCmd    `cmd:"" help:"List calls that wait for somebody to approve them, newest first."`
	Show    ApprovalsShowCmd    `cmd:"" help:"Show what would run, why it is asked about, and what was decided."`
	Approve ApprovalsApproveCmd `cmd:"" help:"Let the call run, exactly as it is shown or with other arguments."`
	Deny    ApprovalsDenyCmd    `cmd:"" help:"Refuse the call; the agent is told so and goes on."`
}

// shownApproval is a question for programs.
type shownApproval struct {
	Run       string `json:"run"`
	Call      string `json:"call"` // turn.index
	Ask       int    `json:"ask"`
	Agent     string `json:"agent"`
	Principal string `json:"principal,omitempty"`
	Tenant    string `json:"tenant,omitempty"`
	Tool      string `json:"tool"`
	Target    string `json:"target,omitempty"` // what its queue calls the tool, where that differs
	Source    string `json:"source,omitempty"`
	Queue     string `json:"queue"`
	Args      string `json:"args"`
	Bound     string `json:"bound,omitempty"`
	Rule      string `json:"rule,omitempty"`
	Why       string `json:"why,omitempty"`
	Digest    string `json:"digest"`
	AskedMS   int64  `json:"asked_ms"`
	ExpiresMS int64  `json:"expires_ms"`
	Decision  string `json:"decision,omitempty"`
	By        string `json:"by,omitempty"`
	Reason    string `json:"reason,omitempty"` // of the decision
	Edited    string `json:"edited,omitempty"` // arguments that the decision wants instead
}

func showApproval(a *bus.Approval) shownApproval {
	q := &a.Question
	s := shownApproval{
		Run: a.Run, Call: fmt.Sprintf("%d.%d", a.Turn, a.Index), Ask: a.Ask, Agent: a.Agent, Principal: a.Principal.ID, Tenant: a.Principal.Tenant,
		Tool: q.Tool, Target: q.Target, Source: q.Source, Queue: q.Queue, Args: string(a.Args), Bound: string(a.Bound), Rule: q.Rule, Why: q.Text,
		Digest: a.Digest, AskedMS: q.AtMS, ExpiresMS: q.ExpiresMS,
	}
	if v := a.Verdict; v != nil {
		s.Decision, s.By, s.Reason, s.Edited = v.Decision, v.By, v.Why, string(v.Args)
	}
	return s
}

// ApprovalsListCmd is the command approvals list.
type ApprovalsListCmd struct {
	recordFlags
	JSON  bool `name:"json" help:"One JSON object per call."`
	Limit int  `default:"20" help:"At most so many; 0: all."`
}

// Run prints the questions that are open.
func (c *ApprovalsListCmd) Run(ctx context.Context, app *cli.App) error {
	s, err := c.open(ctx, app)
	if err != nil {
		return fmt.Errorf("approvals list: %w", err)
	}
	defer s.Close()
	out := view.New(view.Config{Out: app.Out, Format: view.JSON})
	rows := [][]string{{"RUN", "CALL", "AGENT", "TOOL", "ARGUMENTS", "WHY", "EXPIRES"}}
	n := 0
	for a, err := range s.Bus.Approvals(ctx) {
		if err != nil {
			return fmt.Errorf("approvals list: %w", err)
		}
		shown := showApproval(&a)
		if c.JSON {
			out.Put(shown)
		} else {
			rows = append(rows, shown.row())
		}
		if n++; n == c.Limit {
			break
		}
	}
	switch {
	case c.JSON:
	case n == 0:
		fmt.Fprintln(app.Out, "nothing waits for an approval")
	default:
		printRows(app, rows)
	}
	return nil
}

func (a *shownApproval) row() []string {
	return []string{
		word(a.Run), a.Call, dash(word(a.Agent)), word(a.Tool), schema.Cut(word(a.Args), 60), dash(firstSentence(word(a.Why))),
		time.UnixMilli(a.ExpiresMS).Format(time.DateTime),
	}
}

// callFlags name a call about which somebody is asked.
type callFlags struct {
	recordFlags
	ID   string `arg:"" name:"run" help:"Id of the run, or its beginning."`
	Call string `arg:"" help:"The call, as turn.index."`
}

// read returns the question.
func (f *callFlags) read(ctx context.Context, app *cli.App) (*session.Session, bus.Approval, error) {
	turn, index, ok := strings.Cut(f.Call, ".")
	n, err1 := strconv.Atoi(turn)
	i, err2 := strconv.Atoi(index)
	if !ok || err1 != nil || err2 != nil || n < 1 || i < 0 {
		return nil, bus.Approval{}, cli.Usagef("call %q: want turn.index, such as 1.0; `orchestrator approvals list` shows them", f.Call)
	}
	run := runFlags{recordFlags: f.recordFlags, ID: f.ID}
	s, id, err := run.find(ctx, app)
	if err != nil {
		return nil, bus.Approval{}, err
	}
	a, err := s.Bus.ApprovalOf(ctx, id, n, i)
	if err != nil {
		s.Close()
	}
	return s, a, err
}

// ApprovalsShowCmd is the command approvals show.
type ApprovalsShowCmd struct {
	callFlags
	JSON bool `name:"json" help:"As a JSON object."`
}

// Run prints one question.
func (c *ApprovalsShowCmd) Run(ctx context.Context, app *cli.App) error {
	s, a, err := c.read(ctx, app)
	if err != nil {
		return fmt.Errorf("approvals show: %w", err)
	}
	defer s.Close()
	shown := showApproval(&a)
	if c.JSON {
		view.New(view.Config{Out: app.Out, Format: view.JSON}).Put(shown)
		return nil
	}
	for _, line := range shown.lines() {
		fmt.Fprintln(app.Out, line)
	}
	return nil
}

// lines is the question for people: all of what would run.
func (a *shownApproval) lines() []string {
	var out []string
	add := func(name, value string) {
		if value != "" {
			out = append(out, fmt.Sprintf("%-10s %s", name, strings.ReplaceAll(view.Clean(value), "\n", "\n"+strings.Repeat(" ", 11))))
		}
	}
	add("call", a.Run+" "+a.Call)
	add("agent", a.Agent)
	who := a.Principal
	if a.Tenant != "" {
		who += ", tenant " + a.Tenant
	}
	add("for", who)
	tool := a.Queue + "/" + a.Tool
	if a.Target != "" && a.Target != a.Tool {
		tool += " (" + a.Target + ")"
	}
	if a.Source != "" {
		tool += " from " + a.Source
	}
	add("tool", tool)
	add("arguments", a.Args)
	add("bound", a.Bound)
	add("why", a.Why)
	add("rule", a.Rule)
	add("expires", time.UnixMilli(a.ExpiresMS).Format(time.DateTime))
	add("digest", a.Digest)
	if a.Decision != "" {
		decided := a.Decision
		if a.By != "" {
			decided += " by " + a.By
		}
		add("decided", decided)
		add("because", a.Reason)
		add("edited", a.Edited)
	}
	return out
}

// verdictFlags say who decides and why.
type verdictFlags struct {
	callFlags
	As  string `name:"as" env:"JETCREW_PRINCIPAL" placeholder:"ID" help:"Who decides; default the user of this machine."`
	Why string `placeholder:"TEXT" help:"Why; of a refusal the agent reads it."`
}

// decide writes a verdict and says so.
func (f *verdictFlags) decide(ctx context.Context, app *cli.App, v schema.Verdict) error {
	s, a, err := f.read(ctx, app)
	if err != nil {
		return err
	}
	defer s.Close()
	v.By, v.Why = f.As, schema.CleanText(f.Why)
	if v.By == "" {
		v.By = localUser()
	}
	if err := s.Bus.Decide(ctx, a, v); err != nil {
		if bad := misfit(err); bad != nil {
			return cli.Usagef("--args: %s; nothing is decided", view.Clean(bad.Message))
		}
		return late(ctx, s.Bus, a, err)
	}
	fmt.Fprintf(app.Out, "run %s: call %d.%d, %s, %s\n", a.Run, a.Turn, a.Index, view.Clean(a.Question.Tool), decided(v.Decision))
	return nil
}

func decided(decision string) string {
	switch decision {
	case schema.VerdictApprove:
		return "is approved"
	case schema.VerdictExpired:
		return "has expired"
	}
	return "is refused"
}

// misfit returns what is wrong with arguments that a person wants in place of the agent's; nil: it is something else.
func misfit(err error) *schema.Error {
	var bad *schema.Error
	errors.As(err, &bad)
	return bad
}

// late says what stands instead of a verdict that came too late.
func late(ctx context.Context, b *bus.Bus, a bus.Approval, err error) error {
	if !errors.Is(err, bus.ErrDecided) {
		return err
	}
	if now, rerr := b.ApprovalOf(ctx, a.Run, a.Turn, a.Index); rerr == nil && now.Verdict != nil {
		who := ""
		if now.Verdict.By != "" {
			who = " by " + view.Clean(now.Verdict.By)
		}
		return fmt.Errorf("%w: it %s%s; nothing is changed", err, decided(now.Verdict.Decision), who)
	}
	return err
}

// ApprovalsApproveCmd is the command approvals approve.
type ApprovalsApproveCmd struct {
	verdictFlags
	Args *string `placeholder:"JSON" help:"Other arguments to run it with; they pass the same checks as the agent's."`
}

// Run approves the call.
func (c *ApprovalsApproveCmd) Run(ctx context.Context, app *cli.App) error {
	v := schema.Verdict{Decision: schema.VerdictApprove}
	if c.Args != nil {
		args, _, bad := schema.Canonical(*c.Args)
		switch {
		case bad != nil:
			return cli.Usagef("approvals approve: --args: %s", bad.Message)
		case strings.TrimSpace(*c.Args) == "": // such as a variable of a script that is not set: not what the agent wanted to run
			return cli.Usagef("approvals approve: --args: it is empty; leave it out to let the call run as it is shown, or write {} for no arguments")
		}
		v.Args = args
	}
	if err := c.decide(ctx, app, v); err != nil {
		return fmt.Errorf("approvals approve: %w", err)
	}
	return nil
}

// ApprovalsDenyCmd is the command approvals deny.
type ApprovalsDenyCmd struct{ verdictFlags }

// Run refuses the call.
func (c *ApprovalsDenyCmd) Run(ctx context.Context, app *cli.App) error {
	if err := c.decide(ctx, app, schema.Verdict{Decision: schema.VerdictDeny}); err != nil {
		return fmt.Errorf("approvals deny: %w", err)
	}
	return nil
}
