package schema

import (
	"encoding/json"
	"iter"
	"strings"
)

// Fields yields the fields at the top of a JSON object in their order: names, and values as JSON text. The object need not be
// canonical, since guards may change arguments, so a name may come twice. Of a text that is no JSON object it yields
// nothing, or what looks like fields: who does not know checks first.
func Fields(object JSONText) iter.Seq2[string, JSONText] {
	return func(yield func(name string, value JSONText) bool) {
		text := strings.TrimSpace(string(object))
		if !strings.HasPrefix(text, "{") {
			return
		}
		depth, name := 0, ""
		from := 0 // where the value of the name begins; 0: the name comes first
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '{', '[':
				depth++
			case '}', ']':
				if depth--; depth == 0 {
					if from > 0 {
						yield(name, trimmed(text[from:i]))
					}
					return
				}
			case ',':
				if depth != 1 {
					continue
				}
				if from > 0 && !yield(name, trimmed(text[from:i])) {
					return
				}
				from = 0
			case ':':
				if depth == 1 && from == 0 {
					from = i + 1
				}
			case '"':
				end := StringEnd(text, i)
				if depth == 1 && from == 0 {
					name = Unquote(text[i:end])
				}
				i = end - 1
			}
		}
	}
}

func trimmed(text string) JSONText { return JSONText(strings.TrimSpace(text)) }

// StringEnd returns where the JSON string ends that begins with the quote at from: behind its other quote, or at the end
// of the text if there is none.
func StringEnd(text string, from int) int {
	for i := from + 1; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// Unquote returns what a JSON string means. Of what is none it returns "".
func Unquote(quoted string) string {
	if strings.IndexByte(quoted, '\\') < 0 && len(quoted) >= len(`""`) {
		return quoted[1 : len(quoted)-1]
	}
	return unescaped(quoted)
}

// unescaped stands apart, or the value of every string would be on the heap.
func unescaped(quoted string) (s string) {
	_ = json.Unmarshal([]byte(quoted), &s) // of what is no string: ""
	return s
}
