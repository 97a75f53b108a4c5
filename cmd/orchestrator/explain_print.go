package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/schema"
)

// outcomes are the words for what becomes of a call.
var outcomes = map[string]string{
	string(schema.ActionAllow): "runs", string(schema.ActionAsk): "a person is asked", string(schema.ActionDeny): "denied",
	string(schema.ActionGuide): "sent back with guidance", string(schema.ActionRedirect): "sent elsewhere",
}

func (e *explanation) print(app *cli.App) error {
	var b strings.Builder
	fmt.Fprintf(&b, "agent %s, model %s", cmp.Or(e.Name, e.Agent), e.Model)
	if e.Environment != "" {
		fmt.Fprintf(&b, ", environment %s", e.Environment)
	}
	b.WriteString("\n\n")
	e.printTools(&b)
	e.printReasons(&b)
	b.WriteString("\nWhere calls run\n")
	printLines(&b, "  ", e.Executor)
	b.WriteString("\nOn the way of a call, in this order\n")
	for i, l := range e.Chain {
		fmt.Fprintf(&b, "  %d %-9s  %s\n", i+1, l.Step, word(l.Says[0]))
		printLines(&b, "               ", l.Says[1:])
	}
	_, err := io.WriteString(app.Out, b.String())
	return err
}

func printLines(b *strings.Builder, indent string, lines []string) {
	for _, l := range lines {
		b.WriteString(indent + word(l) + "\n")
	}
}

func (e *explanation) printTools(b *strings.Builder) {
	what := "What the model sees, as the file names it (with --nats: as live workers offer it)"
	if e.Live {
		what = "What the model sees, as live workers offer it"
	}
	b.WriteString(what + "\n")
	if len(e.Tools) == 0 {
		b.WriteString("  no tools\n")
		return
	}
	w := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "  TOOL\tQUEUE\tEFFECT\tRUNS\tA CALL")
	for _, t := range e.Tools {
		outcome := outcomes[t.Outcome]
		if len(t.Asks) > 0 && t.Outcome == string(schema.ActionAllow) || len(t.Stops) > 0 && t.Outcome != string(schema.ActionDeny) {
			outcome += ", but see below"
		}
		fmt.Fprintf(w, "  %s\t%s\t%s\t%s\t%s\n", word(t.Name), cmp.Or(t.Queue, "any"), cmp.Or(t.Effect, "?"), cmp.Or(t.Runs, "?"), outcome)
	}
	w.Flush()
	if len(e.Missing) > 0 {
		fmt.Fprintf(b, "  no live worker offers %s\n", strings.Join(e.Missing, ", "))
	}
}

// printReasons prints, tool by tool, which rules have a say.
func (e *explanation) printReasons(b *strings.Builder) {
	b.WriteString("\nWho is asked, and what is stopped\n")
	none := true
	for _, t := range e.Tools {
		var lines []string
		for _, r := range append(append([]reason{}, t.Stops...), t.Asks...) {
			lines = append(lines, r.String())
		}
		if len(t.Bound) > 0 {
			lines = append(lines, "beside the arguments: "+strings.Join(t.Bound, ", "))
		}
		if t.Aborts {
			lines = append(lines, "its failure ends the run")
		}
		if len(lines) == 0 {
			continue
		}
		none = false
		fmt.Fprintf(b, "  %s\n", word(t.Name))
		printLines(b, "    ", lines)
	}
	if none {
		b.WriteString("  nobody, and nothing: every call that the authority allows runs\n")
	}
}
