package model

// ControllerStats are statistics of the controller since StatsStart, except for
// "last" values and current states. Durations are in microseconds.
type ControllerStats struct {
	Parts               bool // the answer is complete; controllers up to 25.05 set it
	RequestTime         Time // when it was asked
	StatsStart          Time // since when it counts
	ServerThreads       uint32
	AgentQueueSize      uint32 // requests to nodes that wait to be sent again
	Agents              uint32
	AgentThreads        uint32
	AccountingQueueSize uint32 // messages for the accounting daemon that wait
	GetTimeLatency      uint32 // of 1000 looks at the clock, as measured at its start
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
	QueueEnabled        bool // requests wait in queues, one a type
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
	CycleDepth   uint32   // jobs looked at, in all
	Exits        []uint32 // how often a cycle ended for each reason, in the order of Slurm's reasons
	QueueLen     uint32   // jobs that waited at the last cycle
}

// BackfillStats are statistics of the backfill scheduler.
type BackfillStats struct {
	Jobs          uint32 // started, since the daemon's start
	LastJobs      uint32 // started, since StatsStart
	CycleCounter  uint32
	CycleSum      uint64
	CycleLast     uint32
	LastDepth     uint32 // jobs looked at in the last cycle
	LastDepthTry  uint32 // of these, that had a chance to start
	QueueLen      uint32 // jobs that waited at the last cycle
	CycleMax      uint32
	WhenLastCycle Time
	DepthSum      uint32
	DepthTrySum   uint32
	QueueLenSum   uint32
	TableSize     uint32 // time slots tried in the last cycle
	TableSizeSum  uint32
	Active        bool     // it runs at the moment
	HetJobs       uint32   // components of heterogeneous jobs started, since the daemon's start
	Exits         []uint32 // as SchedulerStats.Exits
}

// RPCTypeStats is the number of requests of one type. The last four fields are
// set only with ControllerStats.QueueEnabled.
type RPCTypeStats struct {
	Type      uint16 // the message's number
	Count     uint32
	Time      uint64 // in all
	Queued    uint16 // waiting at the moment
	Dropped   uint64
	CycleLast uint16 // served in the last turn of the queue
	CycleMax  uint16
}

// RPCUserStats is the number of requests of one user.
type RPCUserStats struct {
	UserID uint32
	Count  uint32
	Time   uint64 // in all
}

// PendingRPCs is the number of messages of one type that wait to be sent to
// nodes.
type PendingRPCs struct {
	Type  uint32
	Count uint32
}

// PendingHosts is a message that waits to be sent, with its nodes.
type PendingHosts struct {
	Type  uint32
	Hosts string // as a host list expression
}
