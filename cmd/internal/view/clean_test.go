package view

import (
	"testing"
	"unicode/utf8"
)

func TestClean(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, in, want string }{
		{"plain", "a\tb\nc é 漢", "a\tb\nc é 漢"},
		{"colour", "\x1b[1;31mred\x1b[0m", "red"},
		{"cursor and erase", "a\x1b[2J\x1b[1;1Hb", "ab"},
		{"title", "a\x1b]0;evil\x07b", "ab"},
		{"link", "\x1b]8;;http://x\x1b\\text\x1b]8;;\x1b\\", "text"},
		{"unfinished title hides nothing", "\x1b]0;shown", "]0;shown"},
		{"unfinished colour", "\x1b[31", "[31"},
		{"C1 introducer", "a\u009b31mb", "a31mb"},
		{"8-bit introducer", "a\x9b31mb", "a\uFFFD31mb"},
		{"carriage return", "50%\r100%\r\n", "50%100%\n"},
		{"backspace and bell", "a\b\ab", "ab"},
		{"reversed order", "abc\u202ecba\u2066x", "abccbax"},
		{"invisible tags", "a\U000e0041b", "ab"},
		{"invalid UTF-8", "a\xffb", "a\uFFFDb"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := Clean(tt.in); got != tt.want {
				t.Errorf("Clean(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzClean(f *testing.F) {
	f.Add("\x1b[31mred\x1b]0;t\x07\u009b")
	f.Add("\x1b\x1b[[31mm")
	f.Fuzz(func(t *testing.T, in string) {
		got := Clean(in)
		if !utf8.ValidString(got) {
			t.Errorf("Clean(%q) = %q is not valid UTF-8", in, got)
		}
		for _, r := range got {
			if steers(r) {
				t.Errorf("Clean(%q) = %q holds %q", in, got, r)
			}
		}
	})
}

func TestLine(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"":                "(nothing)",
		" \n ":            "(nothing)",
		"one":             "one",
		"\n one\t1\ntwo":  "one 1 (+1 line)",
		"one\ntwo\nthree": "one (+2 lines)",
	} {
		if got := Line(in); got != want {
			t.Errorf("Line(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestMillis(t *testing.T) {
	t.Parallel()
	for in, want := range map[int64]string{-5: "0 ms", 0: "0 ms", 999: "999 ms", 1500: "1.5 s", 125_000: "2 min 5 s"} {
		if got := Millis(in); got != want {
			t.Errorf("Millis(%d) = %q, want %q", in, got, want)
		}
	}
}

func TestTableAlignsWhatPeopleSee(t *testing.T) {
	t.Parallel()
	got := Style{on: true}.Table([][]string{{"a", "b"}, {"漢字", "x"}, {Style{on: true}.Good("y"), "z"}})
	want := []string{"\x1b[2ma     b\x1b[m", "漢字  x", "\x1b[32my\x1b[m     z"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("line %d: %q, want %q", i, got[i], want[i])
		}
	}
}
