// Package subuid reads the ranges of subordinate uids (subuid(5)). In a user
// namespace, the owner of a range can run processes under tens of thousands of
// uids. So a limit for each user must count all of them as their owner.
// ipc.OwnerOf returns the owner of a uid.
package subuid

import (
	"slices"
	"strconv"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
	"schedrestd/internal/guard/content"
	"schedrestd/ipc"
)

// The files with the ranges and with the uids of their owners.
const (
	RangesFile = "/etc/subuid"
	UsersFile  = "/etc/passwd"
	MaxBytes   = 4 << 20 // maximum length of either file
)

// Load reads the ranges of this machine, in ascending order. It returns an
// error if a file can't be read, or if a user other than root can change it.
func Load() ([]ipc.Subuids, error) {
	return Read(func(path string) (string, error) {
		text, _, err := content.Read(path, guard.Accounts, MaxBytes)
		if errs.KindOf(err) == errs.NotFound {
			err = nil
		}
		return string(text), err
	}, RangesFile, UsersFile)
}

// Read reads ranges from one file and the uids of their owners from another
// one. It calls read with the path of each file.
func Read(read func(path string) (string, error), rangesFile, usersFile string) ([]ipc.Subuids, error) {
	ranges, err := read(rangesFile)
	if err != nil || ranges == "" {
		return nil, err
	}
	users, err := read(usersFile)
	if err != nil {
		return nil, err
	}
	return parse(ranges, users), nil
}

// parse parses ranges of uids in the format of subuid(5), and
// returns them in ascending order. It looks up the owners in users, the text of
// a passwd(5) file. It omits invalid lines and ranges of unknown owners. If two
// ranges overlap, it omits the one that begins later. The uids in
// omitted ranges count as separate users.
func parse(ranges, users string) (list []ipc.Subuids) {
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
