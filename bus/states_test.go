package bus

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

const statesDocument = "../docs/call-states.md"

var (
	phaseNames = map[ownerPhase]string{phaseWaiting: "waiting", phaseClaiming: "claiming", phaseCancelling: "cancelling", phaseSettled: "settled"}
	eventNames = map[ownerEvent]string{
		evPublished: "published", evFull: "stream full", evTooLarge: "too large", evUnsent: "ended before it was sent",
		evDeadline: "deadline", evUnserved: "nobody serves it", evStop: "stop", evGuarded: "refused, it began", evRepeat: "a second later", evGrace: "end of the grace", evSettled: "result",
	}
	actionNames = map[ownerAction]string{doWait: "", doClaim: "claim", doCancel: "cancel", doStopChild: "stop the child", doGiveUp: "give up", doReturn: ""}
)

// kinds are the calls that the rules tell apart.
var kinds = []struct {
	name  string
	state ownerState
}{{"idempotent", ownerState{}}, {"run-once", ownerState{runOnce: true}}, {"agent", ownerState{runOnce: true, child: true}}}

// transitions explores the owner's rules from the beginning, for each kind of calls, and returns what changes the state
// or has something done, as the document writes it.
func transitions() []string {
	edges := map[string][]string{} // the kinds that have it
	for _, kind := range kinds {
		seen := map[ownerState]bool{}
		var explore func(s ownerState)
		explore = func(s ownerState) {
			if seen[s] || s.phase == phaseSettled {
				return
			}
			seen[s] = true
			for ev, name := range eventNames {
				if ev == evGuarded && !s.runOnce || ev == evGrace && s.child || ev == evUnserved && !s.child {
					continue // there is no such guard, no such end
				}
				next := s
				action := next.on(ev)
				if next.phase == s.phase && action == doWait {
					continue
				}
				label := name
				if did := actionNames[action]; did != "" {
					label += " / " + did
				}
				edge := fmt.Sprintf("%s --> %s: %s", phaseNames[s.phase], phaseNames[next.phase], label)
				if !slices.Contains(edges[edge], kind.name) {
					edges[edge] = append(edges[edge], kind.name)
				}
				explore(next)
			}
		}
		explore(kind.state)
	}
	var list []string
	for edge, of := range edges {
		if len(of) < len(kinds) {
			edge += " (" + strings.Join(of, ", ") + ")"
		}
		list = append(list, edge)
	}
	slices.Sort(list)
	return list
}

// TestCallStatesDocument: the drawing in docs/call-states.md has the transitions of the code, no more and no fewer.
func TestCallStatesDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(statesDocument)
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for _, m := range regexp.MustCompile(`(?m)^ *((?:waiting|claiming|cancelling) --> .*)$`).FindAllStringSubmatch(string(text), -1) {
		drawn = append(drawn, m[1])
	}
	slices.Sort(drawn)
	if diff := cmp.Diff(transitions(), drawn); diff != "" {
		t.Errorf("code (-) and docs/call-states.md (+):\n%s", diff)
	}
}

// The words of the worker's table in the document.
var (
	conditions = map[string]func(admission) bool{
		"it is worked on here": func(a admission) bool { return a.inTable },
		"its result is `WorkerLost`, and it has more attempts than the limit": func(a admission) bool { return a.hasResult && a.lost && a.attempts > a.limit },
		"it has its result":                                          func(a admission) bool { return a.hasResult },
		"more attempts than the limit":                               func(a admission) bool { return a.attempts > a.limit },
		"its deadline has passed":                                    func(a admission) bool { return a.expired },
		"the tool is unknown here":                                   func(a admission) bool { return !a.hasTool },
		"idempotent call of a run-once tool, not the first delivery": func(a admission) bool { return a.callIdempotent && !a.toolIdempotent && !a.first },
		"otherwise": func(admission) bool { return true },
	}
	outcomes = map[string]admitted{
		"back": admitBusy, "ack": admitDone, "dead letter": admitDead, "WorkerLost": admitLost, "Timeout": admitExpired,
		"back, unknown tool": admitNoTool, "back, stricter": admitStricter, "run": admitRun,
	}
)

