package security

import (
	"slices"
	"strings"

	"schedrestd/errs"
)

// Switches is what SCHEDRESTD_SECURITY turns on or off.
type Switches struct {
	DisableUserCheck    bool // serve as root or SchedUser all the same
	DisableUnshareFiles bool // share the descriptor table with the parent until exec
	DisableUnshareSysV  bool // no semaphore undo list and no IPC namespace of the worker's own
	BecomeUser          bool // each local peer is served by a worker of its own uid and gid
	WorkerPerConnection bool // each connection has a worker of its own, which ends with it
	RequireUserName     bool // a token of root or SchedUser must come with a user name
	RequireConfinement  bool // don't start when a part of the cage can't be had
	StrictBodies        bool // a request body with an unknown field is refused
	AuditConfinement    bool // log what the cage would kill for, and kill nobody
}

// switchTable names each switch.
var switchTable = []struct {
	name string
	of   func(*Switches) *bool
}{
	{"audit_confinement", func(s *Switches) *bool { return &s.AuditConfinement }},
	{"become_user", func(s *Switches) *bool { return &s.BecomeUser }},
	{"disable_unshare_files", func(s *Switches) *bool { return &s.DisableUnshareFiles }},
	{"disable_unshare_sysv", func(s *Switches) *bool { return &s.DisableUnshareSysV }},
	{"disable_user_check", func(s *Switches) *bool { return &s.DisableUserCheck }},
	{"require_confinement", func(s *Switches) *bool { return &s.RequireConfinement }},
	{"require_user_name", func(s *Switches) *bool { return &s.RequireUserName }},
	{"strict_bodies", func(s *Switches) *bool { return &s.StrictBodies }},
	{"worker_per_connection", func(s *Switches) *bool { return &s.WorkerPerConnection }},
}

// ParseSwitches reads a comma-separated list of switches. A word that is not known is
// an error, never ignored: it may be a protection that the reader counts on.
func ParseSwitches(text string) (Switches, error) {
	var s Switches
	for word := range strings.SplitSeq(text, ",") {
		word = strings.TrimSpace(word)
		if word == "" {
			continue
		}
		i := slices.IndexFunc(switchTable, func(t struct {
			name string
			of   func(*Switches) *bool
		}) bool {
			return t.name == word
		})
		if i < 0 {
			return Switches{}, errs.New(errs.Invalid, "unknown security switch %q", word).
				WithHint("allowed are %s", strings.Join(SwitchNames(), ", "))
		}
		*switchTable[i].of(&s) = true
	}
	if err := s.agree(); err != nil {
		return Switches{}, err
	}
	return s, nil
}

// agree refuses all of the confinement together with a part of it off: whoever set both is wrong about one of them, and which
// it is he must say.
func (s *Switches) agree() error {
	if !s.RequireConfinement {
		return nil
	}
	for _, t := range switchTable {
		switch t.name {
		case "audit_confinement", "disable_unshare_files", "disable_unshare_sysv", "disable_user_check":
			if *t.of(s) {
				return errs.New(errs.Invalid, "require_confinement and %s contradict each other: all of the confinement is required, and part of it is switched off", t.name).
					WithHint("take one of the two out")
			}
		}
	}
	return nil
}

// SwitchNames is every switch that ParseSwitches knows, in order.
func SwitchNames() []string {
	names := make([]string, len(switchTable))
	for i, t := range switchTable {
		names[i] = t.name
	}
	return names
}

// Word returns s as a number, a bit for each switch.
func (s Switches) Word() (word uint16) {
	for i, t := range switchTable {
		if *t.of(&s) {
			word |= 1 << i
		}
	}
	return word
}

// SwitchesOf is the reverse of Word. A bit that stands for no switch, and a
// contradiction, are errors.
func SwitchesOf(word uint16) (s Switches, err error) {
	for i, t := range switchTable {
		*t.of(&s) = word&(1<<i) != 0
	}
	if s.Word() != word {
		return Switches{}, errs.New(errs.Internal, "security switches %#x: a bit that has no name", word)
	}
	return s, s.agree()
}
