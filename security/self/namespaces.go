package self

import (
	"os"

	"schedrestd/internal/errs"
	"schedrestd/security"
	"schedrestd/security/root"
)

// SetUpNamespaces takes the first step of a process that starts with
// capabilities over its own namespaces. If the process needs its own root
// directory, SetUpNamespaces creates that directory and leaves the machine's
// file system. It then drops every capability and empties the bounding set, on
// all threads. In a process that starts without such capabilities,
// SetUpNamespaces does nothing.
func SetUpNamespaces() error {
	switch v := os.Getenv(root.CapsVariable); v {
	case "":
		return nil
	case root.CapsForNone:
	case root.CapsForRoot:
		if err := root.New(nil).Enter(); err != nil {
			return err
		}
	default:
		return errs.New(errs.Internal, "unknown start mode %q: install all programs from the same build", v)
	}
	_, err := security.KeepCapabilities(0, 0)
	return err
}
