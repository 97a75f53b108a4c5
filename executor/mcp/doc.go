// Package mcp makes the tools of servers that speak the Model Context Protocol, over a command's standard input and
// output or over streamable HTTP, tools of an executor.
//
// It owns the connection to one server: starting its process, the session, reading its tools again when they have
// changed, calling them. It refuses to own retries: a call is sent at most once, and whether it is tried again is
// decided where every call's is. It believes nothing of what a server says about itself unless it is told to.
//
//	server, err := mcp.Connect(ctx, mcp.Config{Name: "github", Command: []string{"github-mcp-server", "stdio"}, Pass: []string{"GITHUB_TOKEN"}})
//	if err != nil {
//		return err
//	}
//	defer server.Close()
//	tools, err := server.Tools(ctx)
//	set, err := executor.NewSet("mcp-github", tools...)
package mcp
