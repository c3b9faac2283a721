package self

import (
	"os"

	"schedrestd/errs"
	"schedrestd/security"
	"schedrestd/security/root"
)

// Settle is what such a process does first of all: it makes its root, leaves the machine's file system, and gives up every
// capability and its bounding set, on all threads. To any other it does nothing.
func Settle() error {
	switch v := os.Getenv(root.Variable); v {
	case "":
		return nil
	case root.ForNone:
	case root.ForRoot:
		if err := root.New(nil).Enter(); err != nil {
			return err
		}
	default:
		return errs.New(errs.Internal, "born for %q, which is unknown: install all programs from the same build", v)
	}
	_, err := security.KeepCapabilities(0, 0)
	return err
}
