package model

// JobDesc describes a job to submit, or a change to an existing job.
type JobDesc struct {
	JobID               Opt[uint32] // job to change; not set for a new job
	SiteFactor          Opt[uint32]
	BatchFeatures       Text
	ClusterFeatures     Text
	Clusters            Text
	Contiguous          Opt[uint16]
	Container           Text
	ContainerID         Text
	ContainerType       Text
	CoreSpec            Opt[uint16]
	Distribution        Opt[uint32]
	KillOnNodeFail      Opt[uint16]
	Features            Text
	FedSiblingsActive   uint64
	FedSiblingsViable   uint64
	JobIDText           string
	Name                Text
	AllocNode           Text
	AllocSID            Opt[uint32]
	Array               Text
	BurstBuffer         Text
	MinCPUsPerNode      Opt[uint16]
	MinMemory           Opt[uint64] // in MiB: per CPU if the bit MemPerCPU is set, otherwise per node
	MemUpdateDelay      Opt[uint16]
	MemUpdateMargin     Opt[uint16]
	OOMKillStep         Opt[uint16]
	MinTmpDisk          Opt[uint32] // in MiB
	PowerFlags          Opt[uint8]
	Prefer              Text
	CPUFreqMin          Opt[uint32]
	CPUFreqMax          Opt[uint32]
	CPUFreqGov          Opt[uint32]
	Partition           Text
	Priority            Opt[uint32]
	Release             bool // in a change, restores the job's usual priority; not sent
	Dependency          Text
	Account             Text
	AdminComment        Text
	Comment             Text
	Nice                Opt[uint32] // offset by NiceOffset
	Profile             uint32
	QOS                 Text
	MCSLabel            Text
	OriginCluster       Text
	OpenMode            uint8
	Overcommit          Opt[uint8]
	AccountingFrequency Text
	NumTasks            Opt[uint32]
	ReqContext          Text
	ReqNodes            Text
	ExcNodes            Text
	Environment         []string // NAME=value
	Derived             []string // variables that other fields add to Environment; never sent
	SpankEnvironment    []string
	Script              string // text of the batch script
	Argv                []string
	StdErr              Text
	StdIn               Text
	StdOut              Text
	SubmitLine          Text
	WorkDir             Text
	Immediate           uint16
	Reboot              Opt[uint16]
	Requeue             Opt[uint16]
	Shared              Opt[uint16]
	CPUsPerTask         Opt[uint16]
	NTasksPerNode       Opt[uint16]
	NTasksPerBoard      Opt[uint16]
	NTasksPerSocket     Opt[uint16]
	NTasksPerCore       Opt[uint16]
	NTasksPerTRES       Opt[uint16]
	PlaneSize           Opt[uint16]
	CPUBindType         Opt[uint16]
	MemBindType         Opt[uint16]
	CPUBind             Text
	MemBind             Text
	TimeLimit           Opt[uint32] // in minutes
	TimeMin             Opt[uint32] // in minutes
	MinCPUs             Opt[uint32]
	MaxCPUs             Opt[uint32]
	MinNodes            Opt[uint32]
	MaxNodes            Opt[uint32]
	JobSizes            Text
	BoardsPerNode       Opt[uint16]
	SocketsPerBoard     Opt[uint16]
	SocketsPerNode      Opt[uint16]
	CoresPerSocket      Opt[uint16]
	ThreadsPerCore      Opt[uint16]
	UserID              Opt[uint32] // not set for the authenticated user
	UserName            string      // replaces UserID until the name is resolved; never sent
	GroupID             Opt[uint32] // not set for the group of the authenticated user
	GroupName           string      // replaces GroupID until the name is resolved; never sent
	AllocRespPort       uint16
	AllocTLSCert        Text
	RespHost            Text
	OtherPort           uint16
	ResvPortCnt         Opt[uint16]
	Network             Text
	BeginTime           Time
	EndTime             Time
	Deadline            Time
	Licenses            Text
	MailType            Opt[uint16]
	MailUser            Text
	Reservation         Text
	RestartCnt          uint16
	WarnFlags           uint16
	WarnSignal          uint16
	WarnTime            uint16 // seconds before the time limit
	WCKey               Text
	ReqSwitches         Opt[uint32]
	WaitForSwitch       Opt[uint32]
	WaitAllNodes        Opt[uint16]
	Flags               uint64
	DelayBoot           Opt[uint32] // in seconds
	Extra               Text
	X11                 uint16
	X11MagicCookie      Text
	X11Target           Text
	X11TargetPort       uint16
	CPUsPerTRES         Text
	MemPerTRES          Text
	TRESBind            Text
	TRESFreq            Text
	TRESPerJob          Text
	TRESPerNode         Text
	TRESPerSocket       Text
	TRESPerTask         Text
	Cron                CronEntry // Cron.Set is 0 if the job is not a cron job
	SegmentSize         Opt[uint16]
}

// CronEntry is the schedule of a cron job.
type CronEntry struct {
	Set        uint8
	Flags      uint32
	Minute     Bitmap
	Hour       Bitmap
	DayOfMonth Bitmap
	Month      Bitmap
	DayOfWeek  Bitmap
	Spec       string
	LineStart  uint32
	LineEnd    uint32
}
