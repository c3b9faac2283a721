package model

// ResourceLayout describes the resources of a job on one of its nodes.
type ResourceLayout struct {
	Node           string
	Memory         uint64 // in MiB
	SocketsPerNode uint16
	CoresPerSocket uint16
	Channel        Opt[uint32]
	Cores          string // "0x" and a hexadecimal number with a bit for each core of the node
	GRES           []GRESLayout
}

// GRESLayout describes the part of a node's generic resource that is allocated
// to a job.
type GRESLayout struct {
	Name    string
	Type    string
	Count   uint64
	Indexed bool   // whether Index is set
	Index   Bitmap // devices, if they have indexes
}
