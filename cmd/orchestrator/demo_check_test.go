package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/jetcrew/jetcrew/cmd/internal/session"
	"github.com/jetcrew/jetcrew/loop/memory"
	"github.com/jetcrew/jetcrew/schema"
)

// shown is a demo that went as it should: two calls, the second of which was run by a second worker, and came first.
func shown() (*demo, []callRecord) {
	d := &demo{answer: schema.Answer{Reason: schema.ReasonDone}}
	d.assassin.victim, d.assassin.killed = place{1, 1}, &session.Process{Instance: "a"}
	state := memory.New()
	turn := &schema.Turn{N: 1, Calls: []schema.TurnCall{{Label: "x", Queue: "q"}, {Label: "y", Queue: "q"}}}
	results := []schema.Result{{OK: true, Output: "0", Worker: "b", Delivery: 1}, {OK: true, Output: "1", Worker: "b", Delivery: 2}}
	state.Put(schema.TurnKey(1), turn)
	for i := range results {
		state.Put(schema.ResultKey(1, i, "q"), &results[i])
	}
	d.state = state
	return d, []callRecord{
		{place: place{1, 0}, results: results[:1], arrived: 2},
		{place: place{1, 1}, results: results[1:], arrived: 1},
	}
}

func TestDemoChecksItsClaims(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		spoil func(d *demo, calls []callRecord)
		want  string // "": all is well
	}{
		{"as promised", func(*demo, []callRecord) {}, ""},
		{"no answer", func(d *demo, _ []callRecord) { d.answer.Reason = schema.ReasonModel }, "model_failed"},
		{"nobody killed", func(d *demo, _ []callRecord) { d.assassin.killed = nil }, "no worker was killed"},
		{"the kill failed", func(d *demo, _ []callRecord) { d.assassin.trouble = os.ErrPermission }, "permission"},
		{"two results", func(_ *demo, c []callRecord) { c[0].results = append(c[0].results, schema.Result{}) }, "call 1.0 has 2 results"},
		{"no result", func(_ *demo, c []callRecord) { c[1].results = nil }, "call 1.1 has 0 results"},
		{"not delivered again", func(_ *demo, c []callRecord) { c[1].results[0].Delivery = 1 }, "not delivered again"},
		{"the dead worker's result", func(_ *demo, c []callRecord) { c[1].results[0].Worker = "a" }, "killed worker"},
		{"the call failed", func(_ *demo, c []callRecord) { c[1].results[0].OK = false }, "call 1.1 failed"},
		{"all came in order", func(_ *demo, c []callRecord) { c[0].arrived, c[1].arrived = 1, 2 }, "out of order"},
		{"memory lacks a result", func(d *demo, _ []callRecord) { d.state = without(d.state) }, "memory lacks"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			d, calls := shown()
			tt.spoil(d, calls)
			err := d.check(calls)
			switch {
			case tt.want == "" && err != nil:
				t.Errorf("%v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("%v, want one that says %q", err, tt.want)
			}
		})
	}
}

// without returns the state of the same run with the second result missing.
func without(full *memory.Run) *memory.Run {
	s := memory.New()
	s.Put(schema.TurnKey(1), full.Turn(1))
	s.Put(schema.ResultKey(1, 0, "q"), full.Result(1, 0))
	return s
}

func TestLandmark(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		files map[string]string // content by name; a.txt is the newest
		want  string
	}{
		{"nothing", nil, "."},
		{"the oldest text", map[string]string{"a.txt": "x", "b.txt": "y"}, "b.txt"},
		{"no hidden file", map[string]string{"a.txt": "x", ".env": "KEY=secret"}, "a.txt"},
		{"no binary", map[string]string{"a.txt": "x", "z.bin": "a\x00b"}, "a.txt"},
		{"no empty file", map[string]string{"a.txt": "x", "z.txt": ""}, "a.txt"},
		{"no name that steers a terminal", map[string]string{"a.txt": "x", "z\x1b[2J": "y"}, "a.txt"},
		{"no name that is not text", map[string]string{"a.txt": "x", "z\xff": "y"}, "a.txt"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := os.Mkdir(filepath.Join(dir, "zz"), 0o755); err != nil {
				t.Fatal(err)
			}
			for name, text := range tt.files {
				path := filepath.Join(dir, name)
				if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
					t.Skipf("this file system has no such name: %v", err)
				}
				age := time.Now().Add(-time.Hour)
				if name != "a.txt" {
					age = age.Add(-time.Hour)
				}
				if err := os.Chtimes(path, age, age); err != nil {
					t.Fatal(err)
				}
			}
			if got := landmark(dir); got != tt.want {
				t.Errorf("landmark = %q, want %q", got, tt.want)
			}
		})
	}
}

func TestStoryFillsInWhatTheToolsSaid(t *testing.T) {
	t.Parallel()
	out := outputs([]schema.Message{
		{Role: schema.RoleUser},
		{Role: schema.RoleAssistant},
		{Role: schema.RoleTool, Text: "a\nb\n"},
		{Role: schema.RoleTool, Text: "c"},
		{Role: schema.RoleAssistant},
		{Role: schema.RoleTool, Text: "d"},
	})
	got := fill("{{lines 1.0}}, {{first 1.0}} {{first 1.1}} {{lines 2.0}} {{first 9.9}} {{other}}", out)
	if want := "2 lines, a c 1 line  {{other}}"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
