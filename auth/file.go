package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/internal/guard"
)

// orSelf returns trust. If trust has no owners, orSelf adds this process's
// user.
func orSelf(trust guard.Trust) guard.Trust {
	if len(trust.Owners) == 0 {
		trust.Owners = []uint32{uint32(os.Geteuid())}
	}
	return trust
}

// rule returns the rule for a key file and the directories above it. Root or an
// owner in trust must own each of them. Apart from these owners, only a group
// that trust allows may be able to change them.
func rule(name string, trust guard.Trust) guard.Rule {
	return guard.Rule{Label: name, Owners: append(slices.Clone(trust.Owners), 0), Trust: &trust}
}

// A recipe holds the commands that create a key file or fix its permissions.
type recipe struct {
	option    string // configuration option that names the file
	command   string // creates the file; %s is the path
	owner     string // makes a new file readable for the process that needs it; %[1]s is the path; "" for no command
	directory string // creates the directory; %[1]s is its path
	unlock    string // makes an unreadable file readable; %[1]s is the path
	secret    string // new owner of the directory, which only this user and the directory's group may enter; "" lets all users enter it
	remark    string // advice for the administrator, such as what to put in place of URL
}

// withHint adds a hint to err, unless err already has one. The hint is a
// command that fixes the file at path. It creates a missing file, and makes an
// unreadable file readable. Even if root runs the command, the process that
// needs the file can read it afterwards.
//
// If the file is readable but can't be used, the command depends on worthless.
// If worthless is true, the file has no useful content, and the command
// replaces it. Otherwise the command creates a new file beside it, because the
// file may be used elsewhere, and may be configured here by mistake. Programs
// that read path never see an incomplete file.
//
// If path is not a regular file, the command only lists it, because only an
// administrator can decide what to do.
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
		hint, remark = replaceCommand(path, r.command), r.remark
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

// replaceCommand returns a command that replaces the file at path in one step,
// so that programs that watch the file never read half of it. The file keeps
// its owner, group and mode. The command argument is a shell command that
// writes the new content, with %s in place of the name of the file to write.
func replaceCommand(path, command string) string {
	quoted, next := guard.Quote(path), guard.Quote(path+".new")
	return "cp -p " + quoted + " " + next + " && " + fmt.Sprintf(command, next) + " && mv " + next + " " + quoted
}
