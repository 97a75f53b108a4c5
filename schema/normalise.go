package schema

import (
	"fmt"
	"strconv"
	"strings"
)

const (
	maxRaw   = 8 << 10 // bytes of TurnCall.Raw: a diagnostic, not what runs
	maxLabel = 1 << 10 // bytes of a label
	maxName  = 256     // bytes of a tool's name
)

// What labels begin with that are made here: of a call without an id, and of one in a conversation that another run goes on with.
const (
	labelMade   = "tool_step_"
	LabelBefore = "earlier_"
)

// OwnLabel tells whether a label is one of those, which are unique within one run only.
func OwnLabel(label string) bool {
	return strings.HasPrefix(label, labelMade) || strings.HasPrefix(label, LabelBefore)
}

// Normalise turns the calls of a model's answer into the calls of the given turn, each in its slot for ever. Labels
// are unique within the turn. Arguments are canonical; a call whose arguments are not an object is ActionInvalid with
// the error that the model reads, its Args are {} and Raw holds what the model wrote, so that a history can be
// serialised whatever the model emitted. All other calls are ActionAllow: whether the tool exists and the arguments
// fit it is decided later. It neither reads nor changes anything but its arguments.
func Normalise(turn int, raw []RawCall) []TurnCall {
	calls := make([]TurnCall, len(raw))
	labels := labelsOf(turn, raw)
	for i, r := range raw {
		calls[i] = normaliseCall(r)
		calls[i].Label = labels[i]
	}
	return calls
}

func normaliseCall(r RawCall) TurnCall {
	c := TurnCall{Tool: Cut(CleanText(strings.TrimSpace(r.Name)), maxName), Decision: Decision{Action: ActionAllow}}
	canon, notes, err := Canonical(r.Args)
	c.Args, c.Notes = canon, notes
	if string(canon) != r.Args {
		c.Raw = Cut(CleanText(r.Args), maxRaw)
	}
	if err != nil {
		c.Queue = QueueNone
		c.Decision = Decision{Action: ActionInvalid, Type: err.Type, Text: err.Message}
	}
	return c
}

// labelsOf returns the label of each call: the provider's id where it is the first to bear it. A call without an id
// is tool_step_<turn>_<index>. Whoever comes second, and a made-up label that some id has, gets its index appended
// until nobody else in the turn has the label.
func labelsOf(turn int, raw []RawCall) []string {
	labels := make([]string, len(raw))
	taken := make(map[string]bool, len(raw))
	again := make([]bool, len(raw))
	for i, r := range raw {
		labels[i] = cleanLabel(r.ID)
		again[i] = labels[i] == "" || taken[labels[i]]
		taken[labels[i]] = true
	}
	for i, l := range labels {
		if !again[i] {
			continue
		}
		if l == "" {
			l = fmt.Sprintf(labelMade+"%d_%d", turn, i)
		}
		for taken[l] {
			l += "_" + strconv.Itoa(i)
		}
		taken[l] = true
		labels[i] = l
	}
	return labels
}

// cleanLabel bounds an id; what it cuts is replaced by a digest, so that long ids stay different.
func cleanLabel(id string) string {
	id = CleanText(strings.TrimSpace(id))
	if len(id) <= maxLabel {
		return id
	}
	digest := Digest([]byte(id))[:16]
	return Cut(id, maxLabel-len(digest)-1) + "_" + digest
}
