package plan

import (
	"log/slog"

	"schedrestd/become/subuid"
	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
	"schedrestd/ipc"
)

// subordinates returns the ranges of subordinate uids, each with its owner. In
// a user namespace, an owner can run processes under tens of thousands of uids,
// so the gateway treats all uids of an owner as one client. It treats a missing
// file as an empty file. The ok result is false if a file can't be read, or if
// a user other than root can change it.
func (o *options) subordinates(ranges, passwd string, log *slog.Logger) (list []ipc.Subuids, ok bool) {
	list, err := subuid.Read(o.readProtected, ranges, passwd)
	if err != nil {
		log.Warn("subordinate uids not read", "error", err, "hint", errs.HintOf(err))
		return nil, false
	}
	if len(list) > ipc.MaxSubuids {
		log.Warn("too many subordinate uid ranges; the rest count as separate users",
			"file", ranges, "ranges", len(list), "limit", ipc.MaxSubuids)
		list = list[:ipc.MaxSubuids]
	}
	return list, true
}

// readProtected reads a file, and refuses it if a user other than root can
// change it. It returns "" if the file does not exist.
func (o *options) readProtected(path string) (string, error) {
	f, err := o.host.OpenAccounts(path)
	if errs.KindOf(err) == errs.NotFound {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := content.ReadOpened(f, path, guard.Accounts, subuid.MaxBytes)
	return string(text), err
}
