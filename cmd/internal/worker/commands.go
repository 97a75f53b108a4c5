package worker

// Commands are the commands of a worker.
type Commands struct {
	Serve Serve `cmd:"" help:"Execute tool calls with real tools, until a signal; what runs then may finish."`
	Limit Limit `cmd:"" help:"Show or change how many calls of a queue its workers run at once, all of them together."`
	Mock  Mock  `cmd:"" help:"Answer tool calls with the outputs that transcripts recorded."`
}
