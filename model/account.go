package model

// Account is an account of the accounting daemon.
type Account struct {
	Associations []Association // only when asked for
	Coordinators []Coordinator // only when asked for
	Description  string
	Flags        uint32
	Name         string
	Organization string
}

// Coordinator is a user who coordinates an account, or an account that a user
// coordinates.
type Coordinator struct {
	Name   string
	Direct Opt[uint16] // 0: only through an account above
}

// AccountFilter selects accounts; their names are those of Assoc.
type AccountFilter struct {
	Assoc         AssocFilter
	Descriptions  []string
	Flags         AccountFilterFlags
	Organizations []string
}

func (AccountFilter) selects(Account) {}

// AccountFilterFlags are flags for which accounts to return, and with which
// details.
type AccountFilterFlags uint32

// The bits of AccountFilterFlags, as they travel from protocol 41 on.
const (
	AccountWithDeleted AccountFilterFlags = 1 << iota
	AccountWithAssocs
	AccountWithCoordinators
)
