package model

// QOS is a quality of service. A limit that is not set or unlimited has no
// effect. Amounts have the form "1=4,2=1000", by the ids of trackable
// resources.
type QOS struct {
	Description       string
	ID                uint32
	Flags             uint32
	GraceTime         uint32 // seconds before preemption
	GrpTRESMins       string
	GrpTRESRunMins    string
	GrpTRES           string
	GrpJobs           Opt[uint32]
	GrpJobsAccrue     Opt[uint32]
	GrpSubmitJobs     Opt[uint32]
	GrpWall           Opt[uint32] // minutes
	MaxTRESMinsPJ     string      // for each job
	MaxTRESRunMinsPA  string      // for each account
	MaxTRESRunMinsPU  string      // for each user
	MaxTRESPA         string
	MaxTRESPJ         string
	MaxTRESPN         string // on each node
	MaxTRESPU         string
	MaxJobsPA         Opt[uint32]
	MaxJobsPU         Opt[uint32]
	MaxJobsAccruePA   Opt[uint32]
	MaxJobsAccruePU   Opt[uint32]
	MinPrioThreshold  Opt[uint32]
	MaxSubmitJobsPA   Opt[uint32]
	MaxSubmitJobsPU   Opt[uint32]
	MaxWallPJ         Opt[uint32] // minutes
	MinTRESPJ         string
	Name              string
	PreemptIDs        Bitmap // of the QOS whose jobs make room
	PreemptNames      []string
	PreemptMode       uint16
	PreemptExemptTime Opt[uint32] // seconds that a job runs before it can make room
	Priority          Opt[uint32]
	UsageFactor       float64 // this and the other two may be FloatNotSet
	UsageThreshold    float64
	LimitFactor       float64
}

// QOSFilter selects QOS. A nil list and 0 mean no filter.
type QOSFilter struct {
	Descriptions []string
	Flags        QOSFilterFlags
	Format       []string
	IDs          []string
	Names        []string
	PreemptMode  uint16
}

func (QOSFilter) selects(QOS) {}

// QOSFilterFlags are flags for which QOS to return.
type QOSFilterFlags uint16

// QOSWithDeleted is the bit of QOSFilterFlags, as it travels from protocol 42 on.
const QOSWithDeleted QOSFilterFlags = 1

// UsedLimits is how much of the limits of a QOS one user or one account uses.
type UsedLimits struct {
	AccrueCount uint32 // jobs that grow older in priority
	Account     string
	Jobs        uint32 // that run
	SubmitJobs  uint32 // that wait or run
	TRES        []uint64
	TRESRun     []uint64 // TRES seconds, up to protocol 40 minutes
	UserID      uint32
}
