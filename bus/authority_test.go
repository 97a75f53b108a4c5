package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// An attack: who may publish on the work stream publishes a call straight, with more than its principal's scopes. The
// worker denies it, whatever the call says of the tool's effect.
func TestD22StraightCallBeyondItsScopes(t *testing.T) {
	t.Parallel()
	srv := server(t)
	f := stranger(t, srv)
	ran := make(chan string, 8)
	tool := func(name, effect string) executor.Tool {
		return executor.Func(name, "A tool of a test.", func(context.Context, struct{}) (string, error) {
			ran <- name
			return "ran", nil
		}, executor.Effect(effect), executor.Idempotent())
	}
	set, err := executor.NewSet("test", tool("read", schema.EffectRead), tool("wipe", schema.EffectDestructive))
	if err != nil {
		t.Fatal(err)
	}
	serve(t, connect(t, srv), bus.Worker{Queue: "test", Tools: set})
	for i, c := range []struct {
		name, call string
		want       string // that the model would read first
	}{
		{"within its scopes", `"tool":"read","principal":{"id":"u","scopes":["effect:read"]}`, "ran"},
		{"another tool", `"tool":"wipe","principal":{"id":"u","scopes":["tool:read"]}`, "DENIED: "},
		{"an effect that it makes light of", `"tool":"wipe","effect":"read","principal":{"id":"u","scopes":["tool:*","effect:read"]}`, "DENIED: "},
		{"another tenant", `"tool":"read","principal":{"id":"u","tenant":"other","scopes":["tenant:acme"]}`, "DENIED: "},
		{"an authority that is over", `"tool":"read","principal":{"id":"u","scopes":["until:2020-01-01T00:00:00Z"]}`, "DENIED: "},
		{"more than the run above it", `"tool":"wipe","principal":{"id":"u","scopes":["tool:read","and","tool:*"]}`, "DENIED: "},
		{"a bound key in the arguments", `"tool":"read","args":{"tenant":"other"},"bound":{"tenant":"acme"}`, `TOOL_ERROR: {"errorType":"InvalidArguments","error":"\"tenant\" is set on the server's side`},
	} {
		t.Run(c.name, func(t *testing.T) {
			sub := f.listen(fmt.Sprintf("jc.live.r%d.result.1.0.test", i))
			f.store("jc.work.test.0", fmt.Appendf(nil, `{"run":"r%d","turn":1,"index":0,"idempotent":true,%s}`, i, c.call))
			r := f.awaitResult(sub)
			if !strings.HasPrefix(r.Output, c.want) {
				t.Errorf("result %+v, want %s", r, c.want)
			}
			if ok := c.want == "ran"; r.OK != ok || (len(ran) == 1) != ok {
				t.Errorf("ok is %v, and %d handlers ran", r.OK, len(ran))
			}
			if r.OK {
				<-ran
			}
		})
	}
}
