package model

// KillJobs says which jobs get a signal: those of Jobs, or all when there are none, that
// every other filter which is set matches. Nothing set at all is refused.
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

// KillResult is what became of one of the jobs. Without the flag for all only those
// that failed have one.
type KillResult struct {
	Code      uint32 // 0, or one of Slurm's error numbers
	Message   string
	Reason    string // what Code means, for people; it does not travel
	ID        SelectedStep
	RealJobID Opt[uint32]
	Sibling   string // the cluster of a federation that it is of
}

// KillFullJob sends the signal to all of the job: to its script and to every step.
const KillFullJob Kill = 8

// KillVerbose asks for a KillResult of each job, of those too where all went well.
const KillVerbose Kill = 0x800
