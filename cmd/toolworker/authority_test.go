package main

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/schema"
)

// TestD22RequireAuthority: a worker that is told to requires scopes of every call, those of a server's tools too.
func TestD22RequireAuthority(t *testing.T) {
	t.Parallel()
	srv, b := connect(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	startWorker(t, srv, nil, "serve", "--queue", "files", "--root", t.TempDir(), "--mcp", fmt.Sprintf("desk='%s' %s", self, mcpServerArg), "--require-authority")
	const none = "DENIED: this call states no authority, and its worker runs none without"
	for _, c := range []struct {
		tool, args string
		scopes     []string
		want       string
	}{
		{"list_files", `{}`, nil, none},
		{"list_files", `{}`, []string{"tool:list_*"}, ""},
		{"list_files", `{}`, []string{"tool:read_file"}, `DENIED: the tool "list_files" is outside the authority of this run`},
		{"desk_status", `{"id":"1"}`, nil, none},
		{"desk_status", `{"id":"1"}`, []string{"tool:desk_*"}, "status"},
	} {
		r, err := b.Invoke(t.Context(), tool(t, b, c.tool), schema.JSONText(c.args), schema.Principal{ID: "ann", Scopes: c.scopes}, time.Minute)
		if err != nil || !strings.HasPrefix(r.Output, c.want) || r.OK == strings.HasPrefix(c.want, "DENIED") {
			t.Errorf("%s with %q: %+v, %v, want %q", c.tool, c.scopes, r, err, c.want)
		}
	}
}
