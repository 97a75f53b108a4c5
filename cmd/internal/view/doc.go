// Package view shows people what runs do: the events of package loop as plain lines for a pipe, as a live view with
// colour on a terminal, or as one JSON object a line for programs.
//
// It owns what the terminal gets to see, which includes that nothing a model or a tool wrote can steer the terminal.
// It refuses to own decisions: it is told what happened and who works on what.
//
//	v := view.New(view.Config{Out: os.Stdout})
//	defer v.Close()
//	agent, err := loop.New(loop.Config{Events: v.Event})
package view
