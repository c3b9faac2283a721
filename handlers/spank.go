package handlers

import (
	"strings"

	"schedrestd/internal/errs"
	"schedrestd/model"
)

// maxSpankName is the maximum length in bytes of the name of a variable for
// SPANK plugins. Releases of Slurm before September 2026 (CVE-2026-65108) copy
// such names into a buffer of 1024 bytes on the stack of slurmstepd, which runs
// as root. slurmd first adds the 6 bytes "SPANK_" to each name in
// spank_environment. The names of real options have less than 100 bytes. The
// length of a value does not matter.
const maxSpankName = 1000

// checkSpank refuses a job with a variable for SPANK plugins whose name is too
// long. The argument at is the place of the job in the body.
func checkSpank(d *model.JobDesc, at string) error {
	for _, v := range d.Environment {
		if strings.HasPrefix(v, "SPANK_") || strings.HasPrefix(v, "_SLURM_SPANK_OPTION_") {
			if err := checkSpankName(v, at+"environment"); err != nil {
				return err
			}
		}
	}
	for _, v := range d.SpankEnvironment {
		if err := checkSpankName(v, at+"spank_environment"); err != nil {
			return err
		}
	}
	return nil
}

func checkSpankName(variable, at string) error {
	name, _, _ := strings.Cut(variable, "=")
	if len(name) <= maxSpankName {
		return nil
	}
	return errs.New(errs.Invalid, "the name of the variable %.40s… has %d bytes", name, len(name)).WithSource(at).
		WithHint("the name of a variable for SPANK plugins may have at most %d bytes: CVE-2026-65108", maxSpankName)
}
