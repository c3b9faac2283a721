package model

// NodeUpdate is a change to nodes: what is set in it. Nodes that are made carry
// their line of the configuration in Extra.
type NodeUpdate struct {
	CertToken       string
	Comment         string
	CPUBind         uint32 // 0: leave it
	Extra           string
	Features        string
	ActiveFeatures  string
	GRES            string
	InstanceID      string
	InstanceType    string
	Address         string
	Hostname        string
	Names           string // as a host list
	State           Opt[NodeState]
	PowerActionName string
	Reason          string
	ReasonUID       Opt[uint32] // travels up to protocol 38 only
	ResumeAfter     Opt[uint32] // seconds
	Topology        string
	Weight          Opt[uint32]
}
