package worker

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// AtMost is a bound on how many calls of a tool run at once over the whole fleet, TOOL=N on the command line.
type AtMost struct {
	Tool string
	N    int
}

// UnmarshalText reads TOOL=N.
func (a *AtMost) UnmarshalText(text []byte) error {
	at := strings.LastIndexByte(string(text), '=')
	if at <= 0 {
		return fmt.Errorf("%.80q: want TOOL=N, such as bash=2", text)
	}
	a.Tool = string(text[:at])
	n, err := strconv.Atoi(string(text[at+1:]))
	if err != nil || n < 1 || n > maxLimit {
		return fmt.Errorf("%.80q: want 1 to %d calls at once", text, maxLimit)
	}
	a.N = n
	return nil
}

const maxLimit = 1 << 20 // as bus.Worker takes

// Pace is a bound on how often the tools that a pattern names start at one worker, TOOL=N/UNIT or TOOL=N/UNIT:BURST on the
// command line.
type Pace struct {
	Tools  string // a name or a glob
	Second float64
	Burst  int
}

// UnmarshalText reads web_*=5/s, bash=10/m or bash=10/m:3.
func (p *Pace) UnmarshalText(text []byte) error {
	at := strings.LastIndexByte(string(text), '=')
	if at <= 0 {
		return fmt.Errorf("%.80q: want TOOL=N/s, TOOL=N/m or TOOL=N/h, such as web_*=5/s", text)
	}
	if err := p.read(string(text[at+1:])); err != nil {
		return fmt.Errorf("%.80q: %w", text, err)
	}
	p.Tools = string(text[:at])
	return nil
}

// read reads what stands behind the name.
func (p *Pace) read(rate string) error {
	rate, burst, given := strings.Cut(rate, ":")
	number, unit, _ := strings.Cut(rate, "/")
	n, err := strconv.ParseFloat(number, 64)
	seconds := map[string]float64{"s": 1, "m": 60, "h": 3600}[unit]
	if err != nil || seconds == 0 || !(n > 0) || n > maxLimit {
		return fmt.Errorf("the rate %.40q is not a number above 0 with /s, /m or /h behind it, such as 10/m", rate)
	}
	p.Second = n / seconds
	if p.Burst = max(1, int(math.Floor(p.Second))); !given {
		return nil
	}
	if p.Burst, err = strconv.Atoi(burst); err != nil || p.Burst < 1 || p.Burst > maxLimit {
		return fmt.Errorf("the burst %.40q: want 1 to %d calls", burst, maxLimit)
	}
	return nil
}

// bounds are what a worker keeps its tools to.
type bounds struct {
	limits   []AtMost
	paces    []Pace
	wrappers []executor.Wrapper // of the paces, which all queues of a process share
	required bool               // calls without scopes are denied
}

// newBounds puts the bounds of the command line and of a file of servers together. It returns what it has made, also beside
// an error.
func newBounds(limits []AtMost, paces []Pace, servers []mcpServer) (*bounds, error) {
	b := &bounds{limits: slices.Clone(limits), paces: slices.Clone(paces)}
	for _, s := range servers {
		b.limits, b.paces = append(b.limits, s.limits...), append(b.paces, s.paces...)
	}
	for i, l := range b.limits {
		if slices.ContainsFunc(b.limits[:i], func(o AtMost) bool { return o.Tool == l.Tool }) {
			return b, fmt.Errorf("the limit of %.80q is given twice", l.Tool)
		}
	}
	for _, p := range b.paces {
		w, err := executor.RateLimit(p.Tools, p.Second, p.Burst)
		if err != nil {
			return b, err
		}
		b.wrappers = append(b.wrappers, w)
	}
	return b, nil
}

// limited returns the bound on a tool; 0: there is none.
func (b *bounds) limited(tool string) int {
	for _, l := range b.limits {
		if l.Tool == tool {
			return l.N
		}
	}
	return 0
}

// unmet names a bound that none of the tools has: it is misspelt, or its tool is not served here.
func (b *bounds) unmet(tools []schema.Tool) error {
	for _, l := range b.limits {
		if !slices.ContainsFunc(tools, func(t schema.Tool) bool { return t.Name == l.Tool }) {
			return fmt.Errorf("limit of %.80q: no tool of that name is served here; there are %s", l.Tool, named(tools))
		}
	}
	for _, p := range b.paces {
		if !slices.ContainsFunc(tools, func(t schema.Tool) bool { return schema.MatchTool(p.Tools, "", t.Name) }) {
			return fmt.Errorf("rate of %.80q: it means no tool that is served here; there are %s", p.Tools, named(tools))
		}
	}
	return nil
}

// maxNamed is how many tools a message names.
const maxNamed = 20

func named(tools []schema.Tool) string {
	var names []string
	for _, t := range tools[:min(len(tools), maxNamed)] {
		names = append(names, t.Name)
	}
	if len(tools) > maxNamed {
		names = append(names, "…")
	}
	return strings.Join(names, ", ")
}

// share is the tools of one queue that are served together.
type share struct {
	queue string
	slots int
	limit int
	tools []executor.Tool
}

// split gives each limited tool a queue of its own, since it is the queue whose calls are counted. The first share is what
// is left, perhaps nothing.
func (b *bounds) split(queue string, slots int, tools []executor.Tool) []share {
	shares := []share{{queue: queue, slots: slots}}
	for _, t := range tools {
		if n := b.limited(t.Name); n > 0 {
			shares = append(shares, share{queue: schema.LimitedQueue(queue, t.Name), slots: min(slots, n), limit: n, tools: []executor.Tool{t}})
		} else {
			shares[0].tools = append(shares[0].tools, t)
		}
	}
	return shares
}
