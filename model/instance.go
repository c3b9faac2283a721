package model

// Instance describes a period in which a node ran on a machine in a cloud.
type Instance struct {
	Cluster      string
	Extra        string
	InstanceID   string
	InstanceType string
	Node         string
	TimeEnd      Time // 0 while it is running
	TimeStart    Time
}

// InstanceFilter selects instances. A field that is nil, an empty string or 0
// does not filter.
type InstanceFilter struct {
	Clusters      []string
	Extra         []string
	Format        []string
	InstanceIDs   []string
	InstanceTypes []string
	Nodes         string // host list expression
	TimeEnd       Time
	TimeStart     Time
}

func (InstanceFilter) selects(Instance) {}
