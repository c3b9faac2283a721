package conf

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// key is a configuration key, with a function that sets its value in a T.
type key[T any] struct {
	name string // in our spelling
	set  func(to *T, value string) error
	list bool // all values are used, not only the last
}

// grammar has the keys of a kind of configuration file.
type grammar[T any] struct {
	keys   []key[T]
	lines  map[string]func(*T) *[]Line // keys that start a line that is stored as a whole; if the function is nil, the line is ignored
	passed string                      // keys of Slurm that are ignored
}

// given is a Key=Value pair, with its place in the files.
type given struct {
	Pair
	file  string
	line  int
	slurm bool // whether the key is in Slurm's spelling
}

// reading applies a grammar to a file, and collects the results.
type reading[T any] struct {
	grammar  grammar[T]
	to       *T
	owner    uint32
	slurm    bool
	site     bool // whether Slurm's daemons read the file; see isSite
	said     bool // whether the file has a line that is not a comment
	files    []string
	opened   bool               // whether path is not /dev/null and could be opened
	failed   error              // why it could not be opened
	given    map[string][]given // by name; pairs that were applied are removed
	seen     map[string]bool    // names of the keys that were applied
	warnings []Warning
	problems Problems
}

// read applies a grammar to a file and the files that it includes.
func read[T any](g grammar[T], to *T, path string, open source) *reading[T] {
	r := &reading[T]{grammar: g, to: to, given: map[string][]given{}, seen: map[string]bool{}}
	if path == null {
		return r
	}
	l := &loader{open: open, top: filepath.Dir(path)}
	if r.owner, r.failed = l.load(path); r.failed != nil {
		return r
	}
	r.opened, r.problems, r.warnings, r.files = true, l.problems, l.warnings, l.files
	for _, e := range l.entries {
		r.entry(e)
	}
	r.site = r.isSite()
	r.apply()
	return r
}

// isSite reports whether the file belongs to a site's Slurm, and was not
// written for our daemons. Such a file has keys in Slurm's spelling, and its
// AuthType is not auth/cred: our daemons support only auth/cred, and Slurm's
// daemons do not support it.
func (r *reading[T]) isSite() bool {
	kind := ""
	for _, v := range r.given["authtype"] {
		kind = plugin(v.Value, "auth/")
	}
	return r.slurm && kind != "cred"
}

// entry stores the pairs of one line by key.
func (r *reading[T]) entry(e entry) {
	r.said = true
	found, err := pairs(e.text)
	if len(found) > 0 && r.grammar.skips(found[0].Key) {
		return
	}
	if err != nil {
		r.problems = append(r.problems, Problem{e.file, e.line, err.Error()})
	}
	if len(found) == 0 {
		return
	}
	if keep, ok := r.grammar.lines[fold(found[0].Key)]; ok {
		if err == nil {
			lines := keep(r.to)
			*lines = append(*lines, Line{e.file, e.line, found})
		}
		return
	}
	for _, p := range found {
		name, slurm := ours(p.Key)
		r.slurm = r.slurm || slurm
		r.given[name] = append(r.given[name], given{p, e.file, e.line, slurm})
	}
}

// skips reports whether a line that starts with key is ignored as a whole.
func (g grammar[T]) skips(key string) bool {
	keep, ok := g.lines[fold(key)]
	return ok && keep == nil
}

// apply sets every key of the grammar that the file has, in the grammar's
// order. Then it adds warnings about keys that are not in the grammar.
func (r *reading[T]) apply() {
	for _, k := range r.grammar.keys {
		name := fold(k.name)
		values := r.given[name]
		delete(r.given, name)
		r.seen[name] = len(values) > 0
		for _, v := range r.choose(k, values) {
			err := errStrayQuote
			if !strings.Contains(v.Value, `"`) {
				err = k.set(r.to, v.Value)
			}
			strict, ok := errors.AsType[tolerated](err)
			if ok && r.site {
				err = passedOver(strict.note)
			}
			if unknown, ok := errors.AsType[passedOver](err); ok {
				r.warn(v, v.Key+": "+unknown.Error())
			} else if err != nil {
				r.problems = append(r.problems, Problem{v.file, v.line, v.Key + ": " + err.Error()})
			}
		}
	}
	passed := strings.Fields(fold(r.grammar.passed))
	for name, values := range r.given {
		if slices.Contains(passed, name) {
			continue
		}
		for _, v := range values {
			r.warn(v, v.Key+": unknown key, ignored")
		}
	}
}

