package daemon

import (
	"log/slog"
	"strings"

	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// Privacy decides what a user sees of others. Both daemons ask it, so that neither shows what the other hides.
type Privacy struct {
	Hidden conf.PrivateData
	Super  func(uid uint32) bool // sees everything
}

// Only returns the only user whose information of a kind uid sees. When it is not set, uid sees that of all users.
func (p Privacy) Only(uid uint32, kind conf.PrivateData) model.Opt[uint32] {
	if !p.Hidden.Hides(kind) || p.Super(uid) {
		return model.Opt[uint32]{}
	}
	return model.Some(uid)
}

// Sees reports whether uid sees information of a kind that belongs to owner.
func (p Privacy) Sees(uid, owner uint32, kind conf.PrivateData) bool {
	only := p.Only(uid, kind)
	return !only.Set || only.Number == owner
}

// Refuse returns an error when uid may not see information of a kind that belongs to no user.
func (p Privacy) Refuse(uid uint32, kind conf.PrivateData, what string) error {
	if !p.Only(uid, kind).Set {
		return nil
	}
	e := errs.New(errs.Denied, "%s are hidden from ordinary users", what)
	e.Number = fault.AccessDenied
	return e
}

// Log logs what an administrator could expect otherwise: that jobs are public, and kinds in PrivateData= of
// which a daemon has nothing to hide. It has those in kinds.
func (p Privacy) Log(log *slog.Logger, kinds conf.PrivateData) {
	if !p.Hidden.Hides(conf.PrivateJobs) {
		log.Info("all users see all jobs", "reason", "PrivateData= does not list jobs")
	}
	if names := p.Hidden.Except(kinds); len(names) > 0 {
		log.Info("this daemon has nothing of some kinds in PrivateData=", "kinds", strings.Join(names, ","))
	}
}
