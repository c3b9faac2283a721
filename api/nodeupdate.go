package api

import (
	"errors"
	"net/http"
	"strings"

	"schedrestd/api/schema"
	"schedrestd/model"
)

// NodeUpdateBody declares the fields of a change to nodes.
var NodeUpdateBody = schema.Object("update_node_msg",
	schema.F("comment", schema.String, func(u *model.NodeUpdate) *string { return &u.Comment }, "Any text"),
	schema.F("cpu_bind", schema.Int32, func(u *model.NodeUpdate) *uint32 { return &u.CPUBind }, "How tasks are bound to processors by default, as bits", schema.Bare),
	schema.F("extra", schema.String, func(u *model.NodeUpdate) *string { return &u.Extra }, "Text for node selection, as the site sets it"),
	schema.F("features", schema.Named("csv_string", nodeList), func(u *model.NodeUpdate) *string { return &u.Features }, "Features that it has"),
	schema.F("features_act", schema.Named("csv_string", nodeList), func(u *model.NodeUpdate) *string { return &u.ActiveFeatures }, "Features in force"),
	schema.F("gres", schema.String, func(u *model.NodeUpdate) *string { return &u.GRES }, "Generic resources"),
	schema.F("address", nodeArray, func(u *model.NodeUpdate) *string { return &u.Address }, "Addresses, one for each node"),
	schema.F("hostname", nodeArray, func(u *model.NodeUpdate) *string { return &u.Hostname }, "Names of the machines, one for each node"),
	schema.F("name", nodeArray, func(u *model.NodeUpdate) *string { return &u.Names }, "Nodes to change, as a host list; a name in the path wins"),
	schema.Take("state", nodeStates.Type, func(u *model.NodeUpdate, s model.NodeState) error {
		if s != 0 {
			u.State = model.Some(s)
		}
		return nil
	}, "New state, as DRAIN, RESUME or DOWN"),
	schema.F("reason", schema.String, func(u *model.NodeUpdate) *string { return &u.Reason }, "Why it is down or drained"),
	schema.Take("reason_uid", schema.String, takeReasonUser, "User who gives the reason, by number", schema.Until(V43)),
	schema.Ignore[model.NodeUpdate]("reason_uid", schema.String, "Nothing any more: the user who asks gives the reason", schema.Since(V43), schema.Deprecated(V43)),
	schema.F("resume_after", number, func(u *model.NodeUpdate) *model.Opt[uint32] { return &u.ResumeAfter }, "Time after which it returns to service by itself", schema.Unit("s")),
	schema.F("topology_str", schema.String, func(u *model.NodeUpdate) *string { return &u.Topology }, "Place in the network", schema.Since(V43)),
	schema.F("weight", number, func(u *model.NodeUpdate) *model.Opt[uint32] { return &u.Weight }, "Rank in scheduling: light nodes are used first", schema.Bare),
)

func takeReasonUser(u *model.NodeUpdate, s string) error {
	number, name, err := identity(s)
	if name != "" {
		return errors.New("expected the number of a user")
	}
	u.ReasonUID = number
	return err
}

// NamedNodeParams name nodes.
type NamedNodeParams struct{ Name string }

var namedNodeParams = schema.Object("",
	schema.F("node_name", nodeName, func(p *NamedNodeParams) *string { return &p.Name }, "Name of the node, or a host list of several", schema.Required(0)),
)

// nodeName takes the name of a node, or a host list, from the path.
func nodeName() schema.Type[string] {
	parse := hostList().Parser(schema.View{})
	return schema.Simple(&schema.Shape{Kind: "string"}, nil, func(r *schema.Report, doc *schema.Value, into *string) bool {
		if strings.TrimSpace(doc.Text) == "" {
			return r.Error(doc, "there is no node without a name")
		}
		return parse(r, doc, into)
	})
}

// PostNode changes nodes that the path names.
var PostNode = declare(namedNodeParams, Endpoint{
	Method: http.MethodPost, Path: "node/{node_name}", ID: "post_node",
	Doc: "Change a node", Request: NodeUpdateBody, Answer: Empty,
	About:   "Drains a node, returns it to service, or changes what else the body names, and leaves the rest alone. Only administrators may. Of several nodes none is changed when one does not exist.",
	Takes:   "The fields to change",
	Returns: "Nothing but the envelope: the node is changed",
})

// PostNodes changes nodes that the body names.
var PostNodes = declare(noParams, Endpoint{
	Method: http.MethodPost, Path: "nodes/", ID: "post_nodes",
	Doc: "Change several nodes", Request: NodeUpdateBody, Answer: Empty,
	About:   "Changes the nodes that name lists as POST node/{node_name} does. Without name nothing is changed.",
	Takes:   "The nodes, and the fields to change",
	Returns: "Nothing but the envelope: the nodes are changed",
})

// DeleteNode deletes nodes.
var DeleteNode = declare(namedNodeParams, Endpoint{
	Method: http.MethodDelete, Path: "node/{node_name}", ID: "delete_node",
	Doc: "Delete a node", Answer: Empty,
	About:   "Deletes a dynamic node, or a host list of them. Only administrators may.",
	Returns: "Nothing but the envelope: the node is deleted",
})

// NewNode requests a node to be made.
type NewNode struct{ Line string }

// NewNodeBody declares the fields of a NewNode.
var NewNodeBody = schema.Object("openapi_create_node_req",
	schema.F("node_conf", schema.String, func(n *NewNode) *string { return &n.Line }, "The node, as a NodeName= line of the configuration", schema.Required(0)),
	schema.Ignore[NewNode]("meta", metaType.Type, "Nothing: answers have it"),
	schema.Ignore[NewNode]("errors", schema.Named("openapi_errors", schema.List(errorType.Type)), "Nothing: answers have it"),
	schema.Ignore[NewNode]("warnings", schema.Named("openapi_warnings", schema.List(warningType.Type)), "Nothing: answers have it"),
)

// PostNewNode makes a dynamic node.
var PostNewNode = declare(noParams, Endpoint{
	Method: http.MethodPost, Path: "new/node/", ID: "post_new_node",
	Doc: "Make a node", Request: NewNodeBody, Answer: Empty, Since: V44,
	About:   "Makes a dynamic node from a line of the configuration; its State has to be CLOUD, FUTURE or EXTERNAL. Only administrators may.",
	Takes:   "The node's line of the configuration",
	Returns: "Nothing but the envelope: the node is made",
})

// GetReconfigure has the controllers read their configuration again.
var GetReconfigure = declare(noParams, Endpoint{
	Method: http.MethodGet, Path: "reconfigure/", ID: "get_reconfigure", Changes: true,
	Doc: "Read the cluster's configuration again", Answer: Empty,
	About:   "Has the controller and the nodes read their configuration again. It is a change, although its method is GET. Only administrators may. The answer comes when the new configuration is in force or refused.",
	Returns: "Nothing but the envelope: the configuration is in force",
})
