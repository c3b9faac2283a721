package auth

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"schedrestd/errs"
	"schedrestd/guard"
)

// orRoot is who may own a file of keys: owners, or this process's own user when there are none, and root.
func orRoot(owners []uint32) []uint32 {
	if len(owners) == 0 {
		owners = []uint32{uint32(os.Geteuid())}
	}
	if !slices.Contains(owners, 0) {
		owners = append(slices.Clone(owners), 0)
	}
	return owners
}

// recipe is how a file of keys is made.
type recipe struct {
	option  string // names it in the configuration
	command string // %s is the file to write to
	remark  string // what to put in, and to know
}

// mend gives err, about the file path, the command that mends it when it has none yet. It never
// writes over a file, which may be needed elsewhere and be named here by a slip: beside one that can't
// be used it makes another. And who follows path never sees half a file there. Where something else
// is in its place or in the way, only an administrator can know what to do, and the command shows him
// what is there.
func (r recipe) mend(err error, path string) error {
	if errs.HintOf(err) != "" {
		return err
	}
	next := guard.Quote(path + ".new")
	hint, remark, kind := "namei -l "+guard.Quote(path), "", errs.KindOf(err)
	info, missing := os.Lstat(path)
	switch {
	case errors.Is(missing, fs.ErrNotExist):
		hint, remark = fmt.Sprintf(r.command, next)+" && mv "+next+" "+guard.Quote(path), r.remark
	case kind != errs.Denied && missing == nil && info.Mode().IsRegular():
		hint, remark = fmt.Sprintf(r.command, next), strings.TrimPrefix(r.remark+"; then "+r.option+"="+next, "; ")
	}
	if remark != "" {
		hint += "  # " + remark
	}
	return &errs.Error{Kind: kind, Hint: hint, Err: err}
}
