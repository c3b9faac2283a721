package cli

import (
	"regexp"
	"slices"
	"strings"

	"schedrestd/internal/printable"
	"schedrestd/model"
)

// maxNames limits how many names the user can select with host lists, because
// a few characters can stand for billions of names.
const maxNames = 65536

var brackets = regexp.MustCompile(`\[[^\]]*\]`)

// expandHosts returns the names in host list expressions such as "n[1-3],n7".
// The subject argument says where they come from, for errors.
func expandHosts(subject string, exprs []string) (names []string, err error) {
	for _, expr := range exprs {
		pieces := strings.Split(brackets.ReplaceAllString(expr, "x"), ",")
		if !model.HostsWellFormed(expr) || slices.ContainsFunc(pieces, func(p string) bool { return strings.TrimSpace(p) == "" }) {
			return nil, usageError("%s %s: malformed or empty name", subject, printable.Text(expr)).
				WithHint("use names such as n7, and lists such as n[1-3,08]")
		}
		for name := range model.Hosts(expr) {
			if len(names) == maxNames {
				return nil, usageError("%s %s: more than %d names", subject, printable.Text(expr), maxNames)
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// expandIDs returns the ids of jobs, each once. It replaces a list of tasks such as
// "12_[4-6,9%2]" with the ids of the tasks, so that users can copy the ids that
// the command jobs prints.
func expandIDs(ids []string) (expanded []string, err error) {
	seen := map[string]bool{}
	add := func(id string) {
		if !seen[id] {
			seen[id], expanded = true, append(expanded, id)
		}
	}
	for _, id := range ids {
		array, rest, _ := strings.Cut(id, "_[")
		tasks, ok := strings.CutSuffix(rest, "]")
		if !ok {
			add(id)
			continue
		}
		tasks, _, _ = strings.Cut(tasks, "%") // the limit on running tasks
		list, err := expandHosts("job", []string{array + "_[" + tasks + "]"})
		if err != nil {
			return nil, usageError("job %s: malformed list of tasks", printable.Text(id)).WithHint("use lists such as 12_[1-3,8]")
		}
		for _, id := range list {
			add(id)
		}
	}
	for _, id := range expanded {
		if err := checkID(id); err != nil {
			return nil, err
		}
	}
	return expanded, nil
}
