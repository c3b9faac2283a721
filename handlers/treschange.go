package handlers

import (
	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
)

// postTRES always returns an error: in ordinary builds of the accounting
// daemon, clients can't add trackable resources.
func (h *handler) postTRES(*rest.Call, *api.NoParams) error {
	e := errs.New(errs.Unsupported, "trackable resources are added by AccountingStorageTRES in slurm.conf")
	e.Number = slurmerror.NotSupported
	return e
}
