package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/handlers/rest"
	"schedrestd/model"
)

// postHostnames expands a host list.
func (h *handler) postHostnames(c *rest.Call, _ *api.NoParams) error {
	body, err := rest.ReadBody(c, api.HostlistBody)
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Hostnames, &api.HostnamesAnswer{Hostnames: body.Names, Envelope: c.Envelope()})
}

// postHostlist folds names into a host list.
func (h *handler) postHostlist(c *rest.Call, _ *api.NoParams) error {
	body, err := rest.ReadBody(c, api.HostnamesBody)
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Hostlist, &api.HostlistAnswer{
		Hostlist: model.FoldHosts(body.Names), Envelope: c.Envelope()})
}
