package agentfile

// Code is the stable name of a kind of problem: programs may depend on it, its message may change.
type Code string

// The codes of problems.
const (
	CodeFileSize     Code = "jetcrew.file.tooLarge"
	CodeFileEncoding Code = "jetcrew.file.encoding"

	CodeDocument     Code = "jetcrew.document.required"
	CodeYAML         Code = "jetcrew.yaml.invalid"
	CodeYAMLSize     Code = "jetcrew.yaml.tooLarge"
	CodeDocuments    Code = "jetcrew.yaml.documents"
	CodeAliasUnknown Code = "jetcrew.yaml.alias.unknown"
	CodeRecursive    Code = "jetcrew.yaml.recursive"
	CodeMergeKey     Code = "jetcrew.yaml.mergeKey"

	CodeTypeMap      Code = "jetcrew.type.map"
	CodeTypeKey      Code = "jetcrew.type.key"
	CodeTypeList     Code = "jetcrew.type.list"
	CodeTypeText     Code = "jetcrew.type.text"
	CodeTypeBoolean  Code = "jetcrew.type.boolean"
	CodeTypeInteger  Code = "jetcrew.type.integer"
	CodeTypeNumber   Code = "jetcrew.type.number"
	CodeTypeDuration Code = "jetcrew.type.duration"
	CodeTypeJSON     Code = "jetcrew.type.json"

	CodeFieldUnknown   Code = "jetcrew.field.unknown"
	CodeFieldDuplicate Code = "jetcrew.field.duplicate"
	CodeFieldSpelling  Code = "jetcrew.field.spelling"
	CodeFieldSecret    Code = "jetcrew.field.secret"
	CodeTextEmpty      Code = "jetcrew.text.empty"
	CodeListEmpty      Code = "jetcrew.list.empty"
	CodeListDuplicate  Code = "jetcrew.list.duplicate"
	CodeNumberRange    Code = "jetcrew.number.range"

	CodeVersionRequired    Code = "jetcrew.version.required"
	CodeVersionUnsupported Code = "jetcrew.version.unsupported"
	CodeIDRequired         Code = "jetcrew.id.required"
	CodeIDInvalid          Code = "jetcrew.id.invalid"
	CodeModelRequired      Code = "jetcrew.model.required"
	CodeModelProvider      Code = "jetcrew.model.provider.required"
	CodeProviderUnknown    Code = "jetcrew.model.provider.unknown"
	CodeModelSelector      Code = "jetcrew.model.selector.required"
	CodePriceRequired      Code = "jetcrew.limits.maxCost.priceRequired"

	CodeVariableUnknown Code = "jetcrew.instructions.variable.unknown"
	CodeVariableUnused  Code = "jetcrew.instructions.variable.unused"
	CodeVariableInvalid Code = "jetcrew.instructions.variable.invalid"

	CodeToolRef          Code = "jetcrew.tool.ref.required"
	CodeToolPattern      Code = "jetcrew.tool.pattern.invalid"
	CodeToolDuplicate    Code = "jetcrew.tool.duplicate"
	CodeToolReserved     Code = "jetcrew.tool.name.reserved"
	CodeToolQueue        Code = "jetcrew.tool.queue.invalid"
	CodeToolUnknown      Code = "jetcrew.tool.unknown"
	CodeToolShadowed     Code = "jetcrew.tool.setting.unreachable"
	CodeApprovalUnknown  Code = "jetcrew.tool.approval.unknown"
	CodeApprovalNotAsked Code = "jetcrew.tool.approval.notAsked"
	CodeBindUnknown      Code = "jetcrew.tool.bind.unknown"

	CodeActionRequired    Code = "jetcrew.rule.action.required"
	CodeActionSeveral     Code = "jetcrew.rule.action.several"
	CodeActionInvalid     Code = "jetcrew.rule.action.invalid"
	CodeRuleName          Code = "jetcrew.rule.name.duplicate"
	CodeRuleNameInvalid   Code = "jetcrew.rule.name.invalid"
	CodeFilterUnreachable Code = "jetcrew.filter.unreachable"

	CodeEffectUnknown     Code = "jetcrew.policy.effect.unknown"
	CodeDefaultUnknown    Code = "jetcrew.policy.default.unknown"
	CodeAutonomyUnknown   Code = "jetcrew.policy.autonomy.unknown"
	CodeRiskUnknown       Code = "jetcrew.policy.risk.unknown"
	CodeRiskNotAsked      Code = "jetcrew.policy.risk.notAsked"
	CodeEnvironmentNotSet Code = "jetcrew.policy.environment.notSet"
	CodeScope             Code = "jetcrew.authority.scope.invalid"
	CodeSpendNoPrice      Code = "jetcrew.authority.spend.noPrice"

	CodeSpendPriceRequired Code = "jetcrew.authority.spend.priceRequired"

	CodeSubagentRequired   Code = "jetcrew.subagent.agent.required"
	CodeSubagentInvalid    Code = "jetcrew.subagent.name.invalid"
	CodeSubagentSelf       Code = "jetcrew.subagent.self"
	CodeSubagentDuplicate  Code = "jetcrew.subagent.name.duplicate"
	CodeSubagentUnknown    Code = "jetcrew.subagent.unknown"
	CodeSubagentSession    Code = "jetcrew.subagent.session.unknown"
	CodeHandoffDepth       Code = "jetcrew.handoff.maxDepth.invalid"
	CodeHandoffOn          Code = "jetcrew.handoff.on.unknown"
	CodeHandoffText        Code = "jetcrew.handoff.fallback.required"
	CodeHandoffTextUnused  Code = "jetcrew.handoff.fallback.unused"
	CodeHandoffUnused      Code = "jetcrew.handoff.unused"
	CodeHandoffContradicts Code = "jetcrew.handoff.contradiction"

	CodeMemoryOff   Code = "jetcrew.memory.enabled.unsupported"
	CodeMemoryScope Code = "jetcrew.memory.scope.unknown"
	CodeMemoryStore Code = "jetcrew.memory.store.unknown"

	CodeStrategyRequired Code = "jetcrew.compact.strategy.required"
	CodeStrategyUnknown  Code = "jetcrew.compact.strategy.unknown"
	CodeContextRatio     Code = "jetcrew.compact.contextRatio.invalid"
	CodeMaxTurns         Code = "jetcrew.compact.maxTurns.invalid"
	CodePreserve         Code = "jetcrew.compact.preserve.invalid"
)

