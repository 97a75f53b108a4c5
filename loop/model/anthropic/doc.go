// Package anthropic asks a model over Anthropic's messages protocol.
//
// It owns the form of the request and of the answer, streamed or not; both give the same Response. Blocks that must be
// sent back unchanged, such as signed thinking, are kept in Response.Items and sent back in the next request. It
// refuses to own retries: a failed request is a *model.Error that says whether asking again may help.
//
//	client, err := anthropic.New(anthropic.Config{Model: "claude-sonnet-5"})
//	answer, err := client.Generate(ctx, &model.Request{Turn: 1, Messages: []schema.Message{{Role: schema.RoleUser, Text: "Hello"}}})
package anthropic
