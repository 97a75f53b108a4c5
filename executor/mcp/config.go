package mcp

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// Config says how to reach one server, and what is believed of it. Either Command or URL is set.
type Config struct {
	Name   string // of the server, [a-z0-9_-]{1,60}; the Source of its tools
	Prefix string // before the names of its tools; default Name and '_'
	Bare   bool   // no prefix: the names are the server's own

	Command []string          // program and arguments of a server that speaks over its standard input and output
	Dir     string            // that the command works in; default the directory of this process
	Env     map[string]string // variables of the command
	Pass    []string          // names of variables of this process that the command gets too, beside PATH, HOME and the like

	URL    string            // of a server that speaks streamable HTTP
	Header map[string]string // of each request, such as Authorization

	Trust   bool                   // believe what the server says about the effects of its tools
	Declare map[string]Declaration // what is known better, by the server's name of the tool
	Start   time.Duration          // bound on connecting and on reading the tools; default 30 s
	Logger  *slog.Logger           // default slog.Default()
}

// Declaration says what a tool does, in place of the server. Its zero fields say what is safe.
type Declaration struct {
	Effect     string        `json:"effect"`     // one of schema.EffectRead and its siblings; empty counts as destructive
	Idempotent bool          `json:"idempotent"` // may run more than once for one call
	Timeout    time.Duration `json:"-"`          // of one run; 0: none
}

// Exposed returns what the fleet calls a tool that the server calls name.
func (c Config) Exposed(name string) string {
	if c.Prefix == "" && !c.Bare {
		return c.Name + "_" + name
	}
	return c.Prefix + name
}

func (c Config) withDefaults() Config {
	c.Prefix = c.Exposed("")
	c.Start = cmp.Or(c.Start, 30*time.Second)
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.Logger = c.Logger.With("mcp", c.Name)
	return c
}

// Queue returns the queue whose workers have the server of that name.
func Queue(name string) string { return "mcp-" + name }

// Check returns what is wrong with c.
func (c Config) Check() error {
	if err := schema.CheckQueue(Queue(c.Name)); err != nil || c.Name == "" {
		return fmt.Errorf("MCP server %.80q: a name is 1 to 60 of a-z, 0-9, '_' and '-'", c.Name)
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("MCP server %q: %w", c.Name, err)
	}
	return nil
}

func (c Config) check() error {
	switch {
	case len(c.Command) == 0 && c.URL == "":
		return errors.New("neither a command nor a URL says how to reach it")
	case len(c.Command) > 0 && c.URL != "":
		return errors.New("a command and a URL: want one of them")
	case len(c.Command) > 0 && strings.TrimSpace(c.Command[0]) == "":
		return errors.New("the command is blank")
	case len(c.Command) > 0 && len(c.Header) > 0:
		return errors.New("headers go with a URL")
	case c.URL != "" && (c.Dir != "" || len(c.Env) > 0 || len(c.Pass) > 0):
		return errors.New("a directory and variables go with a command")
	case c.Start < 0:
		return fmt.Errorf("the bound on its start, %v, is negative", c.Start)
	}
	if c.URL != "" {
		if u, err := url.Parse(c.URL); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return errors.New("the URL is not one of http:// or https:// with a host")
		}
	}
	for name, d := range c.Declare {
		switch d.Effect {
		case "", schema.EffectRead, schema.EffectWrite, schema.EffectNetwork, schema.EffectDestructive:
		default:
			return fmt.Errorf("tool %q: the effect %q is not read, write, network or destructive", name, d.Effect)
		}
	}
	return nil
}
