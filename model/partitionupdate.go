package model

// PartitionUpdate makes a partition, or changes what is set in it of one that
// exists.
type PartitionUpdate struct {
	Name              string
	AllowAccounts     string
	AllowAllocNodes   string
	AllowGroups       string
	AllowQOS          string
	Alternate         string
	BillingWeights    string
	CPUBind           uint32      // 0: leave it
	DefMemPerCPU      Opt[uint64] // as Partition's
	DefaultTime       Opt[uint32] // minutes
	DenyAccounts      string
	DenyQOS           string
	Flags             uint32 // 0: leave them; some bits take others back
	JobDefaults       string
	GraceTime         Opt[uint32] // seconds
	MaxCPUsPerNode    Opt[uint32]
	MaxCPUsPerSocket  Opt[uint32]
	MaxMemPerCPU      Opt[uint64] // as DefMemPerCPU
	MaxNodes          Opt[uint32]
	MaxShare          Opt[uint16]
	MaxTime           Opt[uint32] // minutes
	MinNodes          Opt[uint32]
	Nodes             string // as a host list; "ALL" for all
	OverTimeLimit     Opt[uint16]
	PreemptMode       Opt[uint16]
	PriorityJobFactor Opt[uint16]
	PriorityTier      Opt[uint16]
	QOS               string
	StateUp           Opt[uint16]
	Topology          string
}
