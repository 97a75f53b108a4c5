package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// Program is a command-line program.
type Program struct {
	Name        string
	Description string
	Grammar     any     // pointer to a struct for kong, which embeds a Common
	Common      *Common // the one in Grammar
}

// Common holds the flags that every command has.
type Common struct {
	Verbose  bool        `short:"v" help:"Say more on standard error: debug logs, and what the workers log."`
	Version  VersionFlag `help:"Print the version and exit."`
	Instance string      `hidden:"" help:"Id of this process start; it names the process on the bus and in traces."`
}

// App is what a command runs with, beside its flags.
type App struct {
	Program  string // name of the program
	Instance string // id of this process start
	Verbose  bool
	Log      *slog.Logger
	In       io.Reader
	Out, Err io.Writer

	model   *kong.Application
	signals *signals
}

// helpCommand before the name of a command, or alone, is --help behind it.
const helpCommand = "help"

// Main runs the command that args name and returns the exit code of the process. It may end the process itself: after
// printing help or the version, and at a second signal.
func (p Program) Main(args []string) int {
	parser, err := kong.New(p.Grammar,
		kong.Name(p.Name), kong.Description(p.Description),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, WrapUpperBound: 100}),
		kong.Vars{"version": Version(), "program": p.Name},
	)
	if err != nil {
		panic(fmt.Sprintf("grammar of %s: %v", p.Name, err)) // a programmer's mistake
	}
	if len(args) > 0 && args[0] == helpCommand {
		args = append(slices.Clone(args[1:]), "--help")
	}
	parsed, err := parser.Parse(args)
	if parse := new(kong.ParseError); errors.As(err, &parse) && len(args) == 0 {
		_ = parse.Context.PrintUsage(false) // somebody who asks for nothing wants to see what there is
		return CodeUsage
	}
	if err != nil {
		p.complain(err)
		command := p.Name
		if parse := new(kong.ParseError); errors.As(err, &parse) && parse.Context.Selected() != nil {
			command = parse.Context.Selected().FullPath()
		}
		fmt.Fprintf(os.Stderr, "%s: `%s --help` shows what it takes\n", p.Name, command)
		return CodeUsage
	}
	return p.run(parsed)
}

// gcPercent lets the heap, which is a few megabytes, grow further before it is collected: at the default a busy process
// spends a fifth of its time collecting. GOGC overrules it.
const gcPercent = 400

func (p Program) run(parsed *kong.Context) int {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(gcPercent)
	}
	app := p.app(parsed)
	ctx, signals := catchSignals(context.Background())
	defer signals.release()
	app.signals = signals
	flush, err := tracing.Setup(ctx, tracing.Config{
		Service: p.service(parsed), Version: Version(), Instance: app.Instance, Logger: app.Log,
	})
	if err != nil {
		p.complain(err)
		return CodeUsage // the variables that say where traces go are wrong
	}
	parsed.Bind(app)
	parsed.BindTo(ctx, (*context.Context)(nil))
	err = parsed.Run()
	if err := flush(context.WithoutCancel(ctx)); err != nil {
		app.Log.Warn("spans may be lost", "error", err)
	}
	return p.exitCode(err, signals.code())
}

func (p Program) app(parsed *kong.Context) *App {
	level := slog.LevelWarn
	if p.Common.Verbose {
		level = slog.LevelDebug
	}
	handler := slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})
	app := &App{
		Program: p.Name, Instance: p.Common.Instance, Verbose: p.Common.Verbose,
		Log: slog.New(tracing.NewLogHandler(handler)),
		In:  os.Stdin, Out: os.Stdout, Err: os.Stderr, model: parsed.Model,
	}
	if app.Instance == "" {
		app.Instance = schema.NewID()
	}
	slog.SetDefault(app.Log)
	return app
}

// service names the process in traces. A worker is a worker whichever program it was started from.
func (p Program) service(parsed *kong.Context) string {
	if strings.HasPrefix(parsed.Command(), "worker ") {
		return "jetcrew-toolworker"
	}
	return "jetcrew-" + p.Name
}

// exitCode says err and turns it into the exit code; bySignal is not 0 when a signal ended the work.
func (p Program) exitCode(err error, bySignal int) int {
	if err == nil {
		return CodeOK
	}
	var exit *ExitError
	if errors.As(err, &exit) && exit.Err == nil {
		return exit.Code
	}
	if bySignal != 0 && errors.Is(err, context.Canceled) {
		fmt.Fprintf(os.Stderr, "%s: interrupted\n", p.Name)
		return bySignal
	}
	p.complain(err)
	switch {
	case exit != nil:
		return exit.Code
	case bySignal != 0:
		return bySignal
	}
	return CodeFailed
}

// complain writes an error to standard error. Its text may hold a provider's or a tool's words: nothing in it may
// steer the terminal.
func (p Program) complain(err error) {
	fmt.Fprintf(os.Stderr, "%s: %s\n", p.Name, Printable(err.Error()))
}

// Printable returns text without the characters that steer a terminal; line breaks and tabs stay.
func Printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}
