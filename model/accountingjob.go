package model

import "cmp"

// AccountingJob is a job in the records of the accounting daemon. Each CPU time
// is the sum of two fields, one in seconds and one in microseconds.
type AccountingJob struct {
	Account         string
	AdminComment    Text
	AllocNodes      uint32
	ArrayJobID      uint32 // 0 if the job is not part of an array
	ArrayMaxTasks   uint32 // maximum number of tasks that run concurrently; 0 for no limit
	ArrayTaskID     Opt[uint32]
	ArrayTasks      string // tasks that have not started, as "1-3,7%2"
	AssocID         uint32
	BlockID         string
	Cluster         string
	Constraints     string
	Container       string
	DBIndex         uint64 // from 24.11 on the job's SLUID
	DerivedExitCode uint32 // highest exit code of all steps, in the format of ExitCode
	DerivedExitText Text   // set by the user, and shown as the job's comment
	Elapsed         uint32 // in seconds
	EligibleTime    Time
	EndTime         Time
	Environment     string // set only if requested
	Exclusive       string
	ExitCode        uint32 // status from wait(2): code in bits 8 to 15, signal in bits 0 to 6
	Extra           Text
	FailedNode      string
	Flags           uint32 // how it was scheduled
	GroupID         uint32
	JobID           uint32
	Name            string
	Left            uint32 // position in the tree of associations; only up to protocol 39
	Licenses        string
	Lineage         string // accounts and user from the root down
	MCSLabel        string
	Nodes           string // host list expression
	HetJobID        uint32 // 0 if the job is not part of a heterogeneous job
	HetJobOffset    Opt[uint32]
	Oversubscribe   string
	Partition       string
	Priority        Opt[uint32] // 0 if held
	QOSID           uint32
	PathRules       PathRules // not sent: those of the daemon's release
	QOSReq          string
	ReqCPUs         uint32
	ReqMem          uint64 // in MiB: per CPU if the bit MemPerCPU is set, otherwise per node
	ReqUserID       uint32 // user who cancelled it; 0xffffffff for none
	RestartCnt      uint16
	Reservation     string
	ReservationID   uint32
	ReservationReq  string
	Script          string // set only if requested
	SLUID           uint64
	ShowFull        uint32 // 0 if only the requested steps are included
	StartTime       Time
	State           JobState
	StateReason     uint32 // the job's last reason before it started or failed: a WAIT_ or FAIL_ number
	Steps           []AccountingStep
	SegmentSize     uint16
	StdErr          string
	StdIn           string
	StdOut          string
	SubmitTime      Time
	SubmitLine      string
	Suspended       uint32 // in seconds
	SystemComment   Text
	SystemCPUSec    uint64
	SystemCPUUsec   uint64
	TimeLimit       Opt[uint32] // in minutes
	TotalCPUSec     uint64
	TotalCPUUsec    uint64
	TRESAlloc       string // "1=4,2=1000": ids and amounts
	TRESReq         string // the same for requested resources
	UserID          uint32
	User            string // empty if the name is unknown
	UserCPUSec      uint64
	UserCPUUsec     uint64
	WCKey           Text
	WCKeyID         uint32
	WorkDir         string
}

// AccountingStep is a step of an AccountingJob.
type AccountingStep struct {
	Container     string
	Elapsed       uint32 // in seconds
	EndTime       Time
	ExitCode      uint32
	NodeCount     uint32
	Nodes         string
	NumTasks      uint32
	CPUFreqMin    Opt[uint32] // in kHz
	CPUFreqMax    Opt[uint32] // in kHz
	CPUFreqGov    uint32
	ReqUserID     uint32 // user who cancelled it; 0xffffffff for none
	Stats         StepStats
	StartTime     Time
	State         JobState
	StepID        StepID
	Name          string
	WorkDir       string
	StdErr        string
	StdIn         string
	StdOut        string
	SubmitLine    string
	Suspended     uint32 // in seconds
	SystemCPUSec  uint64
	SystemCPUUsec uint32
	TaskDist      uint32
	TimeLimit     Opt[uint32] // in minutes
	TotalCPUSec   uint64
	TotalCPUUsec  uint32
	TRESAlloc     string
	UserCPUSec    uint64
	UserCPUUsec   uint32
}

