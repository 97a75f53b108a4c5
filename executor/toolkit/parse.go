package toolkit

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// filePatch is one file's part of a unified diff.
type filePatch struct {
	from  string      // empty: the file is new
	to    string      // empty: the file is removed
	mode  fs.FileMode // permission bits; 0: as they are
	hunks []*hunk
}

// hunk is a run of changed lines with unchanged ones around them.
type hunk struct {
	from  int    // line of the old file, from 1; without old lines: the line before
	lines []line // in the order of the diff
}

// line is one line of a hunk: op is ' ' (in both), '-' (old only) or '+' (new only).
type line struct {
	op   byte
	text string // without line end
	open bool   // no newline at the end of the file
}

// patchParser reads a diff line by line.
type patchParser struct {
	lines []string
	at    int
	out   []*filePatch
	cur   *filePatch // part whose header was read; nil before the first
}

// parsePatch reads a unified diff as git or diff -u print it. Text before the first file and lines of git's that say
// nothing about the content are passed over; binary parts, copies, links and submodules are errors. The line counts
// of a hunk are taken as a hint, since models get them wrong.
func parsePatch(text string) ([]*filePatch, error) {
	p := &patchParser{lines: strings.Split(strings.TrimSuffix(strings.ReplaceAll(text, "\r\n", "\n"), "\n"), "\n")}
	for p.at < len(p.lines) {
		if err := p.step(); err != nil {
			return nil, fmt.Errorf("patch line %d: %w", p.at+1, err)
		}
	}
	if len(p.out) == 0 {
		return nil, errors.New(`the patch names no file: expected "--- a/path", "+++ b/path" and "@@ -line +line @@"`)
	}
	for _, fp := range p.out {
		if fp.from == "" && fp.to == "" {
			return nil, errors.New(`a part of the patch has no "--- a/path" and "+++ b/path"`)
		}
	}
	return p.out, nil
}

func (p *patchParser) step() error {
	s := p.lines[p.at]
	key, rest, _ := strings.Cut(s, " ")
	switch {
	case strings.HasPrefix(s, "diff --git "):
		p.begin(sameNames(strings.TrimPrefix(s, "diff --git ")))
	case strings.HasPrefix(s, "--- ") && p.nextIs("+++ "):
		return p.names()
	case strings.HasPrefix(s, "@@"):
		return p.hunk()
	case strings.HasPrefix(s, "GIT binary patch"), strings.HasPrefix(s, "Binary files "):
		return errors.New("a binary patch is not taken")
	case strings.HasPrefix(s, "*** Begin Patch"):
		return errors.New(`this form is not taken: write a unified diff with "--- a/path" and "+++ b/path"`)
	case p.cur == nil:
	case key == "rename" || key == "copy":
		return p.rename(key, rest)
	case key == "new" || key == "old" || key == "deleted" || key == "index":
		return p.gitMode(key, rest)
	case key == "+" || key == "-" || strings.HasPrefix(s, "+") || strings.HasPrefix(s, "-"):
		return errors.New(`a changed line before any "@@ -line +line @@"`)
	}
	p.at++
	return nil
}

func (p *patchParser) nextIs(prefix string) bool {
	return p.at+1 < len(p.lines) && strings.HasPrefix(p.lines[p.at+1], prefix)
}

func (p *patchParser) begin(from, to string) {
	p.cur = &filePatch{from: from, to: to}
	p.out = append(p.out, p.cur)
}

// names reads the pair --- and +++.
func (p *patchParser) names() error {
	from, err := headerName(p.lines[p.at][4:])
	if err != nil {
		return err
	}
	to, err := headerName(p.lines[p.at+1][4:])
	if err != nil {
		return err
	}
	if from == "" && to == "" {
		return errors.New("both names are /dev/null")
	}
	if strings.HasPrefix(from, "a/") && (to == "" || strings.HasPrefix(to, "b/")) || from == "" {
		from, to = strings.TrimPrefix(from, "a/"), strings.TrimPrefix(to, "b/")
	}
	if p.cur == nil || len(p.cur.hunks) > 0 || !p.cur.fits(from, to) {
		p.begin(from, to)
	}
	p.cur.from, p.cur.to = from, to
	p.at += 2
	return nil
}

// fits tells whether the names belong to the part that a "diff --git" line began.
func (fp *filePatch) fits(from, to string) bool {
	return fp.from == "" && fp.to == "" || fp.from == from || fp.to == to
}

