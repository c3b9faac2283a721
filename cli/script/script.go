// Package script turns a batch script into a job. The options of sbatch, which
// are in #SBATCH lines and on the command line, become the fields of a REST
// submission.
//
// Options are never ignored. If an option is unknown or has no field in the
// REST API, the package returns an error. The error contains the number of the
// #SBATCH line, or says that the option comes from the command line.
package script

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"schedrestd/internal/errs"
	"schedrestd/internal/printable"
	"schedrestd/internal/typo"
)

// MaxSize is the maximum size of a script in bytes. slurmctld has the same
// default.
const MaxSize = 4 << 20

// Job is the object "job" in the body of a submission.
type Job map[string]any

// Source has the input for a job.
type Source struct {
	Name        string // name of the file; "-" for standard input
	Text        []byte
	Options     []string  // options of sbatch, which override those in the script
	Directory   string    // working directory, unless an option sets it
	Environment []string  // variables of this process
	Now         time.Time // zero for the current time
}

// Parse returns the job that s describes.
func Parse(s Source) (Job, error) {
	name := printable.Text(filepath.Base(s.Name))
	switch {
	case len(s.Text) > MaxSize:
		return nil, errs.New(errs.Malformed, "%s: the script is longer than %d bytes", name, MaxSize)
	case len(bytes.TrimSpace(s.Text)) == 0:
		return nil, errs.New(errs.Malformed, "%s: the script is empty", name)
	case bytes.IndexByte(s.Text, 0) >= 0:
		return nil, errs.New(errs.Malformed, "%s: the script contains a NUL byte", name).
			WithHint("submit a text file that starts the program")
	case bytes.HasPrefix(s.Text, []byte("\ufeff")):
		return nil, errs.New(errs.Malformed, "%s: the script begins with a byte order mark, which editors do not show", name).
			WithHint("remove it, for example with: sed -i '1s/^\\xef\\xbb\\xbf//' FILE")
	case !bytes.HasPrefix(s.Text, []byte("#!")):
		return nil, errs.New(errs.Malformed, "%s: the first line of the script must begin with #! and name an interpreter", name).
			WithHint("write #!/bin/sh or #!/bin/bash into the first line")
	case bytes.Contains(s.Text, []byte("\r\n")):
		return nil, errs.New(errs.Malformed, "%s: the lines end as on Windows (CR LF)", name).
			WithHint("convert the script, for example with: sed -i 's/\\r$//' FILE")
	}
	r := reader{now: s.Now, job: Job{"script": string(s.Text), "current_working_directory": s.Directory, "name": name}}
	if s.Name == "-" {
		r.job["name"] = "sbatch" // as sbatch does
	}
	for number, line := range directives(s.Text) {
		words, err := split(line)
		if err == nil {
			err = r.read(words)
		}
		if err != nil {
			return nil, addLocation(err, fmt.Sprintf("%s: line %d", name, number))
		}
	}
	if err := r.read(s.Options); err != nil {
		return nil, addLocation(err, "options after --")
	}
	env, err := environment(r.export, s.Environment, r.variables...)
	if err != nil {
		return nil, err
	}
	r.job["environment"] = env
	r.finish()
	return r.job, nil
}

// Changes returns the fields that options of sbatch set in a change of an
// existing job.
func Changes(words []string) (Job, error) {
	r := reader{job: Job{}, changes: true}
	if err := r.read(words); err != nil {
		return nil, addLocation(err, "options after --")
	}
	r.finish()
	return r.job, nil
}

// addLocation adds to an error the location of the option that caused it.
func addLocation(err error, location string) error {
	return &errs.Error{Kind: errs.Malformed, Message: location + ": " + err.Error(), Hint: errs.HintOf(err)}
}

// directives calls yield for each line of options before the first command of
// the script. As for sbatch, such a line begins with #SBATCH or, in old scripts,
// with #SLURM. It passes the line's number and the options in the line.
func directives(text []byte) func(yield func(int, string) bool) {
	return func(yield func(int, string) bool) {
		number := 0
		for line := range strings.Lines(string(text)) {
			number++
			line = strings.TrimRight(line, "\n")
			rest, ok := strings.CutPrefix(line, "#SBATCH")
			if !ok {
				rest, ok = strings.CutPrefix(line, "#SLURM")
			}
			if ok {
				if !yield(number, rest) {
					return
				}
			} else if blank := strings.Trim(line, blanks); blank != "" && blank[0] != '#' {
				return
			}
		}
	}
}

