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

// orSelf returns trust, with this process's own user where it has no owners.
func orSelf(trust guard.Trust) guard.Trust {
	if len(trust.Owners) == 0 {
		trust.Owners = []uint32{uint32(os.Geteuid())}
	}
	return trust
}

// rule returns the rule for a key file and every directory above it: they
// belong to an owner that trust names or to root, and no other user may change
// them.
func rule(what string, trust guard.Trust) guard.Rule {
	return guard.Rule{What: what, Owners: append(slices.Clone(trust.Owners), 0), Trust: &trust}
}

// recipe holds the parts of a command that creates a key file.
type recipe struct {
	option    string // names it in the configuration
	command   string // %s is the file to write to
	owner     string // gives the file to the user that reads it; %[1]s is the file; "" is nothing
	directory string // creates the directory; %[1]s is the directory
	unlock    string // makes an unreadable file readable; %[1]s is the file
	secret    string // owner for chown who alone may enter the directory; "" opens it to all users
	remark    string // what to fill in, and what to know
}

// withHint adds to err, about the file path, the command that fixes it, unless err
// has one. When it is run as a whole, also by root, the file can be read by the
// process that needs it. It does not overwrite a file that may be needed
// elsewhere and was named by mistake; it creates another file beside it. A
// worthless file is replaced. A program that reads path never sees half a file
// there. When something else is at path, only an administrator can decide, and
// the command shows what is there.
func (r recipe) withHint(err error, path string, worthless bool) error {
	if errs.HintOf(err) != "" {
		return err
	}
	quoted := guard.Quote(path)
	hint, remark, kind := "namei -l "+quoted, "", errs.KindOf(err)
	info, missing := os.Lstat(path)
	regular := missing == nil && info.Mode().IsRegular()
	switch {
	case errors.Is(missing, fs.ErrNotExist):
		hint, remark = guard.Replace(path, r.command+r.owner), r.remark
		dir := filepath.Dir(path)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			hint = fmt.Sprintf(r.directory, guard.Quote(dir)) + " && " + hint
		}
	case kind == errs.Denied:
		enter := guard.Enter(path)
		if r.secret != "" {
			enter = guard.EnterSecret(path, r.secret)
		}
		hint, remark = enter+fmt.Sprintf(r.unlock, quoted), fmt.Sprintf("this program runs as uid %d, which must be able to read it", os.Geteuid())
	case regular && worthless:
		hint, remark = guard.Replace(path, r.command), r.remark
	case regular:
		next := guard.Quote(path + ".new")
		hint, remark = fmt.Sprintf(r.command+r.owner, next), strings.TrimPrefix(r.remark+"; then "+r.option+"="+next, "; ")
	}
	if remark != "" {
		hint += "  # " + remark
	}
	return &errs.Error{Kind: kind, Hint: hint, Err: err}
}
