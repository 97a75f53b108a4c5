package dialect

import (
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

func at(i int) *int { return &i }

func TestA23Assembler(t *testing.T) {
	t.Parallel()
	two := []schema.RawCall{{ID: "a", Name: "grep", Args: `{"p":1}`}, {ID: "b", Name: "read", Args: `{"q":2}`}}
	cases := []struct {
		name   string
		chunks [][]Piece
		want   []schema.RawCall // nil: ambiguous
	}{
		{"out of order indexes", [][]Piece{{{Index: at(1), ID: "b", Name: "read", Args: Str(`{"q":2}`)}}, {{Index: at(0), ID: "a", Name: "grep", Args: Str(`{"p":1}`)}}}, two},
		{"id after the name", [][]Piece{{{Index: at(0), Name: "grep"}}, {{Index: at(0), ID: "a", Args: Str(`{"p":1}`)}}, {{Index: at(1), ID: "b"}}, {{Index: at(1), Name: "read", Args: Str(`{"q":2}`)}}}, two},
		{"name in pieces", [][]Piece{{{Index: at(0), ID: "a", Name: "gr"}}, {{Index: at(0), Name: "ep"}}, {{Index: at(0), Args: Str(`{"p":1}`)}}, {{Index: at(1), ID: "b", Name: "re"}}, {{Index: at(1), Name: "read", Args: Str(`{"q":2}`)}}}, two},
		{"header in every piece", [][]Piece{{{Index: at(0), ID: "a", Name: "grep", Args: Str(`{"p"`)}}, {{Index: at(0), ID: "a", Name: "grep", Args: Str(`:1}`)}}, {{Index: at(1), ID: "b", Name: "read", Args: Str(`{"q"`)}}, {{Index: at(1), Name: "read", Args: Str(`:2}`)}}}, two},
		{"pieces named by id", [][]Piece{{{ID: "a", Name: "grep"}, {ID: "b", Name: "read"}}, {{ID: "b", Args: Str(`{"q"`)}, {ID: "a", Args: Str(`{"p"`)}}, {{ID: "b", Args: Str(`:2}`)}, {ID: "a", Args: Str(`:1}`)}}}, two},
		{"no ids, one index", [][]Piece{{{Index: at(0), Name: "grep", Args: Str(`{"p":1}`)}, {Index: at(0), Name: "read", Args: Str(`{"q":2}`)}}}, []schema.RawCall{{Name: "grep", Args: `{"p":1}`}, {Name: "read", Args: `{"q":2}`}}},
		{"names only", [][]Piece{{{Name: "grep", Args: Str(`{"p":1}`)}}, {{Name: "grep", Args: Str(`{"p":1,"q":2}`)}}}, []schema.RawCall{{Name: "grep", Args: `{"p":1}`}, {Name: "grep", Args: `{"p":1,"q":2}`}}},
		{"A01 two calls without arguments", [][]Piece{{{Index: at(0), ID: "a", Name: "ping"}, {Index: at(1), ID: "b", Name: "ping"}}}, []schema.RawCall{{ID: "a", Name: "ping"}, {ID: "b", Name: "ping"}}},
		{"A01 the same, one index", [][]Piece{{{Index: at(0), ID: "a", Name: "ping"}}, {{Index: at(0), ID: "b", Name: "ping"}}}, []schema.RawCall{{ID: "a", Name: "ping"}, {ID: "b", Name: "ping"}}},
		{"A01 without arguments, then with", [][]Piece{{{ID: "a", Name: "ping"}}, {{ID: "b", Name: "read"}}, {{Args: Str(`{"q":2}`)}}}, []schema.RawCall{{ID: "a", Name: "ping"}, {ID: "b", Name: "read", Args: `{"q":2}`}}},
		{"A10 one id for two calls", [][]Piece{{{Index: at(0), ID: "grep:3", Name: "grep", Args: Str(`{"p":1}`)}, {Index: at(1), ID: "grep:3", Name: "grep", Args: Str(`{"p":2}`)}}}, []schema.RawCall{{ID: "grep:3", Name: "grep", Args: `{"p":1}`}, {ID: "grep:3", Name: "grep", Args: `{"p":2}`}}},
		{"A10 one id for two calls, no index", [][]Piece{{{ID: "grep:3", Name: "grep", Args: Str(`{"p":1}`)}, {ID: "grep:3", Name: "grep", Args: Str(`{"p":2}`)}}}, []schema.RawCall{{ID: "grep:3", Name: "grep", Args: `{"p":1}`}, {ID: "grep:3", Name: "grep", Args: `{"p":2}`}}},
		{"blank pieces say nothing", [][]Piece{{{}}, {{Index: at(0), ID: "a", Name: "ping"}}, {{}, {Args: Str(" ")}}}, []schema.RawCall{{ID: "a", Name: "ping"}}},
		{"two partial calls by name", [][]Piece{{{Name: "grep", Args: Str(`{"p`)}}, {{Name: "read", Args: Str(`{"q":2}`)}}}, nil},
		{"the id of one, the index of another", [][]Piece{{{Index: at(0), ID: "a", Name: "grep"}, {Index: at(1), ID: "b", Name: "read"}}, {{Index: at(1), ID: "a", Args: Str(`{}`)}}}, nil},
		{"a new id after the end", [][]Piece{{{Index: at(0), ID: "a", Name: "grep", Args: Str(`{}`)}}, {{Index: at(0), ID: "c", Args: Str(`{"q":2}`)}}}, nil},
		{"the same header again", [][]Piece{{{Name: "ping"}}, {{Name: "ping"}}}, nil},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got, err := assemble(c.chunks...)
			if c.want == nil {
				if !errors.Is(err, ErrAmbiguous) {
					t.Fatalf("got %v, %v; want ErrAmbiguous", got, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, got); d != "" {
				t.Errorf("calls (-want +got):\n%s", d)
			}
		})
	}
}

func assemble(chunks ...[]Piece) ([]schema.RawCall, error) {
	var a Assembler
	for _, c := range chunks {
		if err := a.Chunk(c...); err != nil {
			return nil, err
		}
	}
	return a.Calls()
}

// FuzzA23Split: any split of the argument text over chunks, also inside a character, gives the same calls, whichever
// of the fields that name a call the endpoint repeats.
func FuzzA23Split(f *testing.F) {
	f.Add(`{"p":"caf\u00e9 🙂"}`, `{"q":[1,{}]}`, []byte{1, 2, 3, 200}, uint8(0))
	f.Add(`{}`, ``, []byte{}, uint8(1))
	f.Add(`{"{\"":"{"}`, `{"a":{"a":{}}}`, []byte{1, 1, 1, 1, 1}, uint8(2))
	f.Add(`[1,1]`, `11`, []byte{1, 1}, uint8(3))
	f.Fuzz(func(t *testing.T, one, two string, cuts []byte, mode uint8) {
		for _, s := range []string{one, two} {
			if s != "" && !json.Valid([]byte(s)) || !utf8.ValidString(s) {
				t.Skip("not the arguments of a call")
			}
		}
		want := []schema.RawCall{{ID: "a", Name: "x", Args: one}, {ID: "b", Name: "y", Args: two}}
		got, err := assemble(chunks(want, cuts, mode)...)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got); d != "" {
			t.Errorf("calls (-want +got):\n%s", d)
		}
	})
}

