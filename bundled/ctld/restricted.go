package ctld

import (
	"schedrestd/internal/errs"
	"schedrestd/model"
	"schedrestd/rpc/fault"
)

// restricted lists the values of fields that only root and the scheduler's user
// may set, both in a submission and in a change. A user who could set
// admin_comment in a submission could make a job look as if an administrator
// had commented on it.
var restricted = []struct {
	field, rule string
	isSet       func(*model.JobDesc) bool
}{
	{"admin_comment", "set it", func(d *model.JobDesc) bool { return d.AdminComment != "" }},
	{"nice", "set it below 0", func(d *model.JobDesc) bool { return d.Nice.Set && d.Nice.Number < model.NiceOffset }},
}

// checkRestricted refuses a submission or a change with a field that the client
// may not set.
func checkRestricted(d *model.JobDesc, super bool) error {
	for _, r := range restricted {
		if !super && r.isSet(d) {
			return refuseField(errs.Denied, fault.AccessDenied, r.field, "only root and the scheduler's user may %s", r.rule)
		}
	}
	return nil
}
