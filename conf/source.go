package conf

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/errs"
	"schedrestd/guard"
	"schedrestd/guard/content"
)

// Limits on the input. A site with 20 000 nodes needs about a megabyte, and a
// wrong file must not exhaust the memory of a process that runs as root.
const (
	maxBytes   = 8 << 20 // bytes in total
	maxLine    = 1 << 20 // bytes of one line, with its continuations
	maxFiles   = 1024    // files in total, including those of Include; some sites have one for each rack
	maxInclude = 16      // nesting of Includes
)

// null is the path that stands for an empty configuration.
const null = "/dev/null"

// source returns the bytes of a configuration file and the uid of its owner.
type source func(path string) (data []byte, owner uint32, err error)

// from returns a source that opens each path with files.Open.
func from(files Files) source {
	return func(path string) ([]byte, uint32, error) {
		f, err := files.Open(path)
		if err != nil {
			return nil, 0, err
		}
		defer f.Close()
		data, err := content.ReadOpened(f, path, guard.Configuration, maxBytes)
		if err != nil {
			return nil, 0, err
		}
		var st unix.Stat_t
		err = unix.Fstat(int(f.Fd()), &st)
		return data, st.Uid, errs.Wrap(err, errs.Internal, "configuration %s", path)
	}
}

// Judge returns an error if a process that runs as root must not use the given
// files. The files and the directories of their paths must belong to root or to
// one of the trusted owners, and no other user may be able to change them.
// Judge runs after the files were read, because the files themselves name
// SchedUser, who is one of these owners. Only a user who owns one of the
// directories could have replaced a file in the meantime, and Judge checks
// these owners, too.
func Judge(files []string, trust guard.Trust) error {
	return guard.CheckFiles(slices.DeleteFunc(slices.Clone(files), func(path string) bool { return path == null }), guard.Configuration, trust)
}

// entry is a logical line.
type entry struct {
	file string
	line int // number of its first line
	text string
}

type loader struct {
	open     source
	top      string   // directory of the main file, to which Include paths are relative as in Slurm; see include
	files    []string // files read so far
	within   []string // files being read; each includes the next
	bytes    int
	entries  []entry
	warnings []Warning
	problems Problems
}

// load appends the lines of path and returns its owner.
func (l *loader) load(path string) (owner uint32, err error) {
	if slices.Contains(l.within, path) {
		return 0, errs.New(errs.Invalid, "%s includes itself: %s", path, strings.Join(append(l.within, path), ", "))
	}
	if l.files = append(l.files, path); len(l.files) > maxFiles || len(l.within) > maxInclude {
		return 0, errs.New(errs.Invalid, "too many files included")
	}
	data, owner, err := l.open(path)
	if err != nil {
		return 0, err
	}
	if l.bytes += len(data); l.bytes > maxBytes {
		return 0, errs.New(errs.Invalid, "configuration %s: more than %d bytes in all", path, maxBytes)
	}
	l.within = append(l.within, path)
	l.split(path, strings.TrimPrefix(string(data), "\ufeff")) // editors of other systems add this mark to UTF-8
	l.within = l.within[:len(l.within)-1]
	return owner, nil
}

func hint(err error) string {
	if h := errs.HintOf(err); h != "" {
		return " (" + h + ")"
	}
	return ""
}

// split splits text into logical lines. It removes comments first, as Slurm
// does, so that a backslash at the end of a comment does not continue the line.
func (l *loader) split(path, text string) {
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
		at.text = strings.TrimSpace(unescape(whole.String()))
		whole.Reset()
		begun = 0
		l.line(at)
	}
	if begun != 0 {
		l.warnings = append(l.warnings, Warning{path, begun, "the file ends within a continued line; it may be incomplete"})
		l.line(entry{path, begun, strings.TrimSpace(unescape(whole.String()))})
	}
}

// line stores a logical line. For an Include line, it reads the included file
// instead.
func (l *loader) line(at entry) {
	end := strings.IndexAny(at.text+" ", " \t")
	word, rest := at.text[:end], strings.TrimSpace(at.text[end:])
	switch {
	case at.text == "":
	case strings.ContainsFunc(at.text, func(r rune) bool { return r < ' ' && !blank(byte(r)) || r == 0x7f }):
		l.problem(at, "a control character")
	case fold(word) == "include" && !strings.HasPrefix(rest, "="):
		l.include(at, strings.Trim(rest, `"`))
	default:
		l.entries = append(l.entries, at)
	}
}

// include reads the file that an Include line names. As in Slurm, the name may
// contain %c, which stands for ClusterName. Patterns are not supported.
func (l *loader) include(at entry, path string) {
	if strings.Contains(path, "%c") {
		cluster := l.clusterName()
		if cluster == "" {
			l.problem(at, "%%c in a file name stands for ClusterName, which must be set before")
			return
		}
		path = strings.ReplaceAll(path, "%c", cluster)
	}
	switch {
	case path == "" || strings.ContainsAny(path, "\" \t"):
		l.problem(at, "Include takes one file name")
		return
	case strings.Contains(path, "*"):
		l.problem(at, "Include takes one file name, not a pattern")
		return
	case !filepath.IsAbs(path):
		path = filepath.Join(l.top, path)
	}
	// A sched.conf may include a whole slurm.conf. The Includes in that
	// slurm.conf are relative to its own directory, as in Slurm.
	if filepath.Base(path) == "slurm.conf" {
		defer func(top string) { l.top = top }(l.top)
		l.top = filepath.Dir(path)
	}
	if _, err := l.load(path); err != nil {
		l.problem(at, "%v%s", err, hint(err))
	}
}

// clusterName returns the cluster's name. It returns "" if the name has not
// been set yet or can't be part of a path.
func (l *loader) clusterName() (name string) {
	for _, e := range l.entries {
		found, _ := pairs(e.text)
		for _, p := range found {
			if fold(p.Key) == "clustername" && setName(&name, p.Value) != nil {
				name = ""
			}
		}
	}
	return name
}

func (l *loader) problem(at entry, format string, args ...any) {
	l.problems = append(l.problems, Problem{at.file, at.line, fmt.Sprintf(format, args...)})
}

// uncomment removes an unescaped # and everything after it. It keeps a # within
// a quoted value. Slurm differs here: it ends the line, and thus the value, at
// such a #.
func uncomment(line string) string {
	if !strings.Contains(line, "#") {
		return line
	}
	escaped, quoted, last := false, false, byte(0) // last is the last byte that is not a blank
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case escaped:
			escaped = false
		case c == '\\':
			escaped = true
		case c == '#' && !quoted:
			return line[:i]
		case c == '"' && quoted:
			quoted = false
		case c == '"':
			quoted = last == '=' && strings.Contains(line[i+1:], `"`)
		}
		if !blank(c) {
			last = c
		}
	}
	return line
}

// continued removes a backslash at the end of line, and reports whether there
// was one. Spaces may follow the backslash.
func continued(line string) (string, bool) {
	line = strings.TrimRight(line, " \t\v\f\r\n")
	cut := strings.TrimRight(line, `\`)
	if (len(line)-len(cut))%2 == 0 {
		return line, false
	}
	return line[:len(line)-1], true
}

// unescape removes each backslash that escapes a byte. So an escaped space or
// quote has the same effect in a value as one without a backslash.
func unescape(line string) string {
	if !strings.Contains(line, `\`) {
		return line
	}
	var out strings.Builder
	for i := 0; i < len(line); i++ {
		if line[i] == '\\' {
			if i++; i == len(line) {
				break
			}
		}
		out.WriteByte(line[i])
	}
	return out.String()
}
