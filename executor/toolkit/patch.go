package toolkit

import (
	"context"
	"fmt"
	"io/fs"
	"strings"

	"github.com/jetcrew/jetcrew/executor"
)

type patchArgs struct {
	Patch string `json:"patch" jsonschema:"pattern=\\S,description=A unified diff as git prints it: --- a/path and +++ b/path (/dev/null for a file that is new or removed) then hunks @@ -line +line @@ with some unchanged lines around each change"`
}

func (f *files) patchTool() executor.Tool {
	return executor.Func("apply_patch", "Applies a unified diff to files: all of it or, if a part does not fit, nothing. A hunk is placed by its unchanged and removed lines, nearest to the line it names.",
		f.patch, writing()...)
}

func (f *files) patch(ctx context.Context, in patchArgs) (string, error) {
	patches, err := parsePatch(in.Patch)
	if err != nil {
		return "", err
	}
	p := plan{files: f}
	var said strings.Builder
	for _, fp := range patches {
		if err := p.patchFile(fp, &said); err != nil {
			return "", fmt.Errorf("%w; nothing was changed", err)
		}
	}
	if err := p.commit(ctx); err != nil {
		return "", err
	}
	return said.String(), nil
}

// patchFile plans what one file's part of a patch says, and says so.
func (p *plan) patchFile(fp *filePatch, said *strings.Builder) error {
	from, to := fp.from, fp.to
	if from == "" {
		from = to
	}
	source, err := p.change(p.files.name(from))
	if err != nil {
		return err
	}
	data, err := fp.apply(source)
	if err != nil {
		return fmt.Errorf("%s: %w", from, err)
	}
	switch {
	case fp.to == "":
		source.new = nil
		fmt.Fprintf(said, "removed %s\n", source.name)
		return nil
	case fp.from == "":
		fmt.Fprintf(said, "created %s\n", source.name)
	case fp.to != fp.from:
		return p.move(source, fp, data, said)
	default:
		fmt.Fprintf(said, "changed %s\n", source.name)
	}
	source.replace(data, fp.mode)
	return nil
}

// move plans a rename, with or without changes.
func (p *plan) move(source *change, fp *filePatch, data []byte, said *strings.Builder) error {
	target, err := p.change(p.files.name(fp.to))
	if err != nil {
		return err
	}
	if target.new != nil {
		return fmt.Errorf("%s: exists already", target.name)
	}
	mode := fp.mode
	if mode == 0 {
		mode = source.new.mode
	}
	target.replace(data, mode)
	source.new = nil
	fmt.Fprintf(said, "renamed %s to %s\n", source.name, target.name)
	return nil
}

// replace sets the new content and, unless it is 0, the mode.
func (c *change) replace(data []byte, mode fs.FileMode) {
	c.write(data)
	if mode != 0 {
		c.new.mode = mode
	}
}
