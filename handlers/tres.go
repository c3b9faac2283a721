package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/model"
)

func (h *handler) getTRES(c *call, _ *api.NoParams) error {
	body := api.TRESAnswer{Envelope: c.envelope()}
	body.TRES = recordsOf[model.TRES](h, c, model.TRESFilter{WithDeleted: true})
	return send(c, http.StatusOK, api.TRESList, &body)
}
