package schema

import (
	"cmp"
	"time"
)

// RunMessage is a message of the queue agents as an orchestrator gets it: a call that starts a run, or a wake-up.
type RunMessage struct {
	Run      string    // id of the run that is to be worked on
	Call     *Call     // nil: a wake-up
	Seq      uint64    // WORK sequence
	Delivery uint64    // from 1
	Deadline time.Time // of Call, on the server's clock
	Unserved bool      // nobody has served the agent of Call for so long that nobody is waited for any more
	Slot     int       // the ctl slot that takes the run from those who were found to have left it; 0: the first free one
}

// TakenAct is what becomes of a RunMessage.
type TakenAct int

// What becomes of a message. The zero act leaves it alone: who lost the run to another owner neither acknowledges nor
// gives back, because that owner may hold the same message.
const (
	TakenLeave  TakenAct = iota // neither ack nor nak
	TakenDone                   // the work is done: ack
	TakenBusy                   // the run is another's, or handed back: nak
	TakenCannot                 // this orchestrator lacks what the run needs: nak
	TakenDead                   // nobody can do it: dead letter, then terminate
	TakenParked                 // the run waits for others: ack, and have it woken
)

// Taken is what an orchestrator did with a RunMessage.
type Taken struct {
	Act    TakenAct
	After  time.Duration // before a message that is given back comes again
	Reason string        // for people
	At     time.Time     // of a parked run: when it is to be woken at the latest; zero: only by what it awaits
	Await  []Key         // of a parked run: the facts that wake it
}

// MaxDepth is how many runs may stand above one.
const MaxDepth = 8

// agentParameters is the schema of what an agent is called with.
const agentParameters = `{"type":"object","properties":{"task":{"type":"string","minLength":1,"description":"What is to be done, with everything that is needed to do it."},"context":{"type":"string","description":"What is known already."}},"required":["task"],"additionalProperties":false}`

// AgentTool returns an agent as others call it: a tool of the queue agents.
func AgentTool(spec AgentSpec) Tool {
	name := spec.Name
	if name == "" {
		name = spec.ID
	}
	return Tool{
		Name: spec.ID, Description: "Hands a task to the agent " + name + ", which works on it by itself and answers.",
		Parameters: agentParameters, Queue: QueueAgents,
	}.WithDigest()
}

// SourceSubagent is the source of the tools that stand for sub-agents.
const SourceSubagent = "subagent"

// SubagentTool returns a sub-agent as the model of its parent sees it.
func SubagentTool(s Subagent) Tool {
	t := AgentTool(AgentSpec{ID: s.Agent})
	t.Name, t.Target, t.Source = s.ToolName(), s.Agent, SourceSubagent
	if s.Session == SessionReuse {
		t.Description += " It remembers the tasks before."
	}
	t.Description = cmp.Or(s.Description, t.Description)
	return t
}

// AgentArgs are the arguments of a call of an agent.
type AgentArgs struct {
	Task    string `json:"task"`              // required
	Context string `json:"context,omitempty"` // what is known already
	Keep    bool   `json:"keep,omitempty"`    // of a run of its own: it stays open after its answer
}

// StartKey names, for a call's queue, the fact that says that the call has begun: the begin of a worker, or the open of
// the child run.
func (c *Call) StartKey(queue string) Key {
	if queue != QueueAgents {
		return BeginKey(c.Turn, c.Index, queue)
	}
	open := OpenKey()
	open.Run = ChildRun(c.Run, c.Turn, c.Index, 1)
	return open
}
