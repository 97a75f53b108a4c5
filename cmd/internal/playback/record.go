package playback

import (
	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/loop/model/replay"
	"github.com/jetcrew/jetcrew/schema"
)

// Record makes a transcript of a run: the tools its agent saw and what its facts fold to. Arguments are as the model
// wrote them, where the run still knows that, so that a replay repairs or refuses them anew.
func Record(id string, tools []schema.Tool, state *memory.Run) replay.Transcript {
	messages := state.History()
	turn := 0
	for _, m := range messages {
		if m.Role != schema.RoleAssistant {
			continue
		}
		turn++
		for i := range m.Calls {
			if raw := state.Turn(turn).Calls[i].Raw; raw != "" {
				m.Calls[i].Args = raw
			}
		}
	}
	return replay.Record(id, tools, messages)
}
