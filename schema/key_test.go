package schema

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

func TestKeyString(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key  Key
		want string
	}{
		{OpenKey(), "open"},
		{CloseKey(), "close"},
		{CtlKey(1), "ctl.1"},
		{SayKey(2), "say.2"},
		{TurnKey(3), "turn.3"},
		{FoldKey(4), "fold.4"},
		{AnswerKey(5), "answer.5"},
		{SentKey(3, 1), "sent.3.1"},
		{ViewKey(3, 0), "view.3.0"},
		{AskKey(3, 0, 1), "ask.3.0.1"},
		{VerdictKey(3, 0, 1), "verdict.3.0.1"},
		{BeginKey(3, 0, "files"), "begin.3.0.files"},
		{ResultKey(3, 0, QueueNone), "result.3.0.none"},
		{BackKey(3, 0, "files", 17, 2), "back.3.0.files.17.2"},
		{(&Call{Turn: 2, Index: 7}).ResultKey("mcp-github"), "result.2.7.mcp-github"},
	} {
		if got := c.key.String(); got != c.want {
			t.Errorf("got %q, want %q", got, c.want)
		}
		if got, err := ParseKey(c.want); err != nil || got != c.key {
			t.Errorf("parse %q: %+v, %v", c.want, got, err)
		}
		if c.key.IsZero() {
			t.Errorf("%q is zero", c.want)
		}
	}
	if !(Key{}).IsZero() {
		t.Error("the zero key is not zero")
	}
}

func TestParseKeyRefuses(t *testing.T) {
	t.Parallel()
	for _, s := range []string{
		"", ".", "nope", "open.", "open.1", "turn", "turn.", "turn.x", "turn.-1", "turn.01", "turn.+1", "turn.1.2", "turn.1.", "turn.99999999999", "turn. 1",
		"sent.1", "result.1.0", "result.1.0.", "result.1.0.a.b", "result.1.0.a b", "result.1.0.*", "result.1.0.>", "result.1..files", "begin.1.0." + strings.Repeat("q", 65),
		"back.1.0.files.1", "back.1.0.files.1.99999999999999999999", "back.1.0.files.01.1", "Result.1.0.files", "ask.1.0", "ctl.1\n",
	} {
		if k, err := ParseKey(s); err == nil {
			t.Errorf("%q is taken as %+v", s, k)
		}
	}
}

func TestKeyRoundTrip(t *testing.T) {
	t.Parallel()
	number := rapid.IntRange(0, 1<<31-1)
	queue := rapid.StringMatching(`[a-z0-9_-]{1,64}`)
	keys := []*rapid.Generator[Key]{
		rapid.SampledFrom([]Key{OpenKey(), CloseKey()}),
		rapid.Custom(func(t *rapid.T) Key {
			kind := rapid.SampledFrom([]Kind{KindCtl, KindSay, KindTurn, KindFold, KindAnswer}).Draw(t, "kind")
			return Key{Kind: kind, N: number.Draw(t, "n")}
		}),
		rapid.Custom(func(t *rapid.T) Key { return SentKey(number.Draw(t, "n"), number.Draw(t, "k")) }),
		rapid.Custom(func(t *rapid.T) Key { return ViewKey(number.Draw(t, "n"), number.Draw(t, "i")) }),
		rapid.Custom(func(t *rapid.T) Key {
			return AskKey(number.Draw(t, "n"), number.Draw(t, "i"), number.Draw(t, "k"))
		}),
		rapid.Custom(func(t *rapid.T) Key {
			return ResultKey(number.Draw(t, "n"), number.Draw(t, "i"), queue.Draw(t, "queue"))
		}),
		rapid.Custom(func(t *rapid.T) Key {
			return BackKey(number.Draw(t, "n"), number.Draw(t, "i"), queue.Draw(t, "queue"), rapid.Uint64().Draw(t, "s"), rapid.Uint64().Draw(t, "d"))
		}),
	}
	rapid.Check(t, func(t *rapid.T) {
		k := rapid.OneOf(keys...).Draw(t, "key")
		got, err := ParseKey(k.String())
		if err != nil || got != k {
			t.Fatalf("%+v as %q: %+v, %v", k, k.String(), got, err)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	for _, s := range []string{"open", "turn.1", "sent.1.2", "result.1.0.files", "back.1.0.files.7.1", "verdict.1.0.1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if k, err := ParseKey(s); err == nil && k.String() != s {
			t.Fatalf("%q parses as %+v, which is %q", s, k, k.String())
		}
	})
}

func BenchmarkKey(b *testing.B) {
	b.Run("string", func(b *testing.B) {
		k := ResultKey(12, 3, "files")
		b.ReportAllocs()
		for b.Loop() {
			_ = k.String()
		}
	})
	b.Run("parse", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := ParseKey("result.12.3.files"); err != nil {
				b.Fatal(err)
			}
		}
	})
}
