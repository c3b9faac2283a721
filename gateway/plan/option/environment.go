package option

import (
	"os"
	"regexp"
	"slices"
	"strings"

	"schedrestd/conf"
	"schedrestd/internal/errs"
)

// Variables returns the names of all variables that have an effect.
func Variables() (list []string) {
	for _, v := range new(Options).variables() {
		list = append(list, v.name)
	}
	return list
}

// SetVariables returns the names of the variables in environ that have an effect
// on the gateway.
func SetVariables(environ []string) (list []string) {
	known := Variables()
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && slices.Contains(known, strings.Replace(name, "SLURM", "SCHED", 1)) {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list
}

// ReadEnvironment sets options from the environment, unless the command line has
// set them.
func (o *Options) ReadEnvironment() error {
	for _, v := range o.variables() {
		value, err := conf.Env(v.name)
		if err == nil && value != "" {
			err = v.set(v.name, value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// variableName matches the name of a variable that may have Slurm's spelling.
var variableName = regexp.MustCompile(`\bSCHED(RESTD)?_[A-Z_]*[A-Z]\b`)

// AsSet replaces, in a text for the administrator, the name of each variable
// that is set only in Slurm's spelling. The administrator's files do not contain
// the other name.
func AsSet(text string) string {
	return variableName.ReplaceAllStringFunc(text, func(name string) string {
		if slurmName := "SLURM" + name[len("SCHED"):]; os.Getenv(name) == "" && os.Getenv(slurmName) != "" {
			return slurmName
		}
		return name
	})
}

// SpelledAsSet returns err with the names of variables as they are set.
func SpelledAsSet(err error) error {
	text, hint := err.Error(), errs.HintOf(err)
	if AsSet(text) == text && AsSet(hint) == hint {
		return err
	}
	return errs.New(errs.KindOf(err), "%s", AsSet(text)).WithHint("%s", AsSet(hint))
}
