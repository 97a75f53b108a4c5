package schema

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// value says what was expected of the value that ve is about, and what it is.
func (e *explainer) value(ve *jsonschema.ValidationError) string {
	got := e.instance(ve.InstanceLocation)
	switch k := ve.ErrorKind.(type) {
	case *kind.Type:
		return e.typed(ve, k.Want)
	case *kind.Const:
		return "expected " + display(k.Want) + ", got " + display(got)
	case *kind.Enum:
		return "expected " + oneOf(k.Want) + ", got " + display(got) + meant(got, k.Want)
	case *kind.Format:
		return "expected a string of format " + Cut(k.Want, maxQuoted) + ", got " + display(got)
	case *kind.Pattern:
		return pattern(k)
	case *kind.FalseSchema:
		return "not allowed here"
	case *kind.Not:
		return "has a form that is excluded"
	case *kind.PropertyNames:
		return "the property name " + quoted(k.Property) + " is not allowed"
	}
	if text := sized(ve.ErrorKind); text != "" {
		return text
	}
	if text := ranged(ve.ErrorKind); text != "" {
		return text + ", got " + display(got)
	}
	return "does not fit the tool's schema"
}

// typed says that a value has the wrong type. A string that holds what was wanted is called that: models tend to
// encode a nested value twice, and it is theirs to send it right, since what was authorised must be what runs.
func (e *explainer) typed(ve *jsonschema.ValidationError, want []string) string {
	got := e.instance(ve.InstanceLocation)
	text := "expected " + strings.Join(want, " or ") + ", got " + kindOf(got)
	if n, ok := got.(json.Number); ok {
		return text + " " + display(n)
	}
	s, ok := got.(string)
	if !ok {
		return text
	}
	for _, w := range want {
		if holding(s) == " holding "+w {
			return text + " holding JSON of the " + w + ": send the " + w + " itself"
		}
	}
	return text + " " + display(got)
}

func pattern(k *kind.Pattern) string {
	if strings.TrimSpace(k.Got) == "" && k.Want == `\S` {
		return "must not be blank"
	}
	return "expected a string that matches " + Cut(k.Want, 2*maxQuoted) + ", got " + display(k.Got)
}

func sized(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.MinLength:
		if k.Got == 0 {
			return "must not be empty"
		}
		return fmt.Sprintf("expected at least %d characters, got %d", k.Want, k.Got)
	case *kind.MaxLength:
		return fmt.Sprintf("expected at most %d characters, got %d", k.Want, k.Got)
	case *kind.MinItems:
		return fmt.Sprintf("expected at least %d elements, got %d", k.Want, k.Got)
	case *kind.MaxItems:
		return fmt.Sprintf("expected at most %d elements, got %d", k.Want, k.Got)
	case *kind.AdditionalItems:
		return fmt.Sprintf("has %d elements too many", k.Count)
	case *kind.MinProperties:
		return fmt.Sprintf("expected at least %d properties, got %d", k.Want, k.Got)
	case *kind.MaxProperties:
		return fmt.Sprintf("expected at most %d properties, got %d", k.Want, k.Got)
	case *kind.UniqueItems:
		return fmt.Sprintf("expected different elements, but %d and %d are equal", k.Duplicates[0], k.Duplicates[1])
	case *kind.Contains:
		return "none of the elements is of the kind that is required"
	case *kind.MinContains:
		return fmt.Sprintf("expected at least %d elements of the required kind, got %d", k.Want, len(k.Got))
	case *kind.MaxContains:
		return fmt.Sprintf("expected at most %d elements of the restricted kind, got %d", k.Want, len(k.Got))
	}
	return ""
}

func ranged(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Minimum:
		return "expected at least " + decimal(k.Want)
	case *kind.Maximum:
		return "expected at most " + decimal(k.Want)
	case *kind.ExclusiveMinimum:
		return "expected more than " + decimal(k.Want)
	case *kind.ExclusiveMaximum:
		return "expected less than " + decimal(k.Want)
	case *kind.MultipleOf:
		return "expected a multiple of " + decimal(k.Want)
	}
	return ""
}

// oneOf lists the values of an enum.
func oneOf(values []any) string {
	if len(values) == 1 {
		return display(values[0])
	}
	shown := make([]string, 0, maxListed)
	for _, v := range values[:min(len(values), maxListed)] {
		shown = append(shown, display(v))
	}
	text := "one of " + strings.Join(shown, ", ")
	if n := len(values) - maxListed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// meant suggests the value of a long enum that a wrong string is near to; a short one is listed anyway.
func meant(got any, values []any) string {
	s, ok := got.(string)
	if !ok || len(values) <= maxListed {
		return ""
	}
	var known []string
	for _, v := range values {
		if w, ok := v.(string); ok {
			known = append(known, w)
		}
	}
	if near := nearest(s, known, 1, true); len(near) > 0 {
		return ", did you mean " + quoted(near[0]) + "?"
	}
	return ""
}

// display shows a value in a message: scalars as JSON, cut; of arrays and objects only the type.
func display(v any) string {
	switch v := v.(type) {
	case string:
		return quoted(v)
	case json.Number:
		return Cut(v.String(), maxQuoted)
	case bool:
		return fmt.Sprint(v)
	}
	return kindOf(v)
}

// quoted shows a name or a string, cut. What it holds may be anything a model or a stranger's schema wrote.
func quoted(s string) string {
	return `"` + strings.ReplaceAll(CleanText(Cut(s, maxQuoted)), `"`, `\"`) + `"`
}

// list names some of names, quoted.
func list(names []string) string {
	shown := make([]string, 0, maxListed)
	for _, n := range names[:min(len(names), maxListed)] {
		shown = append(shown, quoted(n))
	}
	text := strings.Join(shown, ", ")
	if n := len(names) - maxListed; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}
