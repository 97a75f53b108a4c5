package agentfile

import "github.com/jetcrew/jetcrew/schema"

// The fields of a file, by the name under which a shape sorts them: the first one of their setting.
const (
	fieldVersion      = "version"
	fieldID           = "id"
	fieldName         = "name"
	fieldModel        = "model"
	fieldProvider     = "provider"
	fieldOptions      = "options"
	fieldPrice        = "price"
	fieldInput        = "input"
	fieldOutput       = "output"
	fieldInstructions = "instructions"
	fieldSystem       = "system"
	fieldDeveloper    = "developer"
	fieldVariables    = "variables"
	fieldTools        = "tools"
	fieldLimits       = "limits"
	fieldMaxSteps     = "maxSteps"
	fieldWallClock    = "wallClockMillis"
	fieldMaxTokens    = "maxTokens"
	fieldMaxCost      = "maxCost"
	fieldSession      = "session"
	fieldMemory       = "memory"
	fieldEnabled      = "enabled"
	fieldScope        = "scope"
	fieldStore        = "store"
	fieldCompaction   = "compaction"
	fieldStrategy     = "strategy"
	fieldTrigger      = "trigger"
	fieldPreserve     = "preserve"
	fieldRatio        = "contextRatio"
	fieldMaxTurns     = "maxTurns"
	fieldParallel     = "parallelToolCalls"
	fieldMaxParallel  = "maxParallelToolCalls"
	fieldCallTimeout  = "toolCallTimeoutMillis"
	fieldWindow       = "contextWindow"
	fieldRef          = "ref"
	fieldApproval     = "approval"
	fieldOnce         = "once"
	fieldTimeout      = "timeout"
	fieldQueue        = "queue"
	fieldBind         = "bind"
	fieldFilters      = "filters"
	fieldWhen         = "when"
	fieldPolicy       = "policy"
	fieldPresets      = "presets"
	fieldRules        = "rules"
	fieldEffects      = "effects"
	fieldEnvironments = "environments"
	fieldRisk         = "risk"
	fieldDefault      = "default"
	fieldAutonomy     = "autonomy"
	fieldExpires      = "expires"
	fieldEnvironment  = "environment"
	fieldAuthority    = "authority"
	fieldAbortOn      = "abortOn"
	fieldSubagents    = "subagents"
	fieldAgent        = "agent"
	fieldDescription  = "description"
	fieldHandoff      = "handoff"
	fieldAllowed      = "allowedTools"
	fieldDenied       = "deniedTools"
	fieldMaxDepth     = "maxDepth"
	fieldMaxRetries   = "maxRetries"
	fieldOnDenied     = "onDenied"
	fieldOnError      = "onError"
	fieldFallback     = "fallback"
)

// The values that fields may have.
var (
	strategies = []string{schema.CompactWindow, schema.CompactSummary}
	approvals  = []string{schema.ApproveAlways, schema.ApproveAsk, schema.ApproveSafe, schema.ApproveNever}
	effects    = []string{schema.EffectRead, schema.EffectWrite, schema.EffectNetwork, schema.EffectDestructive}
	risks      = []string{schema.RiskLow, schema.RiskMedium, schema.RiskHigh, schema.RiskCritical}
	autonomies = []string{schema.AutonomyFull, schema.AutonomySupervised, schema.AutonomyCautious, schema.AutonomyManual}
	defaults   = []string{string(schema.ActionAllow), string(schema.ActionAsk), string(schema.ActionDeny)}
	sessions   = []string{schema.SessionNew, schema.SessionReuse}
	scopes     = []string{"run"}     // a run is one conversation, and the memory is a fold of its facts
	stores     = []string{"journal"} // the facts, which any orchestrator reads
	handoffs   = []string{schema.HandoffFail, schema.HandoffFallback}
)

// action is a field that says what becomes of a call.
type action struct {
	field string
	means schema.Action
	text  bool // it needs a text; true is not enough
}

var (
	filterActions = []action{
		{"allow", schema.ActionAllow, false},
		{"block", schema.ActionDeny, false},
		{"guide", schema.ActionGuide, true},
		{"fallback", schema.ActionRedirect, true},
	}
	ruleActions = []action{
		{"allow", schema.ActionAllow, false},
		{"deny", schema.ActionDeny, false},
		{"ask", schema.ActionAsk, false},
	}
)

// patterns is a list of names, globs and queue/name.
var patterns = listOf(filled, 1)

// reason is a text, or true where none is given.
var reason = either(filled, func() map[string]any { return map[string]any{"const": true} })

