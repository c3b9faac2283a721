package model

// Partition is a queue of jobs, with the nodes that run them.
type Partition struct {
	Name              string
	CPUBind           uint32
	GraceTime         uint32      // seconds before preemption
	MaxTime           Opt[uint32] // in minutes
	DefaultTime       Opt[uint32] // in minutes
	MaxNodes          Opt[uint32]
	MinNodes          uint32
	TotalNodes        uint32
	TotalCPUs         uint32
	DefMemPerCPU      uint64 // in MiB: per CPU if the bit MemPerCPU is set, otherwise per node
	MaxCPUsPerNode    Opt[uint32]
	MaxCPUsPerSocket  Opt[uint32]
	MaxMemPerCPU      uint64 // like DefMemPerCPU
	Flags             uint32
	MaxShare          uint16
	OverTimeLimit     Opt[uint16] // minutes beyond the limit
	PreemptMode       uint16
	PriorityJobFactor uint16
	PriorityTier      uint16
	StateUp           uint16      // bit 0: jobs may be submitted, bit 1: jobs may start
	CRType            uint16      // how resources are selected
	ResumeTimeout     Opt[uint16] // in seconds
	SuspendTimeout    Opt[uint16] // in seconds
	SuspendTime       Opt[uint32] // in seconds
	AllowAccounts     string
	AllowGroups       string
	AllowAllocNodes   string
	AllowQOS          string
	QOS               string
	Alternate         string
	DenyAccounts      string
	DenyQOS           string
	Nodes             string // host list expression
	NodeSets          string
	NodeIndexes       Bitmap
	BillingWeights    string
	Topology          string
	TRES              string
	JobDefaults       []JobDefault
}

// JobDefault is a default value for the jobs of a partition. Its Type says what
// the value is for.
type JobDefault struct {
	Type  uint16
	Value uint64
}
