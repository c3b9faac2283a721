package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

func (h *handler) getTRES(c *rest.Call, _ *api.NoParams) error {
	body := api.TRESAnswer{Envelope: c.Envelope()}
	key := func(t *model.TRES) string { return numberKey(uint64(t.ID)) }
	body.TRES = rest.Paged(c, &body.Envelope, key, recordsOf[model.TRES](h, c, model.TRESFilter{WithDeleted: true}))
	return rest.Send(c, http.StatusOK, api.TRESList, &body)
}

// postTRES always returns an error: in ordinary builds of the accounting
// daemon, clients can't add trackable resources.
func (h *handler) postTRES(*rest.Call, *api.NoParams) error {
	return errs.New(errs.Unsupported, "trackable resources are added by AccountingStorageTRES in slurm.conf").WithNumber(slurmerror.NotSupported)
}
