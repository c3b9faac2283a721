package model

// Submitted is a controller's answer to a submitted job.
type Submitted struct {
	StepID      StepID
	ErrorCode   uint32 // Slurm's number of something to note although the job was accepted; 0: nothing
	UserMessage string // what the site's submit policy says to the user
}

// Ping is the result of pinging one controller, or the accounting daemon.
type Ping struct {
	Hostname   string
	Responding bool
	Latency    int64  // microseconds
	Mode       string // "primary", "backup1", "backup2", …
	Primary    bool
	TimedOut   bool // it did not answer in time; otherwise, when it is not Responding, it could not be reached
}

// JobTimes are the times that accompany a list of jobs.
type JobTimes struct {
	LastUpdate   Time // something about jobs changed
	LastBackfill Time // the backfill scheduler ran
}
