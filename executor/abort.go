package executor

import "errors"

// Abort marks err as one that ends the run: the call fails with it as with any other error, its siblings settle, and
// then no further turn is asked for. It is not tried again, even if err is Transient. Abort(nil) is nil.
func Abort(err error) error {
	if err == nil {
		return nil
	}
	return &abortError{err}
}

type abortError struct{ error }

func (e *abortError) Unwrap() error { return e.error }

// aborts tells whether err was marked by Abort, and returns it without the mark if that is outermost.
func aborts(err error) (bare error, marked bool) {
	if a, ok := err.(*abortError); ok { //nolint:errorlint // the outermost mark alone is taken off
		bare, _ = aborts(a.error)
		return bare, true
	}
	var a *abortError
	return err, errors.As(err, &a)
}
