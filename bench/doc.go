// Command bench measures Jetcrew beside the raw nats.go exchange that it is built on, in the same run: one call
// outstanding, turns of parallel calls, and many calls outstanding, for an idempotent no-op tool and a run-once one.
//
// Server, workers and callers are processes of their own; the store is on disk. Rounds of both sides are interleaved,
// and what counts is the ratio. `make bench` writes the table to bench/results.
package main
