package model

// NodeUpdate changes nodes. A field that is not set leaves the nodes unchanged.
// In a request that creates nodes, Extra contains the nodes' configuration
// line.
type NodeUpdate struct {
	CertToken       Text
	Comment         Text
	CPUBind         uint32 // 0 to leave it unchanged
	Extra           Text
	Features        Text
	ActiveFeatures  Text
	GRES            Text
	InstanceID      Text
	InstanceType    Text
	Address         Text
	Hostname        Text
	Names           string // host list
	State           Opt[NodeState]
	PowerActionName Text
	Reason          Text
	ReasonUID       Opt[uint32] // sent only up to protocol 38
	ReasonUser      string      // replaces ReasonUID until the name is resolved; never sent
	ResumeAfter     Opt[uint32] // in seconds
	Topology        Text
	Weight          Opt[uint32]
}