// errStrayQuote is the error for a partly quoted value of a key that the
// gateway uses. Slurm accepts such a value, including the quote, but it is
// probably not what the administrator intended.
var errStrayQuote = errors.New("an unclosed quote, or text after the closing quote")

// passedOver is an error that only causes a warning: the value, or a part of
// it, is ignored.
type passedOver string

func (p passedOver) Error() string { return string(p) }

// tolerated describes a value that Slurm accepts and our daemons refuse. In a
// file that was written for our daemons, it is an error. In a file that Slurm's
// daemons read, it only causes a warning with the text of note, because the
// gateway must be able to read the cluster's own configuration.
type tolerated struct {
	error
	note string
}

// choose selects which values of a key are used: all values if the key takes a
// list, otherwise only the last value. If the key was given in both spellings,
// choose returns the values of the key in our spelling. It reports a problem if
// the key in Slurm's spelling has other values.
func (r *reading[T]) choose(k key[T], values []given) []given {
	var spelled [2][]given
	for _, v := range values {
		i := 0
		if v.slurm {
			i = 1
		}
		spelled[i] = append(spelled[i], v)
	}
	for i, list := range spelled {
		if k.list || len(list) < 2 {
			continue
		}
		last := list[len(list)-1]
		r.warn(last, last.Key+": repeated; the last one is used")
		spelled[i] = list[len(list)-1:]
	}
	if len(spelled[0]) == 0 {
		return spelled[1]
	}
	same := func(a, b given) bool { return a.Value == b.Value }
	if len(spelled[1]) > 0 && !slices.EqualFunc(spelled[0], spelled[1], same) {
		other, at := spelled[0][0], spelled[1][0]
		r.problems = append(r.problems, Problem{at.file, at.line, at.Key + " and " + other.Key + " are both given and differ"})
	}
	return spelled[0]
}

func (r *reading[T]) warn(v given, text string) {
	r.warnings = append(r.warnings, Warning{v.file, v.line, text})
}

// require reports a problem if the file is empty, and one for each required key
// that it lacks. The problem names the key in the file's spelling.
func (r *reading[T]) require(path string, names ...string) {
	empty := !r.said && len(r.problems) == 0
	slurms := r.slurm || empty && strings.HasPrefix(filepath.Base(path), "slurm") // an empty file has no key that shows the spelling
	if r.opened && empty {
		r.problems = append(r.problems, Problem{path, 0, "the file is empty"})
	}
	for _, name := range names {
		if r.opened && !r.seen[fold(name)] {
			if slurms {
				name = strings.Replace(name, "Sched", "Slurm", 1)
			}
			r.problems = append(r.problems, Problem{path, 0, name + missing})
		}
	}
}

// finish returns all warnings and problems, sorted by file and line. It adds a
// warning if the file has an unexpected owner.
func (r *reading[T]) finish(path, user string) ([]Warning, error) {
	if r.failed != nil {
		return nil, r.failed
	}
	// An ordinary user may have reasons to use another user's file, so there is
	// only a warning. If root starts the program, the function Judge refuses
	// such a file.
	if r.opened && user == "" && r.owner != 0 && int(r.owner) != os.Geteuid() {
		text := fmt.Sprintf("owned by uid %d, which is neither root nor the user of this process", r.owner)
		r.warnings = append(r.warnings, Warning{path, 0, text})
	}
	slices.SortStableFunc(r.problems, func(a, b Problem) int { return before(Warning(a), Warning(b)) })
	slices.SortStableFunc(r.warnings, before)
	return r.warnings, r.problems.err("")
}

// ours returns a key's name in our spelling and in lower case, and reports
// whether the key was in Slurm's spelling. "slurm" may be in the middle of the
// key, as in EpilogSlurmctld. The old keys for the controllers do not contain
// it, but count as Slurm's spelling.
func ours(key string) (name string, slurm bool) {
	name = fold(key)
	old := name == "controlmachine" || name == "backupcontroller"
	return strings.ReplaceAll(name, "slurm", "sched"), old || strings.Contains(name, "slurm")
}

func before(a, b Warning) int {
	return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line))
}
