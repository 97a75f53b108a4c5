package mcp

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// output is the text that the model reads of a result: the texts of its contents, a line for each content that is none,
// and the structured content where no text says the same. A result that is an error is an error.
func output(res *sdk.CallToolResult) (string, error) {
	if res.NeedsInput() {
		return "", errors.New("the tool asks for input while it runs, which nobody here can give")
	}
	text := contents(res.Content)
	if res.StructuredContent != nil && !says(res.Content, res.StructuredContent) {
		data, err := marshal(res.StructuredContent)
		if err != nil {
			return "", errors.New("the tool's structured result cannot be rendered as JSON")
		}
		text = strings.TrimPrefix(text+"\n"+data, "\n")
	}
	if res.IsError {
		return "", errors.New(text)
	}
	return text, nil
}

func contents(list []sdk.Content) string {
	parts := make([]string, 0, len(list))
	for _, c := range list {
		parts = append(parts, content(c))
	}
	return strings.Join(parts, "\n")
}

// content is what the model reads of one content.
func content(c sdk.Content) string {
	switch c := c.(type) {
	case *sdk.TextContent:
		return c.Text
	case *sdk.ImageContent:
		return fmt.Sprintf("[image, %s, %d bytes, not shown]", c.MIMEType, len(c.Data))
	case *sdk.AudioContent:
		return fmt.Sprintf("[audio, %s, %d bytes, not shown]", c.MIMEType, len(c.Data))
	case *sdk.ResourceLink:
		return fmt.Sprintf("[resource %s: %s]", c.Name, c.URI)
	case *sdk.EmbeddedResource:
		return embedded(c.Resource)
	}
	return "[content of a kind that is not known here]"
}

func embedded(r *sdk.ResourceContents) string {
	switch {
	case r == nil:
		return "[resource without contents]"
	case r.Blob != nil:
		return fmt.Sprintf("[resource %s, %s, %d bytes, not shown]", r.URI, r.MIMEType, len(r.Blob))
	}
	return r.Text
}

// says tells whether one of the texts is the JSON of the structured content, as servers are asked to give it for
// clients that read only text. The text is the better one: numbers in it have all their digits.
func says(list []sdk.Content, structured any) bool {
	for _, c := range list {
		var v any
		if t, ok := c.(*sdk.TextContent); ok && json.Unmarshal([]byte(t.Text), &v) == nil && reflect.DeepEqual(v, structured) {
			return true
		}
	}
	return false
}

func marshal(v any) (string, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return strings.TrimSuffix(b.String(), "\n"), err
}
