package rules

import (
	"encoding/json"
	"iter"
	"slices"
	"strings"

	"github.com/jetcrew/jetcrew/schema"
)

// findKey returns the first of the keys that the object has at its top.
func findKey(object schema.JSONText, keys []string) (string, bool) {
	for k := range topFields(string(object)) {
		if slices.ContainsFunc(keys, func(bound string) bool { return strings.EqualFold(bound, k) }) {
			return k, true
		}
	}
	return "", false
}

// topFields yields the fields at the top of an object, in its order: keys, and values as JSON text. The object is valid
// JSON; it need not be canonical, since guards may change arguments.
func topFields(object string) iter.Seq2[string, string] {
	return func(yield func(key, value string) bool) {
		depth, key := 0, ""
		from := 0 // where the value of the key begins; 0: the key comes first
		for i := 0; i < len(object); i++ {
			switch object[i] {
			case '{', '[':
				depth++
			case '}', ']':
				depth--
				if depth == 0 && from > 0 {
					yield(key, strings.TrimSpace(object[from:i]))
					return
				}
			case ',':
				if depth == 1 && !yield(key, strings.TrimSpace(object[from:i])) {
					return
				}
				if depth == 1 {
					from = 0
				}
			case ':':
				if depth == 1 {
					from = i + 1
				}
			case '"':
				end := endOfString(object, i)
				if depth == 1 && from == 0 {
					key = unquoted(object[i:end])
				}
				i = end - 1
			}
		}
	}
}

// endOfString returns where the JSON string ends that begins at i.
func endOfString(text string, i int) int {
	for i++; i < len(text); i++ {
		switch text[i] {
		case '\\':
			i++
		case '"':
			return i + 1
		}
	}
	return len(text)
}

// unquoted is the value of a JSON string.
func unquoted(quoted string) string {
	if strings.IndexByte(quoted, '\\') < 0 {
		return quoted[1 : len(quoted)-1]
	}
	return unescaped(quoted)
}

func unescaped(quoted string) (s string) {
	_ = json.Unmarshal([]byte(quoted), &s) // of what is no string: ""
	return s
}
