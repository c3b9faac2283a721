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

// orSelf returns trust. If trust has no owners, orSelf adds this process's
// user.
func orSelf(trust guard.Trust) guard.Trust {
	if len(trust.Owners) == 0 {
		trust.Owners = []uint32{uint32(os.Geteuid())}
	}
	return trust
}

// rule returns the rule for a key file and the directories above it. Each must
// belong to root or to an owner in trust, and no other user may be able to
// change it.
func rule(name string, trust guard.Trust) guard.Rule {
	return guard.Rule{Label: name, Owners: append(slices.Clone(trust.Owners), 0), Trust: &trust}
}

// A recipe holds the commands that create a key file or fix its permissions.
type recipe struct {
	option    string // option of the configuration that names the file
	command   string // creates the file; %s is the path
	owner     string // gives the file to the user that reads it; %[1]s is the path; "" for no command
	directory string // creates the directory; %[1]s is its path
	unlock    string // makes an unreadable file readable; %[1]s is the path
	secret    string // argument for chown: the only user that may enter the directory; "" lets all users enter it
	remark    string // advice for the administrator, such as placeholders to fill in
}

// withHint adds a hint to err, unless err already has one. The hint is a
// command that fixes the file at path. Even if root runs the command, the
// process that needs the file can read it afterwards.
//
// If worthless is true, the file has no useful content, and the command
// replaces it. Otherwise the command creates a new file beside it, because the
// file may be used elsewhere and be configured here by mistake. Programs that
// read path never see an incomplete file. If path is not a file, the command
// only lists it, because only an administrator can decide what to do.
func (r recipe) withHint(err error, path string, worthless bool) error {
	if errs.HintOf(err) != "" {
		return err
	}
	quoted := guard.Quote(path)
	hint, remark, kind := "namei -l "+quoted, "", errs.KindOf(err)
	info, statErr := os.Lstat(path)
	regular := statErr == nil && info.Mode().IsRegular()
	switch {
	case errors.Is(statErr, fs.ErrNotExist):
		newPath := guard.Quote(path + ".new")
		hint, remark = fmt.Sprintf(r.command+r.owner, newPath)+" && mv "+newPath+" "+quoted, r.remark
		dir := filepath.Dir(path)
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			hint = fmt.Sprintf(r.directory, guard.Quote(dir)) + " && " + hint
		}
	case kind == errs.Denied:
		enter := guard.EnterCommand(path)
		if r.secret != "" {
			enter = guard.EnterSecretCommand(path, r.secret)
		}
		hint = enter + fmt.Sprintf(r.unlock, quoted)
		remark = fmt.Sprintf("this program runs as uid %d, which must be able to read it", os.Geteuid())
	case regular && worthless:
		hint, remark = guard.ReplaceCommand(path, r.command), r.remark
	case regular:
		newPath := guard.Quote(path + ".new")
		hint = fmt.Sprintf(r.command+r.owner, newPath)
		remark = strings.TrimPrefix(r.remark+"; then "+r.option+"="+newPath, "; ")
	}
	if remark != "" {
		hint += "  # " + remark
	}
	return &errs.Error{Kind: kind, Hint: hint, Err: err}
}
