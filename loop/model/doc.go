// Package model holds what a model client is asked and what it answers, independent of the provider. The clients
// themselves are sub-packages, so that an agent links only the SDK it uses: openai, anthropic, and replay for a
// recorded transcript.
//
// It owns the form of a request and the classes of failure. It refuses to own retries (the loop has the one place
// where a request is asked again) and memory.
package model
