package handlers

import (
	"errors"
	"net/http"
	"reflect"
	"strings"

	"schedrestd/api"
	"schedrestd/api/schema"
	"schedrestd/handlers/rest"
	"schedrestd/handlers/slurmerror"
	"schedrestd/internal/errs"
	"schedrestd/model"
)

// defaultShowFlags contains the flags that apply if the client sends no flags.
const defaultShowFlags = model.ShowAll | model.ShowDetail

// The flags on which a controller's answer depends. Others are for Slurm's own
// clients, which ask several clusters or change the answer, and a controller
// ignores them. Requests for the same records do not differ in them, so that
// they share an answer and a feed.
const (
	jobFlags       = model.ShowAll | model.ShowDetail
	nodeFlags      = model.ShowAll | model.ShowDetail | model.ShowFuture
	partitionFlags = model.ShowAll
)

// getNodes returns the nodes that the filters of the request select, one at a
// time. If the filter is one node, it asks the controller only for this node.
func (h *handler) getNodes(c *rest.Call, p *api.NodeListParams) error {
	name, _ := p.OneNode()
	list := h.nodeList(c, p.Query, name, p.Match)
	if done, err := rest.Watch(c, list); done || err != nil {
		return err
	}
	body := api.NodesAnswer{Envelope: c.Envelope()}
	nodes := rest.Paged(c, &body.Envelope, list.Set.Key, list.Records(c, func(t model.ListTimes) { body.LastUpdate = t.LastUpdate }))
	_, unmixed := nodeFlagsOf(p.Query)
	body.Nodes = rowsOf(nodes, func(n *nodeRecord) api.NodeRow { return h.nodeRow(n, unmixed) })
	return rest.Send(c, http.StatusOK, api.Nodes, &body)
}

func (h *handler) getNode(c *rest.Call, p *api.NodeParams) error {
	list := h.nodeList(c, p.Query, p.Name, func(n *api.NodeRow) bool { return n.Name == p.Name })
	if _, err := rest.Watch(c, list); err != nil {
		return err
	}
	query := p.Query
	flags, unmixed := nodeFlagsOf(query)
	query.Flags = flags
	node, lastUpdate, err := h.Controller.Node(c.Context(), c.Credential(), p.Name, query)
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Kind == errs.NotFound && c.Lenient(api.NodeQueryText) {
		missing := *e
		missing.Message = "Failure to query node " + rest.Redact(schema.Shorten(p.Name)) + ": " + e.Message
		return &missing
	}
	if err != nil {
		return err
	}
	partitions, err := h.partitionsOf(c.Context(), c.Credential(), flags, node.Name)
	if err != nil {
		return err
	}
	row := h.nodeRow(&nodeRecord{*node, partitions}, unmixed)
	return rest.Send(c, http.StatusOK, api.Nodes, &api.NodesAnswer{Nodes: schema.One(&row), LastUpdate: lastUpdate, Envelope: c.Envelope()})
}

// postNode changes the nodes in the request's path.
func (h *handler) postNode(c *rest.Call, p *api.NamedNodeParams) error {
	u, err := rest.ReadBody(c, api.NodeUpdateBody)
	if err != nil {
		return err
	}
	if u.Names != "" && u.Names != p.Name {
		c.Warn("#/name", "ignored: the path already names the node")
	}
	u.Names = p.Name
	return h.updateNodes(c, u, rest.InPath+"node_name")
}

// postNodes changes the nodes in the request's body.
func (h *handler) postNodes(c *rest.Call, _ *api.NoParams) error {
	u, err := rest.ReadBody(c, api.NodeUpdateBody)
	if err != nil {
		return err
	}
	if u.Names == "" {
		return errs.New(errs.Invalid, "update nodes: the body names no node").WithSource("#/name")
	}
	return h.updateNodes(c, u, "#/name")
}

func (h *handler) updateNodes(c *rest.Call, u *model.NodeUpdate, source string) error {
	if reflect.DeepEqual(*u, model.NodeUpdate{Names: u.Names}) {
		if err := noChange(c, "node", u.Names, "#"); err != nil {
			return err
		}
	}
	if (u.ReasonUID.Set || u.ReasonUser != "") && !c.Lenient(api.HarmlessValue) {
		c.Warn("#/reason_uid", "has no effect from Slurm 23.02 on: the controller records the user of the request")
	}
	if err := h.resolveName(c, userNames, &u.ReasonUser, &u.ReasonUID, "#/reason_uid"); err != nil {
		return err
	}
	if err := h.checkNodesExist(c, u.Names, source); err != nil {
		return err
	}
	if err := h.dropShown(c, u); err != nil {
		return err
	}
	if u.ResumeAfter.Set && u.State != model.Some(model.NodeDown) && u.State != model.Some(model.NodeDrain) {
		c.Warn("#/resume_after", "has an effect only together with the state DOWN or DRAIN")
	}
	if u.Reason != "" && !u.ReasonUID.Set && h.Resolver != nil {
		if id, err := h.Resolver.UserID(c.Context(), c.User()); err == nil { // controllers before 23.02 expect this id from the client
			u.ReasonUID = model.Some(id)
		}
	}
	return h.changeNamed(c, "node", u.Names, source, func() error {
		err := h.Controller.UpdateNodes(c.Context(), c.Credential(), u)
		if err == nil && !u.Reason.Empty() && !u.State.Set {
			h.warnLostReason(c, u)
		}
		return err
	})
}

