package auth

import (
	"errors"
	"io/fs"
	"os"
	"slices"

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

// mend gives err, about the file path, the command that mends it when it has none yet: anew makes the
// file. Where something else is in its place or in the way, only an administrator can know what to do,
// and the command shows him what is there.
func mend(err error, path, anew string) error {
	if errs.HintOf(err) != "" {
		return err
	}
	hint, kind := "namei -l "+guard.Quote(path), errs.KindOf(err)
	info, missing := os.Lstat(path)
	if errors.Is(missing, fs.ErrNotExist) || kind != errs.Denied && missing == nil && info.Mode().IsRegular() {
		hint = anew
	}
	return &errs.Error{Kind: kind, Hint: hint, Err: err}
}