func shapeFile() *shape {
	return &shape{name: "the file", settings: []setting{
		{names: spelled(fieldVersion), form: one(Version), required: true, about: "Version of the format."},
		{names: spelled(fieldID), form: id, required: true, about: "Names the agent."},
		{names: spelled(fieldName), form: anyText, about: "For people; the id where there is none."},
		{names: spelled(fieldModel), form: either(modelText, object(shapeModel())), required: true, about: "provider/name, or fields."},
		{names: spelled(fieldInstructions), form: either(anyText, object(shapeInstructions())), about: "What the agent is told before anything else."},
		{names: spelled(fieldTools), form: listOf(either(filled, object(shapeTool())), 0), about: "The tools that the model sees: names, globs, queue/name, or fields."},
		{names: spelled(fieldFilters), form: listOf(object(shapeFilter()), 0), about: "Decide about calls before any policy; the first that matches counts."},
		{names: spelled(fieldPolicy), form: object(shapePolicy()), about: "Which calls may run, may not, or wait for a person."},
		{names: spelled(fieldEnvironment), form: filled, about: "Where the agent works, such as production; rules name it."},
		{names: spelled(fieldAuthority), form: listOf(filled, 0), about: "Scopes that bound every run of the agent."},
		{names: spelled(fieldAbortOn), form: patterns, about: "Tools whose failure ends the run."},
		{names: spelled(fieldSubagents), form: listOf(object(shapeSubagent()), 0), about: "Agents that it may hand tasks to."},
		{names: spelled(fieldHandoff), form: object(shapeHandoff(fieldHandoff)), about: "Policy of sub-agents that have none of their own."},
		{names: spelled(fieldLimits), form: object(shapeLimits()), about: "Limits of one exchange."},
		{names: spelled(fieldSession), form: object(shapeSession()), about: "What happens to the memory of a long conversation."},
	}}
}

func shapeModel() *shape {
	return &shape{name: fieldModel, settings: []setting{
		{names: spelled(fieldProvider), form: one(providers...), required: true, about: "Who answers."},
		{names: spelled(fieldModel), form: filled, required: true, about: "The model, as the provider calls it."},
		{names: spelled(fieldOptions), form: object(shapeOptions()), about: "Request options, such as temperature, and four that are Jetcrew's own."},
		{names: spelled(fieldPrice), form: object(shapePrice()), about: "What it costs; absent: nobody counts."},
	}}
}

func shapePrice() *shape {
	return &shape{name: fieldPrice, settings: []setting{
		{names: spelled(fieldInput), form: amount, about: "US dollars for a million tokens of prompts."},
		{names: spelled(fieldOutput), form: amount, about: "US dollars for a million tokens of answers."},
	}}
}

func shapeOptions() *shape {
	return &shape{name: fieldOptions, open: true, settings: []setting{
		{names: spelled(fieldParallel), form: boolean, about: "Run the calls of one turn at the same time; default one after another."},
		{names: spelled(fieldMaxParallel), form: ofType("integer"), about: "At most so many calls at once; 0: no cap."},
		{names: spelled(fieldCallTimeout), form: ofType("integer"), about: "Milliseconds of each call, waiting included; 0: none."},
		{names: spelled(fieldWindow), form: ofType("integer"), about: "Tokens that a request may hold; default 128000."},
	}}
}

func shapeInstructions() *shape {
	return &shape{name: fieldInstructions, settings: []setting{
		{names: spelled(fieldSystem), form: anyText, about: "The system prompt."},
		{names: spelled(fieldDeveloper), form: anyText, about: "Follows the system prompt."},
		{names: spelled(fieldVariables), form: texts, about: "Texts that ${name} in the two above stands for."},
	}}
}

func shapeTool() *shape {
	return &shape{name: "tool", settings: []setting{
		{names: spelled(fieldRef), form: filled, required: true, about: "Name, glob or queue/name."},
		{names: spelled(fieldApproval), form: one(approvals...), about: "When a person is asked about a call."},
		{names: spelled(fieldOnce), form: boolean, about: "Run-once, whatever the tool declares."},
		{names: spelled(fieldTimeout, "timeoutMillis"), form: duration, millis: from(1, 0), about: "Bound on running, if it is less than the tool's own."},
		{names: spelled(fieldQueue), form: queue, about: "The queue that is meant."},
		{names: spelled(fieldBind), form: anyJSON, about: "Values that the tool gets beside the model's arguments."},
	}}
}

func shapeFilter() *shape {
	return actionShape("filter", filterActions, nil,
		setting{names: spelled(fieldName), form: filled, about: "For the record."},
		setting{names: spelled(fieldTools), form: patterns, about: "Names, globs, queue/name; absent: all."},
		setting{names: spelled(fieldWhen), form: filled, about: "Condition in CEL; absent: always."},
	)
}

func shapePolicy() *shape {
	return &shape{name: fieldPolicy, settings: []setting{
		{names: spelled(fieldPresets), form: listOf(filled, 0), about: "Ready-made lists of rules."},
		{names: spelled(fieldRules), form: listOf(object(shapeRule()), 0), about: "Rules of one's own; the most restrictive that matches counts."},
		{names: spelled(fieldDefault), form: one(defaults...), about: "Where no rule matches; default allow."},
		{names: spelled(fieldAutonomy), form: one(autonomies...), about: "From which risk on a person is asked; default full-auto."},
		{names: spelled(fieldExpires, "expiresMillis"), form: duration, millis: from(1, 0), about: "How long a question waits for its verdict; default 24h."},
	}}
}

