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

// JobStateEntry is the state of a job, or of one or more tasks of an array.
type JobStateEntry struct {
	JobID       uint32
	ArrayJobID  uint32 // 0 if the job is not part of an array
	ArrayTaskID Opt[uint32]
	ArrayTasks  Bitmap // tasks that have no job of their own yet
	HetJobID    uint32 // 0 if the job is not part of a heterogeneous job
	State       JobState
}

// Has reports whether e describes the job that s identifies, or a part of that
// job.
func (s JobSelection) Has(e *JobStateEntry) bool {
	switch {
	case s.HetOffset.Set:
		return e.HetJobID == s.JobID && e.JobID == s.JobID+s.HetOffset.Number
	case s.ArrayTaskID.Set:
		return e.ArrayJobID == s.JobID && (e.ArrayTaskID == s.ArrayTaskID || e.ArrayTasks.Has(int(s.ArrayTaskID.Number)))
	}
	return s.JobID == e.JobID || s.JobID == e.ArrayJobID || s.JobID == e.HetJobID
}
