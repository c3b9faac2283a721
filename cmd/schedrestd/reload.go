package main

import (
	"log/slog"
	"slices"

	"schedrestd/ipc"
	"schedrestd/privsep/planner"
)

// reloader gets a new Plan after a SIGHUP. The command line and the environment
// stay the same.
type reloader struct {
	planner *planner.Planner
	started *ipc.WholePlan
	last    *ipc.WholePlan
	level   *slog.LevelVar
	log     *slog.Logger
}

// Reload implements privsep's interface. It logs changes that need a restart,
// because they concern what was opened or dropped at the start.
func (r *reloader) Reload() (ipc.Setup, ipc.Secrets, []ipc.Subuids, error) {
	next, err := r.planner.Replan()
	if err != nil {
		return ipc.Setup{}, ipc.Secrets{}, nil, err
	}
	for _, what := range fixed(r.started, next) {
		r.log.Warn("configuration change needs a restart", "key", what, "configuration", next.Path)
	}
	r.last = next
	return next.Setup, next.Secrets, subuids(next), nil
}

// Accepted implements privsep's interface: the last Plan is used from now on,
// also for the log.
func (r *reloader) Accepted() {
	r.level.Set(slog.Level(r.last.LogLevel))
}

// fixed lists the settings that differ in next and that a running parent can't
// change.
func fixed(started, next *ipc.WholePlan) (list []string) {
	if next.Service.SchedUID != started.Service.SchedUID {
		list = append(list, "SchedUser")
	}
	unix := slices.ContainsFunc(started.Listen, func(l ipc.Listen) bool { return l.Network == ipc.Unix })
	if unix && next.SocketMode != started.SocketMode {
		list = append(list, "AuthAltTypes (for the mode of UNIX sockets)")
	}
	return list
}

// subuids returns the ranges of subordinate uids in plan, or nil if they could not
// be read.
func subuids(plan *ipc.WholePlan) []ipc.Subuids {
	if !plan.Subuids {
		return nil
	}
	return append([]ipc.Subuids{}, plan.Ranges...)
}
