package worker

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// defaultSlots is how many calls of a queue run at once when nothing is said.
const defaultSlots = 4

// Queue is a queue to serve, NAME or NAME=SLOTS on the command line.
type Queue struct {
	Name  string
	Slots int
}

// UnmarshalText reads NAME or NAME=SLOTS.
func (q *Queue) UnmarshalText(text []byte) error {
	name, slots, given := strings.Cut(string(text), "=")
	q.Name, q.Slots = name, defaultSlots
	if given {
		n, err := strconv.Atoi(slots)
		if err != nil || n < 1 || n > 4096 {
			return fmt.Errorf("slots %q of queue %q: want 1 to 4096", slots, name)
		}
		q.Slots = n
	}
	return schema.CheckQueue(name)
}
