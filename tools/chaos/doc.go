// Package chaos holds a test that breaks a whole fleet at random and then looks for what was lost or done twice.
//
// Agents run on orchestrators in processes of their own, their tools on workers in processes of their own, all through
// proxies to a server in its own process, or to three that are a cluster with every stream on each of them. For a while
// everything of this is killed, paused, rolled and cut off, in an order that a seed determines; of three servers one at a
// time, which may also lose sight of the others. When it is over every run must come to its end, and the facts of all of them and the
// ledger that the tools have kept are compared:
//
//   - every call has exactly one result, and memory has them in the order of the calls;
//   - a run-once tool started at most once, exactly once where its result says that it worked;
//   - every run is closed, and nothing was written behind that;
//   - no message is left in the work stream, and no consumer that nobody uses;
//   - no process that was asked to end, in the middle or at the end, had goroutines left.
//
// `make chaos` runs it for ten minutes, half of them with one server and half with three; see the flags of the test.
package chaos
