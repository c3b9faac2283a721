package api

import (
	"errors"
	"net/http"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/api/scope"
	"schedrestd/model"
)

// NodeUpdateBody declares the fields of a change to nodes.
var NodeUpdateBody = schema.Change("update_node_msg", func() schema.Fields[model.NodeUpdate] {
	return schema.Fields[model.NodeUpdate]{
		schema.F("comment", text, func(u *model.NodeUpdate) *model.Text { return &u.Comment }, "Any text"),
		schema.Set("cpu_bind", schema.Int32, func(u *model.NodeUpdate, n uint32) error { u.CPUBind = n; return checkBinding(n) }, "How tasks are bound to processors by default, as bits", schema.Bare),
		schema.F("extra", text, func(u *model.NodeUpdate) *model.Text { return &u.Extra }, "Text for node selection, with a meaning defined by the site"),
		schema.F("features", present(textOf(schema.Named("csv_string", nodeList))), func(u *model.NodeUpdate) *model.Text { return &u.Features }, "Available features of the node"),
		schema.F("features_act", present(textOf(schema.Named("csv_string", nodeList))), func(u *model.NodeUpdate) *model.Text { return &u.ActiveFeatures }, "Active features"),
		schema.F("gres", text, func(u *model.NodeUpdate) *model.Text { return &u.GRES }, "Generic resources"),
		schema.F("address", nonempty(textOf(nodeArray)), func(u *model.NodeUpdate) *model.Text { return &u.Address }, "Addresses, one per node"),
		schema.F("hostname", nonempty(textOf(nodeArray)), func(u *model.NodeUpdate) *model.Text { return &u.Hostname }, "Names of the machines, one for each node"),
		schema.F("name", nodeArray, func(u *model.NodeUpdate) *string { return &u.Names }, "Nodes to change, as a host list; the name in the path takes precedence"),
		schema.Set("state", nodeStates.Type, setNodeState, "New state, such as DRAIN, RESUME or DOWN"),
		schema.F("reason", nonempty(text), func(u *model.NodeUpdate) *model.Text { return &u.Reason }, "Reason why the node is down or drained"),
		schema.Set("reason_uid", schema.String, setReasonUser, "User who sets the reason, by id or by name on the gateway's host", schema.Until(V43)),
		schema.Harmless(schema.Ignore[model.NodeUpdate]("reason_uid", schema.String, "No longer used: the reason is set by the user of the request", schema.Since(V43), schema.Deprecated(V43), schema.Until(V46))),
		schema.F("resume_after", number, func(u *model.NodeUpdate) *model.Opt[uint32] { return &u.ResumeAfter }, "Time after which the node returns to service automatically", schema.Unit("s")),
		schema.F("topology_str", text, func(u *model.NodeUpdate) *model.Text { return &u.Topology }, "Position in the network topology", schema.Since(V43)),
		schema.F("weight", number, func(u *model.NodeUpdate) *model.Opt[uint32] { return &u.Weight }, "Scheduling weight; nodes with a low weight are used first", schema.Bare),
	}
})

// setNodeState sets the state, unless the list of words is empty. It refuses
// INVALID, whose number means "not set".
func setNodeState(u *model.NodeUpdate, s model.NodeState) error {
	switch {
	case s|nodeBase == model.NodeStateNone|nodeBase:
		return errors.New("INVALID can't be set")
	case s != 0:
		u.State = model.Some(s)
	}
	return nil
}

// RequestableState reports whether a controller may accept a change of a node's
// state to s. The state in an answer often has further words, such as IDLE and
// DRAIN.
func RequestableState(s model.NodeState) bool {
	const flags = model.NodePowerDown | model.NodePowerUp | model.NodePowerDrain | model.NodePoweredDown
	switch s {
	case model.NodeDown, model.NodeIdle, model.NodeFuture, model.NodeDrain, model.NodeFail, model.NodeResume, model.NodeUndrain,
		model.NodeNotResponding, model.NodeRebootCanceled:
		return true
	}
	return s&(model.NodePowerDown|model.NodePowerUp) != 0 && s&^flags == 0
}

// ShownState returns the state of a node as an answer shows it.
func ShownState(n *model.Node) model.NodeState { return shownState(&NodeRow{Node: n}) }

