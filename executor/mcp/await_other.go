//go:build !linux

package mcp

// awaitExit does nothing here, where a child cannot be awaited without being reaped: what a server that ended by itself
// has left behind goes on.
func awaitExit(int) bool { return false }
