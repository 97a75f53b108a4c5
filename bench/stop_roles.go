package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/executor/toolkit"
	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// The agents whose calls are stopped, and what may stand before their names.
const (
	agentHandler  = "handler" // calls a tool in the worker
	agentGroup    = "group"   // has the worker run a command
	prefixParent  = "parent-" // hands its task to the other
	prefixLimited = "limited-"

	wallClock = 300 * time.Millisecond // of an agent that is limited

	toolEndless = "endless"
	toolShell   = "bash"
)

// endlessCmd is a worker whose tools end when they are told to.
type endlessCmd struct {
	URL string `arg:""`
	Dir string `arg:""`
}

func (c endlessCmd) Run(ctx context.Context) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	type in struct {
		ID string `json:"id"`
	}
	tools := []executor.Tool{executor.Func(toolEndless, "Ends when it is told to.", func(ctx context.Context, in in) (string, error) {
		if err := os.WriteFile(filepath.Join(c.Dir, in.ID+".started"), []byte("yes"), 0o600); err != nil {
			return "", err
		}
		<-ctx.Done()
		return "", c.say(in.ID+".ended", fmt.Sprint(time.Now().UnixNano()))
	})}
	shell, err := toolkit.Shell(c.Dir, toolkit.ShellConfig{})
	if err != nil {
		return err
	}
	set, err := executor.NewSet(benchQueue, append(tools, shell...)...)
	if err != nil {
		return err
	}
	b, err := bus.Connect(ctx, bus.Config{URL: c.URL})
	if err != nil {
		return err
	}
	defer b.Close()
	fmt.Println("ready")
	return b.Serve(ctx, bus.Worker{Queue: benchQueue, Slots: 16, Tools: set})
}

// say makes a file be there whole.
func (c endlessCmd) say(name, text string) error {
	path := filepath.Join(c.Dir, name)
	return errors.Join(os.WriteFile(path+".new", []byte(text), 0o600), os.Rename(path+".new", path))
}

// endless is the model of all agents: it asks for one call that does not end.
type endless struct{}

func (endless) Generate(_ context.Context, req *model.Request) (*model.Response, error) {
	if req.Turn > 1 {
		return &model.Response{Text: "done", Finish: schema.FinishStop}, nil
	}
	var id string
	for _, m := range req.Messages {
		if m.Role == schema.RoleUser {
			id = m.Text
		}
	}
	agent := strings.TrimPrefix(req.Agent, prefixLimited)
	name, args := toolEndless, map[string]string{"id": id}
	switch {
	case strings.HasPrefix(agent, prefixParent):
		name, args = strings.TrimPrefix(agent, prefixParent), map[string]string{"task": id}
	case agent == agentGroup:
		name, args = toolShell, map[string]string{"command": fmt.Sprintf("sleep 600 & a=$!; sleep 600 & echo $$ $a $! >%s.new; mv %[1]s.new %[1]s.started; wait", id)}
	}
	data, err := json.Marshal(args)
	return &model.Response{Calls: []schema.RawCall{{ID: "c", Name: name, Args: string(data)}}, Finish: schema.FinishCalls}, err
}

// endlessAgent is an agent of a name.
func endlessAgent(name string) schema.AgentSpec {
	spec := schema.AgentSpec{ID: name, Limits: schema.DefaultLimits()}
	if strings.HasPrefix(name, prefixLimited) {
		spec.Limits.WallClockMS = wallClock.Milliseconds()
	}
	return spec
}

// anybody may do everything.
var anybody = schema.Principal{ID: "bench", Scopes: []string{"tool:*", "tool:agents/*"}}

// stopHostCmd is an orchestrator that serves these agents.
type stopHostCmd struct {
	URL string `arg:""`
}

func (c stopHostCmd) Run(ctx context.Context) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	b, err := bus.Connect(ctx, bus.Config{URL: c.URL})
	if err != nil {
		return err
	}
	defer b.Close()
	tools := b.Select(toolEndless, toolShell)
	if err := tools.Wait(ctx, 10*time.Second); err != nil {
		return err
	}
	children := b.Select(schema.QueueAgents+"/"+agentHandler, schema.QueueAgents+"/"+agentGroup)
	h, err := loop.NewHost(loop.HostConfig{
		Config: loop.Config{Bus: b, Principal: anybody},
		Find:   func(name string) (schema.AgentSpec, bool) { return endlessAgent(name), true },
		Equip: func(ctx context.Context, spec schema.AgentSpec) (loop.Model, loop.Registry, error) {
			if strings.HasPrefix(spec.ID, prefixParent) {
				return endless{}, children, children.Wait(ctx, 10*time.Second)
			}
			return endless{}, tools, nil
		},
	})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	return b.Host(ctx, bus.Hosting{Slots: 16, Host: h, Drain: time.Second, Agents: []schema.Tool{
		schema.AgentTool(endlessAgent(agentHandler)), schema.AgentTool(endlessAgent(agentGroup)),
	}})
}

// stopRunCmd runs one of these agents in the foreground, until it is interrupted.
type stopRunCmd struct {
	URL   string `arg:""`
	Agent string `arg:""`
	Task  string `arg:""`
}

func (c stopRunCmd) Run(ctx context.Context) error {
	ctx, stop := signalContext(ctx)
	defer stop()
	b, err := bus.Connect(ctx, bus.Config{URL: c.URL})
	if err != nil {
		return err
	}
	defer b.Close()
	tools := b.Select(toolEndless, toolShell)
	if err := tools.Wait(ctx, 10*time.Second); err != nil {
		return err
	}
	a, err := loop.New(loop.Config{Agent: endlessAgent(c.Agent), Model: endless{}, Bus: b, Registry: tools, Principal: anybody})
	if err != nil {
		return err
	}
	fmt.Println("ready")
	_, err = a.Run(ctx, c.Task)
	if ctx.Err() != nil {
		return nil // as it was told
	}
	return err
}
