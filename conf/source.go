package conf

import (
	"fmt"
	"path/filepath"
	"strings"

	"schedrestd/errs"
	"schedrestd/guard"
)

// Bounds on what is read: a site with 20 000 nodes needs about a megabyte, and a
// file given by mistake must not fill the memory of a process that runs as root.
const (
	maxBytes   = 8 << 20 // bytes in all
	maxLine    = 1 << 20 // bytes of one line, continuations joined
	maxFiles   = 64      // files in all, Include counted
	maxInclude = 8       // how deep Includes may nest
)

// null is the file that stands for no configuration.
const null = "/dev/null"

// source gives the bytes of a configuration file and the uid that owns it.
type source func(path string) (data []byte, owner uint32, err error)

// fromDisk is the source outside of tests.
//
// Links are followed, because sites keep slurm.conf as a link into a tree that
// their configuration management owns; but only links that root, this process's
// user or the owner of the link's directory made (guard), and the file in the end
// and every directory on the way must not be writable by others. Who owns the
// file is reported: whoever it is decides what a root process does.
func fromDisk(path string) ([]byte, uint32, error) {
	data, facts, err := guard.Read(path, guard.Rule{What: "configuration", Links: true}, maxBytes)
	return data, facts.Owner, err
}

// Judge tells whether files, which were read, are good enough for a process that is root:
// they, and the directories on the way, belong to root or to one of owners, and nobody else
// may change them. It comes after reading, because the files themselves name SchedUser,
// who is one of owners; whoever could have swapped them meanwhile owns a directory that
// fails here.
func Judge(files []string, trust guard.Trust) error {
	for _, path := range files {
		if path == null {
			continue
		}
		f, _, err := guard.Open(path, guard.Rule{What: "configuration", Links: true, Trust: &trust})
		if err != nil {
			return err
		}
		f.Close()
	}
	return nil
}

// entry is one logical line.
type entry struct {
	file string
	line int // where it begins
	text string
}

// loader collects the logical lines of a file and of those it includes.
type loader struct {
	open     source
	top      string   // directory of the main file, which Include paths are relative to
	files    []string // read so far
	bytes    int
	entries  []entry
	problems Problems
}

// load appends the lines of path and says who owns it.
func (l *loader) load(path string, depth int) (owner uint32, err error) {
	if l.files = append(l.files, path); len(l.files) > maxFiles || depth > maxInclude {
		return 0, errs.New(errs.Invalid, "too many files included")
	}
	data, owner, err := l.open(path)
	if err != nil {
		return 0, err
	}
	if l.bytes += len(data); l.bytes > maxBytes {
		return 0, errs.New(errs.Invalid, "configuration %s: more than %d bytes in all", path, maxBytes)
	}
	l.split(path, string(data), depth)
	return owner, nil
}

func hint(err error) string {
	if h := errs.HintOf(err); h != "" {
		return " (" + h + ")"
	}
	return ""
}

// split cuts text into logical lines: comments dropped first, as Slurm does, so
// that a backslash at the end of a comment continues nothing.
func (l *loader) split(path, text string, depth int) {
	var whole strings.Builder
	begun, number := 0, 0
	for physical := range strings.Lines(text) {
		number++
		if begun == 0 {
			begun = number
		}
		part, more := continued(uncomment(physical))
		whole.WriteString(part)
		at := entry{path, begun, ""}
		if whole.Len() > maxLine {
			l.problem(at, "line longer than %d bytes", maxLine)
			return
		}
		if more {
			continue
		}
		at.text = strings.TrimSpace(whole.String())
		whole.Reset()
		begun = 0
		l.line(at, depth)
	}
	if begun != 0 {
		l.problem(entry{path, begun, ""}, "the file ends within a continued line")
	}
}

// line keeps at, or reads what it includes.
func (l *loader) line(at entry, depth int) {
	end := strings.IndexAny(at.text+" ", " \t")
	word, rest := at.text[:end], strings.TrimSpace(at.text[end:])
	switch {
	case at.text == "":
	case strings.ContainsFunc(at.text, func(r rune) bool { return r < ' ' && r != '\t' || r == 0x7f }):
		l.problem(at, "a control character")
	case fold(word) == "include" && !strings.HasPrefix(rest, "="):
		path := strings.Trim(rest, `"`)
		if path == "" || strings.ContainsAny(path, "\"\t *?[%") {
			l.problem(at, "Include takes the name of one file")
			return
		}
		if !filepath.IsAbs(path) {
			path = filepath.Join(l.top, path)
		}
		if _, err := l.load(path, depth+1); err != nil {
			l.problem(at, "%v%s", err, hint(err))
		}
	default:
		l.entries = append(l.entries, at)
	}
}

func (l *loader) problem(at entry, format string, args ...any) {
	l.problems = append(l.problems, Problem{at.file, at.line, fmt.Sprintf(format, args...)})
}

// uncomment drops what follows a # that is neither escaped nor quoted, and the
// backslash of one that is escaped.
func uncomment(line string) string {
	if !strings.Contains(line, "#") {
		return line
	}
	var out strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case c == '\\' && i+1 < len(line) && line[i+1] == '#':
			i++
			out.WriteByte('#')
			continue
		case c == '#' && !quoted:
			return out.String()
		case c == '"':
			quoted = !quoted
		}
		out.WriteByte(line[i])
	}
	return out.String()
}

// continued cuts a backslash at the end of line (blanks after it don't count) and says whether there was one.
func continued(line string) (string, bool) {
	line = strings.TrimRight(line, " \t\r\n")
	cut := strings.TrimRight(line, `\`)
	if (len(line)-len(cut))%2 == 0 {
		return line, false
	}
	return line[:len(line)-1], true
}
