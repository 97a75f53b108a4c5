package agentfile

// form is what a value may be, as a JSON Schema says it.
type form func() map[string]any

func ofType(name string) form { return func() map[string]any { return map[string]any{"type": name} } }

var (
	anyText = ofType("string")
	boolean = ofType("boolean")
	anyJSON = form(func() map[string]any { return map[string]any{"type": "object"} })
)

// filled is a text that is not empty.
func filled() map[string]any { return map[string]any{"type": "string", "minLength": 1} }

// duration is a text such as 1m30s.
func duration() map[string]any {
	return map[string]any{"type": "string", "pattern": `^\+?(\d+(\.\d*)?(ns|us|µs|μs|ms|s|m|h))+$|^0$`}
}

// either is one of several forms.
func either(forms ...form) form {
	return func() map[string]any {
		list := make([]any, len(forms))
		for i, f := range forms {
			list[i] = f()
		}
		return map[string]any{"anyOf": list}
	}
}

// one is one of several texts.
func one(values ...string) form {
	return func() map[string]any {
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		return map[string]any{"enum": list}
	}
}

// from is a whole number from least on; most below it is no bound.
func from(least, most int) form {
	return func() map[string]any {
		s := map[string]any{"type": "integer", "minimum": least}
		if most > least {
			s["maximum"] = most
		}
		return s
	}
}

// listOf is a list of values, each once.
func listOf(f form, least int) form {
	return func() map[string]any {
		s := map[string]any{"type": "array", "items": f()}
		if least > 0 {
			s["minItems"] = least
		}
		return s
	}
}

// object is a part of the file with a shape of its own.
func object(s *shape) form { return s.schema }

// texts is a mapping of names to texts.
func texts() map[string]any {
	return map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}
}
