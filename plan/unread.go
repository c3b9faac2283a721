package plan

import (
	"log/slog"
	"slices"
	"strings"

	"schedrestd/typo"
)

// forOthers lists variables with the gateway's prefix that the gateway does not
// read. The units take command-line options from SCHEDRESTD_OPTIONS.
var forOthers = []string{"SCHEDRESTD_OPTIONS"}

// warnUnread logs unknown variables that look like the gateway's. An
// administrator who misspells a variable expects it to have an effect.
func warnUnread(environment []string, log *slog.Logger) {
	slices.Sort(environment)
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		if value == "" || !isUnread(name) {
			continue
		}
		if like := nearest(name); like != "" {
			log.Warn("unknown environment variable", "name", name, "hint", "did you mean "+like+"?")
		} else {
			log.Warn("unknown environment variable", "name", name, "hint", "schedrestd(8) lists the known variables")
		}
	}
}

// isUnread reports whether name has a prefix of the gateway and is not a known
// variable.
func isUnread(name string) bool {
	if !strings.HasPrefix(name, "SCHEDRESTD_") && !strings.HasPrefix(name, "SLURMRESTD_") {
		return false
	}
	ours := "SCHED" + name[len("SCHED"):] // both prefixes have the same length
	return !slices.Contains(forOthers, ours) && !slices.ContainsFunc(variables, func(v variable) bool { return v.name == ours })
}

// nearest returns the known variable that is most similar to a misspelled name.
// The result has the prefix that the misspelled name has. nearest returns "" if
// no variable is similar.
func nearest(name string) string {
	var known []string
	for _, v := range variables {
		if rest, ok := strings.CutPrefix(v.name, prefix); ok {
			known = append(known, rest)
		}
	}
	if rest := typo.Nearest(name[len(prefix):], known); rest != "" {
		return name[:len(prefix)] + rest
	}
	return ""
}

// prefix is the beginning of the gateway's own variables. The prefix in Slurm's
// spelling has the same length.
const prefix = "SCHEDRESTD_"
