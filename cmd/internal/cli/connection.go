package cli

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strconv"

	"github.com/nats-io/nats.go"

	"github.com/jetcrew/jetcrew/bus"
	"github.com/jetcrew/jetcrew/bus/embedded"
	"github.com/jetcrew/jetcrew/cmd/internal/session"
)

// Connection holds the flags that say which server is used.
type Connection struct {
	URL    string `name:"nats" env:"NATS_URL" placeholder:"URL" help:"NATS server; several with commas between them."`
	Creds  string `name:"nats-creds" env:"NATS_CREDS" type:"existingfile" placeholder:"FILE" help:"Credentials file for the server."`
	Prefix string `env:"JETCREW_PREFIX" default:"jc" help:"First token of all subjects, and name of all streams."`
}

// Config returns what connects to the server of c; without one, to the default address.
func (c *Connection) Config(app *App) bus.Config {
	cfg := bus.Config{URL: c.URL, Prefix: c.Prefix, Instance: app.Instance, Logger: app.Log}
	if c.Creds != "" {
		cfg.Options = append(cfg.Options, nats.UserCredentials(c.Creds))
	}
	return cfg
}

// Local holds the flags of commands that work without a server too.
type Local struct {
	Connection
	Data string `type:"path" placeholder:"DIR" help:"Where the embedded server, used without --nats, keeps its data; default a temporary directory."`
}

// Open opens the session of a command: the server of c with the workers that are there, or an embedded one with
// fleet.
func (l *Local) Open(ctx context.Context, app *App, fleet ...session.Member) (*session.Session, error) {
	if err := l.oneServer(); err != nil {
		return nil, err
	}
	return session.Open(ctx, session.Options{
		URL: l.URL, Creds: l.Creds, Dir: l.Data, Prefix: l.Prefix, Instance: app.Instance,
		Fleet: fleet, Logger: app.Log, Verbose: app.Verbose,
	})
}

// oneServer refuses two servers.
func (l *Local) oneServer() error {
	if l.URL != "" && l.Data != "" {
		return Usagef("--data %s is for an embedded server, and --nats or NATS_URL names another; leave one of them out", l.Data)
	}
	return nil
}

// Join is Open for a command that looks at what is there: where another process of this user runs a server on the
// directory, it is that one. A directory that is not there is a mistake.
func (l *Local) Join(ctx context.Context, app *App, fleet ...session.Member) (*session.Session, error) {
	if l.URL != "" || l.Data == "" {
		return l.Open(ctx, app, fleet...)
	}
	if _, err := os.Stat(l.Data); errors.Is(err, fs.ErrNotExist) {
		return nil, Usagef("--data: %w; the command that recorded there names the directory", err)
	}
	url, err := embedded.Address(l.Data)
	if err != nil {
		return nil, err
	}
	there := *l
	if url != "" {
		there.URL, there.Data = url, ""
	}
	return there.Open(ctx, app, fleet...)
}

// Slots of each worker process of ToolFleet, by queue.
const (
	fileSlots  = 4
	shellSlots = 2
)

// ToolFleet is what an embedded server has by default: count worker processes with the file and shell tools of the
// directory root, and further flags.
func ToolFleet(root string, count int, flags ...string) session.Member {
	args := []string{"serve", "--queue", "files=" + strconv.Itoa(fileSlots), "--queue", "shell=" + strconv.Itoa(shellSlots), "--root", root}
	return session.Member{Count: count, Args: append(args, flags...)}
}
