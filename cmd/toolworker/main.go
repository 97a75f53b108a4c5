// Command toolworker executes the tool calls of agents: it takes them from queues on NATS JetStream, runs them under
// their deadline and records their results. Start as many as you like, wherever you like.
package main

import (
	"os"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/worker"
)

type grammar struct {
	cli.Common
	worker.Commands
	Completion cli.CompletionCmd `cmd:"" help:"Print a script that completes the command line in bash, zsh or fish."`
	Version    cli.VersionCmd    `cmd:"" name:"version" help:"Print the version."`
}

func main() {
	var g grammar
	os.Exit(cli.Program{
		Name:        "toolworker",
		Description: "Executes the tool calls of agents, from queues on NATS JetStream.",
		Grammar:     &g, Common: &g.Common,
	}.Main(os.Args[1:]))
}
