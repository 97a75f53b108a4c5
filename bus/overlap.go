package bus

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/nats-io/nats.go/jetstream"
)

// checkOverlap refuses a queue whose calls another consumer of the work stream gets, too. A single server refuses the
// second consumer itself, without saying which is the first; a cluster may take both and give every call to one of
// them only.
func (b *Bus) checkOverlap(ctx context.Context, queue string) error {
	s, err := b.js.Stream(ctx, b.names.work())
	if err != nil {
		return fmt.Errorf("look at stream %s: %w", b.names.work(), err)
	}
	filter := b.names.workFilter(queue)
	var others []string
	list := s.ListConsumers(ctx)
	for c := range list.Info() {
		if c.Name != queue && slices.ContainsFunc(filtersOf(c.Config), func(f string) bool { return overlap(f, filter) }) {
			others = append(others, fmt.Sprintf("%s gets %s", c.Name, strings.Join(filtersOf(c.Config), " ")))
		}
	}
	// Before the error: a cluster that has just refused a consumer may list it, wait for it, and never come to the end.
	if len(others) > 0 {
		return fmt.Errorf("other consumers of %s get calls of queue %s, which is %s: %s; remove them and start again",
			b.names.work(), queue, filter, strings.Join(others, ", "))
	}
	if err := list.Err(); err != nil {
		return fmt.Errorf("list consumers of %s: %w", b.names.work(), err)
	}
	return nil
}

// filtersOf returns the subjects that a consumer gets.
func filtersOf(c jetstream.ConsumerConfig) []string {
	switch {
	case len(c.FilterSubjects) > 0:
		return c.FilterSubjects
	case c.FilterSubject != "":
		return []string{c.FilterSubject}
	}
	return []string{">"}
}

// overlap tells whether some subject matches both filters.
func overlap(a, b string) bool {
	as, bs := strings.Split(a, "."), strings.Split(b, ".")
	for i := range min(len(as), len(bs)) {
		switch {
		case as[i] == ">" || bs[i] == ">":
			return true
		case as[i] != bs[i] && as[i] != "*" && bs[i] != "*":
			return false
		}
	}
	return len(as) == len(bs)
}
