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
	what, err := denyFiles(o)
	if err != nil {
		return "", err
	}
	if err := what.complete(o); all && err != nil {
		return "", err
	}
	if err := install(o); err != nil {
		return "", err
	}
	how := "seccomp"
	if o.Audit {
		how = "seccomp in audit"
	}
	return how + ", " + what.String(), try(o)
}

// complete says what is missing of what a worker's cage can't do without.
func (d denial) complete(o Options) error {
	const required = ", and all of the confinement is required (require_confinement)"
	switch {
	case d.version == 0:
		return errs.New(errs.Unsupported, "this kernel has no Landlock"+required).
			WithHint("boot with lsm=landlock,… (Linux 5.13 or later), or serve without require_confinement")
	case dials(o) && !d.has(tcp):
		return errs.New(errs.Unsupported, "this kernel's Landlock does not keep a worker that connects UNIX sockets from making its TCP connections anew, to elsewhere"+required).
			WithHint("Linux 6.7 or later; or serve tokens alone (-a rest_auth/jwt), for which no worker connects")
	}
	return nil
}
