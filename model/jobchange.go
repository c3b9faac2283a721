package model

// TaskResult is the result that a change of a job array had for some of the
// tasks.
type TaskResult struct {
	Tasks   string // "12_[1-3]"
	Code    uint32 // one of Slurm's error numbers; 0 on success
	Reason  string // description of Code
	Message string // additional text of the controller
}
