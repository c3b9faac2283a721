package model

// QOS is a quality of service. A limit that is unset or unlimited has no
// effect. A list of limits has the form "1=4,2=1000", in which the id of a
// trackable resource precedes each "=".
type QOS struct {
	Description       Text
	ID                uint32
	Flags             uint32
	GraceTime         uint32 // seconds before preemption
	GrpTRESMins       string
	GrpTRESRunMins    string
	GrpTRES           string
	GrpJobs           Opt[uint32]
	GrpJobsAccrue     Opt[uint32]
	GrpSubmitJobs     Opt[uint32]
	GrpWall           Opt[uint32] // in minutes
	MaxTRESMinsPJ     string      // per job
	MaxTRESRunMinsPA  string      // per account
	MaxTRESRunMinsPU  string      // per user
	MaxTRESPA         string
	MaxTRESPJ         string
	MaxTRESPN         string // per node
	MaxTRESPU         string
	MaxJobsPA         Opt[uint32]
	MaxJobsPU         Opt[uint32]
	MaxJobsAccruePA   Opt[uint32]
	MaxJobsAccruePU   Opt[uint32]
	MinPrioThreshold  Opt[uint32]
	MaxSubmitJobsPA   Opt[uint32]
	MaxSubmitJobsPU   Opt[uint32]
	MaxWallPJ         Opt[uint32] // in minutes
	MinTRESPJ         string
	Name              string
	PreemptIDs        Bitmap // QOS whose jobs it may preempt
	PreemptNames      []string
	PreemptMode       uint16
	PreemptExemptTime Opt[uint32] // seconds that a job runs before it can be preempted
	Priority          Opt[uint32]
	UsageFactor       float64 // this and the next two may be FloatNotSet
	UsageThreshold    float64
	LimitFactor       float64
}

// QOSFilter selects QOS. A field that is nil or 0 does not filter.
type QOSFilter struct {
	Descriptions []string
	Flags        QOSFilterFlags
	Format       []string
	IDs          []string
	Names        []string
	PreemptMode  uint16
}

func (QOSFilter) selects(QOS) {}

// QOSFilterFlags are flags that select QOS.
type QOSFilterFlags uint16

// QOSWithDeleted is the only bit of QOSFilterFlags, with the value that it has
// from protocol 42 on.
const QOSWithDeleted QOSFilterFlags = 1

// UsedLimits describes how much of a QOS's limits one user or account has used.
type UsedLimits struct {
	AccrueCount    uint32 // number of jobs whose priority grows with age
	Account        string
	Jobs           uint32 // number of running jobs
	SubmitJobs     uint32 // number of pending and running jobs
	TRES           []uint64
	TRESRunMinutes []uint64 // up to protocol 40
	TRESRunSeconds []uint64 // from protocol 41 on
	UserID         uint32
}
