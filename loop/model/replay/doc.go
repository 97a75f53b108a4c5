// Package replay holds transcripts, recorded conversations with their tool calls and outputs, and a model that answers
// from one.
//
// It owns the form of a transcript: one JSON object per line with id, tools and messages in OpenAI's chat form. It
// refuses to own the playing of the user's part and the comparing of outputs; for those it says what was recorded.
//
//	list, err := replay.Load(file)
//	m := replay.New(list...)
//	answer, err := m.Generate(ctx, &model.Request{Agent: list[0].ID, Turn: 1})
package replay
