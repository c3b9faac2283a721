package plan

import (
	"slices"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// switches is the value of SCHEDRESTD_SECURITY. Some switches are for the
// parent, and some for workers.
type switches struct {
	ipc.Switches
	RequireUserName bool // a request with a token of root or SchedUser must name a user
	StrictBodies    bool // a request body with an unknown field is refused
}

// switchTable names each switch.
var switchTable = []struct {
	name string
	of   func(*switches) *bool
}{
	{"audit_confinement", func(s *switches) *bool { return &s.AuditConfinement }},
	{"become_user", func(s *switches) *bool { return &s.BecomeUser }},
	{"disable_unshare_files", func(s *switches) *bool { return &s.DisableUnshareFiles }},
	{"disable_unshare_sysv", func(s *switches) *bool { return &s.DisableUnshareSysV }},
	{"disable_user_check", func(s *switches) *bool { return &s.DisableUserCheck }},
	{"require_confinement", func(s *switches) *bool { return &s.RequireConfinement }},
	{"require_user_name", func(s *switches) *bool { return &s.RequireUserName }},
	{"strict_bodies", func(s *switches) *bool { return &s.StrictBodies }},
	{"worker_per_connection", func(s *switches) *bool { return &s.WorkerPerConnection }},
}

// parseSwitches parses a comma-separated list of switches. An unknown word is
// an error, because it may be a misspelled switch for a protection on which the
// administrator relies.
func parseSwitches(text string) (switches, error) {
	var s switches
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		i := slices.IndexFunc(switchTable, func(t struct {
			name string
			of   func(*switches) *bool
		}) bool {
			return t.name == word
		})
		if i < 0 {
			return switches{}, errs.New(errs.Invalid, "unknown security switch %q", word).
				WithHint("allowed values: %s", strings.Join(switchNames(), ", "))
		}
		*switchTable[i].of(&s) = true
	}
	if err := s.checkConflicts(); err != nil {
		return switches{}, err
	}
	return s, nil
}

// checkConflicts refuses require_confinement together with a switch that
// disables a part of the confinement. Only the administrator can decide which
// of the two is wrong.
func (s *switches) checkConflicts() error {
	if !s.RequireConfinement {
		return nil
	}
	for _, t := range switchTable {
		switch t.name {
		case "audit_confinement", "disable_unshare_files", "disable_unshare_sysv", "disable_user_check":
			if *t.of(s) {
				return errs.New(errs.Invalid, "require_confinement and %s contradict each other", t.name).
					WithHint("remove one of the two")
			}
		}
	}
	return nil
}

// names returns the names of the switches that are set.
func (s *switches) names() (list []string) {
	for _, t := range switchTable {
		if *t.of(s) {
			list = append(list, t.name)
		}
	}
	return list
}

// switchNames returns the names of all switches, in order.
func switchNames() []string {
	names := make([]string, len(switchTable))
	for i, t := range switchTable {
		names[i] = t.name
	}
	return names
}
