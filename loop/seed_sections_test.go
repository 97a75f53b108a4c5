package loop_test

import "testing"

// seedSections are the sections of the two seeds that say how something behaves, and the tests which show that it does
// here. A test is named by its directory and its name. Teams, 7.2 of tools-and-registry, come with their package.
var seedSections = map[string][]string{
	"tools-and-registry 1, roles":                           {"executor.TestSeedWirings"},
	"tools-and-registry 2, the registry shows":              {"executor.TestRegistries", "executor.TestRegistryLookup", "executor.TestDuplicateNames"},
	"tools-and-registry 3, the executor runs":               {"executor.TestWrappers", "executor.TestCustomExecutor"},
	"tools-and-registry 3.1, the filter of a retrieval":     {"executor.TestKnowledgeSeedRagTool", "executor.TestKnowledgeTenantIsNotTheModelsToName", "executor.TestKnowledgeFilterPerCall"},
	"tools-and-registry 4.1, no registry":                   {"executor.TestSeedWirings"},
	"tools-and-registry 4.2, names and servers":             {"executor.TestSeedWirings", "executor.TestSourcesOfServices"},
	"tools-and-registry 4.3, the default executor":          {"executor.TestSeedWirings", "executor.TestWiringRefuses"},
	"tools-and-registry 4.4, sub-agents are wired in":       {"loop.TestSubagentResult", "loop.TestSubagentsAreChecked"},
	"tools-and-registry 5.1, what a model returns":          {"loop.TestResultsInCallOrder", "loop.TestA25AllCallsRun"},
	"tools-and-registry 5.2, ids":                           {"loop.TestSeedToolCalls", "schema.TestNormalise"},
	"tools-and-registry 5.3, structure":                     {"executor.TestSeedStructure"},
	"tools-and-registry 5.4, failures":                      {"loop.TestSeedToolCalls", "schema.TestToolError"},
	"tools-and-registry 5.5, back into the memory":          {"loop.TestSeedToolCalls"},
	"tools-and-registry 6.1, approval around the execution": {"executor.TestSeedWirings", "executor.TestGuardsDecide", "loop.TestD07AnsweredAfterARestart"},
	"tools-and-registry 6.2, structure is not permission":   {"loop.TestGuardDecisions", "loop.TestGuardChangedArgumentsAreValidatedAgain"},
	"tools-and-registry 6.3, hooks":                         {"executor.TestHook", "loop.TestPromptBlocked", "loop.TestRequestHook"},
	"tools-and-registry 7.1, the policy of a handoff":       {"loop.TestHandoffPolicy", "loop.TestHandoffDepth", "loop.TestHandoffTimeout", "loop.TestInputFilter", "loop.TestHandoffRetries"},
	"tools-and-registry 8, calls at once":                   {"loop.TestSeedParallelToolCalls", "executor.TestExecuteIsSafeForConcurrentUse"},
	"tools-and-registry 8.1, cap and timeout":               {"loop.TestSeedParallelToolCalls", "loop/agentfile.TestParseSpellings"},
	"tools-and-registry 9.1, names and servers":             {"executor.TestSeedWirings", "examples.TestWirings"},
	"tools-and-registry 9.2, a guarded executor":            {"executor.TestSeedWirings", "examples.TestWirings"},
	"tools-and-registry 9.3, own schemas":                   {"executor.TestSeedWirings", "examples.TestWirings"},
	"tools-and-registry 10.1, results are text":             {"executor.TestExecuteArguments"},
	"tools-and-registry 10.2, custom without an executor":   {"executor.TestWiringRefuses"},
	"tools-and-registry 10.3, the allow-list":               {"executor.TestSeedAllowList"},
	"tools-and-registry 10.4, a failure ends no run":        {"loop.TestAbort", "loop.TestD03FailureIsolates"},
	"tools-and-registry 11, five questions":                 {"cmd/orchestrator.TestRunsShow", "cmd/orchestrator.TestExplainWithWorkers"},

	"register-tools, Register toolkits":     {"executor.TestWiringRefuses", "executor.TestMethods", "executor.TestMethodsRefuses", "loop.TestNewNamesAllThatIsMissing"},
	"register-tools, Runtime-defined tools": {"executor.TestDynamic", "executor.TestSetTools", "executor.TestSetLookup", "executor.TestCallFailures"},
	"register-tools, Tool call filters": {
		"executor.TestFilterRegisterToolsWhatTheModelSees", "executor.TestFilterIsReplaced", "executor.TestGuardsStop", "executor/rules.TestFilterOfTheSeed", "loop.TestListener",
	},
	"register-tools, Tool call listeners": {
		"executor.TestListenerRegisterToolsHearsEveryEnd", "executor.TestListenersRegisterToolsComposite", "executor.TestListenerIsReplaced",
	},

	"notes, approval by risk":           {"executor/rules.TestRiskAndAutonomy"},
	"notes, idempotency":                {"executor.TestLocalRunOnceIsNotRepeated", "loop.TestIdenticalCallsEachRun", "cmd/internal/worker.TestD15RunOnce"},
	"notes, limits":                     {"loop.TestLimitsEndWithOneTurnWithoutTools", "loop/agentfile.TestParseDefaults"},
	"notes, interceptors":               {"loop.TestGuardDecisions", "loop.TestGuardViews"},
	"notes, the order of events":        {"loop.TestEventsAreDocumented", "loop.TestFailedExchangeInOrder", "loop/looptest.TestCheckFindsBrokenStreams"},
	"notes, handoffs":                   {"loop.TestHandoffPolicy", "loop.TestHandoffEvents", "loop.TestSubagentResult"},
	"notes, the safe policy":            {"executor/rules.TestPresets"},
	"notes, codes of the agent file":    {"loop/agentfile.TestEveryCodeIsGiven", "loop/agentfile.TestProblems"},
	"notes, compaction":                 {"loop.TestFailedCompactionLeavesTheRunAsItWas", "loop/memory.TestD14CutInsideAParallelRound"},
	"notes, a queue of dead letters":    {"bus.TestDeadLetters", "cmd/orchestrator.TestDead"},
	"notes, a call that is tried again": {"bus.TestB07RetryDelayGrows", "executor.TestTransient"},
}

// TestSeedSections: each test that the table names is there. See also TestWeakPointsOfTheSeed.
func TestSeedSections(t *testing.T) {
	t.Parallel()
	for section, shown := range seedSections {
		t.Run(section, func(t *testing.T) {
			t.Parallel()
			for _, name := range shown {
				if !hasTest(t, name) {
					t.Errorf("there is no test %s", name)
				}
			}
		})
	}
}
