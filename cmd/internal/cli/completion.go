package cli

import (
	"io"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

// CompletionCmd is the command completion.
type CompletionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

// Help is the command's long help.
func (*CompletionCmd) Help() string {
	return `Load it where your shell starts, such as:

  source <(PROGRAM completion bash)             in ~/.bashrc
  source <(PROGRAM completion zsh)              in ~/.zshrc, after compinit
  PROGRAM completion fish | source              in ~/.config/fish/config.fish`
}

// Run prints the script, made from the grammar of the program.
func (c *CompletionCmd) Run(app *App) error {
	write := map[string]func(string, []completed) string{"bash": bashScript, "zsh": zshScript, "fish": fishScript}[c.Shell]
	_, err := io.WriteString(app.Out, write(app.Program, completions(app.model)))
	return err
}

// completed is a command and what may follow it.
type completed struct {
	path     string // words from the program on, without it; empty: the program itself
	commands []word
	flags    []word
	files    bool // its arguments are files
	values   []string
}

// word is something to complete, with its meaning.
type word struct {
	text, help string
	takesValue bool
	values     []string
}

// completions lists the visible commands, parents first.
func completions(app *kong.Application) []completed {
	var all []completed
	var visit func(n *kong.Node, path string)
	visit = func(n *kong.Node, path string) {
		c := completed{path: path, flags: flagWords(n)}
		for _, p := range n.Positional {
			c.values = append(c.values, enum(p)...)
			c.files = c.files || strings.HasSuffix(p.Tag.Type, "file") || p.Tag.Type == "path"
		}
		children := slices.DeleteFunc(slices.Clone(n.Children), func(n *kong.Node) bool { return n.Hidden })
		for _, child := range children {
			c.commands = append(c.commands, word{text: child.Name, help: child.Help})
		}
		all = append(all, c)
		for _, child := range children {
			visit(child, strings.TrimPrefix(path+" "+child.Name, " "))
		}
	}
	visit(app.Node, "")
	return all
}

func flagWords(n *kong.Node) []word {
	var words []word
	for _, group := range n.AllFlags(true) {
		for _, f := range group {
			words = append(words, word{
				text: "--" + f.Name, help: f.Help, takesValue: !f.IsBool() && !f.IsCounter(), values: enum(f.Value),
			})
		}
	}
	return words
}

func enum(v *kong.Value) []string {
	if v.Enum == "" {
		return nil
	}
	return v.EnumSlice()
}

func texts(words []word) []string {
	list := make([]string, len(words))
	for i, w := range words {
		list[i] = w.text
	}
	return list
}

// oneLine makes help fit into a quoted word of any shell.
func oneLine(help string) string {
	return strings.NewReplacer("'", "", `"`, "", "`", "", "\\", "", "$", "", "\n", " ", ":", ",", "[", "(", "]", ")").Replace(help)
}
