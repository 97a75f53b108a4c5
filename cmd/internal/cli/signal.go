package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// signals hears what asks the process to end.
type signals struct {
	ch     chan os.Signal
	done   chan struct{}
	cancel context.CancelFunc
	first  atomic.Int64 // exit code of the first signal, 0: none came
	say    atomic.Pointer[func(text string)]
}

// SaySignals has what is said at an interrupt go to say instead of standard error: whoever draws on the terminal must
// place it. say may be called from another goroutine at any time.
func (a *App) SaySignals(say func(text string)) { a.signals.say.Store(&say) }

// tell says text to the user.
func (s *signals) tell(text string) {
	if say := s.say.Load(); say != nil {
		(*say)(text)
		return
	}
	fmt.Fprintln(os.Stderr, "\n"+text)
}

// catchSignals returns a context that ends with the first interrupt, termination or hang-up, so that the work can
// settle. The second one ends the process at once.
func catchSignals(parent context.Context) (context.Context, *signals) {
	ctx, cancel := context.WithCancel(parent)
	s := &signals{ch: make(chan os.Signal, 2), done: make(chan struct{}), cancel: cancel}
	signal.Notify(s.ch, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go s.listen()
	return ctx, s
}

func (s *signals) listen() {
	for {
		select {
		case <-s.done:
			return
		case sig := <-s.ch:
			code := exitCodeOf(sig)
			if !s.first.CompareAndSwap(0, int64(code)) {
				os.Exit(code)
			}
			if sig == os.Interrupt {
				s.tell("ending, what runs is cancelled; once more ends at once")
			}
			s.cancel()
		}
	}
}

// code returns the exit code of the signal that came, 0 if none did.
func (s *signals) code() int { return int(s.first.Load()) }

func (s *signals) release() {
	signal.Stop(s.ch)
	close(s.done)
	s.cancel()
}

func exitCodeOf(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return 130
}

// IgnoreInterrupt makes this process deaf to the interrupts and hang-ups of the terminal, which reach every process in
// its foreground: a worker of another process ends when that one says so.
func IgnoreInterrupt() { drop(os.Interrupt, syscall.SIGHUP) }

// IgnoreBrokenPipe keeps this process alive when nobody reads its output or its log any more. What it runs would be
// left behind.
func IgnoreBrokenPipe() { drop(syscall.SIGPIPE) }

// drop has signals do nothing here. A process that this one starts is not deaf to them, as it would be if they were
// only ignored.
func drop(sigs ...os.Signal) {
	signal.Ignore(sigs...) // whoever was told of them is not any more
	signal.Notify(make(chan os.Signal, 1), sigs...)
}