// chunks cuts each call's arguments at the given lengths.
func chunks(calls []schema.RawCall, cuts []byte, mode uint8) (out [][]Piece) {
	for i, c := range calls {
		out = append(out, []Piece{{Index: at(i), ID: c.ID, Name: c.Name}})
		rest := c.Args
		for _, n := range append(cuts, 255) {
			n := min(int(n), len(rest))
			p := Piece{Index: at(i), Args: Str(rest[:n])}
			if mode&1 != 0 {
				p.ID = c.ID
			}
			if mode&2 != 0 && mode&1 != 0 {
				p.Index = nil
			}
			out = append(out, []Piece{p})
			rest = rest[n:]
		}
		if rest != "" {
			out = append(out, []Piece{{Index: at(i), Args: Str(rest)}})
		}
	}
	return out
}

// FuzzAssembler: whatever a stream sends, the assembler neither crashes nor gives text that is not UTF-8.
func FuzzAssembler(f *testing.F) {
	f.Add([]byte(`[[{"Index":0,"ID":"a","Name":"x"},{"Args":"{"}],[{"Args":"}"}]]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var chunks [][]Piece
		if json.Unmarshal(data, &chunks) != nil {
			t.Skip("not a stream")
		}
		calls, _ := assemble(chunks...)
		for _, c := range calls {
			if !utf8.ValidString(c.Args) {
				t.Errorf("arguments %q", c.Args)
			}
		}
	})
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	var a Assembler
	piece := make(Str, 16<<20)
	var err error
	for range 5 {
		err = a.Chunk(Piece{Index: at(0), ID: "a", Name: "x", Args: piece})
	}
	if _, got := a.Calls(); err == nil || got == nil {
		t.Error("80 MiB of arguments were taken")
	}
}

func BenchmarkAssembler(b *testing.B) {
	piece := []Piece{{Index: at(0), Args: Str(`{"a":1} `)}}
	b.ReportAllocs()
	for b.Loop() {
		var a Assembler
		_ = a.Chunk(Piece{Index: at(0), ID: "a", Name: "x"})
		for range 1000 {
			_ = a.Chunk(piece...)
		}
		_, _ = a.Calls()
	}
}
