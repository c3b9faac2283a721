package script

import (
	"slices"
	"strings"

	"schedrestd/errs"
)

// secretVariables lists variables that must not be in a job's environment,
// because anyone who can read the environment could act as the user.
var secretVariables = []string{"SCHED_JWT", "SLURM_JWT"}

// path is a variable of every job, because an environment must not be empty.
// The user's own PATH replaces it.
const path = "PATH=/usr/local/bin:/usr/bin:/bin"

// environment returns the variables of the job. environ has the variables of
// this process. export is the value of the option --export: ALL (nil means the
// same), NONE, or a list of NAME and NAME=VALUE. ALL selects all variables in
// environ, even if it is an element of a list.
func environment(export *string, environ []string) ([]string, error) {
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
		case strings.EqualFold(w, "ALL") || strings.EqualFold(w, "NONE") && len(words) == 1:
		case w == "" || name == "" || strings.EqualFold(w, "NONE"):
			return nil, errs.New(errs.Malformed, "--export=%s: not ALL, NONE, or a list of NAME and NAME=VALUE", shorten(*export))
		case assigned && slices.Contains(secretVariables, name):
			return nil, errs.New(errs.Malformed, "--export: %s is a credential and is not given to jobs", name)
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
	list := make([]string, 0, len(values))
	for name, value := range values {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list, nil
}
