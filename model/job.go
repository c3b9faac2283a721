package model

// JobRun is what the bundled controller tells the bundled accounting daemon about
// the current run of a job, in addition to the Job.
type JobRun struct {
	CancelledBy Opt[uint32] `json:",omitzero"`  // user
	HasUsage    bool        `json:",omitempty"` // whether the fields below are set: the script has ended
	Status      uint32      `json:",omitempty"` // of the script, from wait(2)
	UserTime    uint64      `json:",omitempty"` // CPU time of all processes, in microseconds
	SystemTime  uint64      `json:",omitempty"` // the same in the kernel
	MaxRSS      uint64      `json:",omitempty"` // memory, in bytes
}

// Job is a job of a controller.
type Job struct {
	StepID                StepID
	Account               string
	AdminComment          string
	AllocNode             string
	AllocSID              uint32
	ArrayJobID            uint32 // 0 if the job is not part of an array
	ArrayTaskID           Opt[uint32]
	ArrayTasks            string
	ArrayMaxTasks         uint32
	AssocID               uint32
	BatchFeatures         string
	BatchFlag             uint16
	BatchHost             string
	Flags                 uint64
	BurstBuffer           string
	BurstBufferState      string
	BillableTRES          float64
	Comment               string
	Container             string
	ContainerID           string
	ContainerType         string
	CPUsPerTRES           string
	Deadline              Time
	DelayBoot             Opt[uint32] // in seconds
	DerivedExitCode       uint32      // highest exit code of all steps, in the same form as ExitCode
	ExitCode              uint32      // status from wait(2): code in bits 8 to 15, signal in bits 0 to 6
	Extra                 string
	FailedNode            string
	UserID                uint32
	Federated             bool // from protocol 42 on: whether the Fed fields are sent
	FedOrigin             string
	FedSiblingsActive     uint64
	FedSiblingsActiveText string
	FedSiblingsViable     uint64
	FedSiblingsViableText string
	GRESTotal             string
	GroupID               uint32
	HetJobID              uint32 // 0 if the job is not part of a heterogeneous job
	HetJobIDSet           string
	HetJobOffset          uint32
	Profile               uint32 // bits
	State                 JobState
	StateReason           uint32 // why the job waits or how it failed: a WAIT_ or FAIL_ number
	PowerFlags            uint8
	LastSchedEval         Time
	Licenses              string
	LicensesAllocated     string
	MailType              uint16
	MailUser              string
	MCSLabel              string
	MemPerTRES            string
	Name                  string
	Network               string
	PreemptTime           Time
	PreSusTime            Time
	Priority              uint32 // 0 if held
	Reboot                uint8
	ReqSwitches           uint32
	ResizeTime            Time
	RestartCnt            uint16
	ShowFlags             uint16
	TimeLimit             Opt[uint32] // in minutes
	Reservation           string
	ResvPorts             string
	SELinuxContext        string
	SiteFactor            uint32 // offset by NiceOffset
	StartProtocolVer      uint16
	StateDescription      string
	SuspendTime           Time
	SystemComment         string
	TimeMin               Opt[uint32] // in minutes
	Nice                  uint32      // offset by NiceOffset
	SubmitTime            Time
	EligibleTime          Time
	AccrueTime            Time
	TRESBind              string
	TRESAlloc             string
	TRESReq               string
	TRESFreq              string
	TRESPerJob            string
	TRESPerNode           string
	TRESPerSocket         string
	TRESPerTask           string
	UserName              string
	WaitForSwitch         uint32 // in seconds
	WCKey                 string
	StartTime             Time
	EndTime               Time // time when the job ended, or the latest time when it will end
	PriorityArray         []uint32
	PriorityArrayNames    string
	Cluster               string
	Nodes                 string
	SchedNodes            string
	Partition             string
	PathRules             PathRules // not sent: those of the daemon's release
	QOS                   string
	PreemptableTime       Time
	Resources             JobResources
	GRESDetail            []string // per node
	NodeIndexes           Bitmap
	Features              string
	Prefer                string
	ClusterFeatures       string
	WorkDir               string
	Dependency            string
	Command               string
	NumCPUs               uint32
	MaxCPUs               uint32
	NumNodes              uint32
	MaxNodes              uint32
	JobSizes              Bitmap
	Requeue               uint16
	NTasksPerNode         Opt[uint16]
	NTasksPerTRES         Opt[uint16]
	NumTasks              uint32
	Shared                Opt[uint16]
	CPUFreqMin            Opt[uint32]
	CPUFreqMax            Opt[uint32]
	CPUFreqGov            Opt[uint32]
	CronSpec              string
	Run                   JobRun `json:",omitzero"` // not sent to clients: see message.RecordRuns
	Detailed              bool   // from protocol 42 on: whether the fields about the job's requirements are sent
	SegmentSize           Opt[uint16]
	SubmitLine            string
	Exclusive             Opt[uint16]
	Oversubscribe         Opt[uint16]
	MemUpdateDelay        Opt[uint16]
	MemUpdateMargin       Opt[uint16]
	Contiguous            uint16
	CoreSpec              Opt[uint16]
	CPUsPerTask           Opt[uint16]
	MinCPUsPerNode        uint16
	MinMemory             uint64 // in MiB: per CPU if the bit MemPerCPU is set, otherwise per node
	MinTmpDisk            uint32 // in MiB
	OOMKillStep           Opt[uint16]
	ReqNodes              string
	ReqNodeIndexes        Bitmap
	ExcNodes              string
	ExcNodeIndexes        Bitmap
	StdErr                string
	StdIn                 string
	StdOut                string
	MultiCore             MultiCore
}

// JobResources describes the resources that are allocated to a job, in the
// compressed form that the controller sends. The Hosts field is the number of
// nodes.
type JobResources struct {
	Hosts               Opt[uint32]
	NCPUs               uint32
	NextStepNodeIndexes uint32
	NodeReq             uint32
	Nodes               string
	WholeNode           uint8
	ThreadsPerCore      uint16
	CRType              uint16
	CPUArrayReps        []uint32
	CPUArrayValue       []uint16
	CPUs                []uint16
	CPUsUsed            []uint16
	MemoryAllocated     []uint64
	MemoryUsed          []uint64
	SocketsPerNode      []uint16
	CoresPerSocket      []uint16
	SockCoreRepCount    []uint32
	CoreBitmap          Bitmap
	CoreBitmapUsed      Bitmap
	NodeBitmap          Bitmap
	NodeRanks           []uint32
}

// MultiCore is the processor layout that a job requires of its nodes.
type MultiCore struct {
	Flag            uint8
	BoardsPerNode   Opt[uint16]
	SocketsPerBoard Opt[uint16]
	SocketsPerNode  Opt[uint16]
	CoresPerSocket  Opt[uint16]
	ThreadsPerCore  Opt[uint16]
	NTasksPerBoard  Opt[uint16]
	NTasksPerSocket Opt[uint16]
	NTasksPerCore   Opt[uint16]
	PlaneSize       Opt[uint16]
}

// StepID identifies a job, or a step of a job.
type StepID struct {
	SLUID        uint64
	JobID        uint32
	Step         Opt[uint32]
	HetComponent Opt[uint32]
}

// Numbers of special steps.
const (
	InteractiveStep uint32 = 0xfffffffa // of salloc
	BatchStep       uint32 = 0xfffffffb // runs the batch script
	ExternStep      uint32 = 0xfffffffc // for processes that no step has started
)