// warnLostReason adds a warning if a node has not got the reason of a change.
// slurmctld removes it at once from a node that is in service.
func (h *handler) warnLostReason(c *rest.Call, u *model.NodeUpdate) {
	changed := map[string]bool{}
	for name := range model.Hosts(u.Names) {
		changed[name] = true
	}
	var lost string
	check := func(n *model.Node) error {
		if changed[n.Name] && n.Reason != u.Reason.String() && lost == "" {
			lost = n.Name
		}
		return nil
	}
	query := model.Query{Flags: model.ShowAll}
	if len(changed) == 1 {
		if n, _, err := h.Controller.Node(c.Context(), c.Credential(), u.Names, query); err == nil {
			check(n)
		}
	} else if _, err := h.Controller.Nodes(c.Context(), c.Credential(), query, check); err != nil {
		return
	}
	if lost != "" {
		c.Warn("#/reason", "has no effect on %s: only a node that is down, drained or failing has a reason", lost)
	}
}

// dropShown removes the values from the change of one node that a client can
// only have copied from an answer: a state that can't be requested but is the
// node's, the reason for it, the node's features, and the time at which the
// node returns to service. Without this, a client could not send an answer
// back. slurmctld would also make all features active.
func (h *handler) dropShown(c *rest.Call, u *model.NodeUpdate) error {
	if u.ResumeAfter.Number >= firstTime {
		c.Warn("#/resume_after", "a time, which can't be set, ignored")
		u.ResumeAfter = model.Opt[uint32]{}
	}
	copied := u.State.Set && !api.RequestableState(u.State.Number)
	if !copied && u.Features == "" || strings.ContainsAny(u.Names, "[,") {
		return nil
	}
	node, _, err := h.Controller.Node(c.Context(), c.Credential(), u.Names, model.Query{Flags: model.ShowAll | model.ShowMixed})
	if errs.KindOf(err) == errs.NotFound {
		return nil // the change will find out, too
	}
	if err != nil {
		return err
	}
	if copied && u.State.Number == api.ShownState(node) {
		c.Warn("#/state", "the node has this state already, ignored")
		u.State = model.Opt[model.NodeState]{}
		if u.Reason.String() == node.Reason {
			u.Reason = ""
		}
	}
	if u.Features.String() == node.Features {
		u.Features = ""
	}
	return nil
}

// firstTime is a number that is a time, not the duration in seconds until a
// node returns to service: 30 years.
const firstTime = 30 * 365 * 86400

// checkNodesExist returns an error if names is a list of several nodes and one
// of them does not exist. Without this check, a controller would change all
// nodes that precede the unknown one in the list, and then stop.
func (h *handler) checkNodesExist(c *rest.Call, names, source string) error {
	if !strings.ContainsAny(names, "[,") {
		return nil
	}
	known := map[string]bool{}
	_, err := h.Controller.Nodes(c.Context(), c.Credential(), model.Query{Flags: model.ShowAll}, func(n *model.Node) error {
		known[n.Name] = true
		return nil
	})
	if err != nil {
		return err
	}
	for name := range model.Hosts(names) {
		if !known[name] {
			return errs.New(errs.NotFound, "node %s: not found; nothing was changed", name).WithSource(source).WithNumber(slurmerror.InvalidNodeName)
		}
	}
	return nil
}

func (h *handler) deleteNode(c *rest.Call, p *api.NamedNodeParams) error {
	if err := h.checkNodesExist(c, p.Name, rest.InPath+"node_name"); err != nil {
		return err
	}
	return h.changeNamed(c, "node", p.Name, rest.InPath+"node_name", func() error {
		return h.Controller.DeleteNodes(c.Context(), c.Credential(), p.Name)
	})
}

// postNewNode creates a node.
func (h *handler) postNewNode(c *rest.Call, _ *api.NoParams) error {
	n, err := rest.ReadBody(c, api.NewNodeBody)
	if err != nil {
		return err
	}
	if strings.TrimSpace(n.Line) == "" {
		return errs.New(errs.Invalid, "create node: the configuration line is empty").WithSource("#/node_conf")
	}
	_, err = rest.MakeChange(c, "", func() (string, error) { return n.Line, h.Controller.CreateNode(c.Context(), c.Credential(), n.Line) },
		func(line string) rest.Result { return rest.Result{Objects: line} })
	if e, ok := errors.AsType[*errs.Error](err); ok && e.Number == unspecified && e.Detail != "" { // slurmctld can't parse the line
		return errs.New(errs.Invalid, "create node: %s", e.Detail).WithSource("#/node_conf").WithNumber(unspecified)
	}
	if err != nil {
		return annotateNamed(err, "line", n.Line, "#/node_conf")
	}
	return rest.Send(c, http.StatusOK, api.Empty, &api.EmptyAnswer{Envelope: c.Envelope()})
}

// unspecified is Slurm's error number SLURM_ERROR.
const unspecified = -1

// getReconfigure makes the controller reload its configuration.
func (h *handler) getReconfigure(c *rest.Call, _ *api.NoParams) error {
	const object = "configuration"
	_, err := rest.MakeChange(c, object, func() (string, error) { return object, h.Controller.Reconfigure(c.Context(), c.Credential()) },
		func(object string) rest.Result { return rest.Result{Objects: object} })
	if err != nil {
		return err
	}
	return rest.Send(c, http.StatusOK, api.Empty, &api.EmptyAnswer{Envelope: c.Envelope()})
}
