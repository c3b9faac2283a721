package plan

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
	"schedrestd/ipc"
)

const (
	subuidFile    = "/etc/subuid"
	passwdFile    = "/etc/passwd"
	maxSubuidFile = 4 << 20 // maximum bytes of either file
)

// subordinates returns the ranges of subordinate uids, each with its owner. In
// a user namespace, an owner can run processes under tens of thousands of uids,
// so the gateway treats all uids of an owner as one client. It treats a missing
// file as an empty file. The ok result is false if a file can't be read, or if
// a user other than root can change it.
func (o *options) subordinates(subuid, passwd string, log *slog.Logger) (list []ipc.Subuids, ok bool) {
	ranges, err := o.readProtected(subuid)
	var users string
	if err == nil && ranges != "" {
		users, err = o.readProtected(passwd)
	}
	if err != nil {
		log.Warn("subordinate uids not read", "error", err, "hint", errs.HintOf(err))
		return nil, false
	}
	list = parseSubordinates(ranges, users)
	if len(list) > ipc.MaxSubuids {
		log.Warn("too many subordinate uid ranges; the rest count as separate users",
			"file", subuid, "ranges", len(list), "limit", ipc.MaxSubuids)
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
	text, err := content.ReadOpened(f, path, guard.Accounts, maxSubuidFile)
	return string(text), err
}

// parseSubordinates parses ranges of uids in the format of subuid(5), and
// returns them in ascending order. It looks up the owners in users, the text of
// a passwd(5) file. It omits invalid lines and ranges of unknown owners. If two
// ranges overlap, it omits the one that begins later. The gateway treats all
// uids in omitted ranges as one client.
func parseSubordinates(ranges, users string) (list []ipc.Subuids) {
	uids := map[string]uint32{}
	for line := range strings.Lines(users) {
		if f := strings.Split(line, ":"); len(f) == 7 {
			if uid, err := strconv.ParseUint(f[2], 10, 32); err == nil {
				uids[f[0]] = uint32(uid)
			}
		}
	}
	for line := range strings.Lines(ranges) {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 3 {
			continue
		}
		owner, ok := uids[f[0]]
		if n, err := strconv.ParseUint(f[0], 10, 32); err == nil {
			owner, ok = uint32(n), true
		}
		first, err := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		last := first + count - 1
		if ok && err == nil && err2 == nil && count > 0 && last < 1<<32 {
			list = append(list, ipc.Subuids{First: uint32(first), Last: uint32(last), Owner: owner})
		}
	}
	slices.SortFunc(list, func(a, b ipc.Subuids) int { return int(int64(a.First) - int64(b.First)) })
	end := int64(-1)
	return slices.DeleteFunc(list, func(r ipc.Subuids) bool {
		if int64(r.First) <= end {
			return true
		}
		end = int64(r.Last)
		return false
	})
}
