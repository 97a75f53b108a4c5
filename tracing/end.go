package tracing

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// End ends span. A non-nil err makes it a failed one: the status holds its text, error.type what kind it is. An error
// that knows its kind has a method ErrorType() string; otherwise a deadline is "Timeout", a cancelled context
// "Cancelled", anything else "_OTHER".
func End(span trace.Span, err error) {
	if err != nil && span.IsRecording() {
		fail(span, errorType(err), err.Error())
	}
	span.End()
}

// EndFailed ends span as failed with an error type from a closed set, such as those of tool results, and a message for
// people. An empty errorType is no failure.
func EndFailed(span trace.Span, errorType, message string) {
	if errorType != "" && span.IsRecording() {
		fail(span, errorType, message)
	}
	span.End()
}

func fail(span trace.Span, errorType, message string) {
	span.SetAttributes(AttrErrorType.String(errorType))
	span.SetStatus(codes.Error, message)
}

func errorType(err error) string {
	var typed interface{ ErrorType() string }
	switch {
	case errors.As(err, &typed):
		return typed.ErrorType()
	case errors.Is(err, context.DeadlineExceeded):
		return errorTypeTimeout
	case errors.Is(err, context.Canceled):
		return errorTypeCancelled
	}
	return errorTypeOther
}

// ChatResult is what a model's answer adds to its span. Tokens are counts.
type ChatResult struct {
	Model                                string // the model that answered
	Finish                               string // why it ended
	Input, Output, CacheRead, CacheWrite int64
}

// RecordChat adds r to a span that StartChat started.
func RecordChat(span trace.Span, r ChatResult) {
	if !span.IsRecording() {
		return
	}
	span.SetAttributes(
		AttrResponseModel.String(r.Model),
		AttrFinishReasons.StringSlice([]string{r.Finish}),
		AttrInputTokens.Int64(r.Input),
		AttrOutputTokens.Int64(r.Output),
		AttrCacheRead.Int64(r.CacheRead),
		AttrCacheCreation.Int64(r.CacheWrite),
	)
}
