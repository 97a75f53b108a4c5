package schema

import (
	"strings"
	"testing"
)

func benchCall() *Call {
	return &Call{
		Run: "01890a5d-ac96-774b-bcce-b302099a8057", Turn: 3, Index: 1, Label: "call_abc", Tool: "reserve",
		Args: benchArgs, Agent: "helper", Effect: EffectRead, Idempotent: true, TimeoutMS: 30_000,
		Digest: strings.Repeat("0f", 32),
	}
}

func BenchmarkEncode(b *testing.B) {
	call := benchCall()
	result := call.Done(benchArgs)
	for name, v := range map[string]Encodable{"call": call, "result": &result} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Encode(v); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	call := benchCall()
	result := call.Done(benchArgs)
	packed := func(v Encodable) []byte {
		data, err := Encode(v)
		if err != nil {
			b.Fatal(err)
		}
		return data
	}
	b.Run("call", func(b *testing.B) {
		data := packed(call)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeCall(data); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("result", func(b *testing.B) {
		data := packed(&result)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := DecodeResult(data); err != nil {
				b.Fatal(err)
			}
		}
	})
}
