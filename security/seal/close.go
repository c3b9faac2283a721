package seal

import (
	"time"

	"schedrestd/errs"
	"schedrestd/security"
)

// Close takes the three steps, and returns what the kernel has of them. With all it refuses where something is missing.
func Close(o Options, all bool) (sealed security.Sealed, err error) {
	if !security.Caged {
		return sealed, nil
	}
	//lint:ignore SA4017 the file with the local time is read once, now, and can't be later
	time.Now().Zone()
	sealed, err = denyFiles(o)
	if err != nil {
		return sealed, err
	}
	if err := complete(o, sealed); all && err != nil {
		return sealed, err
	}
	if err := install(o); err != nil {
		return sealed, err
	}
	sealed.Filter, sealed.Audit = true, o.Audit
	return sealed, try(o)
}

// complete says what is missing of what a worker's cage can't do without.
func complete(o Options, s security.Sealed) error {
	const required = ", and all of the confinement is required (require_confinement)"
	switch {
	case s.Landlock == 0:
		return errs.New(errs.Unsupported, "this kernel has no Landlock"+required).
			WithHint("boot with lsm=landlock,… (Linux 5.13 or later), or serve without require_confinement")
	case dials(o) && s.Denies&security.DeniesTCP == 0:
		return errs.New(errs.Unsupported, "this kernel's Landlock does not keep a worker that connects UNIX sockets from making its TCP connections anew, to elsewhere"+required).
			WithHint("Linux 6.7 or later; or serve tokens alone (-a rest_auth/jwt), for which no worker connects")
	}
	return nil
}