// TestAdmissionDocument: for every combination of what a worker knows, the first line of the document's table that
// fits says what the code does.
func TestAdmissionDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(statesDocument)
	if err != nil {
		t.Fatal(err)
	}
	type rule struct {
		when func(admission) bool
		then admitted
	}
	var rules []rule
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			continue
		}
		when, then := conditions[strings.TrimSpace(cells[1])], strings.Trim(strings.TrimSpace(cells[2]), "`")
		outcome, ok := outcomes[then]
		if when == nil || !ok {
			continue
		}
		rules = append(rules, rule{when, outcome})
	}
	if len(rules) != len(conditions) {
		t.Fatalf("the table has %d lines that can be read, want %d", len(rules), len(conditions))
	}
	for bits := range 1 << 9 {
		on := func(i int) bool { return bits>>i&1 == 1 }
		a := admission{
			inTable: on(0), hasResult: on(1), lost: on(2), hasTool: on(3), callIdempotent: on(4), toolIdempotent: on(5),
			first: on(6), expired: on(7), limit: 3,
		}
		if on(8) {
			a.attempts = 4
		}
		i := slices.IndexFunc(rules, func(r rule) bool { return r.when(a) })
		if got := a.admit(); got != rules[i].then {
			t.Errorf("%+v: the code says %d, the document %d", a, got, rules[i].then)
		}
	}
}

// TestErrorTypesDocument: the document says of each error type who writes it.
func TestErrorTypesDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(statesDocument)
	if err != nil {
		t.Fatal(err)
	}
	for _, typ := range []schema.ErrorType{
		schema.InvalidArguments, schema.UnknownTool, schema.ToolFailed, schema.Timeout, schema.NoWorker, schema.WorkerLost,
		schema.OutcomeUnknown, schema.Cancelled, schema.Panic, schema.QueueFull, schema.TooLarge,
		schema.RateLimited, schema.Denied,
	} {
		if !strings.Contains(string(text), "| `"+string(typ)+"` |") {
			t.Errorf("%s is missing", typ)
		}
	}
}

// beginTransitions are what a worker may go through with a run-once call that it is about to start, and the test that
// takes it there.
var beginTransitions = map[string]string{
	"begin --> run: stored, or it is this delivery's own":     "TestCallsRunOnWorkersAndComeBack",
	"begin --> ack: the result is there":                      "TestD15CopyOfASettledCall",
	"begin --> ack: the begin of another copy of the message": "TestCallBegunBySomebodyElse",
	"begin --> unknown: a begin that names nobody":            "TestUnreadableBegin",
	"begin --> ask: another worker's begin":                   "TestCallBegunBySomebodyElse",
	"ask --> back: that worker says that it runs":             "TestRunOnceDeliveredElsewhereWhileItRuns",
	"ask --> ack: the result is there":                        "TestD15ResultWhileAsking",
	"ask --> unknown: that worker says that it does not run":  "TestCallBegunBySomebodyElse",
	"ask --> unknown: silence for twice AckWait":              "TestCallBegunBySomebodyElse",
}

// TestBeginDocument: the second drawing has these transitions, and their tests are there.
func TestBeginDocument(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(statesDocument)
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for _, m := range regexp.MustCompile(`(?m)^ *((?:begin|ask) --> .*)$`).FindAllStringSubmatch(string(text), -1) {
		drawn = append(drawn, m[1])
	}
	slices.Sort(drawn)
	if diff := cmp.Diff(slices.Sorted(maps.Keys(beginTransitions)), drawn); diff != "" {
		t.Errorf("tested (-) and docs/call-states.md (+):\n%s", diff)
	}
	var tests strings.Builder
	files, err := filepath.Glob("*_test.go")
	for _, name := range files {
		src, readErr := os.ReadFile(name)
		tests.Write(src)
		err = errors.Join(err, readErr)
	}
	if err != nil {
		t.Fatal(err)
	}
	for transition, test := range beginTransitions {
		if !strings.Contains(tests.String(), "\nfunc "+test+"(t *testing.T)") {
			t.Errorf("%s: there is no %s", transition, test)
		}
	}
}
