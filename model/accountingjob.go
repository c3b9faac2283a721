package model

// AccountingJob is a job in the records of the accounting daemon. The CPU time
// is the sum of its seconds and microseconds.
type AccountingJob struct {
	Account         string
	AdminComment    string
	AllocNodes      uint32
	ArrayJobID      uint32 // 0: not of an array
	ArrayMaxTasks   uint32 // that run at once; 0: no limit
	ArrayTaskID     Opt[uint32]
	ArrayTasks      string // tasks that have not begun, as "1-3,7%2"
	AssocID         uint32
	BlockID         string
	Cluster         string
	Constraints     string
	Container       string
	DBIndex         uint64 // from 24.11 on the job's SLUID
	DerivedExitCode uint32 // highest of all steps, as ExitCode
	DerivedExitText string // set by the user, who is shown it as the job's comment
	Elapsed         uint32 // seconds
	EligibleTime    Time
	EndTime         Time
	Environment     string // only when it is asked for
	Exclusive       string
	ExitCode        uint32 // as wait(2) gives it: code in bits 8 to 15, signal in bits 0 to 6
	Extra           string
	FailedNode      string
	Flags           uint32 // how it was scheduled
	GroupID         uint32
	JobID           uint32
	Name            string
	Left            uint32 // place in the tree of associations, up to protocol 39
	Licenses        string
	Lineage         string // accounts and user from the root down
	MCSLabel        string
	Nodes           string // as a host list expression
	HetJobID        uint32 // 0: not of a heterogeneous job
	HetJobOffset    Opt[uint32]
	Oversubscribe   string
	Partition       string
	Priority        Opt[uint32] // 0: held
	QOSID           uint32
	QOSReq          string
	ReqCPUs         uint32
	ReqMem          uint64 // MiB, per CPU when MemPerCPU is set in it, otherwise per node
	ReqUserID       uint32 // who ended it; 0xffffffff: no user did
	RestartCnt      uint16
	Reservation     string
	ReservationID   uint32
	ReservationReq  string
	Script          string // only when it is asked for
	SLUID           uint64
	ShowFull        uint32 // 0: only the steps that were asked for are there
	StartTime       Time
	State           JobState
	StateReason     uint32 // the last before it began or failed, a WAIT_ or FAIL_ number
	Steps           []AccountingStep
	SegmentSize     uint16
	StdErr          string
	StdIn           string
	StdOut          string
	SubmitTime      Time
	SubmitLine      string
	Suspended       uint32 // seconds
	SystemComment   string
	SystemCPUSec    uint64
	SystemCPUUsec   uint64
	TimeLimit       Opt[uint32] // minutes
	TotalCPUSec     uint64
	TotalCPUUsec    uint64
	TRESAlloc       string // as "1=4,2=1000": ids and amounts
	TRESReq         string // the same for requested resources
	UserID          uint32
	User            string // empty: not known by name
	UserCPUSec      uint64
	UserCPUUsec     uint64
	WCKey           string
	WCKeyID         uint32
	WorkDir         string
}

// AccountingStep is a step of an AccountingJob.
type AccountingStep struct {
	Container     string
	Elapsed       uint32 // seconds
	EndTime       Time
	ExitCode      uint32
	NodeCount     uint32
	Nodes         string
	NumTasks      uint32
	CPUFreqMin    Opt[uint32] // kHz
	CPUFreqMax    Opt[uint32] // kHz
	CPUFreqGov    uint32
	ReqUserID     uint32 // who ended it; 0xffffffff: no user did
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
	Suspended     uint32 // seconds
	SystemCPUSec  uint64
	SystemCPUUsec uint32
	TaskDist      uint32
	TimeLimit     Opt[uint32] // minutes
	TotalCPUSec   uint64
	TotalCPUUsec  uint32
	TRESAlloc     string
	UserCPUSec    uint64
	UserCPUUsec   uint32
}

// StepStats is the resource usage of a step. The texts have the form
// "1=4,2=1000", by the ids of trackable resources: amounts, or the numbers of
// the nodes and tasks that had them.
type StepStats struct {
	CPUFreq        float64     // mean over all tasks, kHz; FloatNotSet
	ConsumedEnergy Opt[uint64] // joules
	In             StepUsage   // read
	Out            StepUsage   // written
}

// StepUsage is one direction of a StepStats.
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

// AccountingJobFilter selects jobs that match each filter that is set. A nil
// list, an empty text and 0 are not set.
type AccountingJobFilter struct {
	Accounts       []string
	AssocIDs       []string
	Clusters       []string // nil: all
	Constraints    []string
	CPUsMax        uint32
	CPUsMin        uint32
	JobFlags       Opt[uint32] // AccountingJob.Flags, any of these; 0: none at all
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
	TimeLimitMax   uint32   // minutes
	TimeLimitMin   uint32   // minutes
	UsageEnd       Time
	UsageStart     Time
	UsedNodes      string // as a host list expression
	UserIDs        []string
	WCKeys         []string
}

func (AccountingJobFilter) selects(AccountingJob) {}

// JobFilterFlags are flags for how jobs are looked up and returned.
type JobFilterFlags uint32

// The bits of JobFilterFlags, as they travel.
const (
	JobFilterDuplicates     JobFilterFlags = 1 << iota // jobs with the number of a later one too
	JobFilterNoSteps                                   // without steps
	JobFilterNoTruncation                              // times as they are, not cut to the asked ones
	JobFilterRunaway                                   // only jobs that the controller no longer knows
	JobFilterWholeHetJob                               // all components when one matches
	JobFilterNoWholeHetJob                             // only what matches
	JobFilterNoWait                                    // without waiting for a slow database
	JobFilterNoDefaultUsage                            // with steps asked for: the asked times count still
	JobFilterScript                                    // the script alone
	JobFilterEnvironment                               // the environment alone
)
