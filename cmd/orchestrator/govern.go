package main

import (
	"fmt"

	"github.com/jetcrew/jetcrew/executor/rules"
	"github.com/jetcrew/jetcrew/loop"
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
