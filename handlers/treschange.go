package handlers

import (
	"schedrestd/api"
	"schedrestd/errs"
)

// postTRES always fails, because ordinary builds of the accounting daemon
// accept no trackable resources from clients.
func (h *handler) postTRES(*call, *api.NoParams) error {
	e := errs.New(errs.Unsupported, "trackable resources are added by AccountingStorageTRES in slurm.conf")
	e.Number = notSupported
	return e
}
