package model

import "time"

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

// UsageTable returns the length of the periods for which slurmdbd has usage in the
// table from which it answers a request about the time from start to end: "month"
// for whole months, "day" for whole days, and otherwise, or if the time ends in the
// future, "hour". Both times are on the hour, in the daemon's time zone.
func UsageTable(start, end, now time.Time) string {
	switch {
	case start.Hour() != 0 || end.Hour() != 0 || end.Sub(start) < 24*time.Hour || end.After(now):
		return "hour"
	case start.Day() == 1 && end.Day() == 1 && end.Sub(start) > 24*time.Hour:
		return "month"
	}
	return "day"
}
