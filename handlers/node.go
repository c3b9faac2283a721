package handlers

import (
	"errors"
	"net/http"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// defaultShowFlags contains the flags that apply if the client sends no flags.
const defaultShowFlags = model.ShowAll | model.ShowDetail

// getNodes returns the nodes, one at a time.
func (h *handler) getNodes(c *rest.Call, p *api.ListParams) error {
	members, err := h.membership(c)
	if err != nil {
		return err
	}
	body := api.NodesAnswer{Envelope: c.Envelope()}
	query := p.Or(defaultShowFlags | model.ShowMixed)
	body.Nodes = func(each func(*api.NodeRow) error) error {
		row := api.NodeRow{Users: h.Users, Unmixed: query.Flags&model.ShowMixed == 0}
		body.LastUpdate, err = h.Controller.Nodes(c.Context(), c.Credential(), query, func(n *model.Node) error {
			row.Node, row.Partitions = n, members.partitions(n.Name)
			return each(&row)
		})
		return err
	}
	return rest.Send(c, http.StatusOK, api.Nodes, &body)
}

// getNode returns one node.
func (h *handler) getNode(c *rest.Call, p *api.NodeParams) error {
	query := p.Or(defaultShowFlags | model.ShowMixed)
	node, lastUpdate, err := h.Controller.Node(c.Context(), c.Credential(), p.Name, query)
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Kind == errs.NotFound && c.Lenient(api.NodeQueryText) {
		missing := *e
		missing.Message = "Failure to query node " + rest.Redact(schema.Shorten(p.Name)) + ": " + e.Message
		return &missing
	}
	if err != nil {
		return err
	}
	partitions, err := h.partitionsOf(c, node.Name)
	if err != nil {
		return err
	}
	body := api.NodesAnswer{LastUpdate: lastUpdate, Envelope: c.Envelope()}
	body.Nodes = func(each func(*api.NodeRow) error) error {
		return each(&api.NodeRow{Node: node, Partitions: partitions, Users: h.Users, Unmixed: query.Flags&model.ShowMixed == 0})
	}
	return rest.Send(c, http.StatusOK, api.Nodes, &body)
}
