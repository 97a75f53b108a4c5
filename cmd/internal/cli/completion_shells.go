package cli

import (
	"fmt"
	"strings"
)

// bashScript completes in bash: it follows the words to the command they name and offers what may come next.
func bashScript(program string, all []completed) string {
	var b strings.Builder
	fn := "_" + identifier(program)
	fmt.Fprintf(&b, "# bash completion for %s\n%s() {\n", program, fn)
	b.WriteString(`    local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}" path="" word
    for word in "${COMP_WORDS[@]:1:COMP_CWORD-1}"; do
        case "$path/$word" in
`)
	for _, c := range all[1:] {
		fmt.Fprintf(&b, "            %q) path=%q ;;\n", step(c.path), c.path)
	}
	b.WriteString("        esac\n    done\n    COMPREPLY=()\n    case \"$path:$prev\" in\n")
	for _, c := range all {
		for _, f := range c.flags {
			if len(f.values) > 0 {
				fmt.Fprintf(&b, "        %q) COMPREPLY=($(compgen -W %q -- \"$cur\")); return ;;\n", c.path+":"+f.text, strings.Join(f.values, " "))
			} else if f.takesValue {
				fmt.Fprintf(&b, "        %q) COMPREPLY=($(compgen -f -- \"$cur\")); return ;;\n", c.path+":"+f.text)
			}
		}
	}
	b.WriteString("    esac\n    case \"$path\" in\n")
	for _, c := range all {
		words := append(append(texts(c.commands), c.values...), texts(c.flags)...)
		fmt.Fprintf(&b, "        %q) COMPREPLY=($(compgen -W %q -- \"$cur\"))", c.path, strings.Join(words, " "))
		if c.files {
			b.WriteString("; [[ \"$cur\" == -* ]] || COMPREPLY+=($(compgen -f -- \"$cur\"))")
		}
		b.WriteString(" ;;\n")
	}
	fmt.Fprintf(&b, "    esac\n}\ncomplete -o filenames -F %s %s\n", fn, program)
	return b.String()
}

// zshScript completes in zsh, with the meaning of each word.
func zshScript(program string, all []completed) string {
	var b strings.Builder
	fn := "_" + identifier(program)
	fmt.Fprintf(&b, "#compdef %s\n%s() {\n", program, fn)
	b.WriteString(`    local path_="" word
    local -a offers
    for word in "${(@)words[2,CURRENT-1]}"; do
        case "$path_/$word" in
`)
	for _, c := range all[1:] {
		fmt.Fprintf(&b, "            %q) path_=%q ;;\n", step(c.path), c.path)
	}
	b.WriteString("        esac\n    done\n    case \"$path_\" in\n")
	for _, c := range all {
		fmt.Fprintf(&b, "        %q)\n            offers=(", c.path)
		for _, v := range c.values {
			fmt.Fprintf(&b, "'%s' ", v)
		}
		for _, w := range append(append([]word{}, c.commands...), c.flags...) {
			fmt.Fprintf(&b, "'%s:%s' ", w.text, oneLine(w.help))
		}
		b.WriteString(")\n            _describe 'words' offers\n")
		if c.files || takesValues(c.flags) {
			b.WriteString("            _files\n")
		}
		b.WriteString("            ;;\n")
	}
	fmt.Fprintf(&b, "    esac\n}\ncompdef %s %s\n", fn, program)
	return b.String()
}

// fishScript completes in fish.
func fishScript(program string, all []completed) string {
	var b strings.Builder
	for _, c := range all {
		when := fishCondition(c)
		for _, w := range c.commands {
			fmt.Fprintf(&b, "complete -c %s -f -n '%s' -a %s -d '%s'\n", program, when, w.text, oneLine(w.help))
		}
		for _, v := range c.values {
			fmt.Fprintf(&b, "complete -c %s -f -n '%s' -a %s\n", program, when, v)
		}
		for _, f := range c.flags {
			fmt.Fprintf(&b, "complete -c %s -n '%s' -l %s -d '%s'", program, when, strings.TrimPrefix(f.text, "--"), oneLine(f.help))
			if len(f.values) > 0 {
				fmt.Fprintf(&b, " -x -a '%s'", strings.Join(f.values, " "))
			} else if f.takesValue {
				b.WriteString(" -r")
			}
			b.WriteString("\n")
		}
	}
	return b.String()
}

// fishCondition says when the words of c are offered: its path has been written, and none of its commands.
func fishCondition(c completed) string {
	var parts []string
	for _, w := range strings.Fields(c.path) {
		parts = append(parts, "__fish_seen_subcommand_from "+w)
	}
	if len(c.commands) > 0 {
		parts = append(parts, "not __fish_seen_subcommand_from "+strings.Join(texts(c.commands), " "))
	}
	if len(parts) == 0 {
		return "true"
	}
	return strings.Join(parts, "; and ")
}

// step is what the walk along the words sees when it reaches a command: the path before it, a slash, its name.
func step(path string) string {
	i := strings.LastIndex(path, " ")
	if i < 0 {
		return "/" + path
	}
	return path[:i] + "/" + path[i+1:]
}

func takesValues(flags []word) bool {
	for _, f := range flags {
		if f.takesValue {
			return true
		}
	}
	return false
}

func identifier(program string) string { return strings.ReplaceAll(program, "-", "_") }
