package schema

// Rule says who writes a kind of fact, and when a write is refused beyond the fact being there already.
type Rule struct {
	Kind    Kind
	Subject string // tokens below the run
	Writer  string
	Guard   string // the fact that must be absent, by its tokens and where it is not always so the condition; empty: none
	Payload string // name of the payload's type in this package; empty: the payload comes with its feature
	Holds   string
}

// Rules returns the rules of all kinds in the order in which a run meets them. Guards name exact facts: on a cluster a
// wildcard lets two writers pass each other.
func Rules() []Rule {
	const run = "the owner of the run"
	return []Rule{
		{KindOpen, "open", "the orchestrator that first takes the run's message", "a child run's: the parent call's `result`", "Open", "what carries the run on: agent, principal, parent call"},
		{KindCtl, "ctl.<k>", "who takes the run, or who stops it", "", "Ctl", "a numbered slot: `own` or `stop`"},
		{KindSay, "say.<k>", "user, mail, system", "`close`", "Say", "a message for the agent"},
		{KindTurn, "turn.<n>", run, "`ctl.<k+1>`, k being the owner's own slot", "Turn", "the model's n-th answer and every decision about its calls"},
		{KindSent, "sent.<n>.<k>", run, "", "Sent", "k-th dispatch of turn n: which call has which WORK sequence"},
		{KindBegin, "begin.<n>.<i>.<queue>", "the worker, for a run-once call", "the call's `result.<n>.<i>.<queue>`", "Begin", "the call is about to start"},
		{KindBack, "back.<n>.<i>.<queue>.<s>.<d>", "the worker", "", "Back", "delivery d of WORK sequence s was given back unstarted"},
		{KindAsk, "ask.<n>.<i>.<k>", run, "", "Ask", "an approval is wanted"},
		{KindVerdict, "verdict.<n>.<i>.<k>", "a human; `expired`: " + run, "", "Verdict", "the decision on ask k; of several asks of a call the highest counts, from 1 on without a gap"},
		{KindResult, "result.<n>.<i>.<queue>", "the worker, or " + run, "a claim made without having begun a run-once call: its `begin.<n>.<i>.<queue>`; on `agents`: the child's `open`", "Result", "the one outcome of the call"},
		{KindView, "view.<n>.<i>", run, "", "View", "what memory shows instead of the result's output"},
		{KindFold, "fold.<n>", run, "as `turn`", "Fold", "a compaction of everything up to turn n"},
		{KindAnswer, "answer.<k>", run, "as `turn`", "Answer", "the end of an exchange"},
		{KindClose, "close", run, "`say.<k+1>`, k being the last one the owner saw", "Close", "the end of the run"},
	}
}