// Meaning is a code and what it says.
type Meaning struct {
	Code    Code
	Warning bool // the file can be used all the same
	Text    string
}

// Codes lists every code that this package gives.
func Codes() []Meaning {
	return []Meaning{
		{CodeFileSize, false, "the file has more than 128 KiB"},
		{CodeFileEncoding, false, "the text is not UTF-8"},
		{CodeDocument, false, "the file is empty"},
		{CodeYAML, false, "the text is not YAML"},
		{CodeYAMLSize, false, "more nesting, fields or aliases than an agent can need"},
		{CodeDocuments, false, "more than one document"},
		{CodeAliasUnknown, false, "an alias of an anchor that is not there"},
		{CodeRecursive, false, "an anchor contains itself"},
		{CodeMergeKey, false, "a merge key (`<<`)"},
		{CodeTypeMap, false, "fields are wanted"},
		{CodeTypeKey, false, "the name of a field is no text"},
		{CodeTypeList, false, "a list is wanted"},
		{CodeTypeText, false, "a text is wanted"},
		{CodeTypeBoolean, false, "true or false is wanted"},
		{CodeTypeInteger, false, "a whole number is wanted"},
		{CodeTypeNumber, false, "a number is wanted"},
		{CodeTypeDuration, false, "a duration such as `90s` is wanted"},
		{CodeTypeJSON, false, "a value that JSON has is wanted"},
		{CodeFieldUnknown, false, "there is no such field"},
		{CodeFieldDuplicate, false, "a field stands there twice"},
		{CodeFieldSpelling, false, "one setting in two spellings"},
		{CodeFieldSecret, false, "a key or password stands in the file"},
		{CodeTextEmpty, false, "a text is empty that must not be"},
		{CodeListEmpty, false, "a list is empty that must not be"},
		{CodeListDuplicate, false, "a list holds a value twice"},
		{CodeNumberRange, false, "a number or duration is outside its range"},
		{CodeVersionRequired, false, "`version` is missing"},
		{CodeVersionUnsupported, false, "a version that this program does not read"},
		{CodeIDRequired, false, "`id` is missing"},
		{CodeIDInvalid, false, "an id has signs that it cannot have, or too many"},
		{CodeModelRequired, false, "`model` is missing"},
		{CodeModelProvider, false, "a model's provider is missing"},
		{CodeProviderUnknown, false, "there is no such provider"},
		{CodeModelSelector, false, "a model's name is missing, or not provider/name"},
		{CodePriceRequired, false, "`maxCost` in a file that does not say what the model costs"},
		{CodeVariableUnknown, false, "the instructions name a variable that is not there"},
		{CodeVariableUnused, false, "no text names a variable"},
		{CodeVariableInvalid, false, "`${` without a name and `}` behind it, or a name that cannot be one"},
		{CodeToolRef, false, "a tool's name is missing"},
		{CodeToolPattern, false, "a pattern that cannot be read"},
		{CodeToolDuplicate, false, "a tool stands in the list twice"},
		{CodeToolReserved, false, "a name that begins with `team_` or `subagent_`"},
		{CodeToolQueue, false, "a queue's name has signs that it cannot have, or stands in `ref` too"},
		{CodeToolUnknown, true, "a pattern names none of the agent's tools"},
		{CodeToolShadowed, true, "settings that an earlier entry keeps from holding"},
		{CodeApprovalUnknown, true, "there is no such approval; it counts as `always`"},
		{CodeApprovalNotAsked, true, "an approval that is never asked for at this autonomy"},
		{CodeBindUnknown, false, "a bound text names a value that is not there"},
		{CodeActionRequired, false, "a filter or rule says not what becomes of the call"},
		{CodeActionSeveral, false, "a filter or rule says two things that become of the call"},
		{CodeActionInvalid, false, "an action without the text or the `true` that it needs"},
		{CodeRuleName, false, "two filters or rules have one name"},
		{CodeRuleNameInvalid, false, "a filter's or rule's name holds a comma"},
		{CodeFilterUnreachable, true, "an earlier filter decides about every call that this one means"},
		{CodeEffectUnknown, false, "there is no such effect"},
		{CodeDefaultUnknown, false, "a default other than allow, ask and deny"},
		{CodeAutonomyUnknown, false, "there is no such autonomy"},
		{CodeRiskUnknown, false, "there is no such risk"},
		{CodeRiskNotAsked, true, "a rule sets only a risk that nobody is asked for at this autonomy"},
		{CodeEnvironmentNotSet, true, "a rule is for environments, and the file sets none"},
		{CodeScope, false, "an entry of `authority` is no scope"},
		{CodeSpendPriceRequired, false, "a scope `spend:` in a file that does not say what the model costs, of an agent that hands no tasks to others"},
		{CodeSpendNoPrice, true, "the same of one that does: only what they cost counts"},
		{CodeSubagentRequired, false, "a sub-agent's `agent` is missing"},
		{CodeSubagentInvalid, false, "a sub-agent's tool has a name that it cannot have"},
		{CodeSubagentSelf, false, "an agent names itself"},
		{CodeSubagentDuplicate, false, "a sub-agent has the name of another one or of a tool"},
		{CodeSubagentUnknown, false, "a handoff policy names no sub-agent"},
		{CodeSubagentSession, false, "a session other than new and reuse"},
		{CodeHandoffDepth, false, "a depth other than 1 to 8 or -1"},
		{CodeHandoffOn, false, "something else than fail or fallback"},
		{CodeHandoffText, false, "a fallback without its text"},
		{CodeHandoffTextUnused, true, "a fallback's text that nothing leads to"},
		{CodeHandoffUnused, true, "a handoff policy without sub-agents"},
		{CodeHandoffContradicts, true, "a sub-agent's own policy does not let it be called"},
		{CodeMemoryOff, false, "the memory is switched off"},
		{CodeMemoryScope, false, "there is no such scope of a memory"},
		{CodeMemoryStore, false, "there is no such store of a memory"},
		{CodeStrategyRequired, false, "a compaction without strategy"},
		{CodeStrategyUnknown, false, "there is no such strategy"},
		{CodeContextRatio, false, "a ratio outside of (0, 1]"},
		{CodeMaxTurns, false, "fewer than 2 turns"},
		{CodePreserve, false, "as many turns are kept as set the compaction off"},
	}
}
