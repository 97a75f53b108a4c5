package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/jetcrew/jetcrew/schema"
)

func TestDocumentIsWhatTheCodeSays(t *testing.T) {
	t.Parallel()
	if err := run(true); err != nil {
		t.Error(err)
	}
}

func TestEveryPayloadIsInTheDocument(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	src, err := readSource(root)
	if err != nil {
		t.Fatal(err)
	}
	if len(src.payloads) < 15 {
		t.Errorf("only %d payloads found: %v", len(src.payloads), src.payloads)
	}
	for _, name := range src.payloads {
		if _, err := typeNamed(name); err != nil {
			t.Errorf("%s carries the version of the contract and is not documented", name)
		}
	}
	for _, typ := range types() {
		if !strings.Contains(prose, `{{payload "`+typ.String()+`"}}`) {
			t.Errorf("the document has no section of %s", typ)
		}
		for i := range typ.NumField() {
			if inner := structOf(typ.Field(i).Type); inner != nil && !typ.Field(i).Anonymous && !slices.Contains(types(), inner) {
				t.Errorf("%s holds %s, which is not documented", typ, inner)
			}
		}
	}
}

func structOf(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if t.Kind() == reflect.Struct {
		return t
	}
	return nil
}

func TestEveryKindHasARule(t *testing.T) {
	t.Parallel()
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	src, err := readSource(root)
	if err != nil {
		t.Fatal(err)
	}
	var ruled []string
	numbers := strings.NewReplacer("<n>", "1", "<i>", "0", "<k>", "2", "<s>", "9", "<d>", "3", "<queue>", "q")
	for _, r := range schema.Rules() {
		ruled = append(ruled, string(r.Kind))
		key, err := schema.ParseKey(numbers.Replace(r.Subject))
		if err != nil || key.Kind != r.Kind {
			t.Errorf("subject %q of %s: %v, %v", r.Subject, r.Kind, key, err)
		}
		if r.Payload != "" {
			if _, err := typeNamed("schema." + r.Payload); err != nil {
				t.Errorf("%s: %v", r.Kind, err)
			}
		}
	}
	for _, c := range src.consts["schema.Kind"] {
		if !slices.Contains(ruled, c.Value) {
			t.Errorf("kind %s has no rule", c.Value)
		}
	}
}

func TestDifferenceNamesItsLine(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, have, want, hint string }{
		{"equal", "a\nb", "a\nb", ""},
		{"changed", "a\nb", "a\nc", "line 2"},
		{"longer", "a\nb\nc", "a\nb", "3 lines, want 2"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			got := firstDifference([]byte(c.have), []byte(c.want))
			if (got == "") != (c.hint == "") || !strings.Contains(got, c.hint) {
				t.Errorf("got %q, want a hint of %q", got, c.hint)
			}
		})
	}
}
