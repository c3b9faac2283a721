package conf

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"schedrestd/internal/typo"
)

// A key is a configuration key, with the function that stores its value in a T.
type key[T any] struct {
	name string // in our spelling
	set  func(to *T, value string) error
	list bool // all values are used, not only the last
}

// A grammar lists the keys that a configuration file may contain.
type grammar[T any] struct {
	keys []key[T]
	// lines maps keys such as NodeName to functions. Such a key begins a line
	// that describes one object. Its function returns where to store the whole
	// line. If the function is nil, the line is ignored.
	lines   map[string]func(*T) *[]Line
	ignored string // keys of Slurm that are ignored
}

// A setting is a Key=Value pair and its position in the files.
type setting struct {
	Pair
	file  string
	line  int
	slurm bool // whether the key is in Slurm's spelling
}

// A parser applies a grammar to a file and collects the results.
type parser[T any] struct {
	grammar    grammar[T]
	to         *T
	owner      uint32
	slurm      bool
	site       bool // whether Slurm's daemons read the file; see isSite
	hasContent bool // whether the file has a line that is neither blank nor a comment
	files      []string
	opened     bool                 // whether the file was opened; false for /dev/null
	openErr    error                // why it could not be opened
	settings   map[string][]setting // by name; pairs that were applied are removed
	seen       map[string]string    // maps the name of each applied key to its spelling in the file
	warnings   []Warning
	problems   Problems
	hint       string // of the problems
}

// read applies the grammar g to a file and to the files that it includes.
func read[T any](g grammar[T], to *T, path string, open source) *parser[T] {
	r := &parser[T]{grammar: g, to: to, settings: map[string][]setting{}, seen: map[string]string{}}
	if path == devNull {
		return r
	}
	l := &loader{open: open, baseDir: filepath.Dir(path)}
	if r.owner, r.openErr = l.load(path); r.openErr != nil {
		return r
	}
	r.opened, r.problems, r.warnings, r.files = true, l.problems, l.warnings, l.files
	for _, e := range l.entries {
		r.addEntry(e)
	}
	r.site = r.isSite()
	r.apply()
	return r
}

// isSite reports whether the file belongs to a site's Slurm, rather than to our
// daemons. Such a file has a key in Slurm's spelling, and its AuthType is not
// auth/cred. Our daemons support only auth/cred, and Slurm's daemons do not
// support it.
func (r *parser[T]) isSite() bool {
	kind := ""
	for _, v := range r.settings["authtype"] {
		kind = pluginName(v.Value, "auth/")
	}
	return r.slurm && kind != "cred"
}

// addEntry stores the pairs of one line by key.
func (r *parser[T]) addEntry(e entry) {
	r.hasContent = true
	found, err := parsePairs(e.text)
	if len(found) > 0 && r.grammar.ignores(found[0].Key) {
		return
	}
	if err != nil {
		r.problems = append(r.problems, Problem{e.file, e.line, err.Error()})
	}
	if len(found) == 0 {
		return
	}
	if field, ok := r.grammar.lines[fold(found[0].Key)]; ok {
		if err == nil {
			lines := field(r.to)
			*lines = append(*lines, Line{e.file, e.line, found})
		}
		return
	}
	for _, p := range found {
		name, slurm := canonicalKey(p.Key)
		r.slurm = r.slurm || slurm
		r.settings[name] = append(r.settings[name], setting{p, e.file, e.line, slurm})
	}
}

// ignores reports whether the grammar ignores lines that begin with key.
func (g grammar[T]) ignores(key string) bool {
	field, ok := g.lines[fold(key)]
	return ok && field == nil
}

// apply stores the file's values for the keys of the grammar, in the order in
// which the grammar lists the keys. Then it adds warnings about keys that the
// grammar does not list.
func (r *parser[T]) apply() {
	for _, k := range r.grammar.keys {
		name := fold(k.name)
		values := r.settings[name]
		delete(r.settings, name)
		for _, v := range r.selectValues(k, values) {
			r.seen[name] = v.Key
			err := errStrayQuote
			if !strings.Contains(v.Value, `"`) {
				err = k.set(r.to, v.Value)
			}
			tolerable, ok := errors.AsType[toleratedError](err)
			if ok && r.site {
				err = warningError(tolerable.note)
				if tolerable.note == "" {
					err = nil
				}
			}
			if warning, ok := errors.AsType[warningError](err); ok {
				r.warn(v, v.Key+": "+warning.Error())
			} else if err != nil {
				r.problems = append(r.problems, Problem{v.file, v.line, v.Key + ": " + err.Error()})
			}
		}
	}
	r.warnUnknown()
}

// maxUnknown limits the warnings about unknown keys. Each takes time to find a
// similar key, and a line of the log. A controller may have sent the file.
const maxUnknown = 100

// warnUnknown adds a warning for each key that the grammar does not list, and one
// for all beyond the limit.
func (r *parser[T]) warnUnknown() {
	ignored := strings.Fields(fold(r.grammar.ignored))
	var unknown []setting
	for name, values := range r.settings {
		if !slices.Contains(ignored, name) {
			unknown = append(unknown, values...)
		}
	}
	slices.SortStableFunc(unknown, func(a, b setting) int {
		return compareWarnings(Warning{a.file, a.line, a.Key}, Warning{b.file, b.line, b.Key})
	})
	for i, v := range unknown {
		if i == maxUnknown {
			r.warn(v, fmt.Sprintf("%s: unknown key, ignored, like %d more", v.Key, len(unknown)-i-1))
			return
		}
		r.warn(v, v.Key+": unknown key, ignored"+r.suggestion(v))
	}
}

