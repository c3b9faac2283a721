package dbd

import (
	"fmt"
	"time"

	"schedrestd/model"
)

// batchSteps returns the only step of a job, its script. Its state, exit code and
// usage are as in Slurm. A record that an older release wrote has no steps once
// its job has ended, because then nothing is known of the usage.
func batchSteps(j *model.Job) []model.AccountingStep {
	isActive := j.State.Base() == model.JobRunning
	if j.Nodes == "" || !isActive && !j.Run.HasUsage {
		return []model.AccountingStep{}
	}
	step := model.AccountingStep{
		Elapsed: elapsed(j, model.At(time.Now())), ExitCode: j.Run.Status, NodeCount: 1, Nodes: j.Nodes, NumTasks: 1,
		CPUFreqMin: model.Some[uint32](0), CPUFreqMax: model.Some[uint32](0), ReqUserID: notCancelled, StartTime: j.StartTime,
		EndTime: j.EndTime, State: stepState(j.State.Base()), StepID: model.StepID{JobID: j.StepID.JobID, Step: model.Some(model.BatchStep)},
		Name: "batch", TRESAlloc: tresByID(j.TRESAlloc),
	}
	if isActive {
		return []model.AccountingStep{step}
	}
	split := func(usec uint64) (sec uint64, rest uint32) { return usec / 1e6, uint32(usec % 1e6) }
	total := j.Run.UserTime + j.Run.SystemTime
	step.UserCPUSec, step.UserCPUUsec = split(j.Run.UserTime)
	step.SystemCPUSec, step.SystemCPUUsec = split(j.Run.SystemTime)
	step.TotalCPUSec, step.TotalCPUUsec = split(total)
	amounts, first := fmt.Sprintf("%d=%d,%d=%d", cpu, total/1000, mem, j.Run.MaxRSS), fmt.Sprintf("%d=0,%d=0", cpu, mem) // in milliseconds and bytes
	step.Stats.In = model.StepUsage{Average: amounts, Max: amounts, Min: amounts, Total: amounts,
		MaxNode: first, MaxTask: first, MinNode: first, MinTask: first}
	return []model.AccountingStep{step}
}

// stepState returns the state of the step of a job with a state. The step of a job
// that was stopped for any reason is cancelled.
func stepState(job model.JobState) model.JobState {
	switch job {
	case model.JobRunning, model.JobComplete, model.JobFailed, model.JobOutOfMemory:
		return job
	}
	return model.JobCancelled
}

// addCPUTime adds the CPU time of a job's steps to the job.
func addCPUTime(j *model.AccountingJob) {
	for i := range j.Steps {
		s := &j.Steps[i]
		j.UserCPUSec, j.UserCPUUsec = j.UserCPUSec+s.UserCPUSec, j.UserCPUUsec+uint64(s.UserCPUUsec)
		j.SystemCPUSec, j.SystemCPUUsec = j.SystemCPUSec+s.SystemCPUSec, j.SystemCPUUsec+uint64(s.SystemCPUUsec)
		j.TotalCPUSec, j.TotalCPUUsec = j.TotalCPUSec+s.TotalCPUSec, j.TotalCPUUsec+uint64(s.TotalCPUUsec)
	}
}
