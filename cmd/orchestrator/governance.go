package main

import (
	"errors"
	"fmt"

	"github.com/jetcrew/jetcrew/executor/rules"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/agentfile"
	"github.com/jetcrew/jetcrew/schema"
)

// govern returns the guards that an agent's file asks for: its filters, its policy and the values it binds.
func govern(spec schema.AgentSpec) ([]loop.Guard, error) {
	if spec.Governance == nil {
		return nil, nil
	}
	r, err := rules.Compile(spec.Governance)
	if err != nil {
		return nil, fmt.Errorf("agent %s: %w", spec.ID, err)
	}
	return []loop.Guard{r}, nil
}

// codeRules is what codes of problems begin with that only the compiler of rules finds.
const codeRules = "jetcrew.rules."

// governanceProblems returns what only the compiler of rules finds in a file, such as conditions that are no CEL.
func governanceProblems(f *agentfile.File) []agentfile.Problem {
	_, err := rules.Compile(f.Agent.Governance)
	var found rules.Problems
	if !errors.As(err, &found) {
		return nil
	}
	problems := make([]agentfile.Problem, len(found))
	for i, p := range found {
		problems[i] = f.ProblemIn(p.Path, agentfile.Code(codeRules+p.Code), p.Text, p.Line, p.Column)
	}
	return problems
}

// presetRules returns the rules of a ready-made list; nil when it is not known.
func presetRules(name string) []schema.PolicyRule { return rules.Preset(name) }
