// Package loop is the agent and the life of its run: ask the model, decide every call of its answer, have the calls
// executed, put the results into memory in call order, ask again, until there is an answer or a limit ends it.
//
// It owns runs (their facts and guards), limits, retries of model requests, the order of results and the one event
// stream. It refuses to own transport, tools and providers: it meets them through Journal, Dispatcher, Registry and
// Model, so that the same code runs against a fake in virtual time and against a cluster.
//
//	agent, err := loop.New(loop.Config{
//		Agent:    schema.AgentSpec{ID: "helper", Limits: schema.DefaultLimits()},
//		Model:    client,
//		Bus:      bus, // a Journal and a Dispatcher in one
//		Registry: catalog,
//
//		Principal: schema.Principal{ID: "ada", Scopes: []string{"tool:read_*"}},
//	})
//	answer, err := agent.Run(ctx, "What is in go.mod?")
//
// A tool that fails is a result that the model reads. A Go error means that the run cannot go on here: the transport
// is gone, another owner has taken the run (ErrFenced), or it was stopped (ErrStopped).
package loop
