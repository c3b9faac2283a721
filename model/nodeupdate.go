package model

// NodeUpdate changes nodes. A field that is not set leaves the nodes unchanged.
// In a request that creates nodes, Extra contains the nodes' configuration
// line.
type NodeUpdate struct {
	CertToken       string
	Comment         string
	CPUBind         uint32 // 0 to leave it unchanged
	Extra           string
	Features        string
	ActiveFeatures  string
	GRES            string
	InstanceID      string
	InstanceType    string
	Address         string
	Hostname        string
	Names           string // host list
	State           Opt[NodeState]
	PowerActionName string
	Reason          string
	ReasonUID       Opt[uint32] // sent only up to protocol 38
	ResumeAfter     Opt[uint32] // in seconds
	Topology        string
	Weight          Opt[uint32]
}
