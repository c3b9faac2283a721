package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"schedrestd/errs"
	"schedrestd/guard"
)

// orSelf is trust, with this process's own user where it names nobody.
func orSelf(trust guard.Trust) guard.Trust {
	if len(trust.Owners) == 0 {
		trust.Owners = []uint32{uint32(os.Geteuid())}
	}
	return trust
}

// rule is for a file of keys and every directory above it: they belong to those whom trust names, or to root, and
// nobody else may change them.
func rule(what string, trust guard.Trust) guard.Rule {
	return guard.Rule{What: what, Owners: append(slices.Clone(trust.Owners), 0), Trust: &trust}
}

// recipe is how a file of keys is made.
type recipe struct {
	option  string // names it in the configuration
	command string // %s is the file to write to
	rights  string // what gives it to who has to read it; %[1]s is the file, "" nothing
	room    string // what makes a directory for it; %[1]s is that
	unlock  string // what lets him read one that he can't; %[1]s is it
	secret  string // to whom alone its directory is then opened, as chown has it; "" to everybody
	remark  string // what to put in, and to know
}

// mend gives err, about the file path, the command that mends it when it has none yet: pasted whole, by root
// as well, it leaves what the reader can read. It writes over no file that may be needed elsewhere and be named here by
// a slip, but makes another beside it; one that is worthless goes. And who follows path never sees half a file
// there. Where something else is in its place, only an administrator can know what to do, and the command
// shows him what is there.
func (r recipe) mend(err error, path string, worthless bool) error {
	if errs.HintOf(err) != "" {
		return err
	}
	quoted := guard.Quote(path)
	hint, remark, kind := "namei -l "+quoted, "", errs.KindOf(err)
	info, missing := os.Lstat(path)
	regular := missing == nil && info.Mode().IsRegular()
	switch {
	case errors.Is(missing, fs.ErrNotExist):
		hint, remark = guard.Anew(path, r.command+r.rights), r.remark
		dir := filepath.Dir(path)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			hint = fmt.Sprintf(r.room, guard.Quote(dir)) + " && " + hint
		}
	case kind == errs.Denied:
		enter := guard.Enter(path)
		if r.secret != "" {
			enter = guard.EnterSecret(path, r.secret)
		}
		hint, remark = enter+fmt.Sprintf(r.unlock, quoted), fmt.Sprintf("this program runs as uid %d, which must be able to read it", os.Geteuid())
	case regular && worthless:
		hint, remark = guard.Anew(path, r.command), r.remark
	case regular:
		next := guard.Quote(path + ".new")
		hint, remark = fmt.Sprintf(r.command+r.rights, next), strings.TrimPrefix(r.remark+"; then "+r.option+"="+next, "; ")
	}
	if remark != "" {
		hint += "  # " + remark
	}
	return &errs.Error{Kind: kind, Hint: hint, Err: err}
}
