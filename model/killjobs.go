package model

// KillJobs selects the jobs to signal: those jobs in the list Jobs that match
// all other fields that are set. If Jobs is empty, any job can match. A
// KillJobs in which nothing is set is refused.
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

// KillResult is the result of sending a signal to one job. Without the flag
// KillVerbose, there are results only for jobs that could not be signalled.
type KillResult struct {
	Code      uint32 // 0, or one of Slurm's error numbers
	Message   string
	Reason    string // description of Code for people; not sent
	ID        SelectedStep
	RealJobID Opt[uint32]
	Sibling   string // cluster of the federation that the job belongs to
}

// KillFullJob sends the signal to the whole job: to its script and to every
// step.
const KillFullJob Kill = 8

// KillVerbose requests a KillResult for each job, including jobs to which the
// signal was sent.
const KillVerbose Kill = 0x800
