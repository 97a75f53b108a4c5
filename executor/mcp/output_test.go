package mcp

import (
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

func TestOutput(t *testing.T) {
	t.Parallel()
	text := func(s string) sdk.Content { return &sdk.TextContent{Text: s} }
	for name, tt := range map[string]struct {
		res  sdk.CallToolResult
		want string
		err  string
	}{
		"nothing":                 {want: ""},
		"texts":                   {res: sdk.CallToolResult{Content: []sdk.Content{text("a"), text("b")}}, want: "a\nb"},
		"structured only":         {res: sdk.CallToolResult{StructuredContent: map[string]any{"a": "<b>"}}, want: `{"a":"<b>"}`},
		"structured and its text": {res: sdk.CallToolResult{Content: []sdk.Content{text(`{"n": 1.50}`)}, StructuredContent: map[string]any{"n": 1.5}}, want: `{"n": 1.50}`},
		"structured and more":     {res: sdk.CallToolResult{Content: []sdk.Content{text("two hits")}, StructuredContent: []any{1.0, 2.0}}, want: "two hits\n[1,2]"},
		"an image":                {res: sdk.CallToolResult{Content: []sdk.Content{&sdk.ImageContent{MIMEType: "image/png", Data: []byte("123")}}}, want: "[image, image/png, 3 bytes, not shown]"},
		"audio":                   {res: sdk.CallToolResult{Content: []sdk.Content{&sdk.AudioContent{MIMEType: "audio/wav"}}}, want: "[audio, audio/wav, 0 bytes, not shown]"},
		"a link":                  {res: sdk.CallToolResult{Content: []sdk.Content{&sdk.ResourceLink{Name: "x", URI: "file:///x"}}}, want: "[resource x: file:///x]"},
		"embedded text":           {res: sdk.CallToolResult{Content: []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "u", Text: "t"}}}}, want: "t"},
		"embedded bytes":          {res: sdk.CallToolResult{Content: []sdk.Content{&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "u", MIMEType: "m", Blob: []byte("1")}}}}, want: "[resource u, m, 1 bytes, not shown]"},
		"an error":                {res: sdk.CallToolResult{IsError: true, Content: []sdk.Content{text("no")}}, err: "no"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := output(&tt.res)
			if got != tt.want || (err == nil) != (tt.err == "") || err != nil && !strings.Contains(err.Error(), tt.err) {
				t.Errorf("got %q, %v; want %q, %q", got, err, tt.want, tt.err)
			}
		})
	}
}
