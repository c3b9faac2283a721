package model

// TaskResult is the result of changing a job array, for some of the array's
// tasks.
type TaskResult struct {
	Tasks   string // "12_[1-3]"
	Code    uint32 // one of Slurm's error numbers; 0 on success
	Reason  string // description of Code
	Message string // additional text of the controller
}
