package self

import (
	"os"

	"schedrestd/errs"
	"schedrestd/security"
	"schedrestd/security/root"
)

// Settle prepares a process that starts in its own namespaces, as its first
// step: it creates its root, leaves the machine's file system, and drops every
// capability and its bounding set, on all threads. It does nothing in any other
// process.
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
		return errs.New(errs.Internal, "unknown start mode %q: install all programs from the same build", v)
	}
	_, err := security.KeepCapabilities(0, 0)
	return err
}
