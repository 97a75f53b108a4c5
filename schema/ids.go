package schema

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"

	"github.com/google/uuid"
)

// NewID returns a fresh id for a run or a process instance: a UUIDv7, so that ids sort by time.
func NewID() string { return uuid.Must(uuid.NewV7()).String() }

// ValidID tells whether s can be a run or instance id, [A-Za-z0-9_-]{1,64}; such an id is a NATS subject token.
func ValidID(s string) bool {
	if s == "" || len(s) > 64 {
		return false
	}
	for i := range len(s) {
		c := s[i]
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return true
}

// Reserved queue names: results that the turn itself holds stand under QueueNone; "tools" is a key prefix of the
// catalog.
const (
	QueueNone   = "none"
	QueueAgents = "agents"
	queueTools  = "tools"
)

// CheckQueue returns an error that says why name cannot be a queue of workers: [a-z0-9_-]{1,64}, not reserved.
func CheckQueue(name string) error {
	switch {
	case name == QueueNone || name == queueTools:
		return fmt.Errorf("queue %q: the name is reserved", name)
	case !ValidID(name) || strings.ToLower(name) != name:
		return fmt.Errorf("queue %q: a name is 1 to 64 of a-z, 0-9, '_' and '-'", name)
	}
	return nil
}

const maxQueue = 64 // bytes of the name of a queue

// LimitedQueue names the queue of one tool of a queue whose calls are limited over the fleet. A tool whose name cannot be
// part of a queue's is told from others by a piece of its digest. Patterns that name the tool in its first queue mean
// it there, see MatchTool.
func LimitedQueue(queue, tool string) string {
	if name := queue + "-" + tool; CheckQueue(name) == nil {
		return name
	}
	mark := "-" + Digest([]byte(tool))[:8]
	name := []byte(queue + "-" + strings.ToLower(tool))
	for i, c := range name {
		if c >= 0x80 || CheckQueue(string(rune(c))) != nil {
			name[i] = '_'
		}
	}
	return string(name[:min(len(name), maxQueue-len(mark))]) + mark
}

// LimitedFrom tells whether queue is the LimitedQueue of a tool of another queue, which agents have none of.
func LimitedFrom(of, queue, tool string) bool {
	return of != QueueAgents && strings.HasPrefix(queue, of[:min(len(of), maxQueue-9)]) && queue == LimitedQueue(of, tool)
}

// ChildRun returns the run id of a child call: the first 26 characters of the lower-case base32 of the SHA-256 of
// parent run, turn, index and attempt, so that every delivery of the call names the same child.
func ChildRun(run string, turn, index, attempt int) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%s.%d.%d.%d", run, turn, index, attempt))
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:]))[:26]
}

// Digest returns the lower-case hex SHA-256 of the bytes as stored.
func Digest(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}
