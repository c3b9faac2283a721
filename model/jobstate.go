package model

// SelectedStep identifies a job, a step, or a task or component of a job.
type SelectedStep struct {
	Step        StepID
	ArrayTaskID Opt[uint32]
	HetOffset   Opt[uint32]
	ArrayTasks  Bitmap // several tasks
}

// JobSelection identifies a job whose state is requested.
type JobSelection struct {
	JobID       uint32
	ArrayTaskID Opt[uint32] // not set for all tasks
	HetOffset   Opt[uint32] // not set for all components
}

// Selected returns s as the accounting daemon expects it.
func (s JobSelection) Selected() SelectedStep {
	return SelectedStep{Step: StepID{JobID: s.JobID}, ArrayTaskID: s.ArrayTaskID, HetOffset: s.HetOffset}
}

// JobStateEntry is the state of a job, or of one or more tasks of an array.
type JobStateEntry struct {
	JobID       uint32
	ArrayJobID  uint32 // 0 if the job is not part of an array
	ArrayTaskID Opt[uint32]
	ArrayTasks  Bitmap // tasks that have no job of their own yet
	HetJobID    uint32 // 0 if the job is not part of a heterogeneous job
	State       JobState
}
