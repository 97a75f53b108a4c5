package view

import (
	"bytes"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	tea "charm.land/bubbletea/v2"
	"github.com/charmbracelet/x/ansi"
	"github.com/charmbracelet/x/term"
)

const (
	redraw   = 50 * time.Millisecond
	maxPrint = 8 // lines that scroll up at once; the terminal must have room for them

	drawWithin = 2 * time.Second // at the end, for the first frame
)

// live redraws what is under way below the lines that stay. It reads nothing from the terminal, so that Ctrl-C stays a
// signal.
type live struct {
	program *tea.Program
	done    sync.WaitGroup
	drawn   atomic.Bool // the first frame is on the terminal

	mu      sync.Mutex
	waiting []string // lines to print
}

func startLive(out io.Writer, frame func(width, height int) string) *live {
	l := &live{}
	l.program = tea.NewProgram(&screen{live: l, frame: frame},
		tea.WithInput(nil), tea.WithOutput(l.watch(out)), tea.WithoutSignalHandler(), tea.WithFPS(30))
	l.done.Go(func() { _, _ = l.program.Run() }) // without a terminal there is nothing to show, and the run goes on
	return l
}

// watch returns out such that drawn says when the first frame has been written. Before, bubbletea takes the whole height of
// the terminal for its own: lines that it prints above that wipe out what stands there.
func (l *live) watch(out io.Writer) io.Writer {
	w := watchedWriter{out, &l.drawn}
	if f, ok := out.(term.File); ok {
		return watchedFile{w, f}
	}
	return w
}

type watchedWriter struct {
	out   io.Writer
	drawn *atomic.Bool
}

// watchedFile is a terminal to bubbletea, which asks it for its size.
type watchedFile struct {
	watchedWriter
	file term.File
}

func (w watchedFile) Read(p []byte) (int, error) { return w.file.Read(p) }
func (w watchedFile) Close() error               { return w.file.Close() }
func (w watchedFile) Fd() uintptr                { return w.file.Fd() }

// Write looks for what begins the first frame, and nothing else.
func (w watchedWriter) Write(p []byte) (int, error) {
	n, err := w.out.Write(p)
	if bytes.Contains(p, []byte(ansi.SetModeBracketedPaste)) {
		w.drawn.Store(true)
	}
	return n, err
}

// print shows lines that stay, in the order of the calls, with the next tick.
func (l *live) print(text []string) {
	l.mu.Lock()
	l.waiting = append(l.waiting, text...)
	l.mu.Unlock()
}

// take returns the lines to print next.
func (l *live) take() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := min(len(l.waiting), maxPrint)
	next := l.waiting[:n:n]
	l.waiting = l.waiting[n:]
	return next
}

// behind tells whether lines wait to be printed.
func (l *live) behind() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 0
}

// rest returns what was not printed: nothing, unless the program ended early.
func (l *live) rest() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	rest := l.waiting
	l.waiting = nil
	return rest
}

// close prints what waits, takes the part that is redrawn away and ends the program.
func (l *live) close() {
	l.program.Send(closing{})
	l.done.Wait()
}

// Messages of the screen.
type (
	tick    struct{}
	printed struct{}
	closing struct{}
)

// screen is what bubbletea runs. One print is under way at a time, since it starts each command in a goroutine of its
// own and lines must not overtake each other.
type screen struct {
	live          *live
	frame         func(width, height int) string
	width, height int
	printing      bool
	closing       time.Time // when the end was asked for; zero: it was not
	last          string // what was drawn last
}

// Init starts the clock.
func (s *screen) Init() tea.Cmd { return nextTick() }

// Update takes the next message.
func (s *screen) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	var next tea.Cmd
	switch m := msg.(type) {
	case tea.WindowSizeMsg:
		s.width, s.height = m.Width, m.Height
	case tick:
		next = nextTick()
	case printed:
		s.printing = false
	case closing:
		s.closing = time.Now()
	}
	return s, tea.Batch(next, s.print())
}

// print starts the next print if none is under way. When all is printed and the end was asked for, it ends; so it does when no
// frame comes.
func (s *screen) print() tea.Cmd {
	switch {
	case s.printing:
		return nil
	case !s.live.drawn.Load() && s.ends() && time.Since(s.closing) > drawWithin:
		return tea.Quit
	case !s.live.drawn.Load():
		return nil
	}
	lines := s.live.take()
	switch {
	case len(lines) > 0:
		s.printing = true
		return tea.Sequence(tea.Println(strings.Join(lines, "\n")), func() tea.Msg { return printed{} })
	case s.ends():
		return tea.Quit
	}
	return nil
}

func (s *screen) ends() bool { return !s.closing.IsZero() }

// View returns what is redrawn. While lines are on their way up it stays, so that a turn does not vanish before its
// lines are there.
func (s *screen) View() tea.View {
	switch {
	case s.ends():
		s.last = ""
	case !s.printing && !s.live.behind():
		s.last = s.frame(s.width, s.height)
	}
	return tea.NewView(s.last)
}

func nextTick() tea.Cmd {
	return tea.Tick(redraw, func(time.Time) tea.Msg { return tick{} })
}
