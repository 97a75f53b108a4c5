// Package openai asks a model over the chat completions protocol: OpenAI itself, or any endpoint that speaks the same
// protocol, such as Ollama, vLLM or a gateway.
//
// It owns the form of the request and of the answer, streamed or not; both give the same Response. It refuses to own
// retries: a failed request is a *model.Error that says whether asking again may help.
//
//	client, err := openai.New(openai.Config{Model: "gpt-5.2"})
//	answer, err := client.Generate(ctx, &model.Request{Turn: 1, Messages: []schema.Message{{Role: schema.RoleUser, Text: "Hello"}}})
package openai
