package mcp

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
	"github.com/jetcrew/jetcrew/tracing"
)

// What stands in a call's _meta beside the trace context.
const (
	MetaKey   = "jetcrew/idempotency-key" // run/turn.index: the same for every attempt of one call
	MetaBound = "jetcrew/bound"           // the bound values, an object; absent: none
)

// calling is a tool as its server knows it.
type calling struct {
	name       string
	idempotent bool
}

// call sends a call, once, and returns what the model reads.
func (s *Server) call(ctx context.Context, tool calling, call *schema.Call) (string, error) {
	c, err := s.live(ctx)
	if err != nil { // nothing was sent
		return "", executor.Transient(fmt.Errorf("the MCP server %q cannot be reached, the call was not sent: %w", s.cfg.Name, err), 0)
	}
	ctx, cancel := s.alive(ctx, 0)
	defer cancel()
	res, err := c.CallTool(ctx, &sdk.CallToolParams{Meta: meta(ctx, call), Name: tool.name, Arguments: json.RawMessage(call.Args)})
	switch {
	case err == nil:
		return output(res)
	case ctx.Err() != nil && s.life.Err() == nil:
		return "", ctx.Err() // the client has told the server
	}
	s.suspect(c, err)
	if refused := answered(err); refused != nil {
		return "", fmt.Errorf("the MCP server %q refused the call: %s", s.cfg.Name, schema.Cut(refused.Message, 2<<10))
	}
	return "", lost(s.cfg.Name, tool, err)
}

// lost is the error of a call that the server may have got, and did not answer. The text of err is left out: it may hold
// the server's address.
func lost(server string, tool calling, err error) error {
	text := fmt.Sprintf("the MCP server %q went away, or the way to it broke, before it answered", server)
	if tool.idempotent {
		return executor.Transient(&goneError{text, err}, 0)
	}
	return &schema.Error{Type: schema.OutcomeUnknown, Message: text + "; the call may have taken effect, do not repeat it blindly"}
}

// goneError is a text for the model, and the error behind it for who looks.
type goneError struct {
	text  string
	cause error
}

func (e *goneError) Error() string { return e.text }
func (e *goneError) Unwrap() error { return e.cause }

// The codes by which the client says that it has no answer, as if the server had answered; the protocol leaves them to
// implementations.
const (
	codeClientClosing = -32003
	codeServerClosing = -32004
	codeRejected      = -32005 // the transport did not bring the call to the server, or cannot tell
)

// answered returns the error that the server answered with, nil when it did not answer.
func answered(err error) *jsonrpc.Error {
	var e *jsonrpc.Error
	if errors.Is(err, &jsonrpc.Error{Code: codeRejected}) || errors.Is(err, sdk.ErrConnectionClosed) || !errors.As(err, &e) {
		return nil
	}
	if e.Code == codeClientClosing || e.Code == codeServerClosing {
		return nil
	}
	return e
}

// suspect gives a session up that did not answer: the next call begins another one.
func (s *Server) suspect(c *session, err error) {
	if answered(err) != nil || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return
	}
	s.lose(c)
	s.task(c.close)
}

// meta is what goes beside the arguments.
func meta(ctx context.Context, call *schema.Call) sdk.Meta {
	m := sdk.Meta{MetaKey: call.String()} // as executor.Key has it
	for name, value := range tracing.TraceMap(ctx) {
		m[name] = value
	}
	if call.Bound != "" {
		m[MetaBound] = json.RawMessage(call.Bound)
	}
	return m
}
