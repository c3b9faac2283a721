package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/model"
)

func (h *handler) getTRES(c *Call, _ *api.NoParams) error {
	body := api.TRESAnswer{Envelope: c.Envelope()}
	body.TRES = recordsOf[model.TRES](h, c, model.TRESFilter{WithDeleted: true})
	return Send(c, http.StatusOK, api.TRESList, &body)
}
