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
// means ALL. The variables in added are those that other options set.
func environment(export *string, environ []string, added ...string) ([]string, error) {
	all, words := export == nil, []string(nil)
	if export != nil {
		words = strings.Split(*export, ",")
	}
	values := map[string]string{}
	add := func(variable string) {
		name, value, ok := strings.Cut(variable, "=")
		if ok && name != "" && !slices.Contains(secretVariables, name) {
			values[name] = value
		}
	}
	for _, w := range words {
		all = all || strings.EqualFold(w, "ALL")
	}
	if add(path); all {
		for _, variable := range environ {
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
