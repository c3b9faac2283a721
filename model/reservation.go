package model

// Reservation is a period in which resources are reserved for users, accounts
// or groups.
type Reservation struct {
	Accounts            string // separated by commas; "-name" excludes
	BurstBuffer         string
	Comment             string
	Cores               uint32 // total number
	EndTime             Time
	Features            string
	Flags               uint64
	Licenses            string
	MaxStartDelay       uint32 // seconds by which a job outside of the reservation may delay a job in it
	Name                string
	NodeCount           uint32
	Nodes               string // host list expression
	Partition           string
	PurgeCompleted      Opt[uint32] // seconds of idleness before it is removed
	Watts               Opt[uint32]
	StartTime           Time
	TRES                string // "cpu=128"
	Users               string // separated by commas; "-name" excludes
	Groups              string
	QOS                 string
	AllowedPartitions   string
	NodeIndexes         Bitmap
	CoreSpecializations []CoreSpecialization
}

// CoreSpecialization lists the cores that a reservation has on one node, if the
// reservation does not have the whole node.
type CoreSpecialization struct {
	Node  string
	Cores string // numbers of the cores, "0-3,8"
}
