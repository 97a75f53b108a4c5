package view

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"
	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/loop"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, f := range []Format{Plain, JSON, Quiet} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			v := New(Config{Out: &out, Format: f, Name: func(id string) string { return "<" + id + ">" }})
			play(v)
			v.Close()
			golden(t, string(f)+".txt", out.String())
		})
	}
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", path, diff)
	}
}

func TestAutoIsPlainForAPipe(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := New(Config{Out: &out})
	play(v)
	v.Close()
	if strings.ContainsRune(out.String(), '\x1b') || !strings.Contains(out.String(), "turn 1: 3 calls") {
		t.Errorf("got %q, want lines without escape sequences", out.String())
	}
}

// TestWorkerCannotSteerTheTerminal: progress and results come with an id that anybody may have written.
func TestWorkerCannotSteerTheTerminal(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := New(Config{Out: &out, Format: Plain, Name: ShortID})
	play(v)
	v.Working(1, 0, "\x1b]0;x\a\n")
	for _, e := range script() {
		if e.Result != nil {
			e.Result.Worker = "x\u00e9\x1b[2J\xff"
		}
		v.Event(e)
		v.Working(1, 1, "\x1b[2J\r")
	}
	v.Close()
	if strings.ContainsFunc(out.String(), func(r rune) bool { return r < 0x20 && r != '\n' || isC1(r) }) {
		t.Errorf("control characters in %q", out.String())
	}
}

func TestEachJSONLineIsAnObject(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	v := New(Config{Out: &out, Format: JSON})
	play(v)
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if want := len(script()) + 2; len(lines) != want { // a note and a value
		t.Errorf("%d lines, want %d", len(lines), want)
	}
	for _, line := range lines {
		var v map[string]any
		if err := json.Unmarshal([]byte(line), &v); err != nil || v["type"] == "" {
			t.Errorf("line %q: %v", line, err)
		}
	}
}

func TestJSONLineKeepsTheValueAndHidesControls(t *testing.T) {
	t.Parallel()
	text := "a\x1b[31mb\u009b31mc\x7fé"
	line := jsonLine(note{Type: "x", Text: text})
	if strings.ContainsFunc(line, func(r rune) bool { return r < 0x20 || isC1(r) }) {
		t.Errorf("%q holds a control character", line)
	}
	var got note
	if err := json.Unmarshal([]byte(line), &got); err != nil || got.Text != text {
		t.Errorf("read back %q, %v; want %q", got.Text, err, text)
	}
}

func TestLiveKeepsFinishedTurns(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer // written by the program's goroutine until Close returns
	v := New(Config{Out: &out, Format: Live})
	play(v)
	v.Close()
	v.Close()
	text := ansi.Strip(out.String())
	at := 0
	for _, want := range []string{"turn 1 · 3 calls", "✓ 1.0 watch_files", "✓ 1.1 list_files", "✗ 1.2 rm_all", "SIGKILL to worker-a", "turn 2 · the answer", "All quiet.", "Really.", "ended: max steps", "The end."} {
		i := strings.Index(text[at:], want)
		if i < 0 {
			t.Fatalf("%q is missing, or not where it belongs, in:\n%s", want, text)
		}
		at += i
	}
	v.Print("afterwards")
	if !strings.HasSuffix(out.String(), "afterwards\n") {
		t.Errorf("after Close: %q", out.String()[len(out.String())-40:])
	}
	v.Resume()
	v.Print("again live")
	v.Close()
	if !strings.Contains(ansi.Strip(out.String()), "again live") {
		t.Error("nothing is shown after Resume")
	}
}

// TestLivePrintsBelowWhatIsThere: lines that stay wait for the first frame. Printed before, they take the place of what stands
// on the terminal: bubbletea then counts on a frame of the terminal's whole height.
func TestLivePrintsBelowWhatIsThere(t *testing.T) {
	t.Parallel()
	for range 20 {
		var out bytes.Buffer
		v := New(Config{Out: &out, Format: Live})
		v.Print("early")
		v.Close()
		frame, line := strings.Index(out.String(), ansi.SetModeBracketedPaste), strings.Index(out.String(), "early")
		if frame < 0 || line < frame {
			t.Fatalf("the first frame is at %d, the line at %d of %q", frame, line, out.String())
		}
	}
}

// TestLiveComesBackAfterAQuestion: whoever is asked at the terminal sees the rest of the turn as plain lines, and the next one live.
func TestLiveComesBackAfterAQuestion(t *testing.T) {
	t.Parallel()
	for name, closed := range map[string]bool{"asked": false, "asked, then closed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			v := New(Config{Out: &out, Format: Live})
			for _, e := range script() {
				v.Event(e)
				if e.Type == loop.EventToolProgress {
					v.Suspend()
					out.WriteString("approve?\n")
					if closed {
						v.Close()
					}
				}
				if live := v.live != nil; e.Type == loop.EventToolSettled && live || e.Type == loop.EventStepEnd && e.Turn == 2 && live == closed {
					t.Errorf("after %s of turn %d it is live: %t", e.Type, e.Turn, live)
				}
			}
			v.Close()
			text := ansi.Strip(out.String())
			_, text, _ = strings.Cut(text, "approve?\n")
			if n := strings.Count(text, "rm_all"); n == 0 || !strings.Contains(text, "All quiet.") {
				t.Errorf("shown after the question:\n%s", text)
			}
		})
	}
}
