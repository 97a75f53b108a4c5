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
	for k := range topKeys(object) {
		if slices.Contains(keys, k) {
			return k, true
		}
	}
	return "", false
}

// topKeys yields the keys at the top of an object, in its order. The text is valid JSON; it need not be canonical, since
// guards may change arguments.
func topKeys(object schema.JSONText) iter.Seq[string] {
	return func(yield func(string) bool) {
		text := string(object)
		depth, key := 0, false // key: a string that comes now is one
		for i := 0; i < len(text); i++ {
			switch text[i] {
			case '{', '[':
				depth++
				key = depth == 1
			case '}', ']':
				depth--
			case ',':
				key = depth == 1
			case '"':
				end := endOfString(text, i)
				if key && depth == 1 && !yield(unquoted(text[i:end])) {
					return
				}
				key = false
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
	if !strings.ContainsRune(quoted, '\\') {
		return strings.Trim(quoted, `"`)
	}
	var s string
	_ = json.Unmarshal([]byte(quoted), &s) // of what is no string: ""
	return s
}