func shapeRule() *shape {
	return actionShape("rule", ruleActions, []string{fieldRisk},
		setting{names: spelled(fieldName), form: filled, about: "For the record."},
		setting{names: spelled(fieldTools), form: patterns, about: "Names, globs, queue/name; absent: all."},
		setting{names: spelled(fieldEffects), form: listOf(one(effects...), 1), about: "Effects of tools; absent: all."},
		setting{names: spelled(fieldEnvironments), form: listOf(filled, 1), about: "Environments; absent: all."},
		setting{names: spelled(fieldWhen), form: filled, about: "Condition in CEL; absent: always."},
		setting{names: spelled(fieldRisk), form: one(risks...), about: "Risk of these calls, instead of that of their effect."},
	)
}

// actionShape is a shape with one field for each action. One of these, or of others, must be there.
func actionShape(name string, actions []action, others []string, settings ...setting) *shape {
	s := &shape{name: name, settings: settings, need: others}
	for _, a := range actions {
		f := reason
		if a.text {
			f = filled
		}
		s.settings = append(s.settings, setting{names: spelled(a.field), form: f, about: "What becomes of the call, and why."})
		s.actions, s.need = append(s.actions, a.field), append(s.need, a.field)
	}
	return s
}

func shapeSubagent() *shape {
	return &shape{name: "sub-agent", settings: []setting{
		{names: spelled(fieldAgent), form: id, required: true, about: "Id of the agent."},
		{names: spelled(fieldName), form: toolName, about: "Name of the tool; default subagent_ and the id."},
		{names: spelled(fieldDescription), form: filled, about: "For the model."},
		{names: spelled(fieldSession), form: one(sessions...), about: "Whether each task begins anew or goes on with the task before; default new."},
		{names: spelled(fieldPolicy), form: object(shapeHandoff(fieldPolicy)), about: "Its own policy instead of handoff."},
	}}
}

func shapeHandoff(name string) *shape {
	return &shape{name: name, settings: []setting{
		{names: spelled(fieldAllowed), form: listOf(filled, 1), about: "Names of sub-agents that may be called; absent: all."},
		{names: spelled(fieldDenied), form: listOf(filled, 1), about: "Names of sub-agents that may not; wins."},
		{names: spelled(fieldMaxDepth), form: depth, about: "Handoffs above the new run, itself included; default 1, -1: only the bound of 8."},
		{names: spelled(fieldMaxRetries), form: from(0, maxRetries), about: "Further attempts after one that failed; default 0."},
		{names: spelled(fieldTimeout, "timeoutMillis"), form: duration, millis: from(1, 0), about: "Of one attempt; absent: none."},
		{names: spelled(fieldOnDenied), form: one(handoffs...), about: "When it is refused; default fail."},
		{names: spelled(fieldOnError), form: one(handoffs...), about: "When it failed; default fail."},
		{names: spelled(fieldFallback), form: filled, about: "What the model reads then."},
	}}
}

func shapeLimits() *shape {
	return &shape{name: fieldLimits, settings: []setting{
		{names: spelled(fieldMaxSteps), form: from(0, 0), about: "Model requests; default 20, 0: no limit."},
		{names: spelled(fieldWallClock, "wallClock"), form: duration, millis: from(0, 0), about: "Time of an exchange; default 5m, 0: no limit."},
		{names: spelled(fieldMaxTokens), form: from(0, 0), about: "Tokens of the whole run; default no limit."},
		{names: spelled(fieldMaxCost), form: amount, about: "US dollars of the whole run; default no limit; it takes a price."},
	}}
}

func shapeSession() *shape {
	return &shape{name: fieldSession, settings: []setting{
		{names: spelled(fieldMemory), form: object(shapeMemory()), about: "Where the memory is and whose it is; there is one choice."},
		{names: spelled(fieldCompaction), form: object(shapeCompaction()), about: "When and how the memory is compacted; absent: never."},
	}}
}

func shapeMemory() *shape {
	return &shape{name: fieldMemory, settings: []setting{
		{names: spelled(fieldEnabled), form: alwaysOn, about: "An agent has a memory: it cannot be switched off."},
		{names: spelled(fieldScope), form: one(scopes...), about: "Whose memory it is; default run."},
		{names: spelled(fieldStore), form: one(stores...), about: "Where it is kept; default journal."},
	}}
}

func shapeCompaction() *shape {
	return &shape{name: fieldCompaction, settings: []setting{
		{names: spelled(fieldStrategy), form: one(strategies...), required: true, about: "How earlier turns are compacted."},
		{names: spelled(fieldTrigger), form: object(shapeTrigger()), about: "What sets it off."},
		{names: spelled(fieldPreserve), form: from(1, 0), about: "Newest turns that stay as they are."},
	}}
}

func shapeTrigger() *shape {
	return &shape{name: fieldTrigger, settings: []setting{
		{names: spelled(fieldRatio), form: ratio, about: "Part of the context window that the prompt fills."},
		{names: spelled(fieldMaxTurns), form: from(2, 0), about: "Turns in the prompt."},
	}}
}
