package model

// Allocation is a controller's answer to a request for resources without a
// batch script.
type Allocation struct {
	StepID          StepID
	ErrorCode       uint32
	UserMessage     string // message to the user from the site's submit policy
	NodeCount       uint32 // 0 while the job is pending
	Nodes           string
	Account         string
	AliasList       string
	BatchHost       string
	Environment     []string
	GroupID         uint32
	GroupName       string
	TasksPerBoard   uint16
	TasksPerCore    uint16
	TasksPerTRES    uint16
	TasksPerSocket  uint16
	CPUsPerNode     []uint16
	CPUCountReps    []uint32
	Partition       string
	MinMemory       uint64
	QOS             string
	Reservation     string
	SelectPlugin    uint32
	SegmentSize     uint16
	ProtocolVersion uint16
	TRESPerNode     string
	TRESPerTask     string
	UserID          uint32
	UserName        string
}
