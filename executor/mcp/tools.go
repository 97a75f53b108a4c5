package mcp

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// maxTools bounds the tools of one server: a list without an end must not fill the memory.
const maxTools = 10_000

// Tools asks the server for its tools, page by page. A tool that cannot be used, because of its name or its schema, is left
// out and named in the log: it must not take the others with it.
func (s *Server) Tools(ctx context.Context) ([]executor.Tool, error) {
	ctx, cancel := s.within(ctx)
	defer cancel()
	c, err := s.live(ctx)
	if err != nil {
		return nil, fmt.Errorf("tools of MCP server %q: %w", s.cfg.Name, err)
	}
	var tools []executor.Tool
	taken := map[string]bool{}
	n := 0
	for t, err := range c.Tools(ctx, nil) {
		if err != nil {
			s.suspect(c, err)
			return nil, fmt.Errorf("tools of MCP server %q: %w", s.cfg.Name, err)
		}
		if n++; n > maxTools {
			return nil, fmt.Errorf("tools of MCP server %q: more than %d", s.cfg.Name, maxTools)
		}
		tool, err := s.tool(t)
		if err == nil && taken[tool.Name] {
			err = errors.New("the server has another tool of that name")
		}
		if err != nil {
			s.cfg.Logger.Warn("tool of an MCP server left out", "tool", schema.Cut(t.Name, 256), "error", schema.Cut(err.Error(), 512))
			continue
		}
		taken[tool.Name] = true
		tools = append(tools, tool)
	}
	return tools, nil
}

// tool makes a tool of the server's definition of it.
func (s *Server) tool(t *sdk.Tool) (executor.Tool, error) {
	def := schema.Tool{Name: s.cfg.Prefix + t.Name, Description: description(t), Source: s.cfg.Name}
	if t.InputSchema != nil {
		params, err := json.Marshal(t.InputSchema)
		if err != nil {
			return executor.Tool{}, err
		}
		def.Parameters = schema.JSONText(params)
	}
	s.declare(&def, t)
	if err := schema.CheckTool(&def); err != nil {
		return executor.Tool{}, err
	}
	name, idempotent := t.Name, def.Idempotent
	return executor.Tool{Tool: def, Run: func(ctx context.Context, call *schema.Call) (string, error) {
		return s.call(ctx, calling{name: name, idempotent: idempotent}, call)
	}}, nil
}

// description is what the server says of a tool, or its title, or its name.
func description(t *sdk.Tool) string {
	title := t.Title
	if t.Annotations != nil {
		title = cmp.Or(title, t.Annotations.Title)
	}
	for _, text := range []string{t.Description, title} {
		if text = strings.TrimSpace(text); text != "" {
			return text
		}
	}
	return t.Name
}

// declare says what a tool does to the world. What the server says of itself counts only if it is trusted: a hint that is
// wrong would have a call repeated, or let through.
func (s *Server) declare(def *schema.Tool, t *sdk.Tool) {
	if d, ok := s.cfg.Declare[t.Name]; ok {
		def.Effect, def.Idempotent, def.TimeoutMS = d.Effect, d.Idempotent, d.Timeout.Milliseconds()
		return
	}
	a := t.Annotations
	if !s.cfg.Trust || a == nil {
		return
	}
	def.Idempotent = a.IdempotentHint || a.ReadOnlyHint
	switch {
	case a.ReadOnlyHint:
		def.Effect = schema.EffectRead
	case a.DestructiveHint == nil || *a.DestructiveHint:
		def.Effect = schema.EffectDestructive
	case a.OpenWorldHint == nil || *a.OpenWorldHint:
		def.Effect = schema.EffectNetwork
	default:
		def.Effect = schema.EffectWrite
	}
}
