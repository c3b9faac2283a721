package daemon

import (
	"log/slog"
	"strings"

	"schedrestd/conf"
	"schedrestd/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// Privacy determines which information users may see about other users. Both
// daemons use it, so that neither of them shows information that the other
// daemon hides.
type Privacy struct {
	Hidden conf.PrivateData
	Super  func(uid uint32) bool // these users see everything
}

// OwnerFilter returns uid if the user uid may see information of this kind only
// about themselves. It returns an unset value if the user may see the
// information about all users.
func (p Privacy) OwnerFilter(uid uint32, kind conf.PrivateData) model.Opt[uint32] {
	if !p.Hidden.Hides(kind) || p.Super(uid) {
		return model.Opt[uint32]{}
	}
	return model.Some(uid)
}

// CanSee reports whether the user uid may see information of this kind about
// the user owner.
func (p Privacy) CanSee(uid, owner uint32, kind conf.PrivateData) bool {
	filter := p.OwnerFilter(uid, kind)
	return !filter.Set || filter.Number == owner
}

// CheckVisible returns an error if information of this kind is hidden from the
// user uid. It is for information that belongs to no user, such as nodes. The
// argument subject is the name of the information in the error.
func (p Privacy) CheckVisible(uid uint32, kind conf.PrivateData, subject string) error {
	if !p.OwnerFilter(uid, kind).Set {
		return nil
	}
	e := errs.New(errs.Denied, "%s are hidden from ordinary users", subject)
	e.Number = fault.AccessDenied
	return e
}

// Log logs two facts that may surprise an administrator: that all users see all
// jobs, and that PrivateData= lists kinds of information that this daemon does
// not have. The argument kinds lists the kinds that the daemon has.
func (p Privacy) Log(log *slog.Logger, kinds conf.PrivateData) {
	if !p.Hidden.Hides(conf.PrivateJobs) {
		log.Info("jobs visible to all users", "reason", "PrivateData= does not list jobs")
	}
	if names := p.Hidden.NamesExcept(kinds); len(names) > 0 {
		log.Info("unused kinds in PrivateData", "kinds", strings.Join(names, ","))
	}
}
