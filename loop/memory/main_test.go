package memory_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// fact encodes a payload under a key.
func fact(t interface{ Fatal(...any) }, key schema.Key, p schema.Encodable) schema.Fact {
	data, err := schema.Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return schema.Fact{Run: "r", Key: key, Data: data}
}

// fold applies facts and reports what cannot be read.
func fold(t *testing.T, facts ...schema.Fact) *memory.Run {
	t.Helper()
	m := memory.New()
	for _, f := range facts {
		if err := m.Apply(f); err != nil {
			t.Error(err)
		}
	}
	return m
}

func call(label, tool string) schema.TurnCall {
	return schema.TurnCall{Label: label, Tool: tool, Args: `{}`, Queue: "q", Decision: schema.Decision{Action: schema.ActionAllow}}
}

func result(n, i int, queue, output string) (schema.Key, *schema.Result) {
	return schema.ResultKey(n, i, queue), &schema.Result{Run: "r", Turn: n, Index: i, OK: true, Output: output}
}
