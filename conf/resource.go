package conf

import (
	"slices"
	"strings"
)

// limitNames are the limits of a job's processes that a submission can set.
var limitNames = []string{"CPU", "FSIZE", "DATA", "STACK", "CORE", "RSS", "NPROC", "NOFILE", "MEMLOCK", "AS"}

// resourceLimits is a set of limits. It is nil if the file does not name one.
type resourceLimits map[string]bool

// setResourceLimits parses ALL, NONE, or a list of limits such as
// "CORE, RLIMIT_STACK".
func setResourceLimits(to *resourceLimits, v string) error {
	*to = resourceLimits{}
	names := strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune(", \t\n", r) })
	switch v {
	case "NONE":
		return nil
	case "ALL":
		names = limitNames
	}
	for _, name := range names {
		name = strings.TrimPrefix(name, "RLIMIT_")
		if !slices.Contains(limitNames, name) {
			return toleratedError{wantError("ALL, NONE, or a list of " + strings.Join(limitNames, ", ")), "unknown limit; the rest of the list is ignored"}
		}
		(*to)[name] = true
	}
	return nil
}

// keptLimits returns the limits that the submission of a job does not change. If
// the file has both lists, only except counts.
func keptLimits(propagated, except resourceLimits) (kept []string) {
	for _, name := range limitNames {
		if except[name] || except == nil && propagated != nil && !propagated[name] {
			kept = append(kept, name)
		}
	}
	return kept
}
