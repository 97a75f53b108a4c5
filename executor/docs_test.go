package executor_test

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// The Go code of the document stands in an example that is run, or in the package.
func TestGovernanceQuotesTheCode(t *testing.T) {
	t.Parallel()
	read := func(name string) string {
		data, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	code := read("example_chain_test.go") + read("guards.go")
	blocks := regexp.MustCompile("(?ms)^```go\n(.*?)^```$").FindAllStringSubmatch(read("../docs/governance.md"), -1)
	for _, b := range blocks {
		if !strings.Contains(code, b[1]) {
			t.Errorf("this is in no example:\n%s", b[1])
		}
	}
	if len(blocks) == 0 {
		t.Error("the document quotes no example")
	}
}
