package model

// UsageRow is the usage of one trackable resource in a period. Amounts are in
// seconds, multiplied by the units of the resource, such as CPU seconds. Which
// fields are set depends on the report.
type UsageRow struct {
	Cluster   string
	Account   string
	User      string   // empty for all users together
	Partition string   // of the association
	Accounts  []string // of the user
	WCKey     string
	QOS       string
	MinSize   uint64 // smallest number of CPUs of the jobs
	MaxSize   Opt[uint64]
	Jobs      uint64
	TRES      string // such as "cpu" or "gres/gpu"
	Start     Time
	End       Time

	Allocated   uint64
	Down        uint64
	PlannedDown uint64 // down because of maintenance
	Idle        uint64
	Planned     uint64 // kept free for jobs
	Over        uint64 // planned beyond the available amount
	Reported    uint64 // all of these except Over
	Count       uint64 // units of the resource in the cluster, on average
}

// RolledUp says up to which time an accounting daemon has rolled up the usage of a
// cluster.
type RolledUp struct {
	Cluster string
	Until   Time // end of the last period for which there is usage; 0 if there is none
}
