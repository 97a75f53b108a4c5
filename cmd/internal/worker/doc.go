// Package worker holds the commands that execute tool calls: Serve, with real tools, and Mock, with recorded outputs.
// The program toolworker has them, and orchestrator starts itself with them as the workers of its embedded server.
//
// It owns the life of a worker process: connecting, serving its queues, draining at a signal or when its parent is
// gone. It refuses to own tools and their execution.
//
//	var grammar struct {
//		cli.Common
//		worker.Commands
//	}
package worker
