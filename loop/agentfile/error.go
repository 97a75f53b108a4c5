package agentfile

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// maxProblems bounds how many problems an error shows.
const maxProblems = 20

// Problem is one thing that is wrong with a file.
type Problem struct {
	Line, Column int // from 1
	Message      string
	Excerpt      string // the line and a caret under the place; secrets are masked
	Code         Code   // what kind of problem it is; it stays when the message changes
	Path         string // of the value, such as $.policy.rules[0].effects[1]; $ is the whole file
}

// Error holds all problems that were found in a file, in the order of their places.
type Error struct {
	File     string
	Problems []Problem
	Warnings []Problem // what Error does not show: it would not keep the file from being used
	Read     *File     // what could be read all the same, to look for further problems; nil when it is no YAML
}

// Error shows each problem as file:line:column: message, and the place below it.
func (e *Error) Error() string {
	var b strings.Builder
	for i, p := range e.Problems {
		if i == maxProblems {
			fmt.Fprintf(&b, "%s: and %d more\n", e.File, len(e.Problems)-i)
			break
		}
		fmt.Fprintf(&b, "%s:%d:%d: %s\n%s", e.File, p.Line, p.Column, p.Message, p.Excerpt)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// source is a file's text, for excerpts.
type source struct {
	file  string
	lines []string
}

func newSource(file string, data []byte) source {
	return source{file: file, lines: strings.Split(string(data), "\n")}
}

// problem places a message. Lines and columns outside of the text are moved into it.
func (s source) problem(line, column int, code Code, format string, args ...any) Problem {
	line = max(1, min(line, len(s.lines)))
	text := strings.TrimSuffix(s.lines[line-1], "\r")
	column = max(1, min(column, len([]rune(text))+1))
	return Problem{
		Line: line, Column: column,
		Message: redact(fmt.Sprintf(format, args...)),
		Excerpt: excerpt(line, column, text),
		Code:    code, Path: rootPath,
	}
}

// fail returns the error that holds problems in the order of their places.
func (s source) fail(problems ...Problem) error {
	return &Error{File: s.file, Problems: inOrder(problems)}
}

// inOrder sorts problems by their places.
func inOrder(problems []Problem) []Problem {
	slices.SortStableFunc(problems, func(a, b Problem) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
	return problems
}

// maxExcerpt bounds the width of an excerpt, in characters.
const maxExcerpt = 100

// excerpt draws
//
//	4 | modell: openai/gpt-4o
//	  | ^
func excerpt(line, column int, text string) string {
	runes := []rune(strings.ReplaceAll(text, "\t", " "))
	from := max(0, column-maxExcerpt+20)
	to := min(len(runes), from+maxExcerpt)
	// Masking comes last and keeps what is before a secret, so the caret stays right.
	shown := redact(string(runes[min(from, to):to]))
	if from > 0 && secretField.MatchString(text) {
		shown = mask // the field's name may be out of sight, and so unrecognised
	}
	return fmt.Sprintf("%5d | %s\n      | %s^\n", line, shown, strings.Repeat(" ", column-1-from))
}

const mask = "…"

var (
	// secretField is a field whose value is a secret, up to that value; secretValue is a key that stands anywhere.
	secretField = regexp.MustCompile(`(?i)((?:api[_-]?key|secret|password|passwd|authorization|credentials?|(?:^|[^a-z])(?:auth|access|bearer|session)?[_-]?token|bearer)["']?\s*[:=]\s*)\S.*`)
	secretValue = regexp.MustCompile(`\b(sk-|sk_|Bearer\s+)[A-Za-z0-9._~+/=-]{8,}`)
)

// redact masks what looks like a secret: errors end in terminals, logs and bug reports.
func redact(s string) string {
	return secretValue.ReplaceAllString(secretField.ReplaceAllString(s, "${1}"+mask), "${1}"+mask)
}
