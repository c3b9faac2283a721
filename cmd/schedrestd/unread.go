package main

import (
	"log/slog"
	"slices"
	"strings"
)

// forOthers are variables with the gateway's prefix that are not for it: the units put options of the command line into one.
var forOthers = []string{"SCHEDRESTD_OPTIONS"}

// warnUnread warns of variables that look like the gateway's and that nothing reads: who has misspelled one counts on what it
// would have done.
func warnUnread(environment []string, log *slog.Logger) {
	slices.Sort(environment)
	for _, v := range environment {
		name, value, _ := strings.Cut(v, "=")
		if value == "" || !isUnread(name) {
			continue
		}
		if like := nearest(name); like != "" {
			log.Warn("nothing reads this variable of the environment", "name", name, "hint", "did you mean "+like+"?")
		} else {
			log.Warn("nothing reads this variable of the environment", "name", name, "hint", "schedrestd(8) lists those that are read")
		}
	}
}

// isUnread tells whether name has a prefix of the gateway's own and is no variable.
func isUnread(name string) bool {
	if !strings.HasPrefix(name, "SCHEDRESTD_") && !strings.HasPrefix(name, "SLURMRESTD_") {
		return false
	}
	ours := "SCHED" + name[len("SCHED"):] // both prefixes are of a length
	return !slices.Contains(forOthers, ours) && !slices.ContainsFunc(variables, func(v variable) bool { return v.name == ours })
}

// nearest is the variable that name is a slip of the pen away from, in its spelling; "" when none is.
func nearest(name string) string {
	// A short name is not the slip of another one that is as long as the slip.
	prefix, best, found := name[:len("SCHED")], min(4, max(2, (len(name)-len("SCHEDRESTD_")+1)/2)), ""
	for _, v := range variables {
		rest, ok := strings.CutPrefix(v.name, "SCHED")
		if d := distance(name[len("SCHED"):], rest); ok && d < best {
			best, found = d, prefix+rest
		}
	}
	return found
}

// distance is how many letters have to be changed, added or taken out to make b of a.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
