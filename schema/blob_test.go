package schema

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestB15References(t *testing.T) {
	t.Parallel()
	want := Blob{Run: "r-1", Name: Digest([]byte("x")), Size: 300_000, Turn: 2, Index: 1}
	packed, err := Encode(&Reference{Ref: want})
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.Marshal(&Reference{Ref: want})
	if err != nil {
		t.Fatal(err)
	}
	for _, data := range [][]byte{packed, text, append([]byte(" \n"), text...)} {
		if got, ok := ParseReference(data); !ok || got != want {
			t.Errorf("%q: %+v, %t", data, got, ok)
		}
		if _, err := DecodeCall(data); err == nil {
			t.Errorf("%q is a call to a program that knows no references", data)
		}
	}
	for name, data := range map[string][]byte{
		"nothing":       nil,
		"no map":        {0xc0},
		"a call":        encoded(t, &Call{Run: "r", Turn: 1, Tool: "ref", Args: `{"ref":{}}`}),
		"a view":        encoded(t, &View{Text: "ref"}),
		"two keys":      encoded(t, &Sent{}),
		"bad run":       encoded(t, &Reference{Ref: Blob{Run: "a.b", Name: want.Name}}),
		"bad digest":    encoded(t, &Reference{Ref: Blob{Run: "r", Name: "../" + want.Name[3:]}}),
		"upper case":    encoded(t, &Reference{Ref: Blob{Run: "r", Name: strings.ToUpper(want.Name)}}),
		"version 2":     []byte(`{"v":2,"ref":{"run":"r","blob":"` + want.Name + `"}}`),
		"hostile":       {0x81, 0xa3, 'r', 'e', 'f', 0xdf, 0xff, 0xff, 0xff, 0xff},
		"more than 512": append(text[:len(text):len(text)], []byte(strings.Repeat(" ", 512))...),
	} {
		if got, ok := ParseReference(data); ok {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

func encoded(t *testing.T, p Encodable) []byte {
	t.Helper()
	data, err := Encode(p)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// TestA22HeadTail: whatever the bound, both ends are whole characters and together no longer than it.
func TestA22HeadTail(t *testing.T) {
	t.Parallel()
	s := strings.Repeat("a🙂é", 20)
	for keep := range len(s) {
		head, tail := HeadTail(s, keep)
		if !utf8.ValidString(head) || !utf8.ValidString(tail) || !strings.HasPrefix(s, head) || !strings.HasSuffix(s, tail) ||
			len(head)+len(tail) > keep || keep-len(head)-len(tail) > 2*(utf8.UTFMax-1) {
			t.Fatalf("keep %d: %q and %q", keep, head, tail)
		}
	}
}

func TestC07OmittedMark(t *testing.T) {
	t.Parallel()
	c := &Call{Turn: 3, Index: 1}
	for kept, want := range map[int64]string{
		0:   "\n[... 60 of 100 bytes left out here; they are not kept ...]\n",
		100: "\n[... 60 of 100 bytes left out here; read_output {\"call\":\"3.1\",\"offset\":20} reads them ...]\n",
		50:  "\n[... 60 of 100 bytes left out here; read_output {\"call\":\"3.1\",\"offset\":20} reads them up to byte 50, the rest is not kept ...]\n",
	} {
		if got := OmittedMark(c, 20, 60, 100, kept); got != want {
			t.Errorf("%d kept: %q", kept, got)
		}
	}
}
