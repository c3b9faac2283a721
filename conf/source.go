package conf

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
)

// Limits on the configuration files. A configuration with 20 000 nodes needs
// about a megabyte. Without limits, a wrong path could make a root process use
// up all memory.
const (
	maxBytes   = 8 << 20 // bytes in total
	maxLine    = 1 << 20 // bytes of one line, with its continuations
	maxFiles   = 1024    // files in total; some sites include one file for each rack
	maxInclude = 16      // nesting of Includes
)

// devNull is the path that stands for an empty configuration.
const devNull = "/dev/null"

// A source returns the bytes of a configuration file and the uid of its owner.
type source func(path string) (data []byte, owner uint32, err error)

// newSource returns a source that opens each path with files.Open.
func newSource(files Files) source {
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

// CheckTrust returns an error if a process that runs as root must not use the
// given files. The files and the directories on their paths must belong to root
// or to one of the trusted owners, and no other user may be able to change
// them.
//
// The caller must read the files before it calls CheckTrust, because they name
// SchedUser, who is one of the trusted owners. After the files are read, only
// the owner of a directory on a path can replace a file. CheckTrust also checks
// the owners of these directories.
func CheckTrust(files []string, trust guard.Trust) error {
	files = slices.DeleteFunc(slices.Clone(files), func(path string) bool { return path == devNull })
	return guard.CheckFiles(files, guard.Configuration, trust)
}

// entry is a logical line.
type entry struct {
	file string
	line int // number of its first line
	text string
}

type loader struct {
	open     source
	baseDir  string   // directory to which Include paths are relative: the main file's, as in Slurm; see include
	files    []string // files read so far
	stack    []string // files being read; each includes the next
	bytes    int
	cluster  string // value of ClusterName so far; "" if there is none, or none that can be part of a path
	entries  []entry
	warnings []Warning
	problems Problems
}

// load appends the lines of the file at path to l.entries, and returns the
// file's owner.
func (l *loader) load(path string) (owner uint32, err error) {
	if slices.Contains(l.stack, path) {
		return 0, errs.New(errs.Invalid, "%s includes itself: %s", path, strings.Join(append(l.stack, path), ", "))
	}
	if l.files = append(l.files, path); len(l.files) > maxFiles || len(l.stack) > maxInclude {
		return 0, errs.New(errs.Invalid, "too many files included")
	}
	data, owner, err := l.open(path)
	if err != nil {
		return 0, err
	}
	if l.bytes += len(data); l.bytes > maxBytes {
		return 0, errs.New(errs.Invalid, "configuration %s: more than %d bytes in all", path, maxBytes)
	}
	if i := bytes.IndexByte(data, 0); i >= 0 || bytes.HasPrefix(data, []byte("\xff\xfe")) || bytes.HasPrefix(data, []byte("\xfe\xff")) {
		return 0, notText(path, data, i)
	}
	l.stack = append(l.stack, path)
	l.split(path, strings.TrimPrefix(string(data), "\ufeff")) // editors on other systems put a byte order mark before UTF-8 text
	l.stack = l.stack[:len(l.stack)-1]
	return owner, nil
}

// notText returns the error for a file that contains a NUL byte at data[i], or
// that begins with a byte order mark of UTF-16. Each line would have an error of
// its own.
func notText(path string, data []byte, i int) error {
	if i > 1 && data[0] < 0xfe {
		return &errs.Error{Kind: errs.Invalid, Err: Problem{path, 1 + bytes.Count(data[:i], []byte("\n")), "a NUL byte: this is not a text file"}}
	}
	return errs.New(errs.Invalid, "configuration %s: it looks like UTF-16, but must be UTF-8 or ASCII", path).
		WithHint("iconv -f UTF-16 -t UTF-8 %s  # writes it in the right form", guard.Quote(path))
}

func hintSuffix(err error) string {
	if h := errs.HintOf(err); h != "" {
		return " (" + h + ")"
	}
	return ""
}

// split splits text into logical lines. It removes comments first, as Slurm
// does, so that a backslash at the end of a comment does not continue the line.
func (l *loader) split(path, text string) {
	var whole strings.Builder
	startLine, number := 0, 0
	for physical := range strings.Lines(text) {
		number++
		if startLine == 0 {
			startLine = number
		}
		part, continues := cutContinuation(stripComment(physical))
		whole.WriteString(part)
		e := entry{path, startLine, ""}
		if whole.Len() > maxLine {
			l.addProblem(e, "line longer than %d bytes", maxLine)
			return
		}
		if continues {
			continue
		}
		e.text = strings.TrimSpace(unescape(whole.String()))
		whole.Reset()
		startLine = 0
		l.addLine(e)
	}
	if startLine != 0 {
		l.warnings = append(l.warnings, Warning{path, startLine, "the file ends within a continued line; it may be incomplete"})
		l.addLine(entry{path, startLine, strings.TrimSpace(unescape(whole.String()))})
	}
}

// addLine stores a logical line. For an Include line, it reads the included
// file instead.
func (l *loader) addLine(e entry) {
	end := strings.IndexAny(e.text+" ", " \t")
	word, rest := e.text[:end], strings.TrimSpace(e.text[end:])
	switch {
	case e.text == "":
	case strings.ContainsFunc(e.text, func(r rune) bool { return r < ' ' && !isBlank(byte(r)) || r == 0x7f }):
		l.addProblem(e, "a control character")
	case fold(word) == "include" && !strings.HasPrefix(rest, "="):
		l.include(e, strings.Trim(rest, `"`))
	default:
		l.entries = append(l.entries, e)
		l.noteCluster(e.text)
	}
}

// include reads the file that an Include line names. As in Slurm, %c in the
// name stands for the value of ClusterName, and patterns are not supported.
func (l *loader) include(e entry, path string) {
	if strings.Contains(path, "%c") {
		if l.cluster == "" {
			l.addProblem(e, "%%c in a file name stands for ClusterName, which must be set before")
			return
		}
		path = strings.ReplaceAll(path, "%c", l.cluster)
	}
	switch {
	case path == "" || strings.ContainsAny(path, "\" \t"):
		l.addProblem(e, "Include takes one file name")
		return
	case strings.Contains(path, "*"):
		l.addProblem(e, "Include takes one file name, not a pattern")
		return
	case !filepath.IsAbs(path):
		path = filepath.Join(l.baseDir, path)
	}
	// A sched.conf may include a whole slurm.conf. As in Slurm, Include paths
	// in that slurm.conf are relative to the directory of the slurm.conf.
	if filepath.Base(path) == "slurm.conf" {
		defer func(baseDir string) { l.baseDir = baseDir }(l.baseDir)
		l.baseDir = filepath.Dir(path)
	}
	if _, err := l.load(path); err != nil {
		l.addProblem(e, "%v%s", err, hintSuffix(err))
	}
}

// noteCluster records the value of ClusterName, if the line has one.
func (l *loader) noteCluster(line string) {
	if !strings.Contains(fold(line), "clustername") {
		return
	}
	found, _ := parsePairs(line)
	for _, p := range found {
		if fold(p.Key) == "clustername" && setName(&l.cluster, p.Value) != nil {
			l.cluster = ""
		}
	}
}

func (l *loader) addProblem(e entry, format string, args ...any) {
	l.problems = append(l.problems, Problem{e.file, e.line, fmt.Sprintf(format, args...)})
}

// stripComment removes an unescaped # and everything after it. It keeps a #
// within a quoted value. In Slurm, such a # ends the value and the line.
func stripComment(line string) string {
	if !strings.Contains(line, "#") {
		return line
	}
	escaped, quoted, last := false, false, byte(0) // last is the last byte so far that is not a blank
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
		if !isBlank(c) {
			last = c
		}
	}
	return line
}

// cutContinuation removes a backslash at the end of line, and reports whether
// there was one. Spaces may follow the backslash.
func cutContinuation(line string) (string, bool) {
	line = strings.TrimRight(line, " \t\v\f\r\n")
	cut := strings.TrimRight(line, `\`)
	if (len(line)-len(cut))%2 == 0 {
		return line, false
	}
	return line[:len(line)-1], true
}

// unescape removes each backslash that escapes a byte. An escaped space or
// quote has the same effect in a value as an unescaped one.
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
