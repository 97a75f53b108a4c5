package main

import (
	"github.com/jetcrew/jetcrew/loop/agentfile"
	"github.com/jetcrew/jetcrew/schema"
)

// governanceProblems returns what only the compiler of rules finds in a file, such as conditions that are no CEL.
func governanceProblems(*agentfile.File) []agentfile.Problem { return nil }

// presetRules returns the rules of a ready-made list; nil when it is not known.
func presetRules(string) []schema.PolicyRule { return nil }
