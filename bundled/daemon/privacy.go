package daemon

import (
	"log/slog"
	"strings"

	"schedrestd/conf"
	"schedrestd/internal/errs"
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

// OwnerFilter returns uid if the user with this uid may see only their own
// information of the given kind. It returns an unset value if the user may see
// such information about all users.
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
// user uid. Callers use CheckVisible for information that belongs to no user,
// such as nodes. The subject argument names this information in the error
// message.
func (p Privacy) CheckVisible(uid uint32, kind conf.PrivateData, subject string) error {
	if !p.OwnerFilter(uid, kind).Set {
		return nil
	}
	return errs.New(errs.Denied, "%s are hidden from ordinary users", subject).WithNumber(fault.AccessDenied)
}

// Log logs two facts that may surprise the administrator. It logs if all
// users can see all jobs. It also logs if PrivateData= lists kinds of
// information that this daemon does not have. The kinds argument contains the
// kinds that the daemon has.
func (p Privacy) Log(log *slog.Logger, kinds conf.PrivateData) {
	if !p.Hidden.Hides(conf.PrivateJobs) {
		log.Info("jobs visible to all users", "reason", "PrivateData= does not list jobs")
	}
	if names := p.Hidden.NamesExcept(kinds); len(names) > 0 {
		log.Info("unused kinds in PrivateData", "kinds", strings.Join(names, ","))
	}
}
