package agentfile

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
)

var envName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`)

// LoadEnv reads KEY=VALUE lines from the file at path into the environment of this process. A variable that is set
// already wins, even when it is empty. Blank lines, lines that begin with #, a leading "export " and a # after a space
// are ignored. A value may stand in single quotes, as it is, or in double quotes, with the escapes of Go. Nothing is
// expanded.
//
// A missing file is an error that matches fs.ErrNotExist. An error in a line names it, never its value; then nothing is
// set.
func LoadEnv(path string) error {
	f, err := openFile(path)
	if err != nil {
		return fmt.Errorf("environment file: %w", err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, MaxSize))
	if err != nil {
		return fmt.Errorf("environment file: %w", err)
	}
	vars, err := parseEnv(data)
	if err != nil {
		return fmt.Errorf("environment file %s:%w", path, err)
	}
	for _, v := range vars {
		if _, set := os.LookupEnv(v[0]); set {
			continue
		}
		if err := os.Setenv(v[0], v[1]); err != nil {
			return fmt.Errorf("environment file %s: %s: %w", path, v[0], err)
		}
	}
	return nil
}

// parseEnv returns name and value of each line. Its errors begin with the line's number.
func parseEnv(data []byte) ([][2]string, error) {
	var vars [][2]string
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for i, line := range strings.Split(string(data), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || line[0] == '#' {
			continue
		}
		name, value, ok := strings.Cut(strings.TrimPrefix(line, "export "), "=")
		name = strings.TrimSpace(name)
		if !ok || !envName.MatchString(name) {
			return nil, fmt.Errorf("%d: want KEY=VALUE", i+1)
		}
		value, err := envValue(strings.TrimSpace(value))
		if err != nil {
			return nil, fmt.Errorf("%d: %s: %w", i+1, name, err)
		}
		vars = append(vars, [2]string{name, value})
	}
	return vars, nil
}

func envValue(s string) (string, error) {
	if s == "" || s[0] == '#' {
		return "", nil
	}
	value, rest := s, ""
	switch s[0] {
	case '\'':
		end := strings.IndexByte(s[1:], '\'')
		if end < 0 {
			return "", fmt.Errorf("the quote does not end")
		}
		value, rest = s[1:end+1], s[end+2:]
	case '"':
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", fmt.Errorf("the quote does not end, or holds an unknown escape")
		}
		value, _ = strconv.Unquote(quoted) // QuotedPrefix returned a valid one
		rest = s[len(quoted):]
	default:
		if at := strings.Index(s, " #"); at >= 0 {
			value = strings.TrimSpace(s[:at])
		}
	}
	if rest = strings.TrimSpace(rest); rest != "" && rest[0] != '#' {
		return "", fmt.Errorf("text after the quote")
	}
	if strings.ContainsRune(value, 0) {
		return "", fmt.Errorf("the value holds a NUL")
	}
	return value, nil
}
