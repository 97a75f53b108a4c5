package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jetcrew/jetcrew/cmd/internal/cli"
	"github.com/jetcrew/jetcrew/loop/agentfile"
)

// InitCmd is the command init.
type InitCmd struct {
	File string `arg:"" optional:"" default:"agent.yaml" type:"path" help:"File to write; its name becomes the agent's id."`
}

// Run writes the file. One that is there already stays as it is.
func (c *InitCmd) Run(app *cli.App) error {
	f, err := os.OpenFile(c.File, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return cli.Usagef("init: %s is there already and stays as it is; name another file", c.File)
	}
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	_, err = f.Write(agentfile.Template(agentID(c.File)))
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("init: %w", err)
	}
	_, err = fmt.Fprintf(app.Out, "wrote %s; edit it, then: %s run -f %s \"your task\"\n", c.File, app.Program, c.File)
	return err
}

// agentID makes an id of a file's name.
func agentID(file string) string {
	name := strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	id := strings.Trim(strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, name), "-.")
	if id == "" {
		return "agent"
	}
	return id
}
