package schema

import "testing"

var benchTool = &Tool{Name: "reserve", Parameters: `{"type":"object","properties":{
	"path":{"type":"string","minLength":1},"pattern":{"type":"string"},
	"options":{"type":"object","properties":{"caseSensitive":{"type":"boolean"},"maxResults":{"type":"integer","minimum":1},"context":{"type":"array","items":{"type":"integer"}}}},
	"reservation":{"type":"object","properties":{"user":{"type":"string"},"flight":{"type":"string"},"total":{"type":"number"},"insurance":{"enum":["yes","no"]},
	"passengers":{"type":"array","items":{"type":"object","properties":{"first_name":{"type":"string"},"last_name":{"type":"string"},"dob":{"type":"string"}},"required":["first_name","last_name"]}}},"required":["user","flight"]},
	"note":{"type":"string"}},"required":["path"],"additionalProperties":false}`}

func BenchmarkCheck(b *testing.B) {
	simple := &Tool{Name: "read_file", Parameters: `{"type":"object","properties":{"path":{"type":"string","minLength":1},"limit":{"type":"integer"}},"required":["path"]}`}
	for _, c := range []struct {
		name string
		tool *Tool
		args JSONText
	}{
		{"300 bytes, any object", &Tool{}, benchArgs},
		{"simple", simple, `{"path":"internal/server/handler.go","limit":20}`},
		{"300 bytes, nested", benchTool, benchArgs},
		{"bad", simple, `{"file_path":"internal/server/handler.go","limit":"20"}`},
	} {
		b.Run(c.name, func(b *testing.B) {
			v := NewValidator()
			b.ReportAllocs()
			for b.Loop() {
				v.Check(c.tool, c.args)
			}
		})
	}
}

func BenchmarkCheckTool(b *testing.B) {
	tool := *benchTool
	tool.Description = "Reserves."
	b.ReportAllocs()
	for b.Loop() {
		if err := CheckTool(&tool); err != nil {
			b.Fatal(err)
		}
	}
}
