package model

import (
	"errors"
	"io"
	"testing"
)

func TestError(t *testing.T) {
	t.Parallel()
	cases := []struct {
		err       *Error
		text      string
		temporary bool
	}{
		{&Error{Kind: RateLimited, Status: 429, Message: "slow down"}, "model: rate_limited (HTTP 429): slow down", true},
		{&Error{Kind: Unavailable, Message: "cut", Err: io.ErrUnexpectedEOF}, "model: unavailable: cut", true},
		{&Error{Kind: Auth, Message: "no key"}, "model: auth: no key", false},
		{&Error{Kind: Overflow}, "model: context_overflow: ", false},
		{&Error{Kind: Refused}, "model: refused: ", false},
		{&Error{Kind: BadRequest}, "model: bad_request: ", false},
	}
	for _, c := range cases {
		if c.err.Error() != c.text || c.err.Temporary() != c.temporary {
			t.Errorf("got %q, temporary %v", c.err.Error(), c.err.Temporary())
		}
	}
	if !errors.Is(cases[1].err, io.ErrUnexpectedEOF) {
		t.Error("the cause is not found")
	}
}
