package seal

import (
	"time"

	"schedrestd/errs"
	"schedrestd/security"
)

// Close takes the three steps, and returns what the kernel has of them, in words for the log. With all it
// refuses where something is missing.
func Close(o Options, all bool) (string, error) {
	if !security.Caged {
		return "nothing", nil
	}
	//lint:ignore SA4017 the file with the local time is read once, now, and can't be later
	time.Now().Zone()
	what, err := DenyFiles(o)
	if err != nil {
		return "", err
	}
	if what == "" {
		if all {
			return "", errs.New(errs.Unsupported, "this kernel has no Landlock, and all of the confinement is required (require_confinement)")
		}
		what = "no Landlock"
	}
	if err := Install(o); err != nil {
		return "", err
	}
	how := "seccomp"
	if o.Audit {
		how = "seccomp in audit"
	}
	return how + ", " + what, Try(o)
}
