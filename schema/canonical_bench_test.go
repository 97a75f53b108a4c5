package schema

import (
	"encoding/json"
	"testing"
)

// benchArgs are arguments of 300 bytes such as models write.
const benchArgs = `{"path":"internal/server/handler.go","pattern":"func (s *Server) [A-Z]","options":{"caseSensitive":true,"maxResults":50,"context":[2,2]},"reservation":{"user":"mia_li_3668","flight":"HAT136","passengers":[{"first_name":"Mia","last_name":"Li","dob":"1990-04-05"}],"insurance":"no","total":385.50},"note":"ok"}`

const benchSpaced = `{"path": "internal/server/handler.go", "pattern": "func (s *Server) [A-Z]", "options": {"caseSensitive": true, "maxResults": 50, "context": [2, 2]}, "reservation": {"user": "mia_li_3668", "flight": "HAT136", "passengers": [{"first_name": "Mia", "last_name": "Li"}], "insurance": "no"}, "note": "caf\u00e9"}`

func BenchmarkCanonical(b *testing.B) {
	for name, args := range map[string]string{"canonical": benchArgs, "spaced": benchSpaced, "empty": ""} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(len(args)))
			for b.Loop() {
				if _, _, err := Canonical(args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkUnmarshalAny is what Canonical and the validator's parser are measured against.
func BenchmarkUnmarshalAny(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		var v any
		if err := json.Unmarshal([]byte(benchArgs), &v); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parseObject(benchArgs); err != nil {
			b.Fatal(err)
		}
	}
}