// suggestion returns a question that names the known key that v probably stands
// for, or "". The known key has the spelling of v.
func (r *parser[T]) suggestion(v setting) string {
	var names []string
	for _, k := range r.grammar.keys {
		names = append(names, k.name)
	}
	byName := map[string]string{} // by name in lower case
	for _, name := range append(names, strings.Fields(r.grammar.ignored)...) {
		byName[fold(name)] = name
	}
	name, _ := canonicalKey(v.Key)
	nearest := byName[typo.Nearest(name, slices.Sorted(maps.Keys(byName)))]
	switch {
	case nearest == "":
		return ""
	case v.slurm:
		nearest = strings.Replace(nearest, "Sched", "Slurm", 1)
	}
	return "; did you mean " + nearest + "?"
}

// errStrayQuote is the error for a partly quoted value of a key that this
// project uses. Slurm accepts such a value, including the quote, but it is
// probably not what the administrator intended.
var errStrayQuote = errors.New("an unclosed quote, or text after the closing quote")

// A warningError means that a value, or a part of it, is ignored with a
// warning.
type warningError string

func (p warningError) Error() string { return string(p) }

// A toleratedError describes a value that Slurm accepts and our daemons refuse.
// In a file for our daemons, such a value is an error. In a file that Slurm's
// daemons read, it causes only a warning, because the gateway must be able to
// read that file. The note field contains the text of the warning.
type toleratedError struct {
	error
	note string // "" for no warning
}

// selectValues returns the values of the key k that take effect: all of them if
// k takes a list, and otherwise only the last one. A key in Slurm's spelling,
// such as SlurmUser, has no effect if the file also has the key in our
// spelling, SchedUser. If the two have different values, selectValues reports a
// problem.
func (r *parser[T]) selectValues(k key[T], values []setting) []setting {
	var bySpelling [2][]setting
	for _, v := range values {
		i := 0
		if v.slurm {
			i = 1
		}
		bySpelling[i] = append(bySpelling[i], v)
	}
	for i, list := range bySpelling {
		if k.list || len(list) < 2 {
			continue
		}
		last := list[len(list)-1]
		r.warn(last, last.Key+": repeated; the last one is used")
		bySpelling[i] = list[len(list)-1:]
	}
	if len(bySpelling[0]) == 0 {
		return bySpelling[1]
	}
	equalValue := func(a, b setting) bool { return a.Value == b.Value }
	if len(bySpelling[1]) > 0 && !slices.EqualFunc(bySpelling[0], bySpelling[1], equalValue) {
		sched, slurm := bySpelling[0][0], bySpelling[1][0]
		text := slurm.Key + " and " + sched.Key + " are both given and differ"
		r.problems = append(r.problems, Problem{slurm.file, slurm.line, text})
	}
	return bySpelling[0]
}

func (r *parser[T]) warn(v setting, text string) {
	r.warnings = append(r.warnings, Warning{v.file, v.line, text})
}

// suspect sets the hint of the problems if the file has a key of another kind of
// configuration file, because the administrator probably named the wrong file.
func (r *parser[T]) suspect(hint string, foreign ...string) {
	for _, name := range foreign {
		if r.settings[fold(name)] != nil {
			r.hint = hint
		}
	}
}

// require reports a problem if the file is empty, and a problem for each
// required key that is missing. Such a problem names the key in the spelling
// that the file uses.
func (r *parser[T]) require(path string, names ...string) {
	empty := !r.hasContent && len(r.problems) == 0
	// An empty file has no key that shows the spelling, so the name of the file
	// determines it.
	inSlurm := r.slurm || empty && strings.HasPrefix(filepath.Base(path), "slurm")
	if r.opened && empty {
		r.problems = append(r.problems, Problem{path, 0, "the file is empty"})
	}
	for _, name := range names {
		if r.opened && r.seen[fold(name)] == "" {
			if inSlurm {
				name = strings.Replace(name, "Sched", "Slurm", 1)
			}
			r.problems = append(r.problems, Problem{path, 0, name + missingSuffix})
		}
	}
}

// finish returns all warnings and problems, sorted by file and line. It adds a
// warning if the file has an unexpected owner.
func (r *parser[T]) finish(path, user string) ([]Warning, error) {
	if r.openErr != nil {
		return nil, r.openErr
	}
	// An ordinary user may have reasons to use another user's file, so this is
	// only a warning. For a program that root starts, CheckTrust refuses such a
	// file.
	if r.opened && user == "" && r.owner != 0 && int(r.owner) != os.Geteuid() {
		text := fmt.Sprintf("owned by uid %d, which is neither root nor the user of this process", r.owner)
		r.warnings = append(r.warnings, Warning{path, 0, text})
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return compareWarnings(Warning(a), Warning(b)) })
	slices.SortStableFunc(r.warnings, compareWarnings)
	return r.warnings, r.problems.err(r.hint)
}

// canonicalKey returns the name of a key in our spelling and in lower case, and
// reports whether the key was in Slurm's spelling. The word "slurm" may be in
// the middle of a key, as in EpilogSlurmctld. The old keys for the controllers
// count as Slurm's spelling, although they do not contain that word.
func canonicalKey(key string) (name string, slurm bool) {
	name = fold(key)
	old := name == "controlmachine" || name == "backupcontroller"
	return strings.ReplaceAll(name, "slurm", "sched"), old || strings.Contains(name, "slurm")
}

func compareWarnings(a, b Warning) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}
