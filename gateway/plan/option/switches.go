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

// switches lists the switches. Some are for the parent, and some for workers. The
// comment above a row is the switch's entry in schedrestd(8).
func (o *Options) switches() []securitySwitch {
	run := &o.Run.Switches
	return []securitySwitch{
		// Let the kernel log forbidden system calls instead of killing the process.
		// Use it only to test the gateway with a new kernel.
		{"audit_confinement", &run.AuditConfinement},

		// Serve each local user in a process with the user's uid and gid.
		// This needs a start as root,
		// .Fl a Cm rest_auth/local ,
		// and local sockets only.
		{"become_user", &run.BecomeUser},

		// Let a worker share the descriptor table of its creator until it executes its
		// program.
		{"disable_unshare_files", &run.DisableUnshareFiles},

		// Start workers without semaphore undo lists and an IPC namespace of their own.
		{"disable_unshare_sysv", &run.DisableUnshareSysV},

		// Permit the gateway to serve as root or SchedUser.
		// Anyone who can reach the gateway may then be able to act as root on the cluster.
		{"disable_user_check", &run.DisableUserCheck},

		// Refuse a token if two of its claims
		// .Li sun , username
		// and the one of
		// .Li userclaimfield=
		// name different users.
		// Without this switch the first of these decides, as for Slurm.
		{"one_user_claim", &o.Setup.OneUser},

		// Refuse to start if a part of the workers' sandbox is unavailable.
		// It can't be combined with
		// .Cm audit_confinement , disable_unshare_files , disable_unshare_sysv
		// or
		// .Cm disable_user_check .
		// In inetd mode as root it also gives the worker a PID namespace.
		{"require_confinement", &run.RequireConfinement},

		// Refuse requests with the authority of root or SchedUser.
		// These are requests that name root or SchedUser as the user, and requests that
		// name no user and have a token of root or SchedUser.
		// # The tokens of root and SchedUser may act for every user. Accept them only if the request names a
		// # user.
		// #SCHEDRESTD_SECURITY=require_user_name
		{"require_user_name", &o.Setup.RequireUserName},

		// Answer 422 to a request whose body has an unknown field, and refuse the request.
		// Without this switch the gateway ignores such a field and sends a warning with
		// the most similar known field.
		// The switch takes precedence over
		// .Cm +fast .
		// # Refuse a request whose body has an unknown field. Otherwise the answer only contains a warning.
		// # Switches are separated by commas.
		// #SCHEDRESTD_SECURITY=require_user_name,strict_bodies
		{"strict_bodies", &o.Setup.Strict},

		// Give each connection a worker of its own, which exits when the connection ends.
		{"worker_per_connection", &run.WorkerPerConnection},
	}
}

// setSwitches parses a list of switches. An unknown word is an error, because it
// may be a misspelled switch for a protection on which the administrator relies.
// As in Slurm, words may be in any case.
func (o *Options) setSwitches(name, v string) error {
	list := o.switches()
	for _, word := range splitList(v) {
		i := slices.IndexFunc(list, func(s securitySwitch) bool { return strings.EqualFold(s.name, word) })
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

// setOutput parses for whom output is read.
func (o *Options) setOutput(name, v string) error {
	o.Setup.TokenOutput = v == "tokens"
	err := word(&o.Run.Switches.Output, "sockets", "off", "sockets", "tokens")(name, v)
	o.Run.Switches.Output = o.Run.Switches.Output || o.Setup.TokenOutput
	return err
}
