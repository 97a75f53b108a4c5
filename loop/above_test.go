package loop_test

import (
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/model"
	"github.com/jetcrew/jetcrew/schema"
)

// TestD22SubagentPolicies: the policies of all agents above a run stand in its first fact, so that what a parent denies is
// denied to its sub-agent and to the sub-agents of that, in every attempt.
func TestD22SubagentPolicies(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := handing(forever, false, schema.Handoff{MaxDepth: 2, MaxRetries: 1}, map[string]map[int]*model.Response{
			"tester": {1: handOver("subagent_anna")},
			"anna":   {1: handOver("subagent_carl")},
			"carl":   {1: {Calls: raw("count"), Finish: schema.FinishCalls}},
		})
		deny := &schema.Policy{Rules: []schema.PolicyRule{{Tools: []string{"count"}, Action: schema.ActionDeny}}}
		of := w.shape
		w.shape = func(spec *schema.AgentSpec) {
			switch of(spec); spec.ID {
			case "tester":
				spec.Governance.Policy, spec.Governance.Environment = deny, "production"
			case "anna":
				spec.Governance = &schema.Governance{
					Subagents: []schema.Subagent{{Agent: "carl", Handoff: &schema.Handoff{MaxDepth: 2}}},
					Tools:     []schema.ToolSetting{{Ref: "read", TimeoutMS: 1000}, {Ref: "*", Approval: schema.ApproveAsk, Bind: `{"a":1}`}},
				}
			}
		}
		w.setUp = func(c *loop.HostConfig) {
			c.Govern = func(spec schema.AgentSpec) ([]loop.Guard, error) {
				if spec.Governance == nil {
					return nil, nil
				}
				var guards []loop.Guard
				for _, a := range spec.Governance.Above {
					if a.Policy != nil {
						guards = append(guards, decide(func(c *schema.TurnCall) schema.Decision {
							if slices.Contains(a.Policy.Rules[0].Tools, c.Tool) {
								return schema.Decision{Action: schema.ActionDeny, Text: a.Agent + " may not"}
							}
							return schema.Decision{}
						}))
					}
				}
				return guards, nil
			}
		}
		w.go1(t)
		anna := schema.ChildRun("r", 1, 0, 1)
		carl := schema.ChildRun(anna, 1, 0, 1)
		tester := schema.Above{Agent: "tester", Environment: "production", Policy: deny}
		want := map[string][]schema.Above{
			"r": nil, anna: {tester},
			carl: {tester, {Agent: "anna", Tools: []schema.ToolSetting{{Ref: "read"}, {Ref: "*", Approval: schema.ApproveAsk}}}},
		}
		for run, above := range want {
			var open schema.Open
			if !w.bus.Fact(run, schema.OpenKey(), &open) || open.Agent.Governance == nil {
				t.Fatalf("open of %s: %+v", run, open)
			}
			if diff := cmp.Diff(above, open.Agent.Governance.Above); diff != "" {
				t.Errorf("run of %s: %s", open.Agent.ID, diff)
			}
		}
		if r := w.memory(t, carl).Result(1, 0); r.Output != "DENIED: tester may not" || len(w.ran) > 0 {
			t.Errorf("carl called count: %+v", r)
		}
	})
}
