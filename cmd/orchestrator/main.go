// Command orchestrator runs agents whose tool calls are executed by a fleet of workers over NATS JetStream. Without a
// server of one's own it brings one along, with workers.
package main

import (
	"os"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/cmd/internal/worker"
)

type grammar struct {
	cli.Common
	agentCommands
	Tools      ToolsCmd          `cmd:"" help:"See and call the tools of the fleet without a model."`
	Runs       RunsCmd           `cmd:"" help:"See and steer runs from anywhere."`
	Approvals  ApprovalsCmd      `cmd:"" help:"See calls that wait for a person, approve them, refuse them, from anywhere."`
	Audit      AuditCmd          `cmd:"" help:"Print who asked, what was decided and what ran where, with digests in place of contents; and check it."`
	Dead       DeadCmd           `cmd:"" help:"See calls that no worker could finish, try them again, remove them."`
	Replay     ReplayCmd         `cmd:"" help:"Play recorded conversations over the fleet and compare every output."`
	Check      CheckCmd          `cmd:"" help:"Report every problem of agent files, with code, path, line and column."`
	Explain    ExplainCmd        `cmd:"" help:"Say what the model of an agent sees, and what decides about its calls."`
	Init       InitCmd           `cmd:"" help:"Write a commented agent file to start from."`
	Completion cli.CompletionCmd `cmd:"" help:"Print a script that completes the command line in bash, zsh or fish."`
	Version    cli.VersionCmd    `cmd:"" name:"version" help:"Print the version."`
	Worker     worker.Commands   `cmd:"" hidden:"" help:"Be a worker of the embedded server."`
}

func main() {
	var g grammar
	os.Exit(cli.Program{
		Name:        "orchestrator",
		Description: "Runs agents whose tool calls are executed by a fleet of workers. Without a NATS server (--nats, NATS_URL) it uses one of its own, with workers of its own.",
		Grammar:     &g, Common: &g.Common,
	}.Main(os.Args[1:]))
}
