package model

// Cluster is a cluster in the accounting records.
type Cluster struct {
	Usage          []ClusterUsage
	Classification uint16
	ControlHost    string // empty if its controller is not registered
	ControlPort    uint32
	Dimensions     uint16
	Federation     FederationMember
	Flags          uint32
	ID             uint16
	Name           string
	Nodes          string // host list expression
	SelectPlugin   uint32 // data of a removed plugin; still part of the protocol
	RootAssoc      Association
	RPCVersion     uint16 // protocol version of its controller, times 256
	TRES           string // "1=4,2=1000": ids and amounts
}

// ClusterDeleted is a bit of Cluster.Flags. It means that the cluster was
// deleted.
const ClusterDeleted uint32 = 1 << 1

// FederationMember is the role of a cluster in a federation.
type FederationMember struct {
	Features     []string
	Name         string
	ID           uint32
	State        uint32
	SyncReceived uint8
	SyncSent     uint8
	Receiving    bool // whether there is a connection from the sibling cluster
	Sending      bool
}

// ClusterUsage is a cluster's usage of one trackable resource in an hour, a day
// or a month. Its times are in seconds.
type ClusterUsage struct {
	AllocSecs       uint64
	TRES            TRES
	DownSecs        uint64
	IdleSecs        uint64
	OverSecs        uint64 // planned beyond the available amount
	PlannedDownSecs uint64
	PeriodStart     Time
	PlannedSecs     uint64
}

// ClusterFilter selects clusters. A field that is nil or 0 does not filter.
type ClusterFilter struct {
	Classification uint16
	Names          []string
	Federations    []string
	Flags          Opt[uint32] // any of these flags
	Format         []string
	RPCVersions    []string
	UsageEnd       Time
	UsageStart     Time
	WithUsage      bool
	WithDeleted    bool
}

func (ClusterFilter) selects(Cluster) {}

// TRES is a trackable resource.
type TRES struct {
	AllocSecs uint64 // in usage records
	Count     uint64 // amount in a cluster or a usage record; 0 in a list of resources
	ID        uint32
	Name      string // name if Type has several, such as "gpu" for "gres"
	Type      string
}

// TRESFilter selects trackable resources. A field that is nil or 0 does not
// filter.
type TRESFilter struct {
	Count       uint64
	Format      []string
	IDs         []string
	Names       []string
	Types       []string
	WithDeleted bool
}

func (TRESFilter) selects(TRES) {}
