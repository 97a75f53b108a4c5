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
