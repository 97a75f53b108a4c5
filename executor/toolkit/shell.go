package toolkit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jetcrew/jetcrew/executor"
	"github.com/jetcrew/jetcrew/schema"
)

// ShellConfig sets up the shell tool.
type ShellConfig struct {
	Env       []string      // names of further variables of the worker's environment that commands get
	Timeout   time.Duration // bound on one command; default 120 s
	MaxOutput int           // bytes of output of one command, head and tail; default 64 KiB, at most 192 KiB. More goes to a file in TMPDIR while the command runs, up to schema.MaxPayload
}

// shell is the shell tool of one directory.
type shell struct {
	path string // of the shell
	dir  string
	env  []string
	max  int
}

// Shell returns bash, which runs commands in the directory root. Where neither bash nor sh is found, or the system
// has no process groups, it is an error.
func Shell(root string, cfg ShellConfig) ([]executor.Tool, error) {
	path, err := findShell()
	if err != nil {
		return nil, fmt.Errorf("toolkit %q: %w", ShellName, err)
	}
	dir, err := workDir(root)
	if err != nil {
		return nil, fmt.Errorf("toolkit %q: %w", ShellName, err)
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = 120 * time.Second
	}
	s := &shell{path: path, dir: dir, env: environment(dir, cfg.Env), max: outputLimit(cfg.MaxOutput)}
	return []executor.Tool{{Tool: bashTool(cfg.Timeout), Run: s.run}}, nil
}

func findShell() (string, error) {
	if !hasGroups {
		return "", errors.New("this system has no process groups")
	}
	for _, name := range []string{"bash", "sh"} {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", errors.New("neither bash nor sh is installed")
}

func bashTool(limit time.Duration) schema.Tool {
	return schema.Tool{
		Name: "bash",
		Description: "Runs a shell command in the working directory and returns its output, standard error included. " +
			"There is no input to read from, and what the command leaves running in the background is killed when it ends.",
		Parameters: bashParameters,
		Effect:     schema.EffectDestructive,
		TimeoutMS:  limit.Milliseconds(),
	}
}

// bashParameters are the rules for the fields of each action. Only exec is carried out so far.
const bashParameters schema.JSONText = `{
  "type": "object",
  "properties": {
    "action": {"type": "string", "enum": ["exec", "start", "status", "logs", "stop", "write", "list"], "default": "exec", "description": "What to do; only exec is offered here"},
    "command": {"type": "string", "description": "The command line, for exec and start"},
    "processId": {"type": "string", "description": "For status, logs, stop and write"},
    "input": {"type": "string", "description": "For write"},
    "timeoutMillis": {"type": "integer", "minimum": 1, "description": "For exec: kill the command after so many milliseconds"}
  },
  "additionalProperties": false,
  "allOf": [
    {
      "if": {"properties": {"action": {"enum": ["exec", "start"]}}},
      "then": {"required": ["command"], "properties": {"command": {"pattern": "\\S"}}}
    },
    {
      "if": {"required": ["action"], "properties": {"action": {"enum": ["status", "logs", "stop", "write"]}}},
      "then": {"required": ["processId"], "properties": {"processId": {"pattern": "\\S"}}}
    }
  ]
}`

type bashArgs struct {
	Action        string `json:"action"`
	Command       string `json:"command"`
	TimeoutMillis int64  `json:"timeoutMillis"`
}

func (s *shell) run(ctx context.Context, call *schema.Call) (string, error) {
	var in bashArgs
	if err := json.Unmarshal([]byte(call.Args), &in); err != nil {
		return "", &schema.Error{Type: schema.InvalidArguments, Message: "timeoutMillis: expected an integer"}
	}
	if in.Action != "" && in.Action != "exec" {
		return "", fmt.Errorf("action %s is not offered here; use exec", in.Action)
	}
	limit := time.Duration(in.TimeoutMillis) * time.Millisecond
	if limit <= 0 {
		return s.exec(ctx, ctx, in.Command)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, err := s.exec(ctx, limited, in.Command)
	if err != nil && limited.Err() != nil && ctx.Err() == nil {
		return "", &schema.Error{Type: schema.Timeout, Message: fmt.Sprintf("timeoutMillis of %v passed: %v", limit, err)}
	}
	return out, err
}
