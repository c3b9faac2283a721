package model

// License is a kind of license that jobs can request.
type License struct {
	Name         string
	Total        uint32
	InUse        uint32
	Reserved     uint32
	Remote       bool   // counted by the accounting daemon
	LastConsumed uint32 // licenses in use inside and outside the cluster, according to the license server
	LastDeficit  uint32 // number of licenses that the cluster lacks, according to LastConsumed
	LastUpdate   Time   // time of the license server's last report
	Mode         uint8  // for a hierarchical resource
	Nodes        string // host list expression for a hierarchical resource
}
