package spawn

import (
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/ipc"
)

// Parts returns the state of each part of the confinement that processes
// inherit from the Spawner.
func (s *Spawner) Parts() []ipc.Part { return s.states[:] }

// missingParts lists the parts that are missing or switched off, with the
// reasons.
func (s *Spawner) missingParts() string {
	var list []string
	for _, p := range s.Parts() {
		if p.State != "" && p.State != ipc.PartOn {
			list = append(list, p.Name+" ("+p.Reason+")")
		}
	}
	return strings.Join(list, ", ")
}

// CheckRequired returns an error if the configuration requires all parts of the
// confinement, and a part is missing or switched off. However the gateway is
// started, the parent calls CheckRequired before it starts a worker.
// CheckRequired does not check the parts that workers set up themselves. If
// such a part is missing, the worker refuses to serve (ipc.SandboxRequire).
func (s *Spawner) CheckRequired() error {
	missing := s.missingParts()
	if !s.Switches.RequireConfinement || missing == "" {
		return nil
	}
	return errs.New(errs.Unsupported, "require_confinement: parts of the confinement are not available: %s", missing).
		WithHint("schedrestd --check-confinement shows what each part needs; without require_confinement the other parts are used")
}
