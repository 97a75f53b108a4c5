package main

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

// TestPrincipal: who states nothing is the user of the machine, with exactly the tools of the file.
func TestPrincipal(t *testing.T) {
	t.Parallel()
	hands := &schema.Governance{Subagents: []schema.Subagent{{Agent: "b"}}}
	for name, c := range map[string]struct {
		flags principalFlags
		spec  schema.AgentSpec
		want  schema.Principal
	}{
		"nothing stated":           {principalFlags{}, schema.AgentSpec{Tools: []string{"read_*", "shell/bash"}}, schema.Principal{ID: localUser(), Scopes: []string{"tool:read_*", "tool:shell/bash"}}},
		"no tools":                 {principalFlags{}, schema.AgentSpec{}, schema.Principal{ID: localUser(), Scopes: []string{"tool:none/none"}}},
		"an agent that hands over": {principalFlags{}, schema.AgentSpec{Tools: []string{"a"}, Governance: hands}, schema.Principal{ID: localUser(), Scopes: []string{"tool:*", "tool:agents/*"}}},
		"all stated": {
			principalFlags{As: "ann", Tenant: "acme", Scope: []string{"effect:read"}},
			schema.AgentSpec{Tools: []string{"a"}},
			schema.Principal{ID: "ann", Tenant: "acme", Scopes: []string{"effect:read"}},
		},
	} {
		got, err := c.flags.principal(c.spec)
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v, %s", name, err, diff)
		}
	}
	_, err := (&principalFlags{Scope: []string{"effect:all"}}).principal(schema.AgentSpec{})
	if err == nil || !strings.Contains(err.Error(), `--scope`) || !strings.Contains(err.Error(), "an effect is read") {
		t.Errorf("error %v", err)
	}
}

// TestDefaultScopesHold: what the file does not name is not allowed, and without tools nothing is.
func TestDefaultScopesHold(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		tools       []string
		queue, tool string
		allowed     bool
	}{
		{[]string{"read_*"}, "files", "read_file", true},
		{[]string{"read_*"}, "files", "write_file", false},
		{[]string{"shell/bash"}, "other", "bash", false},
		{[]string{"*"}, schema.QueueAgents, "b", false},
		{nil, "files", "read_file", false},
	} {
		why := schema.Permits(fileScopes(schema.AgentSpec{Tools: c.tools}), schema.Scoped{Queue: c.queue, Tool: c.tool}, time.Now())
		if (why == "") != c.allowed {
			t.Errorf("%v, %s/%s: %q", c.tools, c.queue, c.tool, why)
		}
	}
}
