package schema

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// hostile has bytes that have brought decoders down, by name.
func hostile() map[string][]byte {
	deep := func(open string, n int) []byte { return []byte(strings.Repeat(open, n)) }
	calls := append([]byte{0x81, 0xa5}, "calls"...)
	listOf := func(n int, element byte) []byte {
		b := append(bytes.Clone(calls), 0xdd, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
		return append(b, bytes.Repeat([]byte{element}, n)...)
	}
	return map[string][]byte{
		"nothing":                     {},
		"a list of 4 billion":         {0xdd, 0xff, 0xff, 0xff, 0xff},
		"a map of 4 billion":          {0xdf, 0xff, 0xff, 0xff, 0xff},
		"a text of 4 GiB":             {0x81, 0xdb, 0xff, 0xff, 0xff, 0xff},
		"lineage of 4 billion":        append(append([]byte{0x81, 0xa7}, "lineage"...), 0xdd, 0xff, 0xff, 0xff, 0xff),
		"scopes of 4 billion":         append(append([]byte{0x81, 0xa9}, "principal\x81\xa6scopes"...), 0xdd, 0xff, 0xff, 0xff, 0xff),
		"calls of 4 billion":          append(bytes.Clone(calls), 0xdd, 0xff, 0xff, 0xff, 0xff),
		"a million null calls":        listOf(1<<20, 0xc0),
		"a million empty calls":       listOf(1<<20, 0x80),
		"a million empty calls, JSON": []byte(`{"calls":[` + strings.Repeat("{},", 1<<20) + `{}]}`),
		"a text where a number is":    append(append([]byte{0x81, 0xa4}, "turn"...), 0xa1, 'x'),
		"a map where a text is":       append(append([]byte{0x81, 0xa3}, "run"...), 0x80),
		"a number too large":          append(append([]byte{0x81, 0xa4}, "turn"...), 0xcf, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff),
		"a key that is a number":      {0x81, 0x01, 0x01},
		"the byte that is never used": {0x81, 0xc1, 0xc1},
		"an extension":                {0x81, 0xa1, 'v', 0xc7, 0xff, 0x00},
		"deep lists":                  append([]byte{0x81, 0xa1, 'x'}, deep("\x91", 1<<20)...),
		"deep lists that end":         append(append([]byte{0x81, 0xa1, 'x'}, deep("\x91", 90_000)...), 0xc0),
		"deep maps that end":          append(append([]byte{0x81, 0xa1, 'x'}, deep("\x81\xa1x", 90_000)...), 0xc0),
		"deep lists, JSON":            append([]byte(`{"x":`), deep("[", 1<<20)...),
		"deep objects, JSON":          deep(`{"x":`, 1<<18),
		"two values":                  {0x80, 0x80},
		"a list":                      {0x90},
		"bare text":                   []byte("hello"),
		"JSON list":                   []byte("[]"),
		"JSON cut":                    []byte(`{"run":"`),
		"two JSON values":             []byte("{}{}"),
	}
}

func TestHostileBytes(t *testing.T) {
	for name, data := range hostile() {
		t.Run(name, func(t *testing.T) {
			for kind, v := range payloads() {
				got := empty(v)
				spent := allocated(func() {
					if err := Decode(data, got); err != nil && !errors.Is(err, ErrPayload) {
						t.Errorf("%s: %v does not wrap ErrPayload", kind, err)
					}
				})
				if bound := uint64(32<<20 + 8*len(data)); spent > bound {
					t.Errorf("%s: %d MiB for %d bytes", kind, spent>>20, len(data))
				}
			}
			if _, err := DecodeCall(data); !errors.Is(err, ErrPayload) {
				t.Errorf("call: %v", err)
			}
		})
	}
}

// allocated returns the bytes that f allocates; other goroutines must rest.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

func TestDecodeHostileIsRefused(t *testing.T) {
	t.Parallel()
	all := hostile()
	for _, name := range []string{
		"a list of 4 billion", "a map of 4 billion", "calls of 4 billion", "a million null calls", "a million empty calls",
		"a million empty calls, JSON", "deep lists", "deep lists, JSON", "two values", "a list", "bare text", "JSON list", "two JSON values", "nothing",
	} {
		var turn Turn
		if err := Decode(all[name], &turn); !errors.Is(err, ErrPayload) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// seeds adds all fixtures and all hostile bytes that are small enough to mutate.
func seeds(f *testing.F) {
	files, err := filepath.Glob("testdata/*.*")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		if packed, err := hex.DecodeString(strings.ReplaceAll(string(data), "\n", "")); err == nil {
			data = packed
		}
		f.Add(data)
	}
	for _, data := range hostile() {
		if len(data) < 1<<12 {
			f.Add(data)
		}
	}
}

// FuzzDecode: whatever the bytes, every payload type decodes or errs, and what decoded survives a round trip.
func FuzzDecode(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, v := range payloads() {
			got := empty(v)
			if err := Decode(data, got); err != nil {
				continue
			}
			packed, err := Encode(got)
			if err != nil {
				t.Fatalf("%s: encode what was decoded: %v", name, err)
			}
			again := empty(v)
			if err := Decode(packed, again); err != nil {
				t.Fatalf("%s: decode %x: %v", name, packed, err)
			}
			if diff := cmp.Diff(got, again, cmpopts.EquateEmpty(), cmpopts.EquateNaNs()); diff != "" {
				t.Fatalf("%s round trip (-want +got):\n%s", name, diff)
			}
		}
	})
}

func FuzzDecodeCall(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := DecodeCall(data)
		if err != nil {
			if !errors.Is(err, ErrPayload) {
				t.Fatalf("%v does not wrap ErrPayload", err)
			}
			return
		}
		if !ValidID(c.Run) || c.Turn < 0 || c.Index < 0 || c.Tool == "" || c.Args == "" {
			t.Fatalf("incomplete call %+v", c)
		}
		if canon, _, bad := Canonical(string(c.Args)); bad == nil && !json.Valid([]byte(canon)) {
			t.Fatalf("canonical %q", canon)
		}
	})
}

func FuzzDecodeResult(f *testing.F) {
	seeds(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := DecodeResult(data)
		if err == nil && (r.Output != CleanText(r.Output) || r.Error != nil && r.Error.Message != CleanText(r.Error.Message)) {
			t.Fatalf("unclean text in %+v", r)
		}
	})
}

// FuzzUnpack holds the decoder by hand against the reflective one: what both take, they read alike.
func FuzzUnpack(f *testing.F) {
	seeds(f)
	type plainCall Call
	type plainResult Result
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || IsJSON(data) {
			return
		}
		var c Call
		var c2 plainCall
		if decodeMsgpack(data, &c) == nil && decodeMsgpack(data, &c2) == nil {
			compare(t, c, Call(c2))
		}
		var r Result
		var r2 plainResult
		if decodeMsgpack(data, &r) == nil && decodeMsgpack(data, &r2) == nil {
			compare(t, r, Result(r2))
		}
	})
}

func compare(t *testing.T, got, want any) {
	t.Helper()
	if diff := cmp.Diff(fmt.Sprintf("%+v", want), fmt.Sprintf("%+v", got)); diff != "" {
		t.Fatalf("(-reflective +by hand):\n%s", diff)
	}
}
