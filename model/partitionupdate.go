package model

// PartitionUpdate creates a partition or changes an existing one. A field that
// is not set leaves an existing partition unchanged.
type PartitionUpdate struct {
	Name              string
	AllowAccounts     Text
	AllowAllocNodes   Text
	AllowGroups       Text
	AllowQOS          Text
	Alternate         Text
	BillingWeights    Text
	CPUBind           uint32      // 0 to leave it unchanged
	DefMemPerCPU      Opt[uint64] // like Partition's
	DefaultTime       Opt[uint32] // in minutes
	DenyAccounts      Text
	DenyQOS           Text
	Flags             uint32 // 0 leaves the flags unchanged; some bits clear other flags
	JobDefaults       Text
	GraceTime         Opt[uint32] // in seconds
	MaxCPUsPerNode    Opt[uint32]
	MaxCPUsPerSocket  Opt[uint32]
	MaxMemPerCPU      Opt[uint64] // like DefMemPerCPU
	MaxNodes          Opt[uint32]
	MaxShare          Opt[uint16]
	MaxTime           Opt[uint32] // in minutes
	MinNodes          Opt[uint32]
	Nodes             Text // host list; "ALL" for all nodes
	OverTimeLimit     Opt[uint16]
	PreemptMode       Opt[uint16]
	PriorityJobFactor Opt[uint16]
	PriorityTier      Opt[uint16]
	QOS               Text
	StateUp           Opt[uint16]
	Topology          Text
}
