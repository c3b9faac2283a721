package model

// NodeState holds a node's base state in the low four bits. The bits above are
// flags.
type NodeState uint32

// Base states of a node.
const (
	NodeUnknown NodeState = iota
	NodeDown
	NodeIdle
	NodeAllocated
	NodeError
	NodeMixed
	NodeFuture

	// NodeStateNone is the NextState of a node for which no reboot is planned.
	NodeStateNone NodeState = 0xfffffffe
)

// Flags of a node's state.
const (
	NodeExternal        NodeState = 0x10
	NodeReserved        NodeState = 0x20
	NodeUndrain         NodeState = 0x40
	NodeCloud           NodeState = 0x80
	NodeResume          NodeState = 0x100
	NodeDrain           NodeState = 0x200
	NodeCompleting      NodeState = 0x400
	NodeNotResponding   NodeState = 0x800
	NodePoweredDown     NodeState = 0x1000
	NodeFail            NodeState = 0x2000
	NodePoweringUp      NodeState = 0x4000
	NodeMaint           NodeState = 0x8000
	NodeRebootRequested NodeState = 0x10000
	NodeRebootCanceled  NodeState = 0x20000
	NodePoweringDown    NodeState = 0x40000
	NodeDynamicFuture   NodeState = 0x80000
	NodeRebootIssued    NodeState = 0x100000
	NodePlanned         NodeState = 0x200000
	NodeInvalidReg      NodeState = 0x400000
	NodePowerDown       NodeState = 0x800000
	NodePowerUp         NodeState = 0x1000000
	NodePowerDrain      NodeState = 0x2000000
	NodeDynamicNorm     NodeState = 0x4000000
	NodeBlocked         NodeState = 0x8000000
)

// Base returns the state without its flags.
func (s NodeState) Base() NodeState { return s & 0xf }

// JobState holds a job's base state in the low eight bits. The bits above are
// flags.
type JobState uint32

// Base states of a job. A job in state JobComplete, or in one of the states
// after it in this list, has ended.
const (
	JobPending JobState = iota
	JobRunning
	JobSuspended
	JobComplete
	JobCancelled
	JobFailed
	JobTimeout
	JobNodeFail
	JobPreempted
	JobBootFail
	JobDeadline
	JobOutOfMemory
)

// Flags of a job's state.
const (
	JobLaunchFailed JobState = 0x100
	JobRequeued     JobState = 0x400
	JobRequeueHold  JobState = 0x800
	JobSpecialExit  JobState = 0x1000
	JobResizing     JobState = 0x2000
	JobConfiguring  JobState = 0x4000
	JobCompleting   JobState = 0x8000
	JobStopped      JobState = 0x10000
	JobReconfigFail JobState = 0x20000
	JobPowerUpNode  JobState = 0x40000
	JobRevoked      JobState = 0x80000
	JobRequeueFed   JobState = 0x100000
	JobResvDelHold  JobState = 0x200000
	JobSignaling    JobState = 0x400000
	JobStageOut     JobState = 0x800000
	JobExpediting   JobState = 0x1000000
)

// Flags of a job (Job.Flags) that say whether backfill scheduling has examined
// the job.
const (
	JobBackfillTried     uint64 = 1 << 32 // at least one run of backfill scheduling has examined the job
	JobBackfillTriedLast uint64 = 1 << 33 // the last run of backfill scheduling has examined the job; controllers do not send this flag
)

// Base returns the state without its flags.
func (s JobState) Base() JobState { return s & 0xff }

// Ended reports whether the job has ended, whatever the reason.
func (s JobState) Ended() bool { return s.Base() >= JobComplete }

// NiceOffset is added to a nice value or a site factor, so that the sum on the
// wire is not negative.
const NiceOffset = 0x80000000

// MemPerCPU is a bit in an amount of memory. If the bit is set, the amount is
// per CPU. Otherwise it is per node.
const MemPerCPU uint64 = 1 << 63
