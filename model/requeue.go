package model

// Requeue are flags for requeueing a job.
type Requeue uint32

// The bits of Requeue.
const (
	RequeueIncomplete  Requeue = 0x1    // only if the job is running or suspended
	RequeueHold        Requeue = 0x800  // hold the job
	RequeueSpecialExit Requeue = 0x1000 // hold the job and mark it SPECIAL_EXIT; only with RequeueHold
)
