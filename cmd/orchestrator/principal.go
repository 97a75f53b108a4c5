package main

import (
	"cmp"
	"os"
	"os/user"
	"strings"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/schema"
)

// anyone is the principal of a message that names none.
const anyone = "anonymous"

// What the principal's flags are called in the environment and in the environment file.
const (
	envPrincipal = "JETCREW_PRINCIPAL"
	envTenant    = "JETCREW_TENANT"
	envScopes    = "JETCREW_SCOPES" // with commas between them
)

// principalFlags say on whose behalf a command acts, and what may be done.
type principalFlags struct {
	As     string   `name:"as" env:"JETCREW_PRINCIPAL" placeholder:"ID" help:"On whose behalf runs act; default the user of this machine."`
	Tenant string   `env:"JETCREW_TENANT" placeholder:"ID" help:"Tenant of that user."`
	Scope  []string `env:"JETCREW_SCOPES" placeholder:"SCOPE" help:"What may be done, such as tool:read_*, effect:read or until:2027-01-01T00:00:00Z; may be repeated. Default: exactly the tools that the agent file names."`
}

// complete takes what no flag says from the environment, once the environment file is read: flags are older than that.
func (f *principalFlags) complete() error {
	f.As, f.Tenant = cmp.Or(f.As, os.Getenv(envPrincipal)), cmp.Or(f.Tenant, os.Getenv(envTenant))
	if scopes := os.Getenv(envScopes); len(f.Scope) == 0 && scopes != "" {
		f.Scope = strings.Split(scopes, ",")
	}
	if err := schema.CheckScopes(f.Scope); err != nil {
		return cli.Usagef("--scope: %w", err)
	}
	return nil
}

// principal returns who a run of the agent acts for.
func (f *principalFlags) principal(spec schema.AgentSpec) (schema.Principal, error) {
	if err := f.complete(); err != nil {
		return schema.Principal{}, err
	}
	p := schema.Principal{ID: cmp.Or(f.As, localUser()), Tenant: f.Tenant, Scopes: f.Scope}
	if len(p.Scopes) == 0 {
		p.Scopes = fileScopes(spec)
	}
	return p, nil
}

// fileScopes is the authority of who states none: exactly the tools of the agent's file. What agents may do to which it
// hands tasks is up to their own files.
func fileScopes(spec schema.AgentSpec) []string {
	var scopes []string
	hands := spec.Governance != nil && len(spec.Governance.Subagents) > 0
	for _, ref := range spec.Tools {
		hands = hands || strings.HasPrefix(ref, schema.QueueAgents+"/")
		scopes = append(scopes, schema.ScopeTool+":"+ref)
	}
	switch {
	case hands:
		return handing()
	case len(scopes) == 0:
		return []string{schema.ScopeTool + ":" + schema.QueueNone + "/none"} // it has no tools
	}
	return scopes
}

// handing is the authority of who hands tasks over: the agents that get them have the tools of their own files.
func handing() []string {
	return []string{schema.ScopeTool + ":*", schema.ScopeTool + ":" + schema.QueueAgents + "/*"}
}

// everyTool is the authority of who replays a transcript, whose tools are recordings.
func everyTool() []string { return []string{schema.ScopeTool + ":*"} }

// localUser names the user of this machine.
func localUser() string {
	u, err := user.Current()
	if err != nil {
		return "local"
	}
	return u.Username
}
