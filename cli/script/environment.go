package script

import (
	"slices"
	"strings"

	"schedrestd/internal/errs"
)

// secretVariables lists variables that must not be in a job's environment. They
// contain tokens, and anyone who can read the environment could act as the
// user.
var secretVariables = []string{"SCHED_JWT", "SLURM_JWT"}

// path is the default for the variable PATH. Every job has this variable,
// because the environment of a job must not be empty. If --export selects PATH
// from the user's environment or assigns a value to it, that value is used
// instead.
const path = "PATH=/usr/local/bin:/usr/bin:/bin"

// environment returns the environment variables of the job. The argument
// environ contains the variables of this process. The export argument is the
// value of the option --export, or nil if the option is not given. The value is
// ALL, NONE, or a list whose elements are ALL, NAME or NAME=VALUE. ALL, even as
// one element of a list, selects all variables in environ. An export of nil
// means ALL. As in sbatch, the variables in environ that begin with SLURM_ are
// always selected, and with NONE also those that begin with SPANK_. The
// variables in added are those that other options set.
func environment(export *string, environ []string, added ...string) ([]string, error) {
	exportAll, words := export == nil, []string(nil)
	if export != nil {
		words = splitExport(*export)
	}
	values := map[string]string{}
	add := func(variable string) {
		name, value, ok := strings.Cut(variable, "=")
		if ok && name != "" && !slices.Contains(secretVariables, name) {
			values[name] = value
		}
	}
	for _, w := range words {
		exportAll = exportAll || strings.EqualFold(w, "ALL")
	}
	none := len(words) == 1 && (strings.EqualFold(words[0], "NONE") || strings.EqualFold(words[0], "NIL"))
	add(path)
	for _, variable := range environ {
		if exportAll || none && (strings.HasPrefix(variable, "SLURM_") || strings.HasPrefix(variable, "SPANK_")) {
			add(variable)
		}
	}
	for _, w := range words {
		name, _, assigned := strings.Cut(w, "=")
		switch {
		case strings.EqualFold(w, "ALL") || (strings.EqualFold(w, "NONE") || strings.EqualFold(w, "NIL")) && len(words) == 1:
		case w == "" || name == "" || strings.EqualFold(w, "NONE") || strings.EqualFold(w, "NIL"):
			return nil, errs.New(errs.Malformed, "not ALL, NONE, or a list of NAME and NAME=VALUE")
		case assigned && slices.Contains(secretVariables, name):
			return nil, errs.New(errs.Malformed, "%s is a credential and is not given to jobs", name)
		case assigned:
			add(w)
		default:
			for _, variable := range environ {
				if strings.HasPrefix(variable, name+"=") {
					add(variable)
				}
			}
		}
	}
	for _, variable := range environ {
		if len(words) > 0 && strings.HasPrefix(variable, "SLURM_") { // even after an assignment
			add(variable)
		}
	}
	for _, variable := range added {
		add(variable)
	}
	list := make([]string, 0, len(values))
	for name, value := range values {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list, nil
}

// splitExport splits a value of --export at the commas outside quotes. As sbatch,
// it removes quotes only around a whole element: 'A=1,2' sets A to 1,2, and
// A='1,2' sets it to a value with quotes.
func splitExport(text string) (words []string) {
	quote, start := rune(0), 0
	for i, r := range text + "," {
		switch {
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		case r == ',' && (quote == 0 || i == len(text)):
			word := text[start:i]
			if n := len(word); n > 1 && (word[0] == '\'' || word[0] == '"') && word[n-1] == word[0] {
				word = word[1 : n-1]
			}
			words, start = append(words, word), i+1
		}
	}
	return words
}
