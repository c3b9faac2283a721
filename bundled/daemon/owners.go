package daemon

import (
	"log/slog"

	"schedrestd/become/subuid"
	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// Owners returns a function for server.Server.Owner. It reads the ranges of
// subordinate uids once. If they can't be read, it logs the reason, and each uid
// counts separately.
func Owners(log *slog.Logger) func(uid uint32) uint32 {
	ranges, err := subuid.Load()
	if err != nil {
		log.Warn("subordinate uids not read", errs.LogAttrs(errs.HintOf(err), "error", err)...)
	}
	return func(uid uint32) uint32 { return ipc.OwnerOf(ranges, uid) }
}
