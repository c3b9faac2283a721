package model

// AccountingStats are statistics of the accounting daemon.
type AccountingStats struct {
	Rollup    Rollup      // for all clusters together
	Rollups   []Rollup    // for each cluster
	RPCs      []CallCount // by message number
	TimeStart Time        // start of the statistics
	Users     []CallCount // by user id
}

// Rollup contains statistics about the roll-ups of a cluster's usage. The field
// Periods contains the hourly, daily and monthly roll-ups, in this order.
type Rollup struct {
	Cluster string
	Periods []RollupPeriod
}

// RollupPeriod contains the statistics of the hourly, the daily or the monthly
// roll-ups. Durations are in microseconds.
type RollupPeriod struct {
	Count     uint16
	LastRun   Time
	TimeLast  uint64
	TimeMax   uint64
	TimeTotal uint64
}

// CallCount contains the number and the total duration of the requests of one
// type, or of the requests of one user.
type CallCount struct {
	Count uint32
	ID    uint32 // a message number, or a user id
	Time  uint64 // total time in microseconds
}
