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
	Nodes             Text // host list
	Features          Text
	Licenses          Text
	MaxStartDelay     Opt[uint32] // in seconds
	Partition         Text
	PurgeCompleted    Opt[uint32] // in seconds
	Watts             Opt[uint32]
	AllowedPartitions Text
	QOS               Text
	Users             Text
	Accounts          Text
	BurstBuffer       Text
	Groups            Text
	Comment           Text
	TRES              Text // "cpu=4,gres/gpu=2"
}
