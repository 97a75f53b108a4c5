package worker

// Commands are the commands of a worker.
type Commands struct {
	Serve Serve `cmd:"" help:"Execute tool calls with real tools, until a signal; what runs then may finish."`
	Mock  Mock  `cmd:"" help:"Answer tool calls with the outputs that transcripts recorded."`
}
