package model

// ReservationUpdate makes a reservation, or changes what is set in it of one
// that exists.
type ReservationUpdate struct {
	Name              string
	StartTime         Time        // 0: not set
	EndTime           Time        // 0: not set
	Duration          Opt[uint32] // minutes
	Flags             Opt[uint64]
	NodeCount         Opt[uint32]
	Cores             Opt[uint32]
	Nodes             string // as a host list
	Features          string
	Licenses          string
	MaxStartDelay     Opt[uint32] // seconds
	Partition         string
	PurgeCompleted    Opt[uint32] // seconds
	Watts             Opt[uint32]
	AllowedPartitions string
	QOS               string
	Users             string
	Accounts          string
	BurstBuffer       string
	Groups            string
	Comment           string
	TRES              string // as "cpu=4,gres/gpu=2"
}
