package dialect

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func TestA22Str(t *testing.T) {
	t.Parallel()
	cases := []struct{ in, want string }{
		{`"plain \"q\" \\ \/ \b\f\n\r\t"`, "plain \"q\" \\ / \b\f\n\r\t"},
		{`"caf\u00e9"`, "café"},
		{`"\ud83d\ude42"`, "🙂"},
		{`"\ud83d"`, "\uFFFD"},
		{`"\ude42\ud83d"`, "\uFFFD\uFFFD"},
		{`"a\ud83db"`, "a\uFFFDb"},
		{"\"a\xffb\"", "a\uFFFDb"},
		{`null`, ""},
		{`{"a": 1}`, `{"a":1}`},
		{`42`, "42"},
	}
	for _, c := range cases {
		var s Str
		if err := json.Unmarshal([]byte(c.in), &s); err != nil {
			t.Fatal(err)
		}
		if got := s.Text(); got != c.want {
			t.Errorf("%s: got %q, want %q", c.in, got, c.want)
		}
	}
}

// FuzzText: what is shown piece by piece and the whole are UTF-8, wherever the text was cut.
func FuzzText(f *testing.F) {
	f.Add([]byte("caf\xc3\xa9 \xf0\x9f\x99\x82 \xed\xa0\xbd\xed\xb9\x82"), 3)
	f.Fuzz(func(t *testing.T, raw []byte, n int) {
		var x Text
		shown := ""
		for step := max(1, n%7); len(raw) > 0; {
			k := min(step, len(raw))
			shown += x.Add(raw[:k])
			raw = raw[k:]
		}
		if !utf8.ValidString(shown) || !utf8.ValidString(x.String()) {
			t.Errorf("shown %q of %q", shown, x.String())
		}
	})
}

func TestTextHoldsAnIncompleteCharacterBack(t *testing.T) {
	t.Parallel()
	var x Text
	got := []string{x.Add(Str("a\xf0")), x.Add(Str("\x9f\x99")), x.Add(Str("\x82b")), x.Add(Str("\xed\xa0\xbd")), x.Add(Str("\xed\xb9\x82"))}
	want := []string{"a", "", "🙂b", "", "🙂"}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("piece %d: got %q, want %q", i, got[i], want[i])
		}
	}
}
