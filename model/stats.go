package model

// ControllerStats contains statistics of the controller. They cover the time
// since StatsStart, except for current values and values of the last cycle.
// Durations are in microseconds.
type ControllerStats struct {
	Parts               bool // whether the answer is complete; controllers up to 25.05 set it
	RequestTime         Time // time of the request
	StatsStart          Time // start of the statistics
	ServerThreads       uint32
	AgentQueueSize      uint32 // number of requests that wait to be resent to nodes
	Agents              uint32
	AgentThreads        uint32
	AccountingQueueSize uint32 // number of messages that wait to be sent to the accounting daemon
	GetTimeLatency      uint32 // time for reading the clock 1000 times, as measured at the controller's start
	JobsSubmitted       uint32
	JobsStarted         uint32
	JobsCompleted       uint32
	JobsCanceled        uint32
	JobsFailed          uint32
	JobsPending         uint32 // at JobStatesTime
	JobsRunning         uint32 // at JobStatesTime
	JobStatesTime       Time
	Schedule            SchedulerStats
	Backfill            BackfillStats
	QueueEnabled        bool // whether requests wait in queues, with one queue for each type
	RPCTypes            []RPCTypeStats
	RPCUsers            []RPCUserStats
	PendingRPCs         []PendingRPCs
	PendingHosts        []PendingHosts
}

// SchedulerStats are statistics of the main scheduler.
type SchedulerStats struct {
	CycleMax     uint32
	CycleLast    uint32
	CycleSum     uint64
	CycleCounter uint32
	CycleDepth   uint32   // total number of examined jobs
	Exits        []uint32 // how often a cycle ended for each reason, in the order of Slurm's reasons
	QueueLen     uint32   // jobs that waited at the last cycle
}

// BackfillStats are statistics of the backfill scheduler.
type BackfillStats struct {
	Jobs          uint32 // started since the daemon's start
	LastJobs      uint32 // started since StatsStart
	CycleCounter  uint32
	CycleSum      uint64
	CycleLast     uint32
	LastDepth     uint32 // jobs that the last cycle examined
	LastDepthTry  uint32 // jobs among them that could have started
	QueueLen      uint32 // jobs that waited at the last cycle
	CycleMax      uint32
	WhenLastCycle Time
	DepthSum      uint32
	DepthTrySum   uint32
	QueueLenSum   uint32
	TableSize     uint32 // number of time slots that the last cycle tried
	TableSizeSum  uint32
	Active        bool     // whether it is running at present
	HetJobs       uint32   // started components of heterogeneous jobs, counted since the daemon's start
	Exits         []uint32 // like SchedulerStats.Exits
}

// RPCTypeStats contains the statistics of the requests of one type. The last
// four fields are set only if ControllerStats.QueueEnabled is set.
type RPCTypeStats struct {
	Type      uint16 // number of the message
	Count     uint32
	Time      uint64 // total time
	Queued    uint16 // number that are waiting at present
	Dropped   uint64
	CycleLast uint16 // number of requests that were served in the queue's last cycle
	CycleMax  uint16
}

// RPCUserStats contains the statistics of the requests of one user.
type RPCUserStats struct {
	UserID uint32
	Count  uint32
	Time   uint64 // total time
}

// PendingRPCs contains the number of messages of one type that wait to be sent
// to nodes.
type PendingRPCs struct {
	Type  uint32
	Count uint32
}

// PendingHosts describes a message that waits to be sent, and the nodes it is
// for.
type PendingHosts struct {
	Type  uint32
	Hosts string // host list expression
}
