package model

// Instance is a time in which a node was a machine of a cloud.
type Instance struct {
	Cluster      string
	Extra        string
	InstanceID   string
	InstanceType string
	Node         string
	TimeEnd      Time // 0: it still is
	TimeStart    Time
}

// InstanceFilter selects instances; a nil list, an empty text and 0 are no filter.
type InstanceFilter struct {
	Clusters      []string
	Extra         []string
	Format        []string
	InstanceIDs   []string
	InstanceTypes []string
	Nodes         string // as a host list expression
	TimeEnd       Time
	TimeStart     Time
}

func (InstanceFilter) selects(Instance) {}
