package main

import (
	"log/slog"
	"slices"
	"sync/atomic"

	"schedrestd/ipc"
	"schedrestd/privsep/planner"
)

// reloader gets another Plan when a SIGHUP asks for it. The command line and the environment stay the same.
type reloader struct {
	planner *planner.Planner
	started *ipc.WholePlan
	last    *ipc.WholePlan
	level   *slog.LevelVar
	owners  *owners
	log     *slog.Logger
}

// Reload is for privsep. What was opened or dropped for good at the start stays as it was,
// and is named.
func (r *reloader) Reload() (ipc.Setup, ipc.Secrets, error) {
	next, err := r.planner.Replan()
	if err != nil {
		return ipc.Setup{}, ipc.Secrets{}, err
	}
	for _, what := range fixed(r.started, next) {
		r.log.Warn("changed in the configuration, but needs a restart", "key", what, "configuration", next.Path)
	}
	r.last = next
	return next.Setup, next.Secrets, nil
}

// Accepted is for privsep: the last Plan is used from now on, for the log and for subordinate uids, too.
func (r *reloader) Accepted() {
	r.level.Set(slog.Level(r.last.LogLevel))
	r.owners.accept(r.last)
}

// fixed names what next has otherwise than started, and a running parent can't change.
func fixed(started, next *ipc.WholePlan) (list []string) {
	if next.Service.SchedUID != started.Service.SchedUID {
		list = append(list, "SchedUser")
	}
	unix := slices.ContainsFunc(started.Listen, func(l ipc.Listen) bool { return l.Network == ipc.Unix })
	if started.SocketMode == 0 && unix && next.Setup.JWT != started.Setup.JWT {
		list = append(list, "AuthAltTypes (for the mode of UNIX sockets)")
	}
	return list
}

// owners knows which users subordinate uids belong to.
type owners struct{ plan atomic.Pointer[ipc.WholePlan] }

// accept uses the ranges of plan, if they could be read.
func (o *owners) accept(plan *ipc.WholePlan) {
	if plan.Subuids {
		o.plan.Store(plan)
	}
}

func (o *owners) of(uid uint32) uint32 {
	if plan := o.plan.Load(); plan != nil {
		return plan.OwnerOf(uid)
	}
	return uid
}
