package worker

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/executor/mcp"
)

// mcpServer is a server to connect to, NAME=COMMAND or NAME=URL on the command line.
type mcpServer struct {
	mcp.Config
	slots  int
	limits []AtMost // by the names that the fleet sees
	paces  []Pace
}

// UnmarshalText reads NAME=COMMAND or NAME=URL.
func (s *mcpServer) UnmarshalText(text []byte) error {
	name, how, ok := strings.Cut(string(text), "=")
	if !ok {
		return fmt.Errorf("%.80q: want NAME=COMMAND or NAME=URL", text)
	}
	s.Name, s.slots = name, defaultSlots
	if strings.HasPrefix(how, "http://") || strings.HasPrefix(how, "https://") {
		s.URL = how
		return s.Check()
	}
	var err error
	if s.Command, err = words(how); err != nil {
		return fmt.Errorf("MCP server %.80q: %w", name, err)
	}
	return s.Check()
}

// words splits a command line as a shell does, with quotes and nothing else: no variables, no globs.
func words(line string) (list []string, err error) {
	var word strings.Builder
	quote, open := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '\'' || r == '"'):
			quote, open = r, true
		case quote == 0 && unicode.IsSpace(r):
			if open {
				list = append(list, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
			open = true
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("the command has a quote %c that does not end", quote)
	}
	if open {
		list = append(list, word.String())
	}
	return list, nil
}

// mcpEntry is a server in a file of mcpServers, as other programs have it too. The last block is ours.
type mcpEntry struct {
	Type     string            `json:"type"`
	Command  string            `json:"command"`
	Args     []string          `json:"args"`
	Env      map[string]string `json:"env"`
	Cwd      string            `json:"cwd"`
	URL      string            `json:"url"`
	Headers  map[string]string `json:"headers"`
	Disabled bool              `json:"disabled"`

	Pass   []string                  `json:"pass"`
	Prefix string                    `json:"prefix"`
	Bare   bool                      `json:"bare"`
	Trust  bool                      `json:"trust"`
	Slots  int                       `json:"slots"`
	Tools  map[string]mcpDeclaration `json:"tools"`
}

// mcpDeclaration is what a file says of a tool, by the server's name of it.
type mcpDeclaration struct {
	mcp.Declaration
	Limit int    `json:"limit"` // as --limit
	Rate  string `json:"rate"`  // as --rate, without the name
}

// loadMCP reads the servers of a file, by name. What it does not know in there is logged.
func loadMCP(file string, app *cli.App) ([]mcpServer, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var doc struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	if err := json.Unmarshal(data, &doc); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	if len(doc.Servers) == 0 {
		return nil, fmt.Errorf("%s: \"mcpServers\" names no server", file)
	}
	var servers []mcpServer
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(doc.Servers)) {
		s, used, err := readServer(name, doc.Servers[name], app)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", file, err))
		}
		if used {
			servers = append(servers, s)
		}
	}
	return servers, errors.Join(errs...)
}

// readServer reads one server. used is false for one that is disabled.
func readServer(name string, data json.RawMessage, app *cli.App) (s mcpServer, used bool, err error) {
	var e mcpEntry
	if err := json.Unmarshal(data, &e); err != nil {
		return s, false, fmt.Errorf("MCP server %q: %w", name, err)
	}
	if unknown := unknownKeys(data); len(unknown) > 0 {
		app.Log.Warn("settings of an MCP server that mean nothing here", "mcp", name, "settings", strings.Join(unknown, ", "))
	}
	if e.Disabled {
		return s, false, nil
	}
	s = mcpServer{slots: e.Slots, Config: mcp.Config{
		Name: name, Prefix: e.Prefix, Bare: e.Bare, Dir: e.Cwd, Pass: e.Pass, URL: e.URL, Trust: e.Trust, Declare: map[string]mcp.Declaration{},
	}}
	if s.slots == 0 {
		s.slots = defaultSlots
	}
	if e.Command != "" {
		s.Command = append([]string{e.Command}, e.Args...)
	}
	switch {
	case !slices.Contains([]string{"", "stdio", "http", "streamable-http", "streamableHttp"}, e.Type):
		return s, false, fmt.Errorf("MCP server %q: the type %q is not stdio or http", name, e.Type)
	case s.slots < 1 || s.slots > 4096:
		return s, false, fmt.Errorf("MCP server %q: %d slots: want 1 to 4096", name, s.slots)
	}
	var errs [3]error
	s.Env, errs[0] = expand(e.Env)
	s.Header, errs[1] = expand(e.Headers)
	errs[2] = s.declare(e.Tools)
	if err := errors.Join(errs[:]...); err != nil {
		return s, false, fmt.Errorf("MCP server %q: %w", name, err)
	}
	return s, true, s.Check()
}

// declare takes what the file says of tools.
func (s *mcpServer) declare(tools map[string]mcpDeclaration) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(tools)) {
		d := tools[name]
		s.Declare[name] = d.Declaration
		if d.Limit < 0 || d.Limit > maxLimit {
			errs = append(errs, fmt.Errorf("tool %.80q: limit %d: want 1 to %d calls at once", name, d.Limit, maxLimit))
		}
		if d.Limit > 0 {
			s.limits = append(s.limits, AtMost{s.Exposed(name), d.Limit})
		}
		if d.Rate == "" {
			continue
		}
		pace := Pace{Tools: s.Exposed(name)}
		if err := pace.read(d.Rate); err != nil {
			errs = append(errs, fmt.Errorf("tool %.80q: %w", name, err))
		}
		s.paces = append(s.paces, pace)
	}
	return errors.Join(errs...)
}

// expand puts this process's variables in place of ${NAME}.
func expand(values map[string]string) (map[string]string, error) {
	var errs []error
	expanded := make(map[string]string, len(values))
	for _, name := range slices.Sorted(maps.Keys(values)) {
		rest, out := values[name], ""
		for {
			before, after, found := strings.Cut(rest, "${")
			out += before
			variable, tail, closed := strings.Cut(after, "}")
			if !found {
				break
			}
			value, set := os.LookupEnv(variable)
			if !closed || !set {
				errs = append(errs, fmt.Errorf("%s: the variable %.80q is not set", name, variable))
				break
			}
			out, rest = out+value, tail
		}
		expanded[name] = out
	}
	return expanded, errors.Join(errs...)
}

// unknownKeys returns the keys of an entry that mcpEntry does not have.
func unknownKeys(data json.RawMessage) (unknown []string) {
	var have map[string]json.RawMessage
	if json.Unmarshal(data, &have) != nil {
		return nil
	}
	t := reflect.TypeFor[mcpEntry]()
	for i := range t.NumField() {
		delete(have, t.Field(i).Tag.Get("json"))
	}
	return slices.Sorted(maps.Keys(have))
}
