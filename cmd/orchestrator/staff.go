package main

import (
	"context"
	"fmt"
	"path/filepath"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/schema"
)

// staff is the agents that a process serves, in the order of their files. It is safe for concurrent use.
type staff struct {
	bus     *bus.Bus
	members []member
}

// member is an agent as its file says it.
type member struct {
	spec  schema.AgentSpec
	file  string
	model loop.Model
}

// hire reads the environment file and the agent files. What is wrong with them is found before anything is started.
func (c *ServeCmd) hire(app *cli.App) (*staff, error) {
	if err := c.loadEnv(); err != nil {
		return nil, err
	}
	return hire(app, c.File)
}

// hire reads agent files.
func hire(app *cli.App, files []string) (*staff, error) {
	s := &staff{}
	for _, file := range files {
		m := member{file: file}
		var err error
		if m.spec, err = loadAgent(app, file); err != nil {
			return nil, err
		}
		if _, err := govern(m.spec); err != nil {
			return nil, err
		}
		if other := s.member(m.spec.ID); other != nil {
			return nil, fmt.Errorf("%s: the agent %s stands in %s already; an id names one agent", file, m.spec.ID, other.file)
		}
		if m.model, err = newModel(m.spec, filepath.Dir(file)); err != nil {
			return nil, err
		}
		s.members = append(s.members, m)
	}
	return s, nil
}

// member returns the agent of that id, nil if there is none.
func (s *staff) member(id string) *member {
	for i := range s.members {
		if s.members[i].spec.ID == id {
			return &s.members[i]
		}
	}
	return nil
}

func (s *staff) names() []string {
	var names []string
	for i := range s.members {
		names = append(names, s.members[i].spec.ID)
	}
	return names
}

// tools returns the agents as others may call them.
func (s *staff) tools() []schema.Tool {
	var tools []schema.Tool
	for i := range s.members {
		tools = append(tools, schema.AgentTool(s.members[i].spec))
	}
	return tools
}

// find is loop.HostConfig.Find.
func (s *staff) find(id string) (schema.AgentSpec, bool) {
	m := s.member(id)
	if m == nil {
		return schema.AgentSpec{}, false
	}
	return m.spec, true
}

// equip is loop.HostConfig.Equip. A run keeps the agent that it was opened with, also one that is not served here or has
// changed since.
func (s *staff) equip(ctx context.Context, spec schema.AgentSpec) (loop.Model, loop.Registry, error) {
	model, err := s.model(spec)
	if err != nil {
		return nil, nil, err
	}
	selection := s.bus.Select(spec.Tools...)
	if err := selection.Wait(ctx, toolsWithin); err != nil {
		return nil, nil, err
	}
	return model, selection, nil
}

// model returns the client of a served agent, if it is the same model, or a new one.
func (s *staff) model(spec schema.AgentSpec) (loop.Model, error) {
	m := s.member(spec.ID)
	switch {
	case m == nil:
		return newModel(spec, ".")
	case m.spec.Model.Provider == spec.Model.Provider && m.spec.Model.Name == spec.Model.Name:
		return m.model, nil
	}
	return newModel(spec, filepath.Dir(m.file))
}
