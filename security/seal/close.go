package seal

import (
	"time"

	"schedrestd/errs"
	"schedrestd/security"
)

// Close takes the three steps that the package comment describes, and returns
// the layers that the kernel enforces. If all is set, it fails if a layer is
// missing.
func Close(o Options, all bool) (sealed security.Sealed, err error) {
	if !security.Sandboxed {
		return sealed, nil
	}
	// The time zone's file is read now, because it can't be opened later.
	//
	//lint:ignore SA4017 the file with the local time is read once, now, and can't be later
	time.Now().Zone()
	if o.Kind == Dispatcher {
		sealed, err = denyWriting()
	} else {
		sealed, err = denyFiles(o)
	}
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

// complete returns an error if a layer is missing that process o.Kind should
// have.
func complete(o Options, s security.Sealed) error {
	if o.Audit {
		return errs.New(errs.Unsupported, "the system call filter only logs (audit_confinement)"+required)
	}
	if err := requireLandlock(s); err != nil {
		return err
	}
	if dials(o) && s.Denies&security.DeniesTCP == 0 {
		return errs.New(errs.Unsupported, "this kernel's Landlock cannot keep a worker that may connect to UNIX sockets from reconnecting its TCP connections elsewhere"+required).
			WithHint("use Linux 6.7 or later, or accept only tokens (-a rest_auth/jwt), so that no worker connects to UNIX sockets")
	}
	return nil
}

const required = ", and require_confinement is set"

// requireLandlock returns an error when Landlock confines nothing.
func requireLandlock(s security.Sealed) error {
	if s.Landlock != 0 {
		return nil
	}
	return errs.New(errs.Unsupported, "this kernel has no Landlock"+required).
		WithHint("boot with lsm=landlock,… (Linux 5.13 or later), or remove require_confinement")
}
