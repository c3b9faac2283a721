package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// getLicenses returns the licenses, one at a time.
func (h *handler) getLicenses(c *rest.Call, _ *api.NoParams) error {
	body := api.LicensesAnswer{Envelope: c.Envelope()}
	key := func(l *model.License) string { return l.Name + "/" + l.Nodes } // a hierarchical resource has an entry for each layer
	body.Licenses = rest.Paged(c, &body.Envelope, key, func(each func(*model.License) error) (err error) {
		body.LastUpdate, err = h.Controller.Licenses(c.Context(), c.Credential(), model.Query{}, each)
		return err
	})
	return rest.Send(c, http.StatusOK, api.Licenses, &body)
}
