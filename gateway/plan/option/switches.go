package option

import (
	"slices"
	"strings"
)

// A securitySwitch is a word of SCHEDRESTD_SECURITY.
type securitySwitch struct {
	name string
	on   *bool
}

// switches lists the switches. Some are for the parent, and some for workers.
func (o *Options) switches() []securitySwitch {
	run := &o.Run.Switches
	return []securitySwitch{
		{"audit_confinement", &run.AuditConfinement},
		{"become_user", &run.BecomeUser},
		{"disable_unshare_files", &run.DisableUnshareFiles},
		{"disable_unshare_sysv", &run.DisableUnshareSysV},
		{"disable_user_check", &run.DisableUserCheck},
		{"require_confinement", &run.RequireConfinement},
		{"require_user_name", &o.Setup.RequireUserName},
		{"strict_bodies", &o.Setup.Strict},
		{"worker_per_connection", &run.WorkerPerConnection},
	}
}

// setSwitches parses a list of switches. An unknown word is an error, because it
// may be a misspelled switch for a protection on which the administrator relies.
func (o *Options) setSwitches(name, v string) error {
	list := o.switches()
	for _, word := range splitList(v) {
		i := slices.IndexFunc(list, func(s securitySwitch) bool { return s.name == word })
		if i < 0 {
			return invalid(name, v, ": unknown security switch %q", word).WithHint("allowed values: %s", strings.Join(SwitchNames(), ", "))
		}
		*list[i].on = true
	}
	return o.checkConflicts(name, v)
}

// checkConflicts refuses require_confinement together with a switch that
// disables a part of the confinement. Only the administrator can decide which
// of the two is wrong.
func (o *Options) checkConflicts(name, v string) error {
	for _, s := range o.switches() {
		switch s.name {
		case "audit_confinement", "disable_unshare_files", "disable_unshare_sysv", "disable_user_check":
			if *s.on && o.Run.Switches.RequireConfinement {
				return invalid(name, v, ": require_confinement and %s contradict each other", s.name).WithHint("remove one of the two")
			}
		}
	}
	return nil
}

// SetSwitches returns the names of the switches that are set.
func (o *Options) SetSwitches() (list []string) {
	for _, s := range o.switches() {
		if *s.on {
			list = append(list, s.name)
		}
	}
	return list
}

// SwitchNames returns the names of all switches, in order.
func SwitchNames() (list []string) {
	for _, s := range new(Options).switches() {
		list = append(list, s.name)
	}
	return list
}
