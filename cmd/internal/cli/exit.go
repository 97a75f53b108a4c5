package cli

import "fmt"

// Exit codes. A signal's code is 128 plus its number: 130 for an interrupt, 143 for a termination.
const (
	CodeOK     = 0
	CodeFailed = 1 // the work failed
	CodeUsage  = 2 // the command line, a file or a variable is wrong
)

// ExitError ends the process with Code. Without Err nothing is said: the command has said it.
type ExitError struct {
	Code int
	Err  error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error about how the program was called.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: CodeUsage, Err: fmt.Errorf(format, args...)}
}

// ErrFailed is the error of work that failed and has said so.
var ErrFailed error = &ExitError{Code: CodeFailed}
