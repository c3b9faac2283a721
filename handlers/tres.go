package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

func (h *handler) getTRES(c *rest.Call, _ *api.NoParams) error {
	body := api.TRESAnswer{Envelope: c.Envelope()}
	body.TRES = recordsOf[model.TRES](h, c, model.TRESFilter{WithDeleted: true})
	return rest.Send(c, http.StatusOK, api.TRESList, &body)
}
