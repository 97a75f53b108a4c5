// Package playback plays recorded conversations: the user's part and the model's part as recorded, the tools really
// executed. Then it compares what the run's facts hold with the recording.
//
// It owns the playing and the comparison. It refuses to own the answers (package replay), the execution, and how
// differences are shown.
//
//	p := playback.Player{Bus: b, Model: replay.New(list...), Queue: "mock"}
//	outcome, err := p.Play(ctx, &list[0])
package playback