// StepStats describes the resource usage of a step.
type StepStats struct {
	CPUFreq        float64     // mean of all tasks, in kHz, or FloatNotSet
	ConsumedEnergy Opt[uint64] // in joules
	In             StepUsage   // CPU time, memory, and data that was read
	Out            StepUsage   // data that was written
}

// StepUsage contains the amounts of trackable resources that a step has used,
// read or written. Each field is a list such as "1=4,2=1000", in which each
// element consists of the id of a resource, "=" and an amount. In MaxNode,
// MaxTask, MinNode and MinTask, the index of a node or task takes the place of
// the amount.
type StepUsage struct {
	Average string
	Max     string
	MaxNode string
	MaxTask string
	Min     string
	MinNode string
	MinTask string
	Total   string
}

// AccountingJobFilter selects the jobs that match all fields that are set. A
// field is not set if it is nil, an empty string or 0.
type AccountingJobFilter struct {
	Accounts       []string
	AssocIDs       []string
	Clusters       []string // nil for all
	Constraints    []string
	CPUsMax        uint32
	CPUsMin        uint32
	JobFlags       Opt[uint32] // selects jobs with any of these bits in AccountingJob.Flags; 0 selects jobs without flags
	ExitCode       uint32
	Flags          JobFilterFlags
	Format         []string
	GroupIDs       []string
	Names          []string
	NodesMax       uint32
	NodesMin       uint32
	Partitions     []string
	QOS            []string // ids
	Reasons        []string
	Reservations   []string
	ReservationIDs []string
	Steps          []SelectedStep
	States         []string // numbers
	TimeLimitMax   uint32   // in minutes
	TimeLimitMin   uint32   // in minutes
	UsageEnd       Time
	UsageStart     Time
	UsedNodes      string // host list expression
	UserIDs        []string
	WCKeys         []string
}

func (AccountingJobFilter) selects(AccountingJob) {}

// AccountingJobPage selects at most Limit of the jobs that match the filter:
// those that follow the key After, in the order of their keys. A daemon that
// can't do this returns all jobs that match the filter, in any order.
type AccountingJobPage struct {
	AccountingJobFilter
	After AccountingJobKey // the zero value for the first page
	Limit uint32           // at least 1
}

// AccountingJobKey identifies the record of a job. Keys are ordered by the
// number of the job, then by the name of the cluster, then by Run.
type AccountingJobKey struct {
	JobID   uint32
	Cluster string
	Run     uint64 // distinguishes the jobs of a cluster that have the same number
}

// Key returns the key of the job's record. It never changes. Run is the index of
// the record, or the time of submission if the daemon has no such index.
func (j *AccountingJob) Key() AccountingJobKey {
	return AccountingJobKey{j.JobID, j.Cluster, cmp.Or(j.DBIndex, uint64(j.SubmitTime)^signBit)}
}

// Submitted returns the time of submission that is in k.
func (k AccountingJobKey) Submitted() Time { return Time(k.Run ^ signBit) }

// signBit makes the order of a time's bits that of the times.
const signBit = 1 << 63

// Compare returns a negative number if k precedes other, and a positive one if
// k follows other.
func (k AccountingJobKey) Compare(other AccountingJobKey) int {
	return cmp.Or(cmp.Compare(k.JobID, other.JobID), cmp.Compare(k.Cluster, other.Cluster), cmp.Compare(k.Run, other.Run))
}

// JobFilterFlags are flags that select jobs and the details to return.
type JobFilterFlags uint32

// The bits of JobFilterFlags, with the values of the protocol.
const (
	JobFilterDuplicates     JobFilterFlags = 1 << iota // include jobs whose number was reused
	JobFilterNoSteps                                   // without steps
	JobFilterNoTruncation                              // don't truncate times to the requested period
	JobFilterRunaway                                   // only jobs that the controller no longer knows
	JobFilterWholeHetJob                               // all components if one matches
	JobFilterNoWholeHetJob                             // only the components that match
	JobFilterNoWait                                    // don't wait for a slow database
	JobFilterNoDefaultUsage                            // use the requested period even if steps are requested
	JobFilterScript                                    // only the script
	JobFilterEnvironment                               // only the environment
)
