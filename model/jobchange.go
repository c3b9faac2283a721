package model

// TaskResult is the result of a change for some tasks of a job array.
type TaskResult struct {
	Tasks   string // as "12_[1-3]"
	Code    uint32 // one of Slurm's error numbers; 0: changed
	Reason  string // what Code means
	Message string // what the controller adds
}
