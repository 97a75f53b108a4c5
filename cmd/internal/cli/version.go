package cli

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/alecthomas/kong"
)

// version is set at link time: -ldflags "-X github.com/jetcrew/jetcrew/cmd/internal/cli.version=v1.2.3".
var version string

// Version returns the version of this build: what was set at link time, else the module's, else the commit's.
func Version() string {
	info, ok := debug.ReadBuildInfo()
	switch {
	case version != "":
		return version
	case !ok:
		return "unknown"
	case info.Main.Version != "" && info.Main.Version != "(devel)":
		return info.Main.Version
	}
	return develVersion(info.Settings)
}

// develVersion names a build from a working copy.
func develVersion(settings []debug.BuildSetting) string {
	text := "devel"
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			text += "-" + s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			text += "-modified"
		}
	}
	return text
}

// VersionFlag is --version.
type VersionFlag bool

// BeforeReset prints the version and ends the process, before anything else of the command line can be wrong.
func (VersionFlag) BeforeReset(app *kong.Kong, vars kong.Vars) error {
	fmt.Fprintln(app.Stdout, versionLine(vars["program"]))
	app.Exit(CodeOK)
	return nil
}

// VersionCmd is the command version.
type VersionCmd struct{}

// Run prints the version.
func (*VersionCmd) Run(app *App) error {
	_, err := fmt.Fprintln(app.Out, versionLine(app.Program))
	return err
}

func versionLine(program string) string {
	return fmt.Sprintf("%s %s (%s %s/%s)", program, Version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
