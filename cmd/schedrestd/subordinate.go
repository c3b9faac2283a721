package main

import (
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"

	"schedrestd/errs"
	"schedrestd/guard"
)

// subordinates knows which users subordinate uids belong to. Each of these users may run
// processes under tens of thousands of uids in a user namespace; to the gateway they are
// all the same client.
type subordinates struct{ list atomic.Pointer[[]uidRange] }

// uidRange is a line of subuid(5).
type uidRange struct{ first, last, owner uint32 }

const (
	subuidFile = "/etc/subuid"
	passwdFile = "/etc/passwd"
	mostSubuid = 4 << 20 // bytes of either file
)

// owner returns the user that uid belongs to, or uid.
func (s *subordinates) owner(uid uint32) uint32 {
	list := s.list.Load()
	if list == nil {
		return uid
	}
	i, found := slices.BinarySearchFunc(*list, uid, func(r uidRange, uid uint32) int {
		switch {
		case r.last < uid:
			return -1
		case r.first > uid:
			return 1
		}
		return 0
	})
	if !found {
		return uid
	}
	return (*list)[i].owner
}

// read reads the files again. A file that is missing lists none; for one that root does
// not protect what was read before stays.
func (s *subordinates) read(subuid, passwd string, log *slog.Logger) {
	ranges, err := readProtected(subuid)
	var users string
	if err == nil && ranges != "" {
		users, err = readProtected(passwd)
	}
	if err != nil {
		log.Warn("subordinate uids not read", "error", err, "hint", errs.HintOf(err))
		return
	}
	list := parseSubordinates(ranges, users)
	s.list.Store(&list)
}

// readProtected reads a file that root alone may change; "" when there is none.
func readProtected(path string) (string, error) {
	text, _, err := guard.Read(path, guard.Rule{What: "list of uids", Links: true, Trust: &guard.Trust{Owners: []uint32{}}}, mostSubuid)
	if errs.KindOf(err) == errs.NotFound {
		err = nil
	}
	return string(text), err
}

// parseSubordinates returns the ranges of uids in the form of subuid(5), in ascending
// order. Users are looked up in the text of a passwd(5) file. Left out is what can't be
// understood, a range of a user who is not there, and one that overlaps another: its uids
// have no name, and count together.
func parseSubordinates(ranges, users string) (list []uidRange) {
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
		owner, known := uids[f[0]]
		if n, err := strconv.ParseUint(f[0], 10, 32); err == nil {
			owner, known = uint32(n), true
		}
		first, err := strconv.ParseUint(f[1], 10, 32)
		count, err2 := strconv.ParseUint(f[2], 10, 32)
		last := first + count - 1
		if known && err == nil && err2 == nil && count > 0 && last < 1<<32 {
			list = append(list, uidRange{uint32(first), uint32(last), owner})
		}
	}
	slices.SortFunc(list, func(a, b uidRange) int { return int(int64(a.first) - int64(b.first)) })
	end := int64(-1)
	return slices.DeleteFunc(list, func(r uidRange) bool {
		if int64(r.first) <= end {
			return true
		}
		end = int64(r.last)
		return false
	})
}
