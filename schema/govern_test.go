package schema

import "testing"

// The agent that others are told about stays as its file says: a later run of it may have another parent, or none.
func TestUnderChangesNothing(t *testing.T) {
	t.Parallel()
	agent := &AgentSpec{ID: "anna", Governance: &Governance{Environment: "test"}}
	parent := &AgentSpec{ID: "boss", Governance: &Governance{Policy: &Policy{Default: ActionDeny}, Above: make([]Above, 1, 8)}}
	for range 2 {
		if got := agent.Under(parent).Governance; len(got.Above) != 2 || got.Environment != "test" {
			t.Errorf("%+v", got)
		}
	}
	if len(agent.Governance.Above) > 0 || len(parent.Governance.Above) != 1 {
		t.Errorf("agent %+v, parent %+v", agent.Governance, parent.Governance)
	}
	for name, p := range map[string]*AgentSpec{"nobody": nil, "no governance": {ID: "boss"}, "no policy": {ID: "boss", Governance: &Governance{AbortOn: []string{"x"}}}} {
		if agent.Under(p) != agent {
			t.Errorf("%s: another agent", name)
		}
	}
}
