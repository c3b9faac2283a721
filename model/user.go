package model

// User is a user of the accounting daemon.
type User struct {
	AdminLevel     uint16        // 0 not set, 1 none, 2 operator, 3 administrator
	Associations   []Association // only when asked for
	Coordinates    []Coordinator // the accounts; only when asked for
	DefaultQOSID   uint32
	DefaultAccount string
	DefaultWCKey   string
	Flags          uint32
	Name           string
	OldName        string
	UserID         uint32  // the daemon never says it
	WCKeys         []WCKey // only when asked for
}

// WCKey is a workload key, by which a user's jobs are distinguished in
// accounting.
type WCKey struct {
	Usage     []Usage
	Cluster   string
	Flags     uint32
	ID        uint32
	IsDefault Opt[uint16] // of its user; 0: no
	Name      string
	UserID    uint32
	User      string
}

// UserFilter selects users; their names are those of Assoc.
type UserFilter struct {
	AdminLevel      uint16 // 0: no filter
	Assoc           AssocFilter
	DefaultAccounts []string
	DefaultWCKeys   []string
	WithAssocs      bool
	WithCoordinates bool
	WithDeleted     bool
	WithWCKeys      bool
}

func (UserFilter) selects(User) {}

// WCKeyFilter selects workload keys. A nil list and 0 mean no filter.
type WCKeyFilter struct {
	Clusters     []string
	Format       []string
	IDs          []string
	Names        []string
	OnlyDefaults bool
	UsageEnd     Time
	UsageStart   Time
	Users        []string
	WithUsage    bool
	WithDeleted  bool
}

func (WCKeyFilter) selects(WCKey) {}
