package model

// KillJobs selects the jobs to signal. A job must match all conditions that are
// set. If the list Jobs is not empty, the job must be in it. A KillJobs without
// any condition is refused.
type KillJobs struct {
	Account      string
	AdminComment string // comment to store in the jobs
	Flags        Kill
	Name         string
	Jobs         []string // "123", "123_4" or "123+1"
	Partition    string
	QOS          string
	Reservation  string
	Signal       uint16
	State        Opt[JobState] // a base state
	UserID       Opt[uint32]
	UserName     string
	WCKey        string
	Nodes        string // host list expression
}

// KillResult is the result of sending a signal to one job. Jobs that were
// signalled have a KillResult only if the flag KillVerbose was set.
type KillResult struct {
	Code      uint32 // 0, or one of Slurm's error numbers
	Message   string
	Reason    string // description of Code for people; not sent
	ID        SelectedStep
	RealJobID Opt[uint32]
	Sibling   string // the job's cluster within the federation
}

// KillFullJob sends the signal to the whole job: to its script and to every
// step.
const KillFullJob Kill = 8

// KillBatchJob sends the signal only to the shell that runs the job's script.
const KillBatchJob Kill = 1

// KillVerbose requests a KillResult for every job, including the jobs that were
// signalled.
const KillVerbose Kill = 0x800
