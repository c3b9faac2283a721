package model

// KillJobs selects the jobs to signal: those of Jobs, or all if Jobs is empty,
// that match every other filter that is set. It is refused if nothing is set.
type KillJobs struct {
	Account      string
	AdminComment string // written to the jobs
	Flags        Kill
	Name         string
	Jobs         []string // as "123", "123_4", "123+1"
	Partition    string
	QOS          string
	Reservation  string
	Signal       uint16
	State        Opt[JobState] // a base state
	UserID       Opt[uint32]
	UserName     string
	WCKey        string
	Nodes        string // as a host list expression
}

// KillResult is the result for one of the jobs. Without the flag KillVerbose
// only jobs that failed have one.
type KillResult struct {
	Code      uint32 // 0, or one of Slurm's error numbers
	Message   string
	Reason    string // what Code means, for people; it does not travel
	ID        SelectedStep
	RealJobID Opt[uint32]
	Sibling   string // the cluster of a federation that it is of
}

// KillFullJob sends the signal to the whole job: to its script and to every
// step.
const KillFullJob Kill = 8

// KillVerbose requests a KillResult for each job, including those that
// succeeded.
const KillVerbose Kill = 0x800
