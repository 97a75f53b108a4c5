package bus

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/jetcrew/jetcrew/schema"
)

// TestChoose: an agent sees the tools that its patterns name, and nothing else.
func TestChoose(t *testing.T) {
	t.Parallel()
	var offered []schema.Tool
	for _, name := range []string{"files/list", "files/read_file", "files/write_file", "shell/list", "web/fs/read", "web/get[v1]", "web/get1"} {
		queue, name, _ := strings.Cut(name, "/")
		offered = append(offered, schema.Tool{Queue: queue, Name: name})
	}
	for name, tt := range map[string]struct {
		patterns []string
		want     []string
		clash    string
	}{
		"names":                             {patterns: []string{"read_file", "write_file"}, want: []string{"files/read_file", "files/write_file"}},
		"a glob":                            {patterns: []string{"*_file"}, want: []string{"files/read_file", "files/write_file"}},
		"a sign for one character":          {patterns: []string{"?ead_file"}, want: []string{"files/read_file"}},
		"a queue":                           {patterns: []string{"shell/list"}, want: []string{"shell/list"}},
		"a glob over a queue":               {patterns: []string{"files/*"}, want: []string{"files/list", "files/read_file", "files/write_file"}},
		"the one with a queue goes before":  {patterns: []string{"list", "shell/list"}, want: []string{"shell/list"}},
		"a name with a slash":               {patterns: []string{"fs/read"}, want: []string{"web/fs/read"}},
		"a queue and a name with a slash":   {patterns: []string{"web/fs/read"}, want: []string{"web/fs/read"}},
		"brackets are no glob":              {patterns: []string{"get[v1]"}, want: []string{"web/get[v1]"}},
		"brackets beside a glob":            {patterns: []string{"g*[v1]"}, want: []string{"web/get[v1]"}},
		"case counts":                       {patterns: []string{"Read_file"}, want: []string{}},
		"nothing":                           {want: []string{}},
		"two queues offer the name":         {patterns: []string{"list"}, clash: "list (queues files and shell)"},
		"two queues offer what a glob says": {patterns: []string{"l*"}, clash: "list (queues files and shell)"},
		"two queues are named":              {patterns: []string{"files/list", "shell/list"}, clash: "list (queues files and shell)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tools, err := choose(offered, tt.patterns)
			if tt.clash != "" {
				if err == nil || !strings.Contains(err.Error(), tt.clash) {
					t.Errorf("%v, %v; want %q", tools, err, tt.clash)
				}
				return
			}
			got := make([]string, len(tools))
			for i, tool := range tools {
				got[i] = tool.Queue + "/" + tool.Name
			}
			if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
