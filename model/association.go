package model

// Association links a user to an account of a cluster, optionally in one
// partition. Without a user it is the association of the account itself. A limit that is
// not set or unlimited has no effect.
type Association struct {
	Usage            []Usage
	Account          string
	Cluster          string
	Comment          string
	DefaultQOSID     uint32
	Flags            uint32
	Shares           uint32 // for fair share; 0x7fffffff: the parent's
	GrpTRESMins      string // amounts as "1=4,2=1000", by the ids of trackable resources
	GrpTRESRunMins   string
	GrpTRES          string
	GrpJobs          Opt[uint32]
	GrpJobsAccrue    Opt[uint32]
	GrpSubmitJobs    Opt[uint32]
	GrpWall          Opt[uint32] // minutes
	ID               uint32
	IsDefault        Opt[uint16] // of its user; 0: no
	Left             uint32      // place in the tree of associations, up to protocol 39
	Lineage          string      // accounts and user from the root down
	MaxTRESMinsPJ    string      // for each job
	MaxTRESRunMins   string
	MaxTRESPJ        string // for each job
	MaxTRESPN        string // on each node
	MaxJobs          Opt[uint32]
	MaxJobsAccrue    Opt[uint32]
	MinPrioThreshold Opt[uint32]
	MaxSubmitJobs    Opt[uint32]
	MaxWallPJ        Opt[uint32] // minutes, for each job
	ParentAccount    string
	ParentID         uint32
	Partition        string
	Priority         Opt[uint32]
	QOSIDs           []string
	Right            uint32 // as Left
	UserID           uint32 // the daemon never says it
	User             string
}

// Usage is the usage of an association or a workload key in an hour, a day or a
// month.
type Usage struct {
	AllocSecs   uint64
	TRES        TRES
	ID          uint32
	IDAlt       uint32
	PeriodStart Time
}

// AssocFilter selects associations. A nil list and 0 mean no filter.
type AssocFilter struct {
	Accounts       []string
	Clusters       []string
	DefaultQOSIDs  []string
	Flags          AssocFilterFlags
	Format         []string
	IDs            []string
	Partitions     []string
	ParentAccounts []string
	QOSIDs         []string
	UsageEnd       Time
	UsageStart     Time
	Users          []string // without any element: not those that are accounts' own
}

func (AssocFilter) selects(Association) {}

// AssocFilterFlags are flags for which associations to return, and with which
// details.
type AssocFilterFlags uint32

// The bits of AssocFilterFlags, as they travel from protocol 42 on.
const (
	AssocWithDeleted         AssocFilterFlags = 1 << iota
	AssocWithUsage                            // what was used, too
	AssocOnlyDefaults                         // of each user only the default one
	AssocRawQOS                               // QOS as they are set, without the parent's
	AssocSubAccounts                          // the accounts below, too
	AssocWithoutParentInfo                    // neither parent's id nor name
	AssocWithoutParentLimits                  // limits as they are set, without the parent's
)
