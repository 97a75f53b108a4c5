package looptest_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/jetcrew/jetcrew/loop"
	"github.com/jetcrew/jetcrew/loop/looptest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestBusIsAJournal(t *testing.T) {
	t.Parallel()
	looptest.TestJournal(t, func(*testing.T) loop.Journal { return looptest.NewBus() })
}

func TestCheckFindsBrokenStreams(t *testing.T) {
	t.Parallel()
	call := func(i int) *loop.CallInfo { return &loop.CallInfo{Index: i} }
	head := []loop.Event{{Type: loop.EventRunStart}, {Type: loop.EventStepStart}, {Type: loop.EventModelRequest}, {Type: loop.EventModelResponse}}
	tests := []struct {
		name string
		ok   bool
		tail []loop.Event
	}{
		{"whole", true, []loop.Event{{Type: loop.EventStepEnd}, {Type: loop.EventRunEnd}}},
		{"no end", false, []loop.Event{{Type: loop.EventStepEnd}}},
		{"step without end", false, []loop.Event{{Type: loop.EventRunEnd}}},
		{"call without result", false, []loop.Event{{Type: loop.EventToolCall, Call: call(0)}, {Type: loop.EventStepEnd}, {Type: loop.EventRunEnd}}},
		{"call twice", false, []loop.Event{{Type: loop.EventToolCall, Call: call(0)}, {Type: loop.EventToolCall, Call: call(0)}}},
		{"result before it settled", false, []loop.Event{{Type: loop.EventToolCall, Call: call(0)}, {Type: loop.EventToolResult, Call: call(0)}}},
	}
	for _, tt := range tests {
		events := append(append([]loop.Event(nil), head...), tt.tail...)
		for i := range events {
			events[i].Seq = uint64(i + 1)
		}
		if err := looptest.Check(events); (err == nil) != tt.ok {
			t.Errorf("%s: %v", tt.name, err)
		}
	}
}
