package cli

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "rewrite the files in testdata")

// sample has everything that completion treats in its own way.
type sample struct {
	Common
	Run struct {
		File string `short:"f" type:"path" help:"A 'quoted' file: $HOME."`
		Mode string `enum:"fast,slow" default:"fast" help:"How."`
	} `cmd:"" help:"Run it."`
	Tools struct {
		List struct{} `cmd:"" help:"List them."`
	} `cmd:"" help:"Many."`
	Play struct {
		Files []string `arg:"" name:"file" type:"existingfile"`
	} `cmd:"" help:"Play files."`
	Completion CompletionCmd `cmd:"" help:"Complete."`
	Hidden     struct{}      `cmd:"" hidden:""`
}

func script(t *testing.T, shell string) string {
	t.Helper()
	parser, err := kong.New(&sample{}, kong.Name("my-tool"), kong.Vars{"version": "v", "program": "my-tool"})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := CompletionCmd{Shell: shell}
	if err := cmd.Run(&App{Program: "my-tool", Out: &out, model: parser.Model}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish"} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			got := script(t, shell)
			path := filepath.Join("testdata", "completion."+shell)
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(string(want), got); d != "" {
				t.Errorf("-update rewrites it:\n%s", d)
			}
			check(t, shell, path)
		})
	}
}

// check has the shell read the script without running it.
func check(t *testing.T, shell, path string) {
	t.Helper()
	if _, err := exec.LookPath(shell); err != nil {
		t.Logf("%s is not installed, so it has not read the script", shell)
		return
	}
	if out, err := exec.Command(shell, "-n", path).CombinedOutput(); err != nil {
		t.Errorf("%s: %v\n%s", shell, err, out)
	}
}

func TestBashCompletes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("bash is not installed")
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.jsonl"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]string{
		"my-tool":                "run tools play completion --help --verbose --version",
		"my-tool r":              "run",
		"my-tool tools":          "list --help --verbose --version",
		"my-tool completion":     "bash zsh fish --help --verbose --version",
		"my-tool run --mode":     "fast slow",
		"my-tool run --mode s":   "slow",
		"my-tool run --file":     "a.jsonl",
		"my-tool play a":         "a.jsonl",
		"my-tool --verbose play": "--help --verbose --version a.jsonl",
	} {
		words := strings.Fields(line)
		if last := words[len(words)-1]; len(last) > 1 || strings.HasSuffix(line, "my-tool") {
			words = append(words, "") // the next word
		}
		run := `source /dev/stdin; COMP_WORDS=("$@"); COMP_CWORD=$(($#-1)); _my_tool; echo "${COMPREPLY[*]}"`
		cmd := exec.Command("bash", append([]string{"-c", run, "bash"}, words...)...)
		cmd.Dir, cmd.Stdin = dir, strings.NewReader(script(t, "bash"))
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%s: offered %q, want %q (%v)", line, got, want, err)
		}
	}
}
