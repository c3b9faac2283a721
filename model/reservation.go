package model

// Reservation reserves resources for some users, accounts or groups for some
// time.
type Reservation struct {
	Accounts            string // separated by commas; "-name" excludes
	BurstBuffer         string
	Comment             string
	Cores               uint32 // in all
	EndTime             Time
	Features            string
	Flags               uint64
	Licenses            string
	MaxStartDelay       uint32 // seconds that a job outside of it may delay a job in it
	Name                string
	NodeCount           uint32
	Nodes               string // as a host list expression
	Partition           string
	PurgeCompleted      Opt[uint32] // seconds of idleness before it is removed
	Watts               Opt[uint32]
	StartTime           Time
	TRES                string // as "cpu=128"
	Users               string // separated by commas; "-name" excludes
	Groups              string
	QOS                 string
	AllowedPartitions   string
	NodeIndexes         Bitmap
	CoreSpecializations []CoreSpecialization
}

// CoreSpecialization is the part of a node that a reservation holds if it does
// not hold the whole node.
type CoreSpecialization struct {
	Node  string
	Cores string // their numbers, as "0-3,8"
}
