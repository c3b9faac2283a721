package model

// Submitted is a controller's answer to a submitted job.
type Submitted struct {
	StepID      StepID
	ErrorCode   uint32 // Slurm's number for a warning about the accepted job; 0 for none
	UserMessage string // message to the user from the site's submit policy
}

// Ping is the result of pinging a controller or the accounting daemon.
type Ping struct {
	Hostname   string
	Responding bool
	Latency    int64  // in microseconds
	Mode       string // "primary", "backup1", "backup2", …
	Primary    bool
	TimedOut   bool  // did not answer in time; if neither Responding nor TimedOut is set, the daemon was unreachable
	Err        error // why it does not respond; it may contain names of hosts, so only the log may show it
}

// ListTimes contains the times that a controller sends with a list.
type ListTimes struct {
	LastUpdate   Time // last change of any record
	LastBackfill Time // last run of the backfill scheduler; only with jobs
}
