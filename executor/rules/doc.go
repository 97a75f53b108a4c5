// Package rules compiles what an agent's file says about permission into one guard of its loop: filters, the policy with its
// presets, risk and autonomy, and the values that are bound on the server's side.
//
// It owns what a schema.Governance means for one call, down to the conditions in CEL (https://cel.dev). It refuses to own
// what comes of a decision: who asks a person, who writes it down, who runs the call. It changes nothing but a call's
// Bound.
//
//	r, err := rules.Compile(spec.Governance) // err lists everything that is wrong, as Problems
//	cfg.Guards = append(cfg.Guards, r)       // loop.Config
//
// docs/policy.md describes the rules for those who write them.
package rules
