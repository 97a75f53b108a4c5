package schema

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestA16Resolve(t *testing.T) {
	t.Parallel()
	tools := []string{"bash", "read_file", "notion.search", "管理/删除"}
	for _, c := range []struct {
		call  string
		known []string
		want  string // "": no repair
	}{
		{"bash", tools, "bash"},
		{"Bash", tools, "bash"},
		{"functions.bash", tools, "bash"},
		{"functions.Bash", tools, "bash"},
		{" read_file\n", tools, "read_file"},
		{"Read_File ", tools, "read_file"},
		{"default_api:read_file", tools, "read_file"},
		{"mcp__x__bash", tools, "bash"},
		{"mcp__id__id_verb", []string{"id_verb"}, "id_verb"},
		{"tools/bash", tools, "bash"},
		{"functions.notion.search", tools, "notion.search"},
		{"notion.search", tools, "notion.search"},
		{"管理/删除", tools, "管理/删除"},
		{"READ", []string{"Read", "read"}, ""},
		{"Read", []string{"Read", "read"}, "Read"},
		{"mcp__x__bash", []string{"bash", "x__bash"}, ""},
		{"functions.search", []string{"search", "Search"}, ""},
		{"bashful", tools, ""},
		{"superbash", tools, ""},
		{"_bash", tools, ""},
		{"__bash", tools, ""},
		{".bash", tools, ""},
		{"search", tools, ""},
		{"read file", tools, ""},
		{"", tools, ""},
		{" ", []string{""}, ""},
		{"x.", []string{""}, ""},
		{"bash", nil, ""},
		{strings.Repeat("a.", 5000) + "bash", tools, ""},
	} {
		t.Run(fmt.Sprintf("%.40q of %q", c.call, c.known), func(t *testing.T) {
			t.Parallel()
			got, ok := Resolve(c.call, c.known)
			if ok != (c.want != "") || ok && got != c.want {
				t.Errorf("got %q, %v; want %q", got, ok, c.want)
			}
		})
	}
}

func TestA15Unknown(t *testing.T) {
	t.Parallel()
	files := []string{"read_file", "write_file", "bash"}
	many := []string{"run_command", "list_files", "http_get", "sql_query", "apply_patch", "knowledge_search", "git_log"}
	for _, c := range []struct {
		name, call string
		known      []string
		want       string
	}{
		{"near", "reed file!", files, `there is no tool "reed file!"; available: "read_file", "write_file", "bash"`},
		{"of many", "generic_command", many, `there is no tool "generic_command"; the nearest of 7 tools: "run_command", `},
		{"case", "ReadFile", append(many, "read_file"), `"ReadFile"; the nearest of 8 tools: "read_file"`},
		{"part of a name", "search", many, `the nearest of 7 tools: "knowledge_search"`},
		{"ambiguous", "READ", []string{"read", "Read"}, `there is no tool "READ"; available: "Read", "read"`},
		{"nothing alike", "python", []string{"bash"}, `there is no tool "python"; available: "bash"`},
		{"blank", " \n", files, `a tool name is required; available: `},
		{"no tools", "python", nil, `there is no tool "python"; no tools are available`},
		{"5,000 characters", strings.Repeat("x", 5000), files, `xxx..."; available: `},
		{"invalid bytes", "a\xffb", files, "there is no tool \"a\uFFFDb\""},
		{"quotes", `a"b`, files, `there is no tool "a\"b"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := Unknown(c.call, c.known)
			if err.Type != UnknownTool || !strings.Contains(err.Message, c.want) {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
			if len(err.Message) > 600 || !utf8.ValidString(err.Message) {
				t.Errorf("message of %d bytes", len(err.Message))
			}
			if n := strings.Count(err.Message, `"`) - 2*strings.Count(err.Message, `\"`); n > 2*(maxNearest+1) {
				t.Errorf("%d quotes: more than %d names", n, maxNearest)
			}
		})
	}
}

func FuzzResolve(f *testing.F) {
	f.Add("functions.bash", "bash", "Bash")
	f.Add("\xff.k", "K", "")
	f.Add("0", "\xae", "0")
	f.Fuzz(func(t *testing.T, name, one, two string) {
		known := []string{one, two}
		if got, ok := Resolve(name, known); ok && got != one && got != two {
			t.Fatalf("%q resolves to %q, which is not known", name, got)
		}
		if err := Unknown(name, known); !utf8.ValidString(err.Message) || len(err.Message) > 600 {
			t.Fatalf("%q: message %q", name, err.Message)
		}
	})
}

func BenchmarkResolve(b *testing.B) {
	known := make([]string, 30)
	for i := range known {
		known[i] = fmt.Sprintf("tool_number_%d", i)
	}
	b.ReportAllocs()
	for b.Loop() {
		Resolve("tool_number_29", known)
	}
}

func BenchmarkUnknown(b *testing.B) {
	known := make([]string, 500)
	for i := range known {
		known[i] = fmt.Sprintf("mcp__server_%d__some_rather_long_tool_name_%d", i%7, i)
	}
	name := strings.Repeat("generic_command", 300)
	b.ReportAllocs()
	for b.Loop() {
		Unknown(name, known)
	}
}
