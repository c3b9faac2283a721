package model

// User is a user in the accounting records.
type User struct {
	AdminLevel     uint16        // 0 for not set, 1 for none, 2 for operator, 3 for administrator
	Associations   []Association // set only if requested
	Coordinates    []Coordinator // accounts that the user coordinates; set only if requested
	DefaultQOSID   uint32
	DefaultAccount string
	DefaultWCKey   string
	Flags          uint32
	Name           string
	OldName        string
	UserID         uint32  // never sent by the daemon
	WCKeys         []WCKey // set only if requested
}

// WCKey is a workload key, which distinguishes a user's jobs in accounting.
type WCKey struct {
	Usage     []Usage
	Cluster   string
	Flags     uint32
	ID        uint32
	IsDefault Opt[uint16] // whether this key is its user's default; 0 means no
	Name      string
	UserID    uint32
	User      string
}

// UserFilter selects users. The names of the users to select are in the field
// Assoc.
type UserFilter struct {
	AdminLevel      uint16 // 0 for no filter
	Assoc           AssocFilter
	DefaultAccounts []string
	DefaultWCKeys   []string
	WithAssocs      bool
	WithCoordinates bool
	WithDeleted     bool
	WithWCKeys      bool
}

func (UserFilter) selects(User) {}

// WCKeyFilter selects workload keys. A field that is nil or 0 does not filter.
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