// headerName takes /dev/null as the empty name, drops a time stamp and git's quotes.
func headerName(s string) (string, error) {
	if strings.HasPrefix(s, `"`) {
		quoted, err := strconv.QuotedPrefix(s)
		if err != nil {
			return "", fmt.Errorf("name %s: %w", s, err)
		}
		return strconv.Unquote(quoted)
	}
	s, _, _ = strings.Cut(s, "\t")
	s = strings.TrimSpace(s)
	if s == "" {
		return "", errors.New("a file name is missing")
	}
	if s == "/dev/null" {
		return "", nil
	}
	return s, nil
}

// sameNames returns the name in "a/name b/name", which is all that an empty file or a new mode has.
func sameNames(s string) (from, to string) {
	half := len(s) / 2
	if len(s)%2 == 0 || s[half] != ' ' || !strings.HasPrefix(s, "a/") || s[2:half] != strings.TrimPrefix(s[half+1:], "b/") {
		return "", ""
	}
	return s[2:half], s[2:half]
}

func (p *patchParser) rename(key, rest string) error {
	side, name, _ := strings.Cut(rest, " ")
	if key == "copy" {
		return errors.New("a copy is not taken: add the file")
	}
	switch side {
	case "from":
		p.cur.from = name
	case "to":
		p.cur.to = name
	}
	p.at++
	return nil
}

// gitMode reads "new file mode 100644", "old mode 100644", "deleted file mode …", "index a..b 100644".
func (p *patchParser) gitMode(key, rest string) error {
	words := strings.Fields(rest)
	if len(words) < 2 || key != "index" && words[len(words)-2] != "mode" {
		p.at++ // an index line without mode, or prose
		return nil
	}
	switch mode := words[len(words)-1]; mode {
	case "100644", "100755":
		perm, _ := strconv.ParseUint(mode[3:], 8, 32)
		if key == "new" {
			p.cur.mode = fs.FileMode(perm)
		}
	case "120000":
		return errors.New("symbolic links are not taken")
	default:
		return fmt.Errorf("mode %.20q is not taken", mode)
	}
	if key == "new" && words[0] == "file" {
		p.cur.from = ""
	}
	if key == "deleted" {
		p.cur.to = ""
	}
	p.at++
	return nil
}

// hunk reads "@@ -from,count +to,count @@" and the lines below it.
func (p *patchParser) hunk() error {
	if p.cur == nil || p.cur.from == "" && p.cur.to == "" {
		return errors.New(`a hunk before any "--- a/path" and "+++ b/path"`)
	}
	h := &hunk{}
	var old, added int
	words := strings.Fields(p.lines[p.at])
	if len(words) < 3 || !span(words[1], '-', &h.from, &old) || !span(words[2], '+', new(int), &added) {
		return errors.New(`a hunk begins with "@@ -line,count +line,count @@"`)
	}
	p.cur.hunks = append(p.cur.hunks, h)
	p.at++
	for p.at < len(p.lines) && p.hunkLine(h, &old, &added) {
		p.at++
	}
	if len(h.lines) == 0 {
		return errors.New("the hunk has no lines")
	}
	return nil
}

// span reads "-12,3"; a missing count is 1.
func span(s string, sign byte, from, count *int) bool {
	if s[0] != sign {
		return false
	}
	at, n, counted := strings.Cut(s[1:], ",")
	var err, err2 error
	*count = 1
	*from, err = strconv.Atoi(at)
	if counted {
		*count, err2 = strconv.Atoi(n)
	}
	return err == nil && err2 == nil && *from >= 0 && *count >= 0
}

// hunkLine adds the current line to h; false if it is not one of its lines. old and added are what the header
// leaves to come; they only decide where a line could be either.
func (p *patchParser) hunkLine(h *hunk, old, added *int) bool {
	s := p.lines[p.at]
	full := *old <= 0 && *added <= 0
	switch {
	case s == "" && full, strings.HasPrefix(s, "--- ") && p.nextIs("+++ ") && *old <= 0:
		return false
	case s == "":
		s = " " // editors strip the blank of an empty line
	case s[0] == '\\':
		if n := len(h.lines); n > 0 {
			h.lines[n-1].open = true
		}
		return true
	case s[0] != ' ' && s[0] != '-' && s[0] != '+':
		return false
	}
	if s[0] != '+' {
		*old--
	}
	if s[0] != '-' {
		*added--
	}
	h.lines = append(h.lines, line{op: s[0], text: s[1:]})
	return true
}
