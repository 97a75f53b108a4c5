package agentfile

import (
	_ "embed" // the starter file
	"strings"
)

//go:embed template.yaml
var starter string

// Template returns the commented file that a new agent starts from. It parses as it is; id must match
// [A-Za-z0-9._-]+.
func Template(id string) []byte {
	return []byte(strings.ReplaceAll(starter, "{{id}}", id))
}
