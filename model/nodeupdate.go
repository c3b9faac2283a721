package model

// NodeUpdate changes the fields of nodes that are set in it. For new nodes,
// Extra has the configuration line.
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
