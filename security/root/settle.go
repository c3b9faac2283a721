package root

import (
	"os"

	"schedrestd/errs"
	"schedrestd/security"
)

// Variable is what a process has in its environment that was born with capabilities over namespaces of its own, as one that
// was started without root is. Its value says what they are for.
const Variable = "BORN"

// The values of Variable.
const (
	ForRoot = "root" // it makes a root of its own, and drops them
	ForNone = "none" // it drops them
)

// Settle is what such a process does first of all: it makes its root, leaves the machine's file system, and gives up every
// capability and its bounding set, on all threads. To any other it does nothing.
func Settle() error {
	switch v := os.Getenv(Variable); v {
	case "":
		return nil
	case ForNone:
	case ForRoot:
		if err := New(nil).Enter(); err != nil {
			return err
		}
	default:
		return errs.New(errs.Internal, "born for %q, which is unknown: install all programs from one build", v)
	}
	_, err := security.KeepCapabilities(0, 0)
	return err
}
