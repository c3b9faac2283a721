package sandbox

import (
	"time"

	"schedrestd/internal/errs"
	"schedrestd/security"
)

// Close closes the sandbox of this process: it enables Landlock and a system
// call filter, and then tries forbidden operations. It returns the layers that
// the kernel enforces. If requireAll is set and a layer is missing, Close
// returns an error.
func Close(o Options, requireAll bool) (enforced Layers, err error) {
	if !security.Sandboxed {
		return enforced, nil
	}
	// The time zone's file is read now, because it can't be opened later.
	//
	//lint:ignore SA4017 the file with the local time is read once, now, and can't be later
	time.Now().Zone()
	if opensFiles(o) {
		enforced, err = denyWriting()
	} else {
		enforced, err = denyFiles(o)
	}
	if err != nil {
		return enforced, err
	}
	if err := checkLayers(o, enforced); requireAll && err != nil {
		return enforced, err
	}
	if err := installFilter(o); err != nil {
		return enforced, err
	}
	enforced.Filter, enforced.Audit = true, o.Audit
	return enforced, runProbes(o)
}

// checkLayers returns an error if s lacks a layer that a process with the
// options o should have.
func checkLayers(o Options, s Layers) error {
	if o.Audit {
		return errs.New(errs.Unsupported, "the system call filter only logs (audit_confinement)"+requiredSuffix)
	}
	if err := requireLandlock(s); err != nil {
		return err
	}
	if o.Kind == Worker && o.Unix && s.Denies&DeniesTCP == 0 {
		return errs.New(errs.Unsupported, "this kernel's Landlock cannot keep a worker that may connect to UNIX sockets from reconnecting its TCP connections elsewhere"+requiredSuffix).
			WithHint("use Linux 6.7 or later, or accept only tokens (-a rest_auth/jwt), so that no worker connects to UNIX sockets")
	}
	return nil
}

const requiredSuffix = ", and require_confinement is set"

// requireLandlock returns an error when Landlock confines nothing.
func requireLandlock(s Layers) error {
	if s.Landlock != 0 {
		return nil
	}
	return errs.New(errs.Unsupported, "this kernel has no Landlock"+requiredSuffix).
		WithHint("boot with lsm=landlock,… (Linux 5.13 or later), or remove require_confinement")
}
