package model

// ResourceLayout is what a job has of one of its nodes.
type ResourceLayout struct {
	Node           string
	Memory         uint64 // MiB
	SocketsPerNode uint16
	CoresPerSocket uint16
	Channel        Opt[uint32]
	Cores          string // "0x" and hexadecimal digits, a bit for each core of the node
	GRES           []GRESLayout
}

// GRESLayout is what a job has of a generic resource of a node.
type GRESLayout struct {
	Name    string
	Type    string
	Count   uint64
	Indexed bool   // Index counts
	Index   Bitmap // the devices, where they have indexes
}
