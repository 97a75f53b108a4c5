package agentfile

import (
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml/ast"
)

var (
	validVariable = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_.-]*$`)
	// placeholder is $${, which stands for ${, or ${ with what follows up to }, which is missing where the file forgot it.
	placeholder = regexp.MustCompile(`\$\$\{|\$\{([^{}\n]*)(\}?)`)
)

// instructions reads a text, as it is, or the texts of several roles with variables in them.
func (r *reader) instructions(f field) string {
	if _, ok := f.value.(ast.MapNode); !ok {
		return r.text(f)
	}
	fields := r.object(f.value, shapeInstructions())
	v := r.variables(fields[fieldVariables])
	var parts []string
	for _, name := range []string{fieldSystem, fieldDeveloper} {
		if s := v.put(r, fields[name]); strings.TrimSpace(s) != "" {
			parts = append(parts, s)
		}
	}
	v.checkUsed(r)
	if len(parts) == 2 {
		parts[0] = strings.TrimRight(parts[0], "\n")
	}
	return strings.Join(parts, "\n\n")
}

// variables are texts that others name as ${name}.
type variables struct {
	names  []string // in the order of the file
	fields map[string]field
	texts  map[string]string
	used   map[string]bool
}

func (r *reader) variables(f field) *variables {
	v := &variables{fields: map[string]field{}, texts: map[string]string{}, used: map[string]bool{}}
	if f.null() {
		return v
	}
	for _, f := range r.fields(f.value, fieldVariables) {
		if !validVariable.MatchString(f.name) {
			r.failAt(f.key, CodeVariableInvalid, "variable %q: want a letter, then letters, digits, '_', '.' and '-'", short(f.name))
			continue
		}
		v.names, v.fields[f.name], v.texts[f.name] = append(v.names, f.name), f, r.text(f)
	}
	return v
}

// put returns the text of f with the variables put in. What they stand for is not looked into again.
func (v *variables) put(r *reader, f field) string {
	text := r.text(f)
	var b strings.Builder
	from := 0
	for _, m := range placeholder.FindAllStringSubmatchIndex(text, -1) {
		b.WriteString(text[from:m[0]])
		b.WriteString(v.value(r, f, m))
		from = m[1]
	}
	b.WriteString(text[from:])
	return b.String()
}

// value is what stands in for a placeholder that was found at m.
func (v *variables) value(r *reader, f field, m []int) string {
	text := r.text(f)
	found := text[m[0]:m[1]]
	if found == "$${" {
		return "${"
	}
	name := text[m[2]:m[3]]
	value, ok := v.texts[name]
	switch {
	case m[4] == m[5] || !validVariable.MatchString(name):
		r.failIn(f, m[0], CodeVariableInvalid, "%s: %q: want ${name}; $${ stands for ${ itself", f.name, short(found))
	case !ok:
		r.failIn(f, m[0], CodeVariableUnknown, "%s: there is no variable %q%s", f.name, short(name), v.known(name))
	default:
		v.used[name] = true
		return value
	}
	return ""
}

func (v *variables) known(name string) string {
	if len(v.names) == 0 {
		return "; variables holds none"
	}
	return suggestAll(name, v.names)
}

// checkUsed refuses variables that no text names: what is declared has a meaning. One that holds no text is said once.
func (v *variables) checkUsed(r *reader) {
	for _, name := range slices.DeleteFunc(slices.Clone(v.names), func(n string) bool { return v.used[n] }) {
		r.failAt(v.fields[name].key, CodeVariableUnused, "variable %q: neither system nor developer names it", short(name))
	}
}