func setReasonUser(u *model.NodeUpdate, s string) (err error) {
	u.ReasonUID, u.ReasonUser, err = identity(s)
	return err
}

type NamedNodeParams struct{ Name string }

var namedNodeParams = schema.Object("", func() schema.Fields[NamedNodeParams] {
	return schema.Fields[NamedNodeParams]{
		schema.F("node_name", nodeName, func(p *NamedNodeParams) *string { return &p.Name }, "Name of the node, or a host list of several", schema.Required(0))}
})

// nodeName returns the type of a path segment that contains the name of a node,
// or a host list.
func nodeName() schema.Type[string] {
	parse := hostList().Parser(schema.View{})
	return schema.Simple(&schema.Shape{Kind: "string"}, nil, func(r *schema.Report, doc *schema.Value, into *string) bool {
		if strings.TrimSpace(doc.Text) == "" {
			return r.Error(doc, "expected a node name")
		}
		return parse(r, doc, into)
	})
}

// PostNode changes the nodes in its path.
var PostNode = declare(scope.ClusterAdmin, namedNodeParams, Endpoint{
	Method: http.MethodPost, Path: "node/{node_name}", ID: "post_node",
	Doc: "Change a node", Request: NodeUpdateBody, Answer: Empty,
	Example:     `{"comment": "fan replaced"}`,
	Description: "Changes those fields of a node that are in the body, for example to drain the node or return it to service. Requires administrator rights. If one of several nodes does not exist, none is changed.",
	RequestDoc:  "The fields to change",
	AnswerDoc:   "The node was changed",
})

// PostNodes changes the nodes in its body.
var PostNodes = declare(scope.ClusterAdmin, noParams, Endpoint{
	Method: http.MethodPost, Path: "nodes/", ID: "post_nodes",
	Doc: "Change several nodes", Request: NodeUpdateBody, Answer: Empty,
	Example:     `{"name": ["n1", "n2"], "comment": "fan replaced"}`,
	Description: "Changes all nodes listed in name, like POST node/{node_name}. Without name, nothing is changed.",
	RequestDoc:  "The nodes, and the fields to change",
	AnswerDoc:   "The nodes were changed",
})

var DeleteNode = declare(scope.ClusterAdmin, namedNodeParams, Endpoint{
	Method: http.MethodDelete, Path: "node/{node_name}", ID: "delete_node",
	Doc: "Delete a node", Answer: Empty,
	Description: "Deletes one or more dynamic nodes. Requires administrator rights.",
	AnswerDoc:   "The node was deleted",
})

// NewNode is a request to create a dynamic node.
type NewNode struct{ Line string }

// NewNodeBody declares the fields of a NewNode.
var NewNodeBody = schema.Object("openapi_create_node_req", func() schema.Fields[NewNode] {
	return append(schema.Fields[NewNode]{
		schema.F("node_conf", schema.String, func(n *NewNode) *string { return &n.Line }, "The node, as a NodeName= line of slurm.conf", schema.Required(0)),
	}, ignoredEnvelope[NewNode]()...)
})

// PostNewNode creates a dynamic node.
var PostNewNode = declare(scope.ClusterAdmin, noParams, Endpoint{
	Method: http.MethodPost, Path: "new/node/", ID: "post_new_node",
	Doc: "Create a node", Request: NewNodeBody, Answer: Empty, Since: V44,
	Example:     `{"node_conf": "NodeName=n3 State=CLOUD"}`,
	Description: "Creates a dynamic node from a configuration line, whose State must be CLOUD, FUTURE or EXTERNAL. Requires administrator rights.",
	RequestDoc:  "The configuration line of the node",
	AnswerDoc:   "The node was created",
})

// GetReconfigure makes the controllers read their configuration again.
var GetReconfigure = declare(scope.ClusterAdmin, noParams, Endpoint{
	Method: http.MethodGet, Path: "reconfigure/", ID: "get_reconfigure", ChangingGET: true,
	Doc: "Read the cluster's configuration again", Answer: Empty,
	Description: "Makes the controller and the nodes reload their configuration. This is a change although the method is GET. Requires administrator rights. The answer is sent when the new configuration is active or has been rejected.",
	AnswerDoc:   "The new configuration is active",
})
