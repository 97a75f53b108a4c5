//go:build !linux

package toolkit

// endGroup does nothing here, where a child cannot be awaited without being reaped: what a command leaves in the
// background goes on, and delays the result by pipeWait if it holds the output.
func endGroup(int) {}
