package option

import (
	"log/slog"
	"slices"
	"strings"

	"schedrestd/internal/typo"
)

// unitOptions is a variable that the gateway does not read. The service units
// add its value to the gateway's command line. Only this spelling has an effect.
const unitOptions = "SCHEDRESTD_OPTIONS"

// WarnUnknown logs unknown variables whose names resemble those of the
// gateway's variables. An administrator who misspells a variable expects it to
// have an effect.
func WarnUnknown(environment []string, log *slog.Logger) {
	slices.Sort(environment)
	known := Variables()
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		if value == "" || name == unitOptions || slices.Contains(known, strings.Replace(name, "SLURM", "SCHED", 1)) {
			continue
		}
		suggestion, resembles := nearestVariable(strings.ToUpper(name), known)
		switch {
		case suggestion != "":
			log.Warn("unknown environment variable", "name", name, "hint", "did you mean "+suggestion+"?")
		case resembles:
			log.Warn("unknown environment variable", "name", name, "hint", "schedrestd(8) lists the known variables")
		}
	}
}

// nearestVariable reports whether name, in upper case, resembles the names of
// the gateway's own variables, or of those that name the configuration. The
// other variables without RESTD in their names also have meanings for Slurm's
// commands, which have many such variables. The suggestion is the most similar
// known variable, with the prefix of name. If no variable is similar, it is "".
func nearestVariable(name string, known []string) (suggestion string, resembles bool) {
	first, rest, found := strings.Cut(name, "_")
	prefix := typo.Nearest(first, []string{"SCHEDRESTD", "SLURMRESTD"})
	switch {
	case !found:
	case prefix != "":
		var suffixes []string
		for _, v := range append(known, unitOptions) {
			if suffix, ok := strings.CutPrefix(v, "SCHEDRESTD_"); ok {
				suffixes = append(suffixes, suffix)
			}
		}
		switch suffix := typo.Nearest(rest, suffixes); suffix {
		case "":
			return "", true
		case "OPTIONS":
			return unitOptions, true
		default:
			return prefix + "_" + suffix, true
		}
	case first == "SCHED" || first == "SLURM":
		if suffix := typo.Nearest(rest, []string{"CONF", "CONF_SERVER"}); suffix != "" {
			return first + "_" + suffix, true
		}
	}
	return "", false
}
