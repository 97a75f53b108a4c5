package schema

import "testing"

// BenchmarkParseReference is what every call pays for the few that are references.
func BenchmarkParseReference(b *testing.B) {
	data, err := Encode(&Call{Run: NewID(), Turn: 1, Tool: "read_file", Args: `{"path":"go.mod"}`, Idempotent: true})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, ok := ParseReference(data); ok {
			b.Fatal("a call is no reference")
		}
	}
}
