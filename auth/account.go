package auth

import (
	"context"
	"math"

	"schedrestd/internal/errs"
)

// Uids that stand for unknown users.
const (
	slurmNobody  = 99    // what Slurm's daemons give to all users that they do not know (SLURM_AUTH_NOBODY)
	kernelNobody = 65534 // what the kernel shows for an id that is unknown in a user namespace; also the user nobody
)

// IsNobody reports whether uid stands for an unknown user, in Slurm's daemons or
// in the kernel. All users that a daemon does not know would share such a uid,
// with their jobs.
func IsNobody(uid uint32) bool {
	return uid == slurmNobody || uid == kernelNobody || uid == math.MaxUint32
}

// checkUser refuses a request whose user does not exist: some releases of
// Slurm's daemons serve such a user as uid 99. If the token contains the user's
// uid, that of the account must be the same. Otherwise a name that the identity
// provider gives to another person would act for both.
//
// It looks up only the user as whom the request is carried out. If that is not
// the token's own user, the daemon accepts only tokens of root and SlurmUser, and
// SlurmUser need not exist on this machine.
func (a *Authenticator) checkUser(ctx context.Context, c Credential) error {
	name, claimed := authority(c.ActAs, c.Claims)
	if claimed != nil && IsNobody(*claimed) {
		return refuse("the token's uid %d stands for unknown users", *claimed)
	}
	if a.UserID == nil || a.PassUnknown && claimed == nil {
		return nil
	}
	uid, err := a.UserID(ctx, c, name)
	switch {
	case err != nil && a.PassUnknown:
		return nil
	case errs.KindOf(err) == errs.NotFound:
		return refuse("no user of this machine has this name (see SCHEDRESTD_UNKNOWN_USERS)")
	case err != nil:
		return err
	case IsNobody(uid):
		return refuse("the user has uid %d, which stands for unknown users", uid)
	case claimed != nil && *claimed != uid:
		return refuse("the token has uid %d, but the user has uid %d on this machine", *claimed, uid)
	}
	return nil
}
