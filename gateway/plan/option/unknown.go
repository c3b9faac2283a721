package option

import (
	"log/slog"
	"slices"
	"strings"

	"schedrestd/internal/typo"
)

// externalVariables lists variables that have the gateway's prefix, but that
// other programs read. systemd adds the value of SCHEDRESTD_OPTIONS to the
// gateway's command line.
var externalVariables = []string{"SCHEDRESTD_OPTIONS"}

// WarnUnknown logs unknown variables that have the gateway's prefix. An
// administrator who misspells a variable expects it to have an effect.
func WarnUnknown(environment []string, log *slog.Logger) {
	slices.Sort(environment)
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		if value == "" || !isUnknown(name) {
			continue
		}
		if suggestion := nearestVariable(name); suggestion != "" {
			log.Warn("unknown environment variable", "name", name, "hint", "did you mean "+suggestion+"?")
		} else {
			log.Warn("unknown environment variable", "name", name, "hint", "schedrestd(8) lists the known variables")
		}
	}
}

// isUnknown reports whether name has a prefix of the gateway's variables and is
// not a known variable.
func isUnknown(name string) bool {
	if !strings.HasPrefix(name, "SCHEDRESTD_") && !strings.HasPrefix(name, "SLURMRESTD_") {
		return false
	}
	canonical := "SCHED" + name[len("SCHED"):] // both prefixes have the same length
	return !slices.Contains(externalVariables, canonical) && !slices.Contains(Variables(), canonical)
}

// nearestVariable returns the known variable that is most similar to the
// misspelled name. The result has the same prefix as name. If no variable is
// similar, the result is "".
func nearestVariable(name string) string {
	var suffixes []string
	for _, v := range Variables() {
		if suffix, ok := strings.CutPrefix(v, prefix); ok {
			suffixes = append(suffixes, suffix)
		}
	}
	if suffix := typo.Nearest(name[len(prefix):], suffixes); suffix != "" {
		return name[:len(prefix)] + suffix
	}
	return ""
}

// prefix begins the names of the gateway's own variables. The prefix in Slurm's
// spelling has the same length.
const prefix = "SCHEDRESTD_"
