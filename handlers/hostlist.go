package handlers

import (
	"net/http"

	"schedrestd/api"
	"schedrestd/model"
)

// postHostnames expands a host list.
func (h *handler) postHostnames(c *call, _ *api.NoParams) error {
	body, err := readBody(c, api.HostlistBody)
	if err != nil {
		return err
	}
	return send(c, http.StatusOK, api.Hostnames, &api.HostnamesAnswer{Hostnames: body.Names, Envelope: c.envelope()})
}

// postHostlist folds names into a host list.
func (h *handler) postHostlist(c *call, _ *api.NoParams) error {
	body, err := readBody(c, api.HostnamesBody)
	if err != nil {
		return err
	}
	return send(c, http.StatusOK, api.Hostlist, &api.HostlistAnswer{
		Hostlist: model.FoldHosts(body.Names), Envelope: c.envelope()})
}
