// Package agentfile reads an agent's file: YAML in, a resolved schema.AgentSpec out.
//
// It owns the file's format (version jetcrew/v1), its defaults, and messages that name file, line and column and show
// the place. It refuses to own what the values mean later: whether a model exists, which tools a fleet offers. Keys of
// providers never stand in an agent file; they come from the environment, or from a .env file that LoadEnv reads.
//
//	spec, err := agentfile.Load("agent.yaml")
//	if err != nil {
//		fmt.Fprintln(os.Stderr, err) // agent.yaml:4:1: unknown field "modell"; did you mean "model"? …
//	}
//
// All problems of a file are reported at once, as an *Error.
package agentfile
