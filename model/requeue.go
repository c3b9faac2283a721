package model

// Requeue are flags for requeueing a job.
type Requeue uint32

// The bits of Requeue.
const (
	RequeueIncomplete  Requeue = 0x1    // only a job that runs or is suspended
	RequeueHold        Requeue = 0x800  // held back
	RequeueSpecialExit Requeue = 0x1000 // held and marked SPECIAL_EXIT; only with RequeueHold
)
