package model

// Association links a user to an account of a cluster, optionally for a single
// partition. An Association without a user belongs to the account itself. A
// limit that is unset or unlimited has no effect.
type Association struct {
	Usage            []Usage
	Account          string
	Cluster          string
	Comment          Text
	DefaultQOSID     uint32
	Flags            uint32
	Shares           uint32 // for fair share; 0x7fffffff for the parent's
	GrpTRESMins      string // ids of trackable resources with amounts, such as "1=4,2=1000"
	GrpTRESRunMins   string
	GrpTRES          string
	GrpJobs          Opt[uint32]
	GrpJobsAccrue    Opt[uint32]
	GrpSubmitJobs    Opt[uint32]
	GrpWall          Opt[uint32] // in minutes
	ID               uint32
	IsDefault        Opt[uint16] // whether this is the default association of its user; 0 means no
	Left             uint32      // position in the tree of associations; only up to protocol 39
	Lineage          string      // accounts and user from the root down
	MaxTRESMinsPJ    string      // per job
	MaxTRESRunMins   string
	MaxTRESPJ        string // per job
	MaxTRESPN        string // per node
	MaxJobs          Opt[uint32]
	MaxJobsAccrue    Opt[uint32]
	MinPrioThreshold Opt[uint32]
	MaxSubmitJobs    Opt[uint32]
	MaxWallPJ        Opt[uint32] // minutes per job
	ParentAccount    string
	ParentID         uint32
	Partition        string
	Priority         Opt[uint32]
	QOSIDs           []string
	Right            uint32 // like Left
	UserID           uint32 // never sent by the daemon
	User             string
}

// Usage is what an association or a workload key used in an hour, a day or a
// month.
type Usage struct {
	AllocSecs   uint64
	TRES        TRES
	ID          uint32
	IDAlt       uint32 // quality of service, if the usage was requested by it
	PeriodStart Time
}

// AssocFilter selects associations. A field that is nil or 0 does not filter.
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
	Users          []string // if empty but not nil: exclude the accounts' own associations
}

func (AssocFilter) selects(Association) {}

// AssocFilterFlags are flags that select associations and the details to
// return.
type AssocFilterFlags uint32

// The bits of AssocFilterFlags, with the values that they have from protocol 42
// on.
const (
	AssocWithDeleted         AssocFilterFlags = 1 << iota
	AssocWithUsage                            // include the usage
	AssocOnlyDefaults                         // only the default association of each user
	AssocRawQOS                               // only the association's own QOS, not those inherited from the parent
	AssocSubAccounts                          // include the child accounts
	AssocWithoutParentInfo                    // without id and name of the parent
	AssocWithoutParentLimits                  // only the association's own limits, not those inherited from the parent
	AssocQOSUsage                             // with AssocWithUsage: the usage by quality of service; only from protocol 42 on
)
