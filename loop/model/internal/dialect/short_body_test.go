package dialect

import (
	"errors"
	"io"
	"strings"
	"testing"
)

func TestShortBodyEndsWithItsError(t *testing.T) {
	t.Parallel()
	over := errors.New("too long")
	for _, c := range []struct {
		body string
		left int64
		want string
		err  error
	}{
		{"short", 10, "short", nil},
		{"0123456789", 10, "0123456789", over}, // nobody can tell that nothing follows
		{"0123456789abc", 10, "0123456789", over},
	} {
		got, err := io.ReadAll(&shortBody{ReadCloser: io.NopCloser(strings.NewReader(c.body)), left: c.left, over: over})
		if string(got) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%q: %q, %v", c.body, got, err)
		}
	}
}
