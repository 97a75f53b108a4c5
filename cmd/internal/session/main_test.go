package session_test

import (
	"context"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/cmd/internal/worker"
)

// The test binary is also the program that sessions start workers with, and a parent that gets killed.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case "worker":
			os.Exit(workerMain())
		case "parent":
			os.Exit(parentMain(os.Args[2]))
		}
	}
	goleak.VerifyTestMain(m)
}

func workerMain() int {
	var grammar struct {
		cli.Common
		Worker worker.Commands `cmd:""`
	}
	return cli.Program{Name: "test", Grammar: &grammar, Common: &grammar.Common}.Main(os.Args[1:])
}

// parentMain starts a worker on the server at url and waits to be killed.
func parentMain(url string) int {
	ctx := context.Background()
	s, err := session.Open(ctx, session.Options{URL: url})
	if err == nil {
		_, err = s.Fleet.Start(ctx, "serve", "--queue", "files")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	select {}
}
