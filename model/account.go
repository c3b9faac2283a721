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

// Coordinator is a user who looks after an account, or an account that a user looks after.
type Coordinator struct {
	Name   string
	Direct Opt[uint16] // 0: only through an account above
}

// AccountFilter says which accounts are asked for; their names are those of Assoc.
type AccountFilter struct {
	Assoc         AssocFilter
	Descriptions  []string
	Flags         AccountFilterFlags
	Organizations []string
}

// AccountFilterFlags is a set of which accounts are shown, and what of each.
type AccountFilterFlags uint32

// The bits of AccountFilterFlags, as they travel from protocol 41 on.
const (
	AccountWithDeleted AccountFilterFlags = 1 << iota
	AccountWithAssocs
	AccountWithCoordinators
)
