package handlers

import (
	"schedrestd/api"
	"schedrestd/errs"
)

// postTRES always returns an error. Trackable resources can't be added by
// clients in ordinary builds of the accounting daemon.
func (h *handler) postTRES(*call, *api.NoParams) error {
	e := errs.New(errs.Unsupported, "trackable resources are added by AccountingStorageTRES in slurm.conf")
	e.Number = notSupported
	return e
}
