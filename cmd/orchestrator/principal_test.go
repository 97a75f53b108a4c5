package main

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/bus"
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

// TestPrincipalOfTheEnvironmentFile: what no flag and no variable says stands in .env, also of a run that is left to others.
func TestPrincipalOfTheEnvironmentFile(t *testing.T) {
	t.Parallel()
	o := newOffice(t, "replay/RECORDING#task")
	o.write(t, ".env", "JETCREW_PRINCIPAL=ann\nJETCREW_TENANT=acme\nJETCREW_SCOPES=tool:list_*,effect:read\n")
	opened := func(args ...string) string {
		t.Helper()
		wantCode(t, o.run(t, append(args, "--data", "data")...), 0)
		var listed listedRun
		if err := json.Unmarshal([]byte(o.run(t, "runs", "list", "--json", "--limit", "1", "--data", "data").Stdout), &listed); err != nil {
			t.Fatal(err)
		}
		return o.run(t, "runs", "watch", listed.Run, "--json", "--data", "data").Stdout
	}
	wantInOrder(t, opened("run", "Show me the note."), `"principal":{"id":"ann","tenant":"acme","scopes":["tool:list_*","effect:read"]}`)
	wantInOrder(t, opened("run", "--as", "bob", "--scope", "tool:*", "Show me the note."), `"principal":{"id":"bob","tenant":"acme","scopes":["tool:*"]}`)
	url := natsServer(t)
	b, err := bus.Connect(t.Context(), bus.Config{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	wantCode(t, o.run(t, "run", "--detach", "--nats", url, "go"), 0)
	for q, err := range b.Queued(t.Context()) {
		if err != nil || q.Call.Principal.ID != "ann" || q.Call.Principal.Tenant != "acme" || len(q.Call.Principal.Scopes) != 2 {
			t.Errorf("%+v, %v", q.Call, err)
		}
	}
	o.write(t, ".env", "JETCREW_SCOPES=effect:all\n")
	for _, command := range [][]string{{"run", "go"}, {"serve"}} {
		r := o.run(t, append(command, "--data", "data")...)
		wantCode(t, r, 2)
		wantInOrder(t, r.Stderr, "an effect is read")
	}
}