// blanks are the characters that separate options in a line.
const blanks = " \t\v\f\r"

// split splits a line of options as sbatch does: at blanks that are not in
// quotes. A # that is neither in quotes nor after a backslash begins a comment,
// even within a word. A backslash quotes the next character, also in quotes; at
// the end of the line it has no effect.
func split(line string) (words []string, err error) {
	var word strings.Builder
	inWord, quote := false, rune(0)
	escaped := false
	end := func() {
		if inWord {
			words = append(words, word.String())
		}
		word.Reset()
		inWord, escaped = false, false
	}
	for _, r := range line {
		switch {
		case quote == 0 && strings.ContainsRune(blanks, r) && !(escaped && r == ' '):
			end()
		case escaped:
			word.WriteRune(r)
			inWord, escaped = true, false
		case r == '\\':
			escaped = true
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			inWord, quote = true, r
		case r == '#':
			end()
			return words, nil
		case r == ':' && !inWord:
			return nil, errs.New(errs.Malformed, "unexpected :")
		default:
			inWord = true
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, errs.New(errs.Malformed, "a quote is not closed")
	}
	end()
	return words, nil
}

// reader collects the options of a job.
type reader struct {
	job       Job
	parts     map[string]map[string]any // the values of joined fields by option
	variables []string                  // that options add to the environment
	export    *string
	given     map[string]bool // the names of the options so far
	now       time.Time       // zero for the current time
	changes   bool            // the options change an existing job
}

// read parses words as options of sbatch.
func (r *reader) read(words []string) error {
	for len(words) > 0 {
		word := words[0]
		words = words[1:]
		if strings.EqualFold(word, "hetjob") || strings.EqualFold(word, "packjob") {
			return errs.New(errs.Malformed, "unsupported: %s", word).WithHint("heterogeneous jobs are not supported")
		}
		if len(word) < 2 || word[0] != '-' || word == "--" {
			return errs.New(errs.Malformed, "unexpected argument %q", shorten(word)).
				WithHint("arguments of the script follow its name, before --")
		}
		if word[1] != '-' {
			rest, err := r.readShort(word, words)
			if err != nil {
				return err
			}
			words = rest
			continue
		}
		name, value, hasValue := strings.Cut(word[2:], "=")
		o, candidates := find(name)
		if candidates != nil {
			return errs.New(errs.Malformed, "ambiguous option --%s", shorten(name)).WithHint("it may mean %s", strings.Join(candidates, ", "))
		}
		if o == nil {
			return unknownOption("--" + name)
		}
		if o.arg == required && !hasValue {
			if len(words) == 0 {
				return errs.New(errs.Malformed, "--%s needs a value", name)
			}
			value, words = words[0], words[1:]
		}
		if err := r.apply(o, "--"+name, value, hasValue); err != nil {
			return err
		}
	}
	return nil
}

// readShort parses a word that contains one-letter options, such as -n4. The
// last option in the word may require a value. If the word does not contain
// this value, the first element of words is the value. readShort returns the
// elements of words that it has not used.
func (r *reader) readShort(word string, words []string) ([]string, error) {
	for letters := word[1:]; letters != ""; {
		_, size := utf8.DecodeRuneInString(letters)
		name, rest := letters[:size], letters[size:]
		o := byLetter[name]
		if o == nil {
			return nil, unknownOption("-" + name)
		}
		if o.arg == none {
			if err := r.apply(o, "-"+name, "", false); err != nil {
				return nil, err
			}
			letters = rest
			continue
		}
		value := strings.TrimPrefix(rest, "=")
		if rest == "" && o.arg == required {
			if len(words) == 0 {
				return nil, errs.New(errs.Malformed, "-%s needs a value", name)
			}
			value, words = words[0], words[1:]
		}
		return words, r.apply(o, "-"+name, value, true)
	}
	return words, nil
}

// apply sets the fields of one option.
func (r *reader) apply(o *option, name, value string, hasValue bool) error {
	if hint, ok := unchangeable[o.name]; ok && r.changes {
		return errs.New(errs.Malformed, "%s can't be changed after the submission", name).WithHint("%s", hint)
	}
	if o.syntax == "refused" {
		return unsupportedOption(o, name)
	}
	if o.arg == none && hasValue {
		return errs.New(errs.Malformed, "%s has no value", name)
	}
	if o.arg == required && value == "" {
		return errs.New(errs.Malformed, "%s needs a value", name)
	}
	for first, others := range exclusive {
		for _, other := range others {
			if o.name == first && r.given[other] || o.name == other && r.given[first] {
				return errs.New(errs.Malformed, "%s: --%s and --%s exclude each other", name, first, other)
			}
		}
	}
	if err := syntaxes[o.syntax](r, o, value); err != nil {
		return errs.New(errs.Malformed, "%s=%s: %s", name, shorten(value), err.Error()).WithHint("%s", errs.HintOf(err))
	}
	if r.given == nil {
		r.given = map[string]bool{}
	}
	r.given[o.name] = true
	return nil
}

// unsupportedOption returns the error for an option of sbatch that no submission
// can contain.
func unsupportedOption(o *option, name string) error {
	hint := hints[o.name]
	if hint == "" {
		hint = reasonHints[o.detail.(string)]
	}
	return errs.New(errs.Malformed, "unsupported option %s", name).WithHint("%s", hint)
}

// unknownOption returns the error for an option that sbatch does not have.
func unknownOption(name string) error {
	hint := "schedctl(1) lists the supported options"
	if near := similarOption(strings.TrimPrefix(name, "--")); near != "" {
		hint = "did you mean --" + near + "?"
	}
	return errs.New(errs.Malformed, "unsupported option %s", shorten(name)).WithHint("%s", hint)
}

// similarOption returns the option that a misspelled option probably stands for,
// or "". It prefers an option whose words are all similar (--cpu-per-tasks), then
// one with which the misspelled option begins (--time-limit), and then one that
// is similar as a whole.
func similarOption(name string) string {
	known := sortedKeys(byName)
	words := strings.Split(name, "-")
	near := typo.Nearest(name, slices.DeleteFunc(slices.Clone(known), func(option string) bool {
		others := strings.Split(option, "-")
		return len(others) != len(words) || !slices.EqualFunc(words, others, func(a, b string) bool { return typo.Nearest(a, []string{b}) != "" })
	}))
	if near != "" {
		return near
	}
	for n := len(words) - 1; n > 0; n-- {
		if begin := strings.Join(words[:n], "-"); byName[begin] != nil {
			return begin
		}
	}
	return typo.Nearest(name, known)
}

// finish sets the fields whose values depend on other fields, as sbatch does.
func (r *reader) finish() {
	minimumNodes, _ := r.job["minimum_nodes"].(int)
	tasks, hasTasks := r.job["tasks"].(int)
	if perGPU, ok := r.job["ntasks_per_tres"].(int); ok && !hasTasks {
		tasks = perGPU * cmp.Or(countGPUs(r.job["tres_per_job"]), max(minimumNodes, 1)*countGPUs(r.job["tres_per_node"]))
		if hasTasks = tasks > 0; hasTasks {
			r.job["tasks"] = tasks
		}
	}
	cpusPerTask, hasCPUs := r.job["cpus_per_task"].(int)
	if text, ok := r.job["tres_per_task"].(string); ok && !hasCPUs {
		if m := cpuPerTask.FindStringSubmatch(text); m != nil {
			cpusPerTask, _ = strconv.Atoi(m[1])
			r.job["cpus_per_task"], hasCPUs = cpusPerTask, true
		}
	}
	switch {
	case r.job["overcommit"] == true:
		r.job["minimum_cpus"] = max(minimumNodes, 1)
	case hasTasks || hasCPUs:
		r.job["minimum_cpus"] = max(tasks, 1) * max(cpusPerTask, 1)
	}
}

// cpuPerTask finds the processors in a value of tres_per_task.
var cpuPerTask = regexp.MustCompile(`(?:^|,)cpu[:=]([1-9][0-9]{0,4})(?:,|$)`)

// countGPUs returns the number of GPUs in a list such as
// "gres/gpu:a100:2,gres/gpu". A missing count means one.
func countGPUs(list any) (n int) {
	text, _ := list.(string)
	for part := range strings.SplitSeq(text, ",") {
		if rest, ok := strings.CutPrefix(part, "gres/gpu"); ok && (rest == "" || rest[0] == ':' || rest[0] == '=') {
			count, err := strconv.ParseUint(rest[strings.LastIndexAny(rest, ":=")+1:], 10, 16)
			if err != nil {
				count = 1
			}
			n += int(count)
		}
	}
	return n
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

func shorten(s string) string {
	if len(s) > 80 {
		s = s[:80] + "…"
	}
	return printable.Text(s)
}
