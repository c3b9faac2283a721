package model

// License is a license that jobs can request.
type License struct {
	Name         string
	Total        uint32
	InUse        uint32
	Reserved     uint32
	Remote       bool   // counted by the accounting daemon
	LastConsumed uint32 // taken outside of the cluster too, as the license server last said
	LastDeficit  uint32 // missing for the cluster, by that number
	LastUpdate   Time   // when the license server last said so
	Mode         uint8  // of a hierarchical resource
	Nodes        string // of a hierarchical resource, as a host list expression
}
