package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/view"
	"github.com/jetcrew/jetcrew/loop/agentfile"
)

// CheckCmd is the command check.
type CheckCmd struct {
	Files  []string `arg:"" optional:"" name:"file" type:"path" help:"Agent files (agent.yaml)."`
	JSON   bool     `name:"json" help:"One JSON object per problem."`
	Schema bool     `help:"Print the JSON Schema of agent files instead, for editors."`
}

// Help is the command's long help.
func (*CheckCmd) Help() string {
	return `Reports every problem of every file, with a code that stays when the words change. The exit code is 1 when there is an error, and 0 when there are only warnings: such a file can be used.`
}

// codeRead is the code of a file that cannot be read at all.
const codeRead agentfile.Code = "jetcrew.file.unreadable"

// finding is a problem as check shows it.
type finding struct {
	File     string         `json:"file"`
	Severity string         `json:"severity"` // error or warning
	Code     agentfile.Code `json:"code"`
	Path     string         `json:"path"`             // of the value in the file
	Line     int            `json:"line,omitempty"`   // from 1; 0: the file could not be read
	Column   int            `json:"column,omitempty"` // from 1
	Message  string         `json:"message"`
	Excerpt  string         `json:"excerpt,omitempty"`
}

const (
	severityError   = "error"
	severityWarning = "warning"
)

// Run checks the files.
func (c *CheckCmd) Run(app *cli.App) error {
	if c.Schema {
		_, err := app.Out.Write(agentfile.Schema())
		return err
	}
	files := c.Files
	if len(files) == 0 {
		files = []string{"agent.yaml"}
	}
	var all []finding
	for _, file := range files {
		all = append(all, checkFile(shownPath(file))...)
	}
	print := printFindings
	if c.JSON {
		print = printFindingsJSON
	}
	if err := print(app.Out, len(files), all); err != nil {
		return fmt.Errorf("check: %w", err)
	}
	if slices.ContainsFunc(all, func(f finding) bool { return f.Severity == severityError }) {
		return cli.ErrFailed
	}
	return nil
}

// checkFile returns the errors and warnings of a file, in the order of their places.
func checkFile(file string) []finding {
	f, err := openAgent(file)
	var bad *agentfile.Error
	switch {
	case errors.As(err, &bad):
	case err != nil:
		return []finding{{File: file, Severity: severityError, Code: codeRead, Path: "$", Message: err.Error()}}
	default:
		bad = &agentfile.Error{Warnings: f.Warnings, Read: f}
	}
	problems := bad.Problems
	if bad.Read != nil {
		problems = append(problems, furtherProblems(bad.Read, bad.Problems)...)
	}
	found := append(findings(file, severityError, problems), findings(file, severityWarning, bad.Warnings)...)
	slices.SortStableFunc(found, func(a, b finding) int {
		if a.Line != b.Line {
			return a.Line - b.Line
		}
		return a.Column - b.Column
	})
	return found
}

// furtherProblems are those of the rules. Where something is said already nothing follows from it: what a broken rule
// lacks is not missing.
func furtherProblems(f *agentfile.File, known []agentfile.Problem) []agentfile.Problem {
	return slices.DeleteFunc(governanceProblems(f), func(p agentfile.Problem) bool {
		place := p.Path
		if in := strings.LastIndexByte(place, ']') + 1; in > 0 && !strings.HasSuffix(place, ".when") {
			place = place[:in] // the rule or setting that it stands in
		}
		return slices.ContainsFunc(known, func(k agentfile.Problem) bool { return strings.HasPrefix(k.Path, place) })
	})
}

func findings(file, severity string, problems []agentfile.Problem) []finding {
	list := make([]finding, len(problems))
	for i, p := range problems {
		list[i] = finding{file, severity, p.Code, p.Path, p.Line, p.Column, p.Message, p.Excerpt}
	}
	return list
}

// shownPath is a file as a person called it, near enough: relative where it is below the working directory.
func shownPath(file string) string {
	dir, err := os.Getwd()
	if err != nil {
		return file
	}
	if rel, err := filepath.Rel(dir, file); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	return file
}

func printFindingsJSON(out io.Writer, _ int, all []finding) error {
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	for _, f := range all {
		if err := enc.Encode(f); err != nil {
			return err
		}
	}
	return nil
}

// printFindings prints
//
//	agent.yaml:3:1: error: unknown field "modell"; did you mean "model"?
//	      ╰ jetcrew.field.unknown at $.modell
//	    3 | modell: openai/gpt-4o
//	      | ^
func printFindings(out io.Writer, files int, all []finding) error {
	count := map[string]int{}
	for _, f := range all {
		count[f.Severity]++
		place := f.File
		if f.Line > 0 {
			place = fmt.Sprintf("%s:%d:%d", f.File, f.Line, f.Column)
		}
		text := fmt.Sprintf("%s: %s: %s\n      ╰ %s at %s\n%s", place, f.Severity, f.Message, f.Code, f.Path, f.Excerpt)
		if _, err := io.WriteString(out, view.Clean(text)); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(out, "%s, %s, %s\n", plural(files, "file"), plural(count[severityError], "error"), plural(count[severityWarning], "warning"))
	return err
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return fmt.Sprintf("%d %s", n, what)
}
