package model

// LimitsQuery selects the limits that a controller returns. A controller returns
// the associations of accounts whatever the users are.
type LimitsQuery struct {
	Associations bool
	Users        []string // nil for all associations
	QOS          []string // nil for none
}

// AssocLimits are the limits that an association has in the controller, which
// include those that it inherits, and how much of them is used. The lists have an
// element for each trackable resource.
type AssocLimits struct {
	Association
	Usage          AssocUsage
	TRESMinutes    []Opt[uint64] // Grp… are limits for all jobs of the association and those below it
	TRESRunMinutes []Opt[uint64]
	TRES           []Opt[uint64]
	MaxTRESMinutes []Opt[uint64] // Max… are limits for each job
	MaxTRESRunMins []Opt[uint64] // not enforced
	MaxTRES        []Opt[uint64]
	MaxTRESPerNode []Opt[uint64]
}

// AssocUsage is how much of the limits of an association its jobs use.
type AssocUsage struct {
	AccrueCount     uint32
	TRES            []uint64
	TRESRunSeconds  []uint64 // resources of running jobs times the time that these may still run
	Wall            float64  // seconds that jobs have run; decays with time
	Factor          float64
	LevelShares     uint32
	SharesNorm      float64
	EffectiveUsage  float64
	UsageNormalized float64
	Usage           float64
	TRESSeconds     []float64 // decays with time
	Jobs            uint32    // running ones
	SubmitJobs      uint32    // waiting and running ones
	Level           float64
	ValidQOS        Bitmap
}

// QOSLimits are the limits of a QOS, and how much of them is used.
type QOSLimits struct {
	QOS
	Usage          QOSUsage
	TRESMinutes    []Opt[uint64] // of all jobs together, like the next two
	TRESRunMinutes []Opt[uint64]
	TRES           []Opt[uint64]
	MaxTRESMinutes []Opt[uint64] // of a job
	RunMinsPerAcct []Opt[uint64]
	RunMinsPerUser []Opt[uint64]
	MaxTRESPerAcct []Opt[uint64]
	MaxTRES        []Opt[uint64] // of a job
	MaxTRESPerNode []Opt[uint64]
	MaxTRESPerUser []Opt[uint64]
	MinTRES        []Opt[uint64] // of a job
}

// QOSUsage is how much of the limits of a QOS its jobs use.
type QOSUsage struct {
	AccrueCount    uint32
	Jobs           uint32
	SubmitJobs     uint32
	TRES           []uint64
	TRESRunSeconds []uint64
	Wall           float64 // seconds; decays with time
	NormPriority   float64
	Usage          float64
	TRESSeconds    []float64 // decays with time
	Users          []UsedLimits
	Accounts       []UsedLimits
}
