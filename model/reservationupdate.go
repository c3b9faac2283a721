package model

// ReservationUpdate creates a reservation or changes an existing one. A field
// that is not set leaves an existing reservation unchanged.
type ReservationUpdate struct {
	Name              string
	StartTime         Time        // 0 if not set
	EndTime           Time        // 0 if not set
	Duration          Opt[uint32] // in minutes
	Flags             Opt[uint64]
	NodeCount         Opt[uint32]
	Cores             Opt[uint32]
	Nodes             string // host list
	Features          string
	Licenses          string
	MaxStartDelay     Opt[uint32] // in seconds
	Partition         string
	PurgeCompleted    Opt[uint32] // in seconds
	Watts             Opt[uint32]
	AllowedPartitions string
	QOS               string
	Users             string
	Accounts          string
	BurstBuffer       string
	Groups            string
	Comment           string
	TRES              string // "cpu=4,gres/gpu=2"
}
