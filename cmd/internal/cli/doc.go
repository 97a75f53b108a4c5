// Package cli is what the command-line programs of this module share: the set-up of logs and traces, the connection to
// a bus, signals, exit codes, the version, and completion for shells.
//
// It owns the way from the start of a process to the Run method of a command and back to its exit code. It refuses to
// own any command but those about the program itself (Version, Completion).
//
//	var grammar struct {
//		cli.Common
//		Greet Greet `cmd:"" help:"Say hello."`
//	}
//	os.Exit(cli.Program{Name: "hello", Grammar: &grammar, Common: &grammar.Common}.Main(os.Args[1:]))
//
// A command is a struct for github.com/alecthomas/kong whose Run method may take a context.Context, which ends with the
// first signal, and an *App.
package cli
